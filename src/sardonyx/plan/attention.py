"""Where a graph computes attention: softmax(f(Q K)) V, with all that happens to the scores in between.

    MatMul(Q, K)                    `first`
    Mul, Add, Where, views          `scores`: element by element, whatever their number
    Softmax, over the last axis     `softmax`
    Where(IsNaN(p), 0, p), views    `weights`: nothing else, for a kernel never has all of a row
    MatMul(p, V)                    `second`

Nothing in between is read by anyone else, so that one kernel can do it a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Element, Product, Relabel
from sardonyx.plan.graph import Graph, Work
from sardonyx.plan.target import Target

__all__ = ["Attention", "find_attentions"]

MAX_SCORES = 24  # nodes between a product and its softmax: C compilers crawl on endless expressions
MAX_ROW = 512  # values of a query, a key or a row of the result: a kernel has them on its stack


@dataclass(frozen=True, eq=False)
class Attention:
    """The nodes of one attention; `guarded` says that rows of NaN count as rows of zeros."""

    first: Work
    scores: tuple[Work, ...]
    softmax: Work
    weights: tuple[Work, ...]
    second: Work
    guarded: bool

    @property
    def absorbed(self) -> tuple[Work, ...]:
        """All that has no kernel of its own; the second product gives the kernel its name."""
        return (self.first, *self.scores, self.softmax, *self.weights)

    @property
    def operands(self) -> tuple[ir.Value | None, ...]:
        """Queries, keys and values: read about once, element by element."""
        return (*self.first.node.inputs, self.second.node.inputs[1])


def find_attentions(
    graph: Graph, forced: Collection[ir.Value], target: Target
) -> tuple[Attention, ...]:
    """Every attention of the graph that the target has a kernel for; the `forced` values must be stored."""
    finder = _Finder(graph, forced)
    found = (finder.from_product(work) for work in graph.works if _is_matmul(graph, work))
    return tuple(one for one in found if one is not None and _suits(graph, one, target))


def _suits(graph: Graph, one: Attention, target: Target) -> bool:
    """Whether everything has one type that there is a kernel for, and rows are short."""
    ends = (one.first, one.softmax, one.second)
    dtypes = {graph.dtype(work.node.outputs[0]) for work in ends}
    dtypes |= {graph.dtype(value) for value in one.operands if value is not None}
    lengths = [_shape(graph, work, index)[-1] for work, index in ((one.first, 0), (one.second, 1))]
    short = all(isinstance(length, int) and 1 <= length <= MAX_ROW for length in lengths)
    (dtype, *others) = dtypes
    return short and not others and target.panel(dtype, few=False) is not None


class _Finder:
    def __init__(self, graph: Graph, forced: Collection[ir.Value]) -> None:
        self.graph = graph
        self.forced = forced
        self.at = {work: number for number, work in enumerate(graph.works)}

    def from_product(self, first: Work) -> Attention | None:
        scores = self._scores(first)
        if scores is None:
            return None
        *between, softmax = scores
        value, weights, guarded = softmax.node.outputs[0], list[Work](), False
        while True:
            readers = self._readers(value)
            guard = self._guard(value, readers)
            if guard:
                weights += guard
                guarded = True
            elif len(readers) == 1 and self._is_view(value, readers[0]):
                weights.append(readers[0])
            else:
                break
            value = weights[-1].node.outputs[0]
        if len(readers) != 1 or not self._multiplies(value, readers[0]):
            return None
        parts = tuple(between), softmax, tuple(weights)
        return Attention(first, *parts, readers[0], guarded)

    def _scores(self, first: Work) -> list[Work] | None:
        """The nodes from a product to the softmax that all of it goes to, that included."""
        found: set[Work] = set()
        softmaxes: set[Work] = set()
        pending = [first.node.outputs[0]]
        while pending:
            value = pending.pop()
            readers = self._readers(value)
            if not readers or len(found) > MAX_SCORES:
                return None
            for reader in readers:
                if self._is_softmax(reader):
                    softmaxes.add(reader)
                elif not (self._is_pointwise(value, reader) or self._is_view(value, reader)):
                    return None
                elif reader not in found:
                    found.add(reader)
                    pending.append(reader.node.outputs[0])
        if len(softmaxes) != 1:
            return None
        return [*sorted(found, key=lambda work: self.at[work]), *softmaxes]

    def _readers(self, value: ir.Value) -> list[Work]:
        """Who reads a value; nobody, if it has to be stored for others or for another body."""
        if value in self.graph.outputs or value in self.forced:
            return []
        maker, readers = self.graph.producer[value], self.graph.readers.get(value, [])
        here = (maker.region, maker.within)
        return readers if all((one.region, one.within) == here for one in readers) else []

    def _is_softmax(self, work: Work) -> bool:
        node, call = work.node, work.call
        if node.op_type != "Softmax" or normal_domain(node.domain) or len(node.inputs) != 1:
            return False
        rank = len(_shape(self.graph, work, 0))
        axis = call.int_attr("axis", -1 if call.version >= 13 else 1)
        return rank >= 2 and axis in (-1, rank - 1)

    def _is_pointwise(self, value: ir.Value, reader: Work) -> bool:
        lowering = reader.lowering
        same = self.graph.facts(value).shape == reader.outputs[0].shape
        return isinstance(lowering, Element) and lowering.pointwise and same and self._alone(reader)

    def _is_view(self, value: ir.Value, reader: Work) -> bool:
        """Whether it only gives the batch another shape."""
        before, after = self.graph.facts(value).shape, reader.outputs[0].shape
        if not isinstance(reader.lowering, Relabel) or reader.node.inputs[0] is not value:
            return False
        return before is not None and after is not None and before[-2:] == after[-2:]

    def _alone(self, work: Work) -> bool:
        """Whether the first output is the only one that matters."""
        others = work.node.outputs[1:]
        return not any(one in self.graph.readers or one in self.graph.outputs for one in others)

    def _guard(self, value: ir.Value, readers: Collection[Work]) -> tuple[Work, Work] | None:
        """Where(IsNaN(value), 0, value), if that is what its readers are."""
        by_name = {reader.node.op_type: reader for reader in readers}
        test, choice = by_name.get("IsNaN"), by_name.get("Where")
        if test is None or choice is None or len(readers) != 2:
            return None
        condition, zero, other = choice.node.inputs
        if condition is not test.node.outputs[0] or other is not value or zero is None:
            return None
        constant = self.graph.constants.get(zero)
        if constant is None or constant.size != 1 or constant.reshape(-1)[0] != 0:
            return None
        alone = self._readers(test.node.outputs[0]) == [choice]
        same = self.graph.facts(value).shape == choice.outputs[0].shape
        return (test, choice) if alone and same else None

    def _multiplies(self, value: ir.Value, reader: Work) -> bool:
        """Whether it is a product with all of the value as its rows, each once."""
        if not _is_matmul(self.graph, reader) or reader.node.inputs[0] is not value:
            return False
        rows, columns = _shape(self.graph, reader, 0), _shape(self.graph, reader, 1)
        if reader.node.inputs[1] is value:
            return False
        return reader.outputs[0].shape == (*rows[:-1], columns[-1])


def _shape(graph: Graph, work: Work, index: int) -> Shape:
    value = work.node.inputs[index]
    assert value is not None
    return graph.shape(value)


def _is_matmul(graph: Graph, work: Work) -> bool:
    node = work.node
    if not isinstance(work.lowering, Product) or node.op_type != "MatMul":
        return False
    return not normal_domain(node.domain) and all(_ranks(graph, node.inputs))


def _ranks(graph: Graph, values: Iterable[ir.Value | None]) -> Iterable[bool]:
    return (value is not None and len(graph.shape(value)) >= 2 for value in values)
