"""The same model with fewer nodes, or in another version of the operator set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    import onnx_ir as ir

    from sardonyx.comparison.compare import Inputs
    from sardonyx.comparison.optimized import OptimizedModel

__all__ = ["convert_opset", "optimize", "simplify"]


def simplify(
    source: Source,
    *,
    without: Iterable[str] = (),
    opset: int | None = None,
    fold_budget: int = 1 << 30,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    inputs: Inputs = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizedModel:
    """The same model with fewer nodes, in the opset that it has; checked on example inputs.

    Args:
        without: names of rules and passes to leave out.
        opset: write the model in this version first, up or down.
        fold_budget: bytes that it may grow by, where constants are stored that every run would compute.
        dims: sizes of dynamic dimensions, for the account and the check.
        verify: run the model before and after, and raise where an answer changed.
        inputs: for the check; None for seeded examples.
    """
    return optimize(
        source,
        level=2,
        without=without,
        opset=opset,
        fold_budget=fold_budget,
        dims=dims,
        verify=verify,
        inputs=inputs,
        limits=limits,
        progress=progress,
    )


def optimize(
    source: Source,
    *,
    level: int = 3,
    runtime: str = "onnxruntime",
    without: Iterable[str] = (),
    opset: int | None = None,
    fold_budget: int = 1 << 30,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    inputs: Inputs = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizedModel:
    """The same model with less to compute and to move: `result.model`, `result.ledger`.

    Args:
        level: 0 nothing, 1 what is constant or unread, 2 as `simplify`, 3 all that is known.
        runtime: where the result is to run, as `onnxruntime`, `onnxruntime@1.17`, `tensorrt` or `sardonyx`. At
            level 3 the opset is raised where a rule needs it, to at most what this one loads, and rules whose
            result is slower there are left out.
        without, opset, fold_budget, dims, verify, inputs: as of `simplify`.
    """
    from sardonyx.comparison.optimized import optimize_model
    from sardonyx.inspection.runtimes import newest_opset
    from sardonyx.passes.optimize import Settings
    from sardonyx.passes.slower import SLOWER

    highest = newest_opset(runtime)
    slower = SLOWER.get(runtime.partition("@")[0], frozenset())
    settings = Settings(
        level,
        frozenset(without) | slower,
        dict(dims or {}),
        opset=opset,
        fold_budget=fold_budget,
        highest=highest if level == 3 and opset is None else None,
    )
    model = load(source, limits=limits)
    return optimize_model(model, settings, verify=verify, inputs=inputs, progress=progress)


def convert_opset(source: Source, version: int, *, limits: Limits = DEFAULT_LIMITS) -> ir.Model:
    """The model in another version of the default operator set, up or down.

    Raises:
        UnsupportedError: it cannot be written so; the message names the operator.
    """
    from sardonyx.passes.optimize import Settings
    from sardonyx.passes.optimize import optimize as run_optimize

    return run_optimize(load(source, limits=limits), Settings(0, opset=version)).model
