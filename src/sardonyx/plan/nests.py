"""Groups become loop nests of the kernel language, where the backend has no kernel of its own for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from sardonyx.loops.build import PARALLEL_GRAIN, cast
from sardonyx.loops.index import divides_by_data, unflatten
from sardonyx.loops.nodes import Kernel, Load, const
from sardonyx.loops.walk import expressions, sizes_of, statements
from sardonyx.ops.lowering import (
    Convolution,
    Counted,
    Element,
    IntegerConvolution,
    IntegerProduct,
    Nest,
    Position,
    Product,
    Relabel,
    TransposedConvolution,
)
from sardonyx.plan.across import LINE, Across, across
from sardonyx.plan.graph import Graph
from sardonyx.plan.group import Group
from sardonyx.plan.plan import BYTES, Order
from sardonyx.plan.pull import offset_of
from sardonyx.plan.write import Kept, Reordered, Writer, Written
from sardonyx.sizes import Size, product

__all__ = ["write_group", "write_reordered"]

WEIGHT = 4  # of an element, where work is divided among threads


def write_group(
    graph: Graph, group: Group, stored: frozenset[ir.Value], orders: Mapping[ir.Value, Order]
) -> Written:
    """The kernel of a group."""
    lowering = group.root.lowering
    if isinstance(lowering, (Element, Relabel)):
        return _write_elements(graph, group, stored, orders)
    writer = Writer(graph, stored, orders)
    if isinstance(lowering, Counted):
        return _write_counted(writer, lowering, group)
    if isinstance(lowering, Nest):
        lowering.build(writer.site(group))
    elif isinstance(
        lowering, (Convolution, TransposedConvolution, IntegerProduct, IntegerConvolution)
    ):
        lowering.nest.build(writer.site(group))
    else:
        assert isinstance(lowering, Product)
        _write_product(writer, lowering, group)
    return writer.done()


def _write_counted(writer: Writer, lowering: Counted, group: Group) -> Written:
    """The kernel that counts, then the one that stores as many."""
    graph, node = writer.graph, group.root.node
    total = lowering.count(writer.site(group, "out"))
    holder = Kept(node, -1, "i64", 1)
    writer.b.store(writer.extra(holder, "i64", "out"), 0, total)
    names = tuple(graph.decided_by(group.root))
    second = Writer(graph, writer.stored, writer.orders)
    lowering.build(second.site(group))
    return replace(writer.done(), more=(second.done(),), counts=(holder, names))


def _write_elements(
    graph: Graph, group: Group, stored: frozenset[ir.Value], orders: Mapping[ir.Value, Order]
) -> Written:
    """One loop nest over the result, with as many dimensions merged as the index maps allow."""
    value = group.result
    order = Writer(graph, stored, orders).order(value)
    sizes = [graph.shape(value)[axis] for axis in order]
    best, merged = None, max(len(sizes) - 1, 0)
    while True:
        writer = Writer(graph, stored, orders)
        inner = _element_loops(writer, value, order, sizes, merged)
        written = writer.done()
        assert isinstance(written.kernel, Kernel)
        if best is not None and inner is not None and _divides(written.kernel, inner):
            merged += 1
            break
        best = written
        if merged == 0:
            return best
        merged -= 1
    across = _read_across(Writer(graph, stored, orders), value, order, sizes, merged)
    if across is None:
        return best
    writer = Writer(graph, stored, orders)
    with across.loops(writer.b, sizes[:merged], product(sizes[merged:])) as places:
        for outer, flat in places():
            inside = unflatten(flat, sizes[merged:], writer.b.ranges)
            _put(writer, value, order, (*outer, *inside))
    return writer.done()


def _element_loops(
    writer: Writer, value: ir.Value, order: Order, sizes: Sequence[Size], merged: int
) -> str | None:
    """Loops over `sizes`, those from number `merged` on as one; the name of the innermost variable."""
    b = writer.b
    outer, inner = sizes[:merged], sizes[merged:]
    extent = product(inner)
    name: str | None = None
    if product(outer) == 1:
        with b.loop(extent, "parallel", grain=PARALLEL_GRAIN // WEIGHT) as flat:
            name = flat.lone_symbol if not isinstance(flat, int) else None
            where = (*([0] * len(outer)), *unflatten(flat, inner, b.ranges))
            _put(writer, value, order, where)
    else:
        with b.parallel(outer, extent * WEIGHT) as where, b.loop(extent, "vector") as flat:
            name = flat.lone_symbol if not isinstance(flat, int) else None
            _put(writer, value, order, (*where, *unflatten(flat, inner, b.ranges)))
    return name


def _put(writer: Writer, value: ir.Value, order: Order, at: Sequence[Size]) -> None:
    """The element at a position whose axes are in the order of bytes."""
    where = _position(order, at)
    work = writer.graph.producer[value]
    writer.put(value, where, writer.pull.compute(work, value, where))


def _position(order: Order, at: Sequence[Size]) -> Position:
    position: list[Size] = [0] * len(order)
    for axis, index in zip(order, at, strict=True):
        position[axis] = index
    return tuple(position)


def _read_across(
    writer: Writer, value: ir.Value, order: Order, sizes: Sequence[Size], merged: int
) -> Across | None:
    """Whether an input is read across its lines by the innermost loop, and along them by another."""
    b = writer.b
    with b.loops(sizes[:merged]) as outer, b.loop(product(sizes[merged:])) as flat:
        _put(writer, value, order, (*outer, *unflatten(flat, sizes[merged:], b.ranges)))
    loads = (
        one
        for statement in statements(writer.b.kernel().body)
        for one in expressions(statement)
        if isinstance(one, Load)
    )
    return across(loads, (*outer, flat), (*sizes[:merged], product(sizes[merged:])))


def write_reordered(graph: Graph, wanted: Reordered, orders: Mapping[ir.Value, Order]) -> Written:
    """A copy of a stored value with its axes in another order, or of another type."""
    value, order = wanted.value, wanted.order
    writer = Writer(graph, frozenset({value}), orders)
    shape, b = graph.shape(value), writer.b
    source, source_order = writer.source(value)
    target = writer.extra(wanted, wanted.dtype, "out")

    def move(at: Sequence[Size]) -> None:
        position = _position(order, at)
        element = b.load(source, offset_of(position, shape, source_order))
        b.store(target, offset_of(position, shape, order), cast(element, wanted.dtype))

    *outer, last = (shape[axis] for axis in order)
    along = order.index(source_order[-1])
    if along < len(outer):
        across = Across(along, LINE // BYTES[wanted.dtype])
        with across.loops(b, outer, last) as places:
            for at, inner in places():
                move((*at, inner))
    else:
        with b.parallel(outer, 4 * last) as where, b.loop(last, "vector") as inner:
            move((*where, inner))
    return writer.done()


def _divides(kernel: Kernel, name: str) -> bool:
    return any(
        divides_by_data(size, name)
        for statement in statements(kernel.body)
        for size in sizes_of(statement)
    )


def _write_product(writer: Writer, lowering: Product, group: Group) -> None:
    """The definition: one sum for every element of the result."""
    b, site = writer.b, writer.site(group)
    product_of = lowering.describe(site)
    extents = (*product_of.batch, product_of.rows, product_of.columns)
    with b.parallel(extents, product_of.inner) as (*batch, m, n):
        at = tuple(batch)
        total = b.local(const(0, product_of.dtype))
        with b.loop(product_of.inner, "vector") as k:
            b.set(total, total + product_of.a(at, m, k) * product_of.b(at, k, n))
        site.store(product_of.out(at, m, n), product_of.finish(at, m, n, total))
