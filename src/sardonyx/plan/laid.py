"""Operands that lie as no matrix: a kernel of loops lays them out, and the product behind it reads that.

nctv,cvw->ntw        x[n, c, t, v]  ->  laid[n][t][c, v]        rows t, inner c and v
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.loops.build import cast
from sardonyx.loops.index import flatten, unflatten
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Contraction, Parts, Product
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import BATCH, Matrix
from sardonyx.plan.nests import Body, write_moved
from sardonyx.plan.write import Kept, Writer, Written
from sardonyx.sizes import Size, product, symbol

__all__ = ["Laid", "lay_operand", "worth_laying"]

LEAST = 8  # products of an element, which pay for moving it


@dataclass(frozen=True)
class Laid:
    """An operand that a kernel has laid out."""

    written: Written
    matrix: Matrix


def worth_laying(writer: Writer, group: Group, contraction: Contraction, side: int) -> bool:
    """Whether an element of `a` (0) or `b` (1) may have any place, and meets enough others.

    A size of 1 that stretches would be written out: what grows stays as it is.
    """
    if contraction.parts is None:
        return False
    value = group.root.node.inputs[contraction.operands[side]]
    assert value is not None
    laid, own = (
        product(_extents(contraction, contraction.parts, side)),
        product(writer.graph.shape(value)),
    )
    grows = laid > own if isinstance(laid, int) and isinstance(own, int) else laid != own
    met = contraction.rows if side else contraction.columns
    return laid != 1 and not grows and (not isinstance(met, int) or met >= LEAST)


def _extents(contraction: Contraction, parts: Parts, side: int) -> Shape:
    first, second = _sides(parts, side)
    return (*(contraction.batch[number] for number in parts.along[side]), *first, *second)


def _sides(parts: Parts, side: int) -> tuple[Shape, Shape]:
    """What rows and columns of the operand are products of."""
    return (parts.inner, parts.columns) if side else (parts.rows, parts.inner)


def lay_operand(
    writer: Writer, group: Group, contraction: Contraction, side: int, *, turned: bool
) -> Laid:
    """The kernel that lays `a` (0) or `b` (1) out, and the matrix that the writer's kernel has of it.

    Args:
        turned: the contraction is so (`Contraction.turned`).
    """
    lowering, parts = group.root.lowering, contraction.parts
    assert isinstance(lowering, Product)
    assert parts is not None
    along, (first, second) = parts.along[side], _sides(parts, side)
    extents = _extents(contraction, parts, side)
    value = group.root.node.inputs[contraction.operands[side]]
    assert value is not None
    dtype = writer.graph.dtype(value)
    kept = Kept(group.root.node, side, dtype, product(extents))

    def body(into: Writer) -> Body:
        described = lowering.describe(into.site(group))
        described = described.turned() if turned else described
        read = described.b if side else described.a
        target = into.extra(kept, dtype, "out")

        def move(where: Sequence[Size], last: Size) -> None:
            places = (*where, last)
            at: list[Size] = [0] * len(described.batch)
            for number, place in zip(along, places, strict=False):
                at[number] = place
            row, column = places[len(along) :][: len(first)], places[len(along) + len(first) :]
            element = read(tuple(at), flatten(row, first), flatten(column, second))
            into.b.store(target, flatten(places, extents), cast(element, dtype))

        return move

    written = write_moved(writer.graph, writer.stored, writer.orders, body, extents)
    buffer = writer.b.number_of(writer.extra(kept, dtype, "in"))
    whole = unflatten(symbol(BATCH), contraction.batch, writer.b.ranges)
    before = flatten([whole[number] for number in along], extents[: len(along)])
    offset = before * product((*first, *second))
    return Laid(written, Matrix(buffer, offset, product(second), 1, dtype))
