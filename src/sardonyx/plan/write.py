"""Groups become kernels of the kernel language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.loops.build import PARALLEL_GRAIN, Builder, cast
from sardonyx.loops.gelus import find_gelus
from sardonyx.loops.index import divides_by_data, flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, Kernel, Role, const
from sardonyx.loops.walk import sizes_of, statements
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
    Site,
    TransposedConvolution,
)
from sardonyx.plan.graph import Array, Graph
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import KernelSource
from sardonyx.plan.origins import Packing
from sardonyx.plan.plan import Order
from sardonyx.plan.pull import Pull, offset_of
from sardonyx.sizes import Size, product

__all__ = [
    "Argument",
    "Kept",
    "NeedsBytes",
    "PackedConstant",
    "Reordered",
    "Scratch",
    "Table",
    "Writer",
    "Written",
    "as_table",
    "value_of",
    "write_group",
    "write_reordered",
]

FEW_LAST = 4  # elements along the last axis of a copy that are written out: colours of pixels, which are vectors then


class NeedsBytes(Exception):  # noqa: N818  it is an answer, not a fault
    """A kernel reads a value in a way that only works if it is stored."""

    def __init__(self, value: ir.Value) -> None:
        super().__init__(value.name)
        self.value = value


@dataclass(frozen=True)
class Scratch:
    """A buffer that one kernel needs for itself."""

    dtype: Dtype
    size: Size


@dataclass(frozen=True)
class PackedConstant:
    """A constant of the model in the form that a kernel wants it.

    Attributes:
        factors: for filters, what each is multiplied by, as a table.
    """

    value: ir.Value
    packing: Packing
    factors: Table | None = None


@dataclass(frozen=True)
class Reordered:
    """A value with its axes in another order in memory, and as another type that holds all of its values."""

    value: ir.Value
    order: Order
    dtype: Dtype


@dataclass(frozen=True)
class Table:
    """Constants that a lowering brings along: numpy's name of the type, and the bytes."""

    dtype: str
    content: bytes

    def array(self) -> Array:
        return np.frombuffer(self.content, self.dtype)


@dataclass(frozen=True)
class Kept:
    """A buffer that one kernel of a node fills and the next one reads."""

    node: ir.Node
    number: int
    dtype: Dtype
    size: Size


Argument: TypeAlias = "ir.Value | Scratch | PackedConstant | Reordered | Table | Kept"

# By numpy's letters and bytes, byte order left out.
DTYPE_NAMES: dict[str, Dtype] = {
    "f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "b1": "bool",
}  # fmt: skip


def as_table(array: Array) -> Table:
    array = np.ascontiguousarray(array)
    return Table(array.dtype.str, array.tobytes())


def value_of(argument: Argument) -> ir.Value | None:
    """The value of the graph that an argument is made from; scratch memory is made from none."""
    if isinstance(argument, (Scratch, Table, Kept)):
        return None
    return argument if isinstance(argument, ir.Value) else argument.value


@dataclass(frozen=True)
class Written:
    """A kernel with what its buffers are, and the numbers of the nodes that it computes.

    Attributes:
        more: kernels that compute the rest of the same result.
        counts: the buffer with the size that this kernel has found out, and the symbols that it is of.
    """

    kernel: KernelSource
    arguments: tuple[Argument, ...]
    nodes: tuple[int, ...]
    more: tuple[Written, ...] = ()
    counts: tuple[Kept, tuple[str, ...]] | None = None


