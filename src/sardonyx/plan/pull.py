"""Reading elements: a buffer, a constant, or an expression that is written where it is needed.

    read(y, (i, j))        y = Relu(Add(x, bias)), not stored anywhere:
        t0 = x[768*i + j]
        t1 = bias[j]
        t2 = t0 + t1
        t3 = max(t2, 0)    -> t3

Every value is named once in a block, so that an expression never grows by being used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, const
from sardonyx.loops.operations import NARROW
from sardonyx.ops.lowering import Element, NotNative, Position, Relabel, Site
from sardonyx.plan.graph import Array, Graph, Work
from sardonyx.plan.plan import Order
from sardonyx.sizes import Expr as SizeExpr
from sardonyx.sizes import Size

__all__ = ["Pull", "blaming", "offset_of"]


def offset_of(position: Position, shape: tuple[Size, ...], order: Order) -> Size:
    """Where an element lies in a buffer whose axes are in this order."""
    return flatten([position[axis] for axis in order], [shape[axis] for axis in order])


@contextmanager
def blaming(node: ir.Node) -> Iterator[None]:
    """A refusal inside is this node's, unless a node further inside was blamed already."""
    try:
        yield
    except NotNative as refusal:
        refusal.node = refusal.node or node
        raise


class Pull:
    """Writes the reads of one kernel.

    Args:
        buffer: the kernel's buffer for a stored value, with the order of its axes.
        stored: whether a value has bytes of its own.
        table: the kernel's buffer for constants that a lowering brings along.
    """

    def __init__(
        self,
        graph: Graph,
        b: Builder,
        buffer: Callable[[ir.Value], tuple[str, Order]],
        stored: Callable[[ir.Value], bool],
        table: Callable[[Array], str],
    ) -> None:
        self.graph = graph
        self.b = b
        self._buffer = buffer
        self._stored = stored
        self._table = table
        self.works: set[Work] = set()  # whatever is computed here

    def read(self, value: ir.Value, position: Position) -> Expr:
        position = self._plain(value, position)
        key = (value, position)
        for scope in reversed(self.b.scopes):
            if key in scope:
                found: Expr = scope[key]
                return found
        expression = self._expression(value, position)
        named = self.b.let(expression)
        self.b.scopes[-1][key] = named
        return named

    def seed(self, value: ir.Value, position: Position, expression: Expr) -> None:
        """What a value is at a position, before it was stored anywhere."""
        position = self._plain(value, position)
        self.b.scopes[-1][(value, position)] = self.b.let(expression)

    def seeded(self, value: ir.Value, position: Position) -> Expr:
        """What `seed` said in this block."""
        return self.b.scopes[-1][(value, self._plain(value, position))]

    def _plain(self, value: ir.Value, position: Position) -> Position:
        """The position with 0 along axes of size 1, so that equal positions look equal."""
        shape = self.graph.shape(value)
        return tuple(0 if size == 1 else at for at, size in zip(position, shape, strict=True))

    def site(self, work: Work, **more: Any) -> Site:
        self.works.add(work)

        def read(index: int, position: Position) -> Expr:
            value = work.node.inputs[index]
            assert value is not None
            return self.read(value, position)

        def constant(index: int) -> npt.NDArray[Any] | None:
            value = work.node.inputs[index]
            return None if value is None else self.graph.constants.get(value)

        return Site(
            work.call,
            work.outputs,
            self.b,
            read,
            constant=constant,
            table=self._table,
            sums=self.graph.sums,
            **more,
        )

    def _expression(self, value: ir.Value, position: Position) -> Expr:
        known = self._known(value, position)
        if known is not None:
            return known
        if self._stored(value):
            buffer, order = self._buffer(value)
            element = self.b.load(buffer, offset_of(position, self.graph.shape(value), order))
            return cast(element, self.graph.dtype(value)) if value in self.graph.narrow else element
        work = self.graph.producer[value]
        return self.compute(work, value, position)

    def compute(self, work: Work, value: ir.Value, position: Position) -> Expr:
        """An element by its node's own meaning, whether the value is stored or not."""
        with blaming(work.node):
            return self._computed(work, value, position)

    def _computed(self, work: Work, value: ir.Value, position: Position) -> Expr:
        self.works.add(work)
        source = work.node.inputs[0] if work.node.inputs else None
        if isinstance(work.lowering, Relabel) and source is not None:
            self.check(work)
            return self._relabelled(value, source, position)
        assert isinstance(work.lowering, Element), "only elements are written where they are read"
        site = self.site(work, output=work.node.outputs.index(value))
        return cast(work.lowering.value(site, position), self.graph.dtype(value))

    def check(self, work: Work) -> None:
        """Say what a view's run has to check."""
        if isinstance(work.lowering, Relabel) and work.lowering.check is not None:
            with self.b.once():
                work.lowering.check(self.site(work))

    def _relabelled(self, value: ir.Value, source: ir.Value, position: Position) -> Expr:
        flat = flatten(position, self.graph.shape(value))
        if self._stored(source):
            buffer, order = self._buffer(source)
            if order == tuple(range(len(order))):
                return self.b.load(buffer, flat)
        return self.read(source, unflatten(flat, self.graph.shape(source), self.b.ranges))

    def _known(self, value: ir.Value, position: Position) -> Expr | None:
        """An element that is known before the model runs, as a number or a size."""
        facts = self.graph.facts(value)
        if self.graph.dtype(value) in NARROW:
            return None  # they have no numbers in the kernel language
        array = self.graph.constants.get(value)
        if array is not None and array.size == 1:
            return const(array.reshape(-1)[0].item(), self.graph.dtype(value))
        numbers = tuple(at for at in position if isinstance(at, int))
        if facts.value is None or len(numbers) != len(position):
            return None
        if not facts.value.size:
            return const(0, self.graph.dtype(value))  # of nothing: no loop ever comes here
        return self._number(facts.value[numbers], self.graph.dtype(value))

    def _number(self, element: object, dtype: Dtype) -> Expr | None:
        if isinstance(element, SizeExpr):
            return cast(self.b.size(element), dtype)
        return const(element, dtype) if isinstance(element, (int, float)) else None
