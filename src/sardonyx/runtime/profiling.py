"""Timing the steps of a session: what each of them is, what it costs, how long it took.

A step's operations are those of its nodes. Its bytes are those that cross its border: a fused kernel reads
its tensors once, whatever its nodes would read one by one.
"""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.backends.c.contractions import variant_of
from sardonyx.backends.reference import Program
from sardonyx.errors import CacheError, ShapeError, ToolchainError
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops import cost_of
from sardonyx.ops.costs import total
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.plan import Count, Jump, Plan, ReferenceStep, Step
from sardonyx.plan.text import kernel_title
from sardonyx.plan.traffic import accesses
from sardonyx.runtime.measure import Limits, machine_limits
from sardonyx.runtime.profile import Backend, Profile, ProfiledNode, ProfiledStep
from sardonyx.runtime.trace import Trace
from sardonyx.sizes import Size, evaluate

__all__ = ["Bill", "Work", "limits_of", "profile_runs", "works_of_plan", "works_of_program"]


@dataclass(frozen=True)
class Work:
    """A step before it is timed.

    Attributes:
        nodes: what it computes; none for a copy into another order of axes.
        read, written: bytes that cross its border; None where only its nodes' bill tells.
    """

    backend: Backend
    kernel: str
    nodes: tuple[ir.Node, ...]
    read: Size | None = None
    written: Size | None = None


def works_of_plan(plan: Plan, nodes: Sequence[ir.Node]) -> list[Work]:
    """The steps of a plan, with the nodes of the model's graph."""
    found = []
    for step in plan.steps:
        if isinstance(step, Step):
            kernel = plan.kernels[step.kernel]
            inside = tuple(nodes[number] for number in step.nodes)
            title = kernel_title(kernel, variant_of(kernel)) if inside else "copy, axes reordered"
            border = accesses(plan, step)
            read = total(one.bytes for one in border if one.role == "in")
            written = total(one.bytes for one in border if one.role == "out")
            found.append(Work("native", title, inside, read, written))
        elif isinstance(step, ReferenceStep):
            found.append(Work("reference", "reference backend", (nodes[step.node],)))
        elif isinstance(step, (Jump, Count)):
            found.append(Work("native", "control flow", (nodes[step.node],)))
        else:
            found.append(Work("sizes", "sizes by a rule", (nodes[step.node],)))
    return found


def works_of_program(program: Program) -> list[Work]:
    """The steps of a model that runs on the reference backend as a whole."""
    steps = program.block.steps
    return [Work("reference", "reference backend", (step.operator.node,)) for step in steps]


def limits_of(threads: int) -> Limits | None:
    """What the machine does at its best; None where nothing can be compiled to find out."""
    try:
        return machine_limits(threads)
    except (ToolchainError, CacheError):
        return None


def profile_runs(
    works: Sequence[Work],
    run: Callable[[], Trace],
    bill: Bill,
    *,
    runs: int,
    limits: Limits | None,
) -> Profile:
    """Run the model so many times, and put together what the traces say."""
    traces, wholes = [], []
    for _ in range(runs):
        begin = time.monotonic_ns()
        traces.append(run())
        wholes.append((begin, time.monotonic_ns()))
    times = [end - begin for begin, end in wholes]
    drawn = sorted(range(runs), key=times.__getitem__)[runs // 2]
    sizes = {**bill.sizes, **traces[drawn].sizes}
    steps = []
    for number, work in enumerate(works):
        spans = [trace.spans[number] for trace in traces]
        begin, end = (at - wholes[drawn][0] for at in spans[drawn])
        flops, moved = bill.of(work, sizes)
        steps.append(
            ProfiledStep(
                number=number,
                backend=work.backend,
                kernel=work.kernel,
                nodes=tuple(
                    ProfiledNode(describe(node), node.op_type, source_line(node))
                    for node in work.nodes
                ),
                seconds=statistics.median(end - begin for begin, end in spans) / 1e9,
                begin=begin / 1e9,
                end=end / 1e9,
                flops=flops,
                bytes=moved,
            )
        )
    inside = [sum(end - begin for begin, end in trace.spans.values()) for trace in traces]
    return Profile(
        runs=runs,
        seconds=statistics.median(times) / 1e9,
        between=statistics.median(map(operator.sub, times, inside)) / 1e9,
        steps=tuple(steps),
        limits=limits,
        sizes=tuple(sorted(sizes.items())),
    )


@dataclass(frozen=True)
class Bill:
    """What nodes cost, in numbers.

    Attributes:
        versions: of the operator sets.
        sizes: of the symbols that the inputs decide.
    """

    shapes: Shapes
    versions: Mapping[str, int]
    sizes: Mapping[str, int]

    def of(self, work: Work, sizes: Mapping[str, int]) -> tuple[int | None, int | None]:
        """Operations of a step, and the bytes that cross its border; None where no rule tells.

        Of a table that it looks things up in, a kernel reads no more than its nodes' own bill says.
        """
        costs = [self._node(node, sizes) for node in work.nodes]
        flops = _sum([cost[0] for cost in costs])
        read = _sum([cost[1] for cost in costs])
        written = _sum([cost[2] for cost in costs])
        border = _number(work.read, sizes)
        if border is not None:
            read = border if read is None or not costs else min(read, border)
        if work.written is not None:
            written = _number(work.written, sizes)
        return flops, _sum([read, written])

    def _node(
        self, node: ir.Node, sizes: Mapping[str, int]
    ) -> tuple[int | None, int | None, int | None]:
        """Operations, bytes read and bytes written."""
        inputs = [None if value is None else self.shapes.of(value) for value in node.inputs]
        outputs = [self.shapes.of(value) for value in node.outputs]
        version = self.versions.get(normal_domain(node.domain), 1)
        try:
            cost = cost_of(node, inputs, outputs, version)
        except ShapeError:
            return None, None, None
        macs, flops = _number(cost.macs, sizes), _number(cost.flops, sizes)
        work = None if macs is None or flops is None else 2 * macs + flops
        return work, _number(cost.bytes_read, sizes), _number(cost.bytes_written, sizes)


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _number(size: Size | None, sizes: Mapping[str, int]) -> int | None:
    if size is None:
        return None
    try:
        return evaluate(size, sizes)
    except ShapeError:  # it depends on a size that this run did not decide
        return None
