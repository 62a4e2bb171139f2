"""Groups become loop nests of the kernel language, where the backend has no kernel of its own for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

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
from sardonyx.plan.across import Across, across
from sardonyx.plan.graph import Graph
from sardonyx.plan.group import Group
from sardonyx.plan.plan import Order
from sardonyx.plan.pull import offset_of
from sardonyx.plan.write import Kept, Reordered, Writer, Written
from sardonyx.sizes import Size, product

__all__ = ["Body", "write_group", "write_moved", "write_reordered"]

# What loops do, at a place of the outer ones and of the innermost.
Body: TypeAlias = Callable[[Sequence[Size], Size], None]

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
        name = _element_loops(writer, value, order, sizes, merged)
        written = writer.done()
        assert isinstance(written.kernel, Kernel)
        if best is not None and name is not None and _divides(written.kernel, name):
            merged += 1
            break
        best = written
        if merged == 0:
            return best
        merged -= 1
    outer, inner = sizes[:merged], sizes[merged:]

    def body(writer: Writer) -> Body:
        return lambda where, flat: _put(
            writer, value, order, (*where, *unflatten(flat, inner, writer.b.ranges))
        )

    found = _read_across(Writer(graph, stored, orders), body, outer, product(inner))
    if found is None:
        return best
    return _write_across(Writer(graph, stored, orders), body, outer, product(inner), found)


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
    writer: Writer, body: Callable[[Writer], Body], outer: Sequence[Size], extent: Size
) -> Across | None:
    """Whether an input is read across its lines by the innermost loop, and along them by another."""
    put = body(writer)
    with writer.b.loops(outer) as where, writer.b.loop(extent) as flat:
        put(where, flat)
    loads = (
        one
        for statement in statements(writer.b.kernel().body)
        for one in expressions(statement)
        if isinstance(one, Load)
    )
    return across(loads, (*where, flat), (*outer, extent))


def _write_across(
    writer: Writer,
    body: Callable[[Writer], Body],
    outer: Sequence[Size],
    extent: Size,
    found: Across,
) -> Written:
    put = body(writer)
    with found.loops(writer.b, outer, extent) as places:
        for where, flat in places():
            put(where, flat)
    return writer.done()


def write_reordered(graph: Graph, wanted: Reordered, orders: Mapping[ir.Value, Order]) -> Written:
    """A copy of a stored value with its axes in another order, or of another type."""
    value, order = wanted.value, wanted.order
    shape, stored = graph.shape(value), frozenset({value})

    def body(writer: Writer) -> Body:
        source, source_order = writer.source(value)
        target = writer.extra(wanted, wanted.dtype, "out")

        def move(where: Sequence[Size], last: Size) -> None:
            position = _position(order, (*where, last))
            element = writer.b.load(source, offset_of(position, shape, source_order))
            writer.b.store(target, offset_of(position, shape, order), cast(element, wanted.dtype))

        return move

    return write_moved(graph, stored, orders, body, [shape[axis] for axis in order])


def write_moved(
    graph: Graph,
    stored: frozenset[ir.Value],
    orders: Mapping[ir.Value, Order],
    body: Callable[[Writer], Body],
    extents: Sequence[Size],
) -> Written:
    """Loops that store an element in each turn, in blocks where it is read across its lines."""
    *outer, extent = extents
    found = _read_across(Writer(graph, stored, orders), body, outer, extent)
    writer = Writer(graph, stored, orders)
    if found is not None:
        return _write_across(writer, body, outer, extent, found)
    move = body(writer)
    with writer.b.parallel(outer, WEIGHT * extent) as where, writer.b.loop(extent, "vector") as at:
        move(where, at)
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
