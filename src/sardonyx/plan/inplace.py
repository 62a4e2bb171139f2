"""Results that take the bytes of an operand that nobody reads any more.

    y[i] = max(x[i], 0)        x dies here: y may lie where x lay

It is legal where every element of the operand is read at the position, and only there, at which the
result is stored afterwards. A contraction may so take over an operand of its epilogue, never one that
its sums are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.loops.nodes import Kernel, Load, Store
from sardonyx.loops.walk import expressions, statements
from sardonyx.plan.kernels import ConvolutionKernel, KernelSource, ProductKernel
from sardonyx.plan.plan import BYTES, Place, Slot, Step, Tensor

__all__ = ["in_place_pairs", "share_slots"]


def share_slots(
    tensors: Sequence[Tensor],
    slots: Sequence[Slot],
    steps: Sequence[object],
    kernels: Sequence[KernelSource],
) -> tuple[list[Tensor], list[Slot]]:
    """The tensors and slots of a plan, with results in place of operands where that is legal."""
    owner = list(range(len(slots)))
    spans = list(slots)
    for number, step in enumerate(steps):
        if not isinstance(step, Step):
            continue
        taken: set[int] = set()
        for source, result in in_place_pairs(kernels[step.kernel]):
            old, new = step.tensors[source], step.tensors[result]
            if step.tensors.count(old) > 1 or step.tensors.count(new) > 1:
                continue
            if not _same_bytes(tensors[old], tensors[new]):
                continue
            a, b = owner[tensors[old].place.number], owner[tensors[new].place.number]
            if a == b or a in taken or spans[a].last != number or spans[b].first != number:
                continue
            spans[a] = spans[a]._replace(last=spans[b].last)
            owner = [a if one == b else one for one in owner]
            taken.add(a)
    kept = sorted(set(owner))
    numbers = {old: new for new, old in enumerate(kept)}
    moved = [
        one._replace(place=Place("slot", numbers[owner[one.place.number]]))
        if one.place.kind == "slot"
        else one
        for one in tensors
    ]
    return moved, [spans[old] for old in kept]


def _same_bytes(a: Tensor, b: Tensor) -> bool:
    slots = a.place.kind == b.place.kind == "slot"
    return slots and a.dtype is not None and b.dtype is not None and a.bytes == b.bytes


def in_place_pairs(kernel: KernelSource) -> list[tuple[int, int]]:
    """Buffers (operand, result) where each element is read just where it is stored, and before."""
    body, excluded = _elementwise_part(kernel)
    if body is None:
        return []
    numbers = {buffer.name: number for number, buffer in enumerate(body.buffers)}
    stores: dict[str, list[Store]] = {}
    loads: dict[str, set[object]] = {}
    late: set[tuple[str, str]] = set()  # (operand, result): read after the store
    for statement in statements(body.body):
        for expression in expressions(statement):
            if isinstance(expression, Load):
                loads.setdefault(expression.buffer, set()).add(expression.offset)
                late.update((expression.buffer, result) for result in stores)
        if isinstance(statement, Store) and statement.buffer in numbers:
            stores.setdefault(statement.buffer, []).append(statement)
    found = []
    for result, written in stores.items():
        if len(written) != 1 or result in loads:
            continue
        for operand, offsets in loads.items():
            if operand not in numbers or numbers[operand] in excluded or (operand, result) in late:
                continue
            buffers = body.buffers[numbers[operand]], body.buffers[numbers[result]]
            same_size = BYTES[buffers[0].dtype] == BYTES[buffers[1].dtype]
            if same_size and buffers[0].role == "in" and offsets == {written[0].offset}:
                found.append((numbers[operand], numbers[result]))
    return found


def _elementwise_part(kernel: KernelSource) -> tuple[Kernel | None, frozenset[int]]:
    """The loops that store results, and the buffers that must not be written to meanwhile."""
    if isinstance(kernel, Kernel):
        return kernel, frozenset()
    if isinstance(kernel, ProductKernel):
        second = kernel.packed if kernel.b is None else kernel.b.buffer
        return kernel.epilogue, frozenset({kernel.a.buffer, kernel.packed, second})
    if isinstance(kernel, ConvolutionKernel):
        return kernel.epilogue, frozenset({kernel.input, kernel.weights})
    return None, frozenset()
