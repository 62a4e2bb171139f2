"""A Plan for people: every step with its nodes and buffers, then memory, then where each node went.

    1  convolution · direct wide   3×3, stride 2, 32 → 64   by rule   kernel 1
         Conv 'conv1'  model.py:41
         Relu 'relu'
         reads   x   f32[batch, 32, 56, 56] axes 0 2 3 1   slot 0
         reads   w   f32 filters packed by 8               constant 0
         writes  y   f32[batch, 64, 28, 28] axes 0 2 3 1   slot 1

The same plan is the same text, in every process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sardonyx.loops.nodes import Kernel
from sardonyx.plan.kernels import AttentionKernel, ConvolutionKernel, KernelSource, ProductKernel
from sardonyx.plan.memory import most_alive, place_slots
from sardonyx.plan.origins import Constant, PlannedNode
from sardonyx.plan.plan import BindStep, Count, HostStep, Jump, Plan, ReferenceStep, Step, Tensor
from sardonyx.plan.traffic import accesses, packed_constants
from sardonyx.sizes import Size, substitute, symbols

__all__ = ["kernel_title", "plan_text"]

_ROLES = {"in": "reads", "out": "writes", "scratch": "scratch"}
_MOST_NAME = 64


def plan_text(
    plan: Plan,
    dims: Mapping[str, int] | None = None,
    variant_of: Callable[[KernelSource], str] | None = None,
) -> str:
    """The whole plan.

    Args:
        dims: sizes of symbols, for memory in numbers.
        variant_of: what the backend makes of a kernel, where it has a choice.
    """
    lines = [_headline(plan), ""]
    for number in range(len(plan.steps)):
        lines += _step(plan, number, variant_of)
    lines += ["", *_memory(plan, dims or {}), "", *_placement(plan)]
    return "\n".join(lines) + "\n"


def kernel_title(kernel: KernelSource, variant: str = "") -> str:
    """`convolution · direct wide`, `product · gemv` or `loops`: what kind of kernel it is."""
    if isinstance(kernel, Kernel):
        return "loops"
    if isinstance(kernel, AttentionKernel):
        return f"attention {kernel.variant}".rstrip()
    kind = "product" if isinstance(kernel, ProductKernel) else "convolution"
    return f"{kind} · {variant}" if variant else kind


def _headline(plan: Plan) -> str:
    counts = f"{_count(len(plan.steps), 'step')}, {_count(len(plan.kernels), 'kernel')}"
    return f"Plan: {counts}" + (
        f", over {', '.join(map(_name, plan.symbols))}" if plan.symbols else ""
    )


# Steps


def _step(
    plan: Plan, number: int, variant_of: Callable[[KernelSource], str] | None
) -> Iterator[str]:
    step = plan.steps[number]
    if isinstance(step, Step):
        kernel = plan.kernels[step.kernel]
        title = kernel_title(kernel, variant_of(kernel) if variant_of is not None else "")
        if not step.nodes:
            title += " · copy into another order of axes, or widened"
        detail = _detail(kernel)
        nodes = [plan.nodes[node] for node in step.nodes]
        rows = [(_ROLES[one.role], one.tensor) for one in accesses(plan, step)]
        tail = f"{_why(kernel)}   kernel {step.kernel}"
    elif isinstance(step, (Jump, Count)):
        title, detail, tail = _flow(step), "", ""
        nodes = [plan.nodes[step.node]]
        read = step.unless if isinstance(step, Jump) else step.limit
        rows = [] if read is None else [("reads", read)]
    else:
        title, detail, reads, writes = _host(step)
        nodes, tail = [plan.nodes[step.node]], ""
        rows = [("reads", one) for one in reads if one is not None]
        rows += [("writes", one) for one in writes if one is not None]
    yield f"{number:>3}  {title}" + (f"   {detail}" if detail else "") + tail
    yield from (f"       {_node(node)}" for node in nodes)
    table = [(role, *_tensor(plan, plan.tensors[tensor])) for role, tensor in rows]
    yield from (f"       {line}" for line in _columns(table))


def _flow(step: Jump | Count) -> str:
    if isinstance(step, Jump):
        return f"go to {step.to}" + ("" if step.unless is None else " where it is false")
    turn = "first" if step.start else "next"
    return f"{turn} turn of {_name(step.counter)}, or go to {step.to}"


def _host(
    step: HostStep,
) -> tuple[str, str, Sequence[int | None], Sequence[int | None]]:
    """What a step of the host is, what it learns, reads and writes."""
    if isinstance(step, ReferenceStep):
        return "reference backend", "", step.reads, step.writes
    if isinstance(step, BindStep):
        return "sizes, as computed", ", ".join(map(_name, step.symbols)), (step.tensor,), ()
    reads = tuple(None if one is None else one.tensor for one in step.inputs)
    return "sizes, by the rule of the node", ", ".join(map(_shape, step.outputs)), reads, ()


def _detail(kernel: KernelSource) -> str:
    """The sizes of a contraction."""
    if isinstance(kernel, ProductKernel):
        batch = "" if kernel.batch == 1 else f"{kernel.batch} of "
        packed = "" if kernel.b is None else ", packed as it runs"
        shape = f"{_factor(kernel.rows)} × {_factor(kernel.inner)} × {_factor(kernel.columns)}"
        return f"{batch}{shape}, panels of {kernel.panel}{packed}"
    if isinstance(kernel, ConvolutionKernel):
        parts = ["×".join(map(str, kernel.kernel))]
        for word, numbers in (("stride", kernel.strides), ("dilation", kernel.dilations)):
            if any(number != 1 for number in numbers):
                same = len(set(numbers)) == 1
                parts.append(f"{word} {numbers[0] if same else '×'.join(map(str, numbers))}")
        parts += [f"{kernel.groups} groups"] if kernel.groups > 1 else []
        return f"{', '.join(parts)}, {kernel.channels} → {kernel.filters}"
    if isinstance(kernel, AttentionKernel):
        queries = f"{_factor(kernel.rows)} × {kernel.size}, {_factor(kernel.keys)} keys"
        return f"{kernel.batch} of {queries} → {kernel.width}, panels of {kernel.panel}"
    return ""


def _why(kernel: KernelSource) -> str:
    """Why this kernel and no other, where there are others."""
    if (
        not isinstance(kernel, (ProductKernel, ConvolutionKernel))
        or len(kernel.choice.variants) < 2
    ):
        return ""
    return f"   {kernel.choice.why}"


def _factor(size: Size) -> str:
    shown = str(size)
    return f"({shown})" if " " in shown else shown


def _tensor(plan: Plan, tensor: Tensor) -> tuple[str, str, str]:
    """Its name, what it is, and where it lives."""
    place = tensor.place
    constant = plan.constants[place.number] if place.kind == "constant" else None
    kind: str = tensor.dtype or "object"
    if constant is not None and constant.packing is not None:
        kind += f" {_packing(constant)}"
    elif tensor.shape is not None:
        kind += _shape(tensor.shape)
        if tensor.order != tuple(range(len(tensor.order))):
            kind += f" axes {' '.join(map(str, tensor.order))}"
    where = "kept by Python" if place.kind == "object" else f"{place.kind} {place.number}"
    return _name(tensor.name) if tensor.name else "-", kind, where


def _packing(constant: Constant) -> str:
    packing = constant.packing
    assert packing is not None
    by = f" by {packing.numbers[-1]}" if packing.numbers else ""
    return f"{packing.name} packed{by}" + (", widened" if packing.widened else "")


def _shape(shape: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _node(node: PlannedNode) -> str:
    return _name(node.node, 2 * _MOST_NAME) + (f"  {_name(node.source)}" if node.source else "")


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows with their cells below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


# Memory


def _memory(plan: Plan, dims: Mapping[str, int]) -> Iterator[str]:
    at = ", ".join(f"{_name(name)}={size}" for name, size in sorted(dims.items()))
    yield "Memory" + (f" at {at}" if at else "")
    sizes = [substitute(slot.bytes, dims) for slot in plan.slots]
    unknown = sorted({name for size in sizes for name in symbols(size)})
    if unknown:
        yield f"  arena            {_count(len(sizes), 'slot')} over {', '.join(map(_name, unknown))}"
    else:
        arena, alive = _arena(plan, [size for size in sizes if isinstance(size, int)])
        yield f"  arena            {arena:,} bytes in {_count(len(sizes), 'slot')}"
        yield f"  alive at once    {alive:,} bytes at most"
    packed = packed_constants(plan)
    known = sum(size for size in packed.values() if isinstance(size, int))
    yield f"  constants        {_plain_bytes(plan):,} bytes as the model has them"
    yield f"  packed           {known:,} bytes in {_count(len(packed), 'constant')}"
    yield f"  copies           {_count(_copies(plan), 'step')} into another order of axes, or widened"


def _arena(plan: Plan, sizes: Sequence[int]) -> tuple[int, int]:
    """Bytes of the arena, and the most that are alive at once.

    What runs without a stop in between has an arena of its own, because sizes may be decided at a stop.
    """
    stops = [number for number, step in enumerate(plan.steps) if isinstance(step, HostStep)]
    spans = [(size, slot.first, slot.last) for size, slot in zip(sizes, plan.slots, strict=True)]
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for span in spans:
        parts.setdefault(sum(stop < span[1] for stop in stops), []).append(span)
    return sum(place_slots(part).bytes for part in parts.values()), most_alive(spans)


def _plain_bytes(plan: Plan) -> int:
    """Of the constants that some step reads as they lie in the model."""
    read = {
        one.tensor for step in plan.steps if isinstance(step, Step) for one in accesses(plan, step)
    }
    sizes = [
        plan.tensors[number].bytes for number in sorted(read) if _is_plain(plan.tensors[number])
    ]
    return sum(size for size in sizes if isinstance(size, int))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.place.kind == "constant" and tensor.dtype is not None and tensor.shape is not None


def _copies(plan: Plan) -> int:
    return sum(isinstance(step, Step) and not step.nodes for step in plan.steps)


# Placement


def _placement(plan: Plan) -> Iterator[str]:
    runs = {number for step in plan.steps if isinstance(step, Step) for number in step.nodes}
    runs |= {step.node for step in plan.steps if isinstance(step, (Jump, Count))}
    native = [node for number, node in enumerate(plan.nodes) if node.native and number in runs]
    gone = sum(node.native for node in plan.nodes) - len(native)
    slow = [node for node in plan.nodes if not node.native]
    yield f"Nodes: {len(plan.nodes)}"
    yield f"  native           {len(native)}" + _operators(native)
    yield f"  need not run     {gone}"
    yield f"  reference        {len(slow)}" + _operators(slow)
    yield from (f"       {_node(node)}: {node.reason}" for node in slow)


def _operators(nodes: Sequence[PlannedNode]) -> str:
    counts = sorted(Counter(node.op for node in nodes).items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{_name(op)} {count}" for op, count in counts)
    return f"   {shown}" if shown else ""


# Words


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _name(name: str, most: int = _MOST_NAME) -> str:
    """A name from a stranger's file: one line of printable characters, its middle left out if long."""
    if len(name) > most:
        name = f"{name[: most // 2]}…{name[-(most // 2) + 1 :]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