@dataclass
class Writer:
    """Writes one kernel; buffers come up as values are touched."""

    graph: Graph
    stored: frozenset[ir.Value]
    orders: Mapping[ir.Value, Order]
    b: Builder = field(default_factory=Builder)
    buffers: dict[ir.Value, str] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pull = Pull(self.graph, self.b, self.source, self.is_stored, self.table)

    def is_stored(self, value: ir.Value) -> bool:
        return value in self.stored or value not in self.graph.producer

    def order(self, value: ir.Value) -> Order:
        return self.orders.get(value, tuple(range(len(self.graph.shape(value)))))

    def source(self, value: ir.Value) -> tuple[str, Order]:
        known = value not in self.graph.constants and self.graph.facts(value).value is not None
        if (
            known
            and value not in self.graph.producer
            and value not in self.graph.variables
            and value not in self.graph.model.graph.inputs
        ):
            raise NeedsBytes(value)  # it was left out, because it is known before the model runs
        return self._buffer(value, "in"), self.order(value)

    def _buffer(self, value: ir.Value, role: Role) -> str:
        if value not in self.buffers:
            self.buffers[value] = self.b.buffer(self.graph.stored_dtype(value), role)
            self.arguments.append(value)
        return self.buffers[value]

    def scratch(self, dtype: Dtype, size: Size) -> str:
        return self.extra(Scratch(dtype, size), dtype, "scratch")

    def table(self, array: Array) -> str:
        """A buffer of constants; equal ones are one buffer."""
        wanted = as_table(array)
        for number, argument in enumerate(self.arguments):
            if argument == wanted:
                return self.b.name_of(number)
        return self.extra(wanted, DTYPE_NAMES[wanted.dtype[1:]], "in")

    def kept(self, node: ir.Node, role: Role) -> Callable[[Dtype, Size], str]:
        """Buffers of a node's own that outlive a kernel, numbered as they are asked for."""
        numbers = count()

        def buffer(dtype: Dtype, size: Size) -> str:
            return self.extra(Kept(node, next(numbers), dtype, size), dtype, role)

        return buffer

    def extra(self, argument: Argument, dtype: Dtype, role: Role) -> str:
        """A buffer that is not simply a value of the graph."""
        self.arguments.append(argument)
        return self.b.buffer(dtype, role)

    def value_of(self, number: int) -> ir.Value:
        """The value behind a buffer."""
        argument = self.arguments[number]
        assert isinstance(argument, ir.Value)
        return argument

    def numbers(self) -> dict[str, Array]:
        """Buffers with numbers that are known now, one after the other."""
        found = {}
        for position, argument in enumerate(self.arguments):
            if isinstance(argument, Table):
                found[self.b.name_of(position)] = argument.array()
            elif isinstance(argument, ir.Value) and argument in self.graph.constants:
                found[self.b.name_of(position)] = self.graph.constants[argument].reshape(-1)
        return found

    def put(self, value: ir.Value, position: Position, element: Expr) -> None:
        """Store an element of a value, unless nobody needs it."""
        if value in self.stored:
            buffer = self._buffer(value, "out")
            shape = self.graph.shape(value)
            where = offset_of(position, shape, self.order(value))
            self.b.store(buffer, where, cast(element, self.graph.stored_dtype(value)))

    def finish(self, group: Group, output: int, position: Position, element: Expr) -> None:
        """An element of the root's output, and all that was fused after it."""
        value = group.root.node.outputs[output]
        if output or not group.tail:
            self.put(value, position, element)
            return
        self.pull.seed(value, position, element)
        for work in group.tail:
            result = work.node.outputs[0]
            if isinstance(work.lowering, Relabel):
                self.pull.works.add(work)
                self.pull.check(work)
                flat = flatten(position, self.graph.shape(value))
                element = self.pull.read(value, position)
                position = unflatten(flat, self.graph.shape(result), self.b.ranges)
            else:
                element = self.pull.compute(work, result, position)
            self.pull.seed(result, position, element)
            value = result
        self.put(value, position, self.pull.seeded(value, position))

    def site(self, group: Group, kept: Role = "in") -> Site:
        def store(output: int, position: Position, element: Expr) -> None:
            self.finish(group, output, position, element)

        order = self.order(group.result)
        last = len(order) > 2 and order[-1] == 1
        return self.pull.site(
            group.root,
            store=store,
            scratch=self.scratch,
            channels_last=last,
            kept=self.kept(group.root.node, kept),
            input_order=lambda index: self._order_read(group.root.node.inputs[index]),
        )

    def _order_read(self, value: ir.Value | None) -> Order:
        """How a value lies; where it is written into its reader, how one of its rank lies that it is computed of."""
        assert value is not None
        shape = self.graph.shape(value)
        while not self.is_stored(value):
            work = self.graph.producer[value]
            alike = [
                one
                for one in work.node.inputs
                if one is not None and len(self.graph.facts(one).shape or ()) == len(shape)
            ]
            if not isinstance(work.lowering, Element) or work.node.op_type == "Transpose":
                alike = []
            if not alike:
                return tuple(range(len(shape)))
            value = max(alike, key=self.orders.__contains__)
        return self.order(value)

    def done(self, kernel: KernelSource | None = None) -> Written:
        """The kernel that was written, or one of the backend that was made around it."""
        nodes = tuple(sorted(work.number for work in self.pull.works))
        return Written(kernel or self.kernel(), tuple(self.arguments), nodes)

    def kernel(self) -> Kernel:
        """What was written, with Gelus as one operation."""
        return find_gelus(self.b.kernel())


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
    shape = graph.shape(value)
    writer = Writer(graph, stored, orders)
    order = writer.order(value)
    sizes = [shape[axis] for axis in order]
    merged = len(sizes) - 1
    best: Written | None = None
    while True:
        writer = Writer(graph, stored, orders)
        inner = _element_loops(writer, value, order, sizes, max(merged, 0))
        written = writer.done()
        assert isinstance(written.kernel, Kernel)
        if best is not None and inner is not None and _divides(written.kernel, inner):
            return best
        best = written
        merged -= 1
        if merged < 0:
            return best


