"""Looking a model over: what is wrong with it, what it costs, how it would run, and on what machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    from sardonyx.inspection.bill import Inspection
    from sardonyx.inspection.doctor import Diagnosis
    from sardonyx.inspection.findings import Report
    from sardonyx.passes.shapes import Shapes
    from sardonyx.runtime.chosen import Precision

__all__ = ["check", "diagnose", "infer_shapes", "inspect", "plan_text"]


def check(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Look a model over: findings with severity, node, source line and what to do.

    Never raises for a bad model; one that does not load gives a report with one error.
    """
    from sardonyx.inspection.check import check as run_check

    return run_check(source, limits=limits)


def inspect(
    source: Source, *, dims: Mapping[str, int] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Inspection:
    """What a model takes, gives and holds, and what running it costs, node by node and in all.

    Args:
        dims: values for symbolic dimensions; costs that depend on others stay expressions.
    """
    from sardonyx.inspection.inspect import inspect as run_inspect

    return run_inspect(source, dims=dims, limits=limits)


def infer_shapes(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> Shapes:
    """The type and shape of every value, as expressions over the symbols of the inputs."""
    from sardonyx.passes.shapes import infer_shapes as run_infer_shapes

    return run_infer_shapes(load(source, limits=limits))


def plan_text(
    source: Source,
    *,
    dims: Mapping[str, int] | None = None,
    precision: Precision = "float32",
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """How the model would run on this machine: steps, kernels, buffers, memory, and what is not native.

    Args:
        dims: values for symbolic dimensions, for memory in bytes and for what was measured at these sizes.
        precision: as of `Session`.
    """
    from sardonyx.backends.c.contractions import variant_of
    from sardonyx.passes.preparing.prepare import prepare
    from sardonyx.plan.text import plan_text as run_plan_text
    from sardonyx.runtime.chosen import Choosing
    from sardonyx.runtime.compiled import plan_native
    from sardonyx.runtime.machine import usable_cores
    from sardonyx.sizes import check_given

    model = load(source, limits=limits)
    shapes = infer_shapes(model, limits=limits)
    check_given(dims or {}, shapes.input_symbols | shapes.data_symbols)
    planned = prepare(model, shapes)
    choosing = Choosing(usable_cores(), dims or {}, precision=precision)
    plan = plan_native(planned.model, planned.shapes, choosing, border=planned.border).plan
    return run_plan_text(plan, dims, variant_of)


def diagnose() -> Diagnosis:
    """What this machine can do, and what Sardonyx finds on it."""
    from sardonyx.inspection.doctor import diagnose as run_diagnose

    return run_diagnose()
