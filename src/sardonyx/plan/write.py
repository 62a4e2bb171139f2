"""What every group's kernel is written with: buffers, elements of inputs, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.gelus import find_gelus
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, Kernel, Role
from sardonyx.ops.lowering import (
    Element,
    Position,
    Relabel,
    Site,
)
from sardonyx.plan.graph import Array, Graph
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import KernelSource
from sardonyx.plan.origins import Packing
from sardonyx.plan.plan import Order
from sardonyx.plan.pull import Pull, offset_of
from sardonyx.sizes import Size

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
]


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