def _element_loops(
    writer: Writer, value: ir.Value, order: Order, sizes: Sequence[Size], merged: int
) -> str | None:
    """Loops over `sizes`, those from number `merged` on as one; the name of the innermost variable."""
    b = writer.b
    outer, inner = sizes[:merged], sizes[merged:]
    extent = product(inner)
    weight = 4

    def body(position_in_order: Sequence[Size]) -> None:
        position: list[Size] = [0] * len(order)
        for axis, at in zip(order, position_in_order, strict=True):
            position[axis] = at
        where = tuple(position)
        work = writer.graph.producer[value]
        writer.put(value, where, writer.pull.compute(work, value, where))

    flat_outer = product(outer)
    name: str | None = None
    if flat_outer == 1:
        with b.loop(extent, "parallel", grain=PARALLEL_GRAIN // weight) as flat:
            name = flat.lone_symbol if not isinstance(flat, int) else None
            body((*([0] * len(outer)), *unflatten(flat, inner, b.ranges)))
    else:
        with b.parallel(outer, extent * weight) as where, b.loop(extent, "vector") as flat:
            name = flat.lone_symbol if not isinstance(flat, int) else None
            body((*where, *unflatten(flat, inner, b.ranges)))
    return name


def write_reordered(graph: Graph, wanted: Reordered, orders: Mapping[ir.Value, Order]) -> Written:
    """A copy of a stored value with its axes in another order, or of another type."""
    value, order = wanted.value, wanted.order
    writer = Writer(graph, frozenset({value}), orders)
    shape, b = graph.shape(value), writer.b
    source, source_order = writer.source(value)
    target = writer.extra(wanted, wanted.dtype, "out")

    def move(at: Sequence[Size]) -> None:
        position: list[Size] = [0] * len(order)
        for axis, index in zip(order, at, strict=True):
            position[axis] = index
        element = b.load(source, offset_of(tuple(position), shape, source_order))
        b.store(target, offset_of(tuple(position), shape, order), cast(element, wanted.dtype))

    *outer, before, last = (shape[axis] for axis in order)
    if outer and isinstance(last, int) and last <= FEW_LAST:
        with b.parallel(outer, 4 * before * last) as at, b.loop(before, "vector") as middle:
            for index in range(last):
                move((*at, middle, index))
    else:
        with b.parallel((*outer, before), 4 * last) as at, b.loop(last, "vector") as inner:
            move((*at, inner))
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
