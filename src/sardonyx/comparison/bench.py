"""How long a run takes, and how much longer than elsewhere.

Two engines are timed in turns, so that a busy or throttling machine treats both alike:

    round 1   pause · 2 warm-up calls · timed calls of A        pause · warm-up · timed calls of B
    round 2   pause · 2 warm-up calls · timed calls of B        …

Each round gives one ratio of medians; the answer is the median of the ratios, with their spread.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sardonyx.backends.reference import Value
from sardonyx.comparison.compare import Inputs, explain_inputs, prepare_inputs, reusable
from sardonyx.comparison.engines import Opening, Run, engine_version, open_engine
from sardonyx.comparison.inputs import describe_feeds, sizes_of_feeds
from sardonyx.errors import InputError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load
from sardonyx.runtime.chosen import Precision

__all__ = ["Bench", "Ratio", "Schedule", "Timing", "bench", "bench_call"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Schedule:
    """How to time.

    Attributes:
        repeat: timed calls of each engine in all.
        warmup: calls before the first timed one of a round, not counted.
        block: timed calls of one engine before the other has its turn.
        pause: seconds of rest before each block.
    """

    repeat: int = 20
    warmup: int = 2
    block: int = 5
    pause: float = 0.1

    def __post_init__(self) -> None:
        for name, least in (("repeat", 1), ("warmup", 0), ("block", 1), ("pause", 0)):
            if getattr(self, name) < least:
                raise InputError(
                    f"{name} is {getattr(self, name)}; it must be at least {least}.",
                    value=getattr(self, name),
                    limit=least,
                )

    @property
    def blocks(self) -> list[int]:
        """Timed calls of each round."""
        whole, rest = divmod(self.repeat, self.block)
        return [self.block] * whole + ([rest] if rest else [])


@dataclass(frozen=True)
class Timing:
    """The seconds of each timed call of one engine, round by round."""

    engine: str
    rounds: tuple[tuple[float, ...], ...]

    @property
    def seconds(self) -> list[float]:
        return sorted(s for block in self.rounds for s in block)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def minimum(self) -> float:
        return self.seconds[0]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def percentile(self, percent: float) -> float:
        """The smallest time that at least `percent` of the calls did not exceed."""
        ordered = self.seconds
        rank = math.ceil(percent * len(ordered) / 100)
        return ordered[min(max(rank, 1), len(ordered)) - 1]

    def to_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "runs": len(self.seconds),
            "min": self.minimum,
            "mean": self.mean,
            "median": self.median,
            "p50": self.percentile(50),
            "p90": self.percentile(90),
            "p99": self.percentile(99),
            "seconds": [list(block) for block in self.rounds],
        }


@dataclass(frozen=True)
class Ratio:
    """The time of the first engine over that of the second: 2 is twice as slow."""

    median: float
    lowest: float
    highest: float
    rounds: int

    def to_json(self) -> dict[str, Any]:
        return {
            "median": self.median,
            "lowest": self.lowest,
            "highest": self.highest,
            "rounds": self.rounds,
        }


@dataclass(frozen=True)
class Bench:
    """What was timed, where, and how long it took."""

    name: str
    shapes: dict[str, str]
    schedule: Schedule
    timings: tuple[Timing, ...]
    ratio: Ratio | None
    machine: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inputs": dict(self.shapes),
            "machine": dict(self.machine),
            "schedule": {
                "repeat": self.schedule.repeat,
                "warmup": self.schedule.warmup,
                "block": self.schedule.block,
                "pause": self.schedule.pause,
            },
            "timings": [timing.to_json() for timing in self.timings],
            "ratio": None if self.ratio is None else self.ratio.to_json(),
        }


def bench(
    source: Source,
    *,
    name: str = "model",
    engine: str = "sardonyx",
    against: str | None = None,
    inputs: Inputs = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    schedule: Schedule | None = None,
    limits: Limits = DEFAULT_LIMITS,
    machine: Mapping[str, str] | None = None,
    threads: int | None = None,
    tune: bool = False,
    precision: Precision = "float32",
    progress: Progress | None = None,
    tell: Progress = lambda done, total: None,
) -> Bench:
    """Time a model on one engine, or on two in turns.

    Args:
        against: the engine to compare with.
        machine: what to say about the machine in the result.
        threads: that one run may use, on either engine; None for what each takes by itself.
        tune: have our own engine measure its kernels first, at the sizes of the inputs.
        precision: of our own engine.
        progress: hears (steps done, steps in all) while a model is compiled.
        tell: hears how many of the timed blocks are done.
    """
    plan = schedule if schedule is not None else Schedule()
    source = reusable(source, limits)
    feeds = prepare_inputs(source, inputs, seed=seed, dims=dims, limits=limits)
    names = [engine] if against is None else [engine, against]
    sizes = sizes_of_feeds(load(source, limits=limits), feeds) if tune else None
    how = Opening(limits, threads, progress, tune, sizes, precision)
    runs = [open_engine(each, source, how) for each in names]
    with explain_inputs(source, inputs, feeds, limits):
        rounds = _time_in_turns(runs, feeds, plan, tell)
    timings = tuple(
        Timing(engine_version(each), tuple(times))
        for each, times in zip(names, rounds, strict=True)
    )
    return Bench(
        name=name,
        shapes=describe_feeds(feeds),
        schedule=plan,
        timings=timings,
        ratio=None if against is None else _ratio(*timings),
        machine=dict(machine or {}),
    )


def bench_call(
    run: Run,
    feeds: Mapping[str, Value],
    *,
    name: str,
    engine: str,
    schedule: Schedule | None = None,
    machine: Mapping[str, str] | None = None,
    tell: Progress = lambda done, total: None,
) -> Bench:
    """Time what is no engine of ours: anything that takes feeds."""
    plan = schedule if schedule is not None else Schedule()
    (rounds,) = _time_in_turns([run], feeds, plan, tell)
    timing = Timing(engine, tuple(rounds))
    return Bench(name, describe_feeds(feeds), plan, (timing,), None, dict(machine or {}))


def _time_in_turns(
    runs: list[Run], feeds: Mapping[str, Value], plan: Schedule, tell: Progress
) -> list[list[tuple[float, ...]]]:
    times: list[list[tuple[float, ...]]] = [[] for _ in runs]
    total = len(plan.blocks) * len(runs)
    done = 0
    for number, calls in enumerate(plan.blocks):
        order = range(len(runs)) if number % 2 == 0 else reversed(range(len(runs)))
        for which in order:
            times[which].append(_time_block(runs[which], feeds, calls, plan))
            done += 1
            tell(done, total)
    return times


def _time_block(
    run: Run, feeds: Mapping[str, Value], calls: int, plan: Schedule
) -> tuple[float, ...]:
    time.sleep(plan.pause)
    for _ in range(plan.warmup):
        run(feeds)
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        run(feeds)
        seconds.append(time.perf_counter() - start)
    return tuple(seconds)


def _ratio(first: Timing, second: Timing) -> Ratio:
    ratios = [
        statistics.median(a) / statistics.median(b)
        for a, b in zip(first.rounds, second.rounds, strict=True)
    ]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios), len(ratios))
