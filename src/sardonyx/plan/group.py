"""Which nodes become one kernel, by kind.

    Conv ─ Add ─ Relu      the convolution takes its neighbours as its epilogue (`tail`)
    Add ─ Mul ─ Sigmoid    a chain of elements is written where it is read: one kernel, for the last of them
    Transpose, Reshape     views are index maps of whoever reads them
    MatMul ─ … ─ MatMul    with a softmax in between, one kernel (see `attention`)

A value that no kernel has to store has no bytes at all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.ops.lowering import (
    Convolution,
    Element,
    Nest,
    Product,
    Relabel,
    TransposedConvolution,
)
from sardonyx.plan.attention import Attention
from sardonyx.plan.flow import Control
from sardonyx.plan.graph import Graph, Opaque, Work

__all__ = ["Group", "Grouping", "group_nodes"]

MAX_FETCHED = 8  # what an element of an attention's operand may cost: some are asked for twice
MAX_CHAIN = 24  # nodes that one expression may hold: C compilers crawl on endless ones


@dataclass(frozen=True, eq=False)
class Group:
    """One kernel: the node that decides its loops, and pointwise ones that follow it.

    Attributes:
        output: the number of the output that a group of elements writes.
        attention: what else the kernel computes, where the root is the last product of one.
    """

    root: Work
    tail: tuple[Work, ...] = ()
    output: int = 0
    attention: Attention | None = None

    @property
    def last(self) -> Work:
        return self.tail[-1] if self.tail else self.root

    @property
    def result(self) -> ir.Value:
        return self.last.node.outputs[self.output]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Kernels in an order in which they can run, and the values that have bytes."""

    groups: tuple[Group, ...]
    stored: frozenset[ir.Value]


def group_nodes(
    graph: Graph, forced: Collection[ir.Value], attentions: Collection[Attention] = ()
) -> Grouping:
    """Group the graph's nodes; the `forced` values are stored whatever the rules say."""
    tails, absorbed = _epilogues(graph, forced, attentions)
    stored = _stored(graph, forced, tails, absorbed, attentions)
    last_product = {one.second: one for one in attentions}
    groups = [
        Group(work, tuple(tail), attention=last_product.get(work)) for work, tail in tails.items()
    ]
    for work in graph.works:
        if isinstance(work.lowering, (Element, Relabel)) and work not in absorbed:
            results = enumerate(work.node.outputs)
            groups += [Group(work, output=n) for n, value in results if value in stored]
    at = {work: number for number, work in enumerate(graph.works)}
    ordered = sorted(groups, key=lambda group: at[group.last])
    return Grouping(tuple(ordered), frozenset(stored))


def _epilogues(
    graph: Graph, forced: Collection[ir.Value], attentions: Collection[Attention]
) -> tuple[dict[Work, list[Work]], set[Work]]:
    """What follows each root and can happen while its results are at hand."""
    tails: dict[Work, list[Work]] = {}
    absorbed = {work for one in attentions for work in one.absorbed}
    for work in graph.works:
        if isinstance(work.lowering, (Element, Relabel)) or work in absorbed:
            continue
        tails[work] = []
        if isinstance(work.lowering, Opaque | Control) or (
            isinstance(work.lowering, Nest) and not work.lowering.stores_once
        ):
            continue
        value = work.node.outputs[0]
        while len(tails[work]) < MAX_CHAIN:
            follower = _follower(graph, work, value, forced)
            if follower is None or follower in absorbed:
                break
            tails[work].append(follower)
            absorbed.add(follower)
            value = follower.node.outputs[0]
        while tails[work] and isinstance(tails[work][-1].lowering, Relabel):
            absorbed.discard(tails[work].pop())  # a view at the end is left to its readers
    return tails, absorbed


def _follower(
    graph: Graph, root: Work, value: ir.Value, forced: Collection[ir.Value]
) -> Work | None:
    """The one reader of a value, if it works element by element on it."""
    readers = graph.readers.get(value, [])
    if len(readers) != 1 or value in graph.outputs or value in forced:
        return None
    reader = readers[0]
    if reader.region is not root.region or reader.within is not root.within:
        return None
    if isinstance(reader.lowering, Relabel):
        return reader if reader.node.inputs[0] is value else None
    if not isinstance(reader.lowering, Element) or not reader.lowering.pointwise:
        return None
    same = graph.facts(value).shape == reader.outputs[0].shape
    others = reader.node.outputs[1:]
    alone = not any(other in graph.readers or other in graph.outputs for other in others)
    return reader if same and alone else None


def _stored(
    graph: Graph,
    forced: Collection[ir.Value],
    tails: dict[Work, list[Work]],
    absorbed: set[Work],
    attentions: Collection[Attention],
) -> set[ir.Value]:
    stored = set(forced)
    fetched = {value for one in attentions for value in one.operands}
    depth: dict[ir.Value, int] = {}  # nodes of the expression that a value has become
    for work, tail in tails.items():
        last = tail[-1] if tail else work
        stored |= {v for v in last.node.outputs if v in graph.outputs or v in graph.readers}
        stored |= {v for v in work.node.outputs[1:] if v in graph.outputs or v in graph.readers}
    for work in graph.works:
        if not isinstance(work.lowering, (Element, Relabel)) or work in absorbed:
            continue
        below = max((depth.get(v, 0) for v in work.node.inputs if v is not None), default=0)
        for value in work.node.outputs:
            depth[value] = below + 1
            needed = value in stored or value in graph.outputs
            if not needed and value not in graph.readers:
                continue
            if needed or not _inlined(graph, work, value, depth[value], value in fetched):
                stored.add(value)
                depth[value] = 0
    return stored


def _inlined(graph: Graph, work: Work, value: ir.Value, depth: int, fetched: bool) -> bool:
    """Whether every reader writes this value's expression itself."""
    weight = 0 if isinstance(work.lowering, Relabel) else _weight(work)
    readers = graph.readers.get(value, [])
    if depth >= MAX_CHAIN or any(isinstance(one.lowering, Opaque | Control) for one in readers):
        return False
    if weight == 0:
        return True
    if any(reader.region is not work.region for reader in readers):
        return False  # a loop would compute it again in every turn
    if len(readers) != 1 or list(readers[0].node.inputs).count(value) != 1:
        return len(readers) <= 1 and isinstance(readers[0].lowering, Element)
    reader = readers[0]
    if fetched:
        return weight < MAX_FETCHED
    if isinstance(reader.lowering, (Product, Convolution, TransposedConvolution, Opaque)):
        return False
    if isinstance(reader.lowering, Nest):
        return reader.lowering.reads_once
    return reader.outputs[0].shape == graph.facts(value).shape or isinstance(
        reader.lowering, Relabel
    )


def _weight(work: Work) -> int:
    return work.lowering.weight if isinstance(work.lowering, Element) else 0
