"""Where the time of a run goes: step by step, with the nodes inside, against the machine's limits.

profile = session.profile(feeds, runs=20)
profile.steps[0].seconds, .nodes, .flops_per_second
profile.chrome_trace()                # for chrome://tracing and Perfetto
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sardonyx.runtime.measure import Limits

__all__ = ["Backend", "Profile", "ProfiledNode", "ProfiledStep"]

Backend = Literal["native", "reference", "sizes"]  # "sizes": a shape rule is asked during the run


@dataclass(frozen=True)
class ProfiledNode:
    """A node of the model; `source` is the user's own line, where the exporter recorded one."""

    node: str
    op: str
    source: str | None


@dataclass(frozen=True)
class ProfiledStep:
    """One kernel, or one node on the reference backend.

    Attributes:
        kernel: `convolution · direct wide`, `product · gemm`, `loops`, `reference backend`, ….
        nodes: what it computes; none for a copy into another order of axes.
        seconds: the median over all runs.
        begin, end: of one run, in seconds from its beginning.
        flops: operations of its nodes, a multiply-add being two; None where no rule tells.
        bytes: what it reads and writes, counted once; None likewise.
    """

    number: int
    backend: Backend
    kernel: str
    nodes: tuple[ProfiledNode, ...]
    seconds: float
    begin: float
    end: float
    flops: int | None
    bytes: int | None

    @property
    def flops_per_second(self) -> float | None:
        return None if self.flops is None or not self.seconds else self.flops / self.seconds

    @property
    def bytes_per_second(self) -> float | None:
        return None if self.bytes is None or not self.seconds else self.bytes / self.seconds

    def attained(self, limits: Limits) -> float | None:
        """The time that the machine's limits allow over the time it took. Past 1, it worked in a cache."""
        rates = [
            None if self.flops_per_second is None else self.flops_per_second / limits.flops,
            None if self.bytes_per_second is None else self.bytes_per_second / limits.bytes,
        ]
        return max((rate for rate in rates if rate is not None), default=None)


@dataclass(frozen=True)
class Profile:
    """Where the time of a run goes.

    Attributes:
        runs: how many were timed.
        seconds: of a whole run, the median.
        between: seconds that no step accounts for: checking feeds, binding sizes, handing over; the median.
        steps: in the order in which they run.
        limits: what the machine does at its best; None where nothing can be compiled to find out.
        sizes: of the model's symbols in these runs.
    """

    runs: int
    seconds: float
    between: float
    steps: tuple[ProfiledStep, ...]
    limits: Limits | None
    sizes: tuple[tuple[str, int], ...]

    def slowest(self, count: int) -> list[ProfiledStep]:
        """The steps that take longest, the slowest first."""
        return sorted(self.steps, key=lambda step: (-step.seconds, step.number))[:count]

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "seconds": self.seconds,
            "seconds_between_steps": self.between,
            "sizes": dict(self.sizes),
            "limits": None if self.limits is None else asdict(self.limits),
            "steps": [self._step_json(step) for step in self.steps],
        }

    def _step_json(self, step: ProfiledStep) -> dict[str, Any]:
        return {
            **asdict(step),
            "nodes": [asdict(node) for node in step.nodes],
            "flops_per_second": step.flops_per_second,
            "bytes_per_second": step.bytes_per_second,
            "attained": None if self.limits is None else step.attained(self.limits),
        }

    def chrome_trace(self) -> dict[str, Any]:
        """One run in the Trace Event Format: complete events, in microseconds, a row a backend."""
        rows: dict[Backend, int] = {"native": 1, "reference": 2, "sizes": 3}
        used = sorted({step.backend for step in self.steps}, key=rows.__getitem__)
        names = [_name_event("process_name", 0, "sardonyx")]
        names += [_name_event("thread_name", rows[backend], backend) for backend in used]
        events = [
            {
                "name": _title(step),
                "cat": step.backend,
                "ph": "X",
                "ts": step.begin * 1e6,
                "dur": (step.end - step.begin) * 1e6,
                "pid": 1,
                "tid": rows[step.backend],
                "args": self._step_json(step),
            }
            for step in self.steps
        ]
        return {"traceEvents": names + events, "displayTimeUnit": "ms"}


def _name_event(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}


def _title(step: ProfiledStep) -> str:
    ops = "+".join(node.op for node in step.nodes)
    return ops or step.kernel
