"""Which nodes become one kernel, by kind.

    Conv ─ Add ─ Relu      the convolution takes its neighbours as its epilogue (`tail`)
    Add ─ Mul ─ Sigmoid    a chain of elements is written where it is read: one kernel, for the last of them
    Transpose, Reshape     views are index maps of whoever reads them
    MatMul ─ … ─ MatMul    with a softmax in between, one kernel (see `attention`)

A value that no kernel has to store has no bytes at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.ops.lowering import (
    Convolution,
    Element,
    IntegerConvolution,
    IntegerProduct,
    Nest,
    Product,
    Relabel,
    TransposedConvolution,
)
from sardonyx.plan.attention import Attention
from sardonyx.plan.flow import Control
from sardonyx.plan.graph import Graph, Opaque, Work

__all__ = ["Group", "Grouping", "group_nodes"]

CONTRACTIONS = (
    Product,
    Convolution,
    TransposedConvolution,
    IntegerProduct,
    IntegerConvolution,
)
MAX_FETCHED = 8  # what an element of an attention's operand may cost: some are asked for twice
MAX_MEETING = 12  # nodes between a value and where all that read it meet
LONG_FUNCTION = 8  # what an element of one costs: exp, erf, sigmoid, …
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
    graph: Graph,
    forced: Collection[ir.Value],
    attentions: Collection[Attention] = (),
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
    graph: Graph,
    forced: Collection[ir.Value],
    attentions: Collection[Attention],
) -> tuple[dict[Work, list[Work]], set[Work]]:
    """What follows each root and can happen while its results are at hand."""
    tails: dict[Work, list[Work]] = {}
    at = {work: number for number, work in enumerate(graph.works)}
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
            followers = _followers(graph, at, work, value, forced)
            if not followers or not absorbed.isdisjoint(followers):
                break
            tails[work] += followers
            absorbed.update(followers)
            value = followers[-1].node.outputs[0]
        while tails[work] and _is_for_readers(graph, tails[work][-1], forced):
            absorbed.discard(tails[work].pop())
    return tails, absorbed


def _is_for_readers(graph: Graph, last: Work, forced: Collection[ir.Value]) -> bool:
    """Whether what is at the end is left to its readers: a view, or more bits for what is stored in few."""
    if isinstance(last.lowering, Relabel):
        return True
    value = last.node.outputs[0]
    return value not in forced and value not in graph.outputs and _is_widened(graph, last, value)


def _is_widened(graph: Graph, work: Work, value: ir.Value) -> bool:
    """Whether a value is another one in more bits, and all that read it may read that one instead."""

    def by_elements(value: ir.Value) -> bool:
        if value in graph.outputs:
            return False
        return all(
            isinstance(reader.lowering, (Element, Relabel, Nest))
            and reader.region is work.region
            and (not _only_moves(reader) or all(map(by_elements, reader.node.outputs)))
            for reader in graph.readers.get(value, [])
        )

    return isinstance(work.lowering, Element) and work.lowering.widens and by_elements(value)


def _only_moves(work: Work) -> bool:
    return isinstance(work.lowering, Relabel) or (
        isinstance(work.lowering, Element) and work.lowering.weight == 0
    )


def _followers(
    graph: Graph,
    at: Mapping[Work, int],
    root: Work,
    value: ir.Value,
    forced: Collection[ir.Value],
) -> list[Work]:
    """What comes next, element by element, and has one result: the one reader of a value, or all until they meet.

    x ─┬─ Sigmoid ─┬─ Mul      an expression that reads x more than once
       └───────────┘
    """
    found: list[Work] = []
    pending = {value: graph.readers.get(value, [])}  # what is read by somebody who is not found yet
    while len(found) < MAX_MEETING:
        last = next(iter(pending))
        if found and len(pending) == 1 and last is found[-1].node.outputs[0]:
            return found
        if any(one in graph.outputs or one in forced for one in pending):
            return []
        readers = {reader for ones in pending.values() for reader in ones}
        if not readers or not all(_follows(graph, root, value, reader) for reader in readers):
            return []
        if any(isinstance(reader.lowering, Relabel) for reader in readers):
            return list(readers) if len(readers) == 1 and not found else []
        reader = min(readers, key=at.__getitem__)
        found.append(reader)
        result = reader.node.outputs[0]
        pending = {one: [r for r in ones if r is not reader] for one, ones in pending.items()}
        pending = {one: ones for one, ones in pending.items() if ones}
        pending[result] = list(graph.readers.get(result, []))
    return []


def _follows(graph: Graph, root: Work, value: ir.Value, reader: Work) -> bool:
    """Whether a node works element by element on something of this value's shape, and has one output."""
    if reader.region is not root.region or reader.within is not root.within:
        return False
    if isinstance(reader.lowering, Relabel):
        return reader.node.inputs[0] is value
    if not isinstance(reader.lowering, Element) or not reader.lowering.pointwise:
        return False
    others = reader.node.outputs[1:]
    alone = not any(other in graph.readers or other in graph.outputs for other in others)
    return alone and graph.facts(value).shape == reader.outputs[0].shape


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
            if needed or not _inlined(graph, work, value, depth[value], value in fetched, stored):
                stored.add(value)
                depth[value] = 0
    return stored


def _inlined(
    graph: Graph,
    work: Work,
    value: ir.Value,
    depth: int,
    fetched: bool,
    stored: Collection[ir.Value],
) -> bool:
    """Whether every reader writes this value's expression itself."""
    weight = 0 if isinstance(work.lowering, Relabel) else _weight(work)
    readers = graph.readers.get(value, [])
    if depth >= MAX_CHAIN or any(isinstance(one.lowering, Opaque | Control) for one in readers):
        return False
    if weight == 0 or _is_widened(graph, work, value):
        return True
    if any(reader.region is not work.region for reader in readers):
        return False  # a loop would compute it again in every turn
    if len(readers) != 1 or list(readers[0].node.inputs).count(value) != 1:
        return len(readers) <= 1 and isinstance(readers[0].lowering, Element)
    if _readers_of_views(graph, readers[0], stored) > 1:
        return False
    reader = readers[0]
    if fetched:
        return weight < MAX_FETCHED
    if isinstance(reader.lowering, (*CONTRACTIONS, Opaque)):
        return weight < MAX_FETCHED and _meets_vectors(graph, reader, value)
    if isinstance(reader.lowering, Nest):
        return reader.lowering.reads_once
    return reader.outputs[0].shape == graph.facts(value).shape or isinstance(
        reader.lowering, Relabel
    )


def _meets_vectors(graph: Graph, reader: Work, value: ir.Value) -> bool:
    """Whether a product reads matrices once, for it multiplies each with a vector: as experts that a router chose."""
    if reader.node.op_type != "MatMul" or reader.node.inputs[0] is not value:
        return False
    other = reader.call.input(1).shape
    return other is not None and (len(other) == 1 or other[-1] == 1)


def _readers_of_views(graph: Graph, reader: Work, stored: Collection[ir.Value]) -> int:
    """How many read what this one reads: views, unless they are stored, are nothing but their own readers."""
    if not isinstance(reader.lowering, Relabel) or reader.node.outputs[0] in stored:
        return 1
    readers = graph.readers.get(reader.node.outputs[0], [])
    return sum(_readers_of_views(graph, one, stored) for one in readers)


def _weight(work: Work) -> int:
    return work.lowering.weight if isinstance(work.lowering, Element) else 0
