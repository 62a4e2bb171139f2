"""Running models: whether their answers are the same, how long they take, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    from sardonyx.comparison.bench import Bench, Schedule
    from sardonyx.comparison.compare import Comparison, Inputs
    from sardonyx.runtime.chosen import Precision
    from sardonyx.runtime.profile import Profile

__all__ = ["bench", "compare", "profile"]


def compare(
    a: Source,
    b: Source | None = None,
    inputs: Inputs = None,
    *,
    engines: Sequence[str] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    bisect: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run two models, or one model on two engines, on the same inputs and compare every output.

    Args:
        a: a model.
        b: another one; None compares `a` with itself on two engines.
        inputs: arrays by input name, a file or folder to read, or None for seeded examples.
        engines: "sardonyx", "onnxruntime" or "reference": one for both sides, or two.
        seed, dims: of the examples.
        rtol, atol: instead of the tolerance of each element type.
        bisect: where an output differs, find the first value inside that does; the result is a `Bisected`.
        progress: hears (steps done, steps in all) while a model is compiled.
    """
    from sardonyx.comparison.bisect import bisect as run_bisect
    from sardonyx.comparison.compare import compare as run_compare

    run = run_bisect if bisect else run_compare
    return run(
        a,
        b,
        inputs,
        engines=engines,
        seed=seed,
        dims=dims,
        rtol=rtol,
        atol=atol,
        limits=limits,
        progress=progress,
    )


def bench(
    source: Source,
    *,
    engine: str = "sardonyx",
    against: str | None = None,
    inputs: Inputs = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    schedule: Schedule | None = None,
    limits: Limits = DEFAULT_LIMITS,
    threads: int | None = None,
    precision: Precision = "float32",
    tune: bool = False,
    progress: Callable[[int, int], None] | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Bench:
    """Time a model on one engine, or on two in turns, with the machine described.

    Args:
        precision: of our own engine, as of `Session`.
        tune: have our own engine measure its kernels first, at the sizes of the inputs.
    """
    from sardonyx.comparison.bench import bench as run_bench
    from sardonyx.inspection.check import source_name
    from sardonyx.inspection.doctor import diagnose

    return run_bench(
        source,
        name=source_name(source),
        engine=engine,
        against=against,
        inputs=inputs,
        seed=seed,
        dims=dims,
        schedule=schedule,
        limits=limits,
        machine=diagnose().summary,
        threads=threads,
        precision=precision,
        tune=tune,
        progress=progress,
        tell=tell,
    )


def profile(
    source: Source,
    *,
    inputs: Inputs = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    runs: int = 20,
    warmup: int = 2,
    limits: Limits = DEFAULT_LIMITS,
    threads: int | None = None,
    precision: Precision = "float32",
    tune: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Profile:
    """Where the time of a run goes: kernel by kernel, with the nodes inside and what the machine allows.

    Args:
        inputs: arrays by input name, a file or folder to read, or None for seeded examples.
        runs: how many runs are timed, after `warmup` others.
        precision: as of `Session`.
        tune: measure kernels first, at the sizes of the inputs.
        progress: hears (steps done, steps in all) while the model is compiled.
    """
    from sardonyx.comparison.compare import explain_inputs, prepare_inputs, reusable
    from sardonyx.comparison.inputs import sizes_of_feeds
    from sardonyx.runtime.session import Session

    source = reusable(source, limits)
    feeds = prepare_inputs(source, inputs, seed=seed, dims=dims, limits=limits)
    sizes = sizes_of_feeds(load(source, limits=limits), feeds) if tune else None
    session = Session(
        source,
        limits=limits,
        threads=threads,
        precision=precision,
        progress=progress,
        tune=tune,
        fixed_dims=sizes,
    )
    with explain_inputs(source, inputs, feeds, limits):
        return session.profile(feeds, runs=runs, warmup=warmup)
