"""What crosses the border of a kernel: which tensors a step reads and writes, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sardonyx.loops.nodes import Buffer, Kernel, Load, Role, Store
from sardonyx.loops.walk import expressions, statements
from sardonyx.plan.amx import AMX_PARTS, amx_weights, depth_of, runs_of, whole_steps
from sardonyx.plan.choice import HALF_WEIGHTS
from sardonyx.plan.coded import coded_bytes
from sardonyx.plan.halves import HALF_ARITHMETIC, half_bytes
from sardonyx.plan.kernels import AttentionKernel, ConvolutionKernel, KernelSource, ProductKernel
from sardonyx.plan.origins import Constant
from sardonyx.plan.plan import BYTES, Plan, Step
from sardonyx.sizes import Size, ceil_div, product

__all__ = ["Access", "accesses", "packed_constants"]

WINOGRAD_POINTS, HALF_POINTS = 16, 24  # for every channel and filter; of float16
HALF_CHANNELS = 256  # of a block of Winograd's algorithm in float16


@dataclass(frozen=True)
class Access:
    """One tensor of a step; `bytes` is None where they are not known before it runs."""

    role: Role
    tensor: int
    bytes: Size | None


def accesses(plan: Plan, step: Step) -> tuple[Access, ...]:
    """The tensors that a step touches, in the order of its arguments; those it ignores are left out."""
    kernel = plan.kernels[step.kernel]
    touched = _touched(kernel)
    return tuple(
        Access(buffer.role, tensor, _bytes(plan, kernel, number, tensor))
        for number, (buffer, tensor) in enumerate(zip(_buffers(kernel), step.tensors, strict=True))
        if number in touched
    )


def packed_constants(plan: Plan) -> dict[int, Size | None]:
    """The bytes of every packed constant by its tensor, once whatever number of steps read it."""
    found: dict[int, Size | None] = {}
    for step in plan.steps:
        for access in accesses(plan, step) if isinstance(step, Step) else ():
            place = plan.tensors[access.tensor].place
            if place.kind == "constant" and plan.constants[place.number].packing is not None:
                found[access.tensor] = access.bytes
    return found


def _buffers(kernel: KernelSource) -> tuple[Buffer, ...]:
    return kernel.buffers if isinstance(kernel, Kernel) else kernel.epilogue.buffers


def _parts(kernel: KernelSource) -> tuple[Kernel, ...]:
    """All that it has in the kernel language."""
    if isinstance(kernel, Kernel):
        return (kernel,)
    return kernel.parts if isinstance(kernel, AttentionKernel) else (kernel.epilogue,)


def _touched(kernel: KernelSource) -> frozenset[int]:
    """Numbers of the buffers that the kernel reads or writes anywhere."""
    names: set[str] = set()
    for statement in (one for part in _parts(kernel) for one in statements(part.body)):
        if isinstance(statement, Store):
            names.add(statement.buffer)
        names.update(one.buffer for one in expressions(statement) if isinstance(one, Load))
    found = {number for number, one in enumerate(_buffers(kernel)) if one.name in names}
    if isinstance(kernel, ProductKernel):
        found |= {kernel.a.buffer, kernel.packed}
        found |= set() if kernel.b is None else {kernel.b.buffer}
        if kernel.coded is not None:
            found |= {kernel.coded.scales, kernel.coded.scratch}
    elif isinstance(kernel, ConvolutionKernel):
        found |= {kernel.input, kernel.weights}
    elif isinstance(kernel, AttentionKernel):
        found |= {kernel.packed_keys, kernel.packed_values}
    if isinstance(kernel, ProductKernel | ConvolutionKernel) and kernel.split is not None:
        found |= {kernel.split}
    return frozenset(found)


def _bytes(plan: Plan, kernel: KernelSource, number: int, tensor: int) -> Size | None:
    described = plan.tensors[tensor]
    if described.dtype is None:
        return None
    if described.shape is not None:
        return described.bytes
    elements: Size | None = None
    if isinstance(kernel, ProductKernel) and number == kernel.packed:
        if kernel.coded is not None:
            return coded_bytes(kernel)
        if kernel.choice.variant in AMX_PARTS:
            return _tiles(kernel.choice.variant, kernel.inner, kernel.columns)
        elements = ceil_div(kernel.columns, kernel.panel) * kernel.panel * kernel.inner
        if kernel.choice.variant in HALF_ARITHMETIC:
            return half_bytes(kernel.columns, kernel.inner)
        if kernel.choice.variant in HALF_WEIGHTS:
            return elements * BYTES["bf16"]
    elif isinstance(kernel, ConvolutionKernel) and number == kernel.weights:
        if kernel.choice.variant in AMX_PARTS:
            depth = depth_of(kernel.choice.variant)
            runs = runs_of(kernel.kernel, kernel.dilations, kernel.channels, depth)
            inner = whole_steps(prod(kernel.kernel) * kernel.channels, runs, depth)
            return _tiles(kernel.choice.variant, inner, kernel.filters)
        if kernel.choice.variant in HALF_ARITHMETIC and not kernel.depthwise:
            return _half_filters(kernel)
        elements = _filters(kernel, plan.constants[described.place.number])
    if elements is None:
        return None
    of_bytes = not isinstance(kernel, Kernel | AttentionKernel) and kernel.dtype == "i32"
    return elements if of_bytes else elements * BYTES[described.dtype]


def _tiles(variant: str, inner: Size, columns: Size) -> Size:
    """Bytes of weights for AMX tiles."""
    return amx_weights(variant, inner, columns) * BYTES["bf16"]


def _half_filters(kernel: ConvolutionKernel) -> Size:
    """Bytes of filters in float16, with those for Winograd's algorithm in front where it is that."""
    filters, inner = kernel.filters // kernel.groups, product(kernel.kernel) * kernel.channels // kernel.groups  # fmt: skip
    plain = kernel.groups * half_bytes(filters, inner)
    if kernel.choice.variant != "winograd f16":
        return plain
    heads = (ceil_div(kernel.channels, HALF_CHANNELS) - 1) * half_bytes(filters, 0)
    return plain + HALF_POINTS * (half_bytes(filters, kernel.channels) + heads)


def _filters(kernel: ConvolutionKernel, constant: Constant) -> Size:
    """Elements of packed filters; those of every group fill whole panels."""
    taps, name = product(kernel.kernel), "" if constant.packing is None else constant.packing.name
    if name == "winograd":
        taps += WINOGRAD_POINTS  # and the filters themselves
    if name == "winograd-bytes":
        taps = 2 * WINOGRAD_POINTS  # each of two bytes
    if name == "grouped":
        taps *= kernel.channels // kernel.groups
    if kernel.depthwise or name == "grouped" or constant.packing is None:
        return taps * kernel.filters
    panel = constant.packing.numbers[0 if name.startswith("winograd") else 1]
    return taps * kernel.channels * ceil_div(kernel.filters // kernel.groups, panel) * panel
