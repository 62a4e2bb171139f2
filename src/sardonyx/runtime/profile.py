"""Where the time of a run goes: step by step, with the nodes inside, against the machine's limits.

profile = session.profile(feeds, runs=20)
profile.steps[0].seconds, .nodes, .flops_per_second
profile.chrome_trace()                # for chrome://tracing and Perfetto
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import onnx_ir as ir

from sardonyx.backends.c.contractions import variant_of
from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops import cost_of
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.plan import Plan, Step
from sardonyx.plan.text import kernel_title
from sardonyx.plan.traffic import accesses
from sardonyx.runtime.measure import Limits
from sardonyx.runtime.trace import Trace
from sardonyx.sizes import Size, evaluate

__all__ = ["Profile", "ProfiledNode", "ProfiledStep", "Work", "profile_runs", "works_of_plan"]

Backend = Literal["native", "reference", "sizes"]


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
        kernel: `convolution · wide`, `product · gemm panels`, `loops`, `reference backend`, ….
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
    """Attributes:
    runs: how many were timed.
    seconds: the median of whole runs, what lies between the steps among it.
    steps: in the order in which they run.
    limits: None on a machine that cannot compile.
    sizes: of the model's symbols in these runs.
    """

    runs: int
    seconds: float
    steps: tuple[ProfiledStep, ...]
    limits: Limits | None
    sizes: tuple[tuple[str, int], ...]

    @property
    def between(self) -> float:
        """Seconds that no step accounts for: feeding, binding sizes, giving the answer."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps))

    def slowest(self, count: int) -> list[ProfiledStep]:
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


# What the steps are


@dataclass(frozen=True)
class Work:
    """A step before it is timed; costs are sizes, or None where they are not known.

    `read` and `written` are None where nothing but the nodes' own bill tells.
    """

    backend: Backend
    kernel: str
    nodes: tuple[ir.Node, ...]
    read: Size | None = None
    written: Size | None = None


def works_of_plan(plan: Plan, nodes: Sequence[ir.Node]) -> list[Work]:
    """The steps of a plan, with the model's nodes."""
    found = []
    for step in plan.steps:
        if not isinstance(step, Step):
            reference = type(step).__name__ == "ReferenceStep"
            backend: Backend = "reference" if reference else "sizes"
            title = "reference backend" if reference else "sizes"
            found.append(Work(backend, title, (nodes[step.node],)))
            continue
        kernel = plan.kernels[step.kernel]
        inside = tuple(nodes[number] for number in step.nodes)
        title = kernel_title(kernel, variant_of(kernel)) if inside else "copy to channels last"
        border = accesses(plan, step)
        read = _sum([one.bytes for one in border if one.role == "in"])
        written = _sum([one.bytes for one in border if one.role == "out"])
        found.append(Work("native", title, inside, read, written))
    return found


def _sum(sizes: Sequence[Size | None]) -> Size | None:
    total: Size = 0
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


# Timing


def profile_runs(
    works: Sequence[Work],
    run: Callable[[Trace], tuple[int, int]],
    new_trace: Callable[[], Trace],
    *,
    runs: int,
    costs: Costs,
    limits: Limits | None,
) -> Profile:
    """Time the steps.

    Args:
        run: runs the model once, and says when it began and ended, in nanoseconds.
    """
    traces, wholes = [], []
    for _ in range(runs):
        trace = new_trace()
        wholes.append(run(trace))
        traces.append(trace)
    times = [end - begin for begin, end in wholes]
    shown = sorted(range(runs), key=times.__getitem__)[runs // 2]  # the run that is drawn
    sizes = {**costs.sizes, **traces[shown].sizes}
    steps = []
    for number, work in enumerate(works):
        seconds = statistics.median(t.spans[number][1] - t.spans[number][0] for t in traces) / 1e9
        begin, end = ((at - wholes[shown][0]) / 1e9 for at in traces[shown].spans[number])
        flops, moved = costs.of(work, sizes)
        nodes = tuple(ProfiledNode(describe(n), n.op_type, source_line(n)) for n in work.nodes)
        steps.append(
            ProfiledStep(
                number, work.backend, work.kernel, nodes, seconds, begin, end, flops, moved
            )
        )
    whole = statistics.median(times) / 1e9
    return Profile(runs, whole, tuple(steps), limits, tuple(sorted(sizes.items())))


@dataclass(frozen=True)
class Costs:
    """The bill of nodes, in numbers.

    Attributes:
        versions: of the operator sets.
        sizes: of the symbols that the inputs decide.
    """

    shapes: Shapes
    versions: Mapping[str, int]
    sizes: Mapping[str, int]

    def of(self, work: Work, sizes: Mapping[str, int]) -> tuple[int | None, int | None]:
        """Operations, and bytes that cross the border of the step.

        A kernel reads its tensors once, whatever its nodes would read one by one; but of a table
        that it looks things up in, it reads no more than the nodes' own bill says.
        """
        flops: int | None = 0
        read: int | None = 0
        written: int | None = 0
        for node in work.nodes:
            more, more_read, more_written = self._node(node, sizes)
            flops = None if flops is None or more is None else flops + more
            read = None if read is None or more_read is None else read + more_read
            written = None if written is None or more_written is None else written + more_written
        border_read, border_written = _number(work.read, sizes), _number(work.written, sizes)
        if border_read is not None and work.nodes:
            read = border_read if read is None else min(read, border_read)
        elif border_read is not None:
            read = border_read
        written = written if border_written is None else border_written
        return flops, None if read is None or written is None else read + written

    def _node(
        self, node: ir.Node, sizes: Mapping[str, int]
    ) -> tuple[int | None, int | None, int | None]:
        inputs = [None if value is None else self.shapes.of(value) for value in node.inputs]
        outputs = [self.shapes.of(value) for value in node.outputs]
        version = self.versions.get(normal_domain(node.domain), 1)
        try:
            cost = cost_of(node, inputs, outputs, version)
        except ShapeError:
            return None, None, None
        macs, flops = _number(cost.macs, sizes), _number(cost.flops, sizes)
        total = None if macs is None or flops is None else 2 * macs + flops
        return total, _number(cost.bytes_read, sizes), _number(cost.bytes_written, sizes)


def _number(size: Size | None, sizes: Mapping[str, int]) -> int | None:
    if size is None:
        return None
    try:
        return evaluate(size, sizes)
    except ShapeError:  # it depends on a size that this run did not decide
        return None
