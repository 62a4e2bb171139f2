"""Regions that do not care about the order of axes are computed in the order that saves transposes.

    Conv ─ Transpose ─┐                            Conv ─┐
                      Add ─ Relu ─ Transpose ─ Conv      Add ─ Relu ─ Conv
    Conv ─ Transpose ─┘                            Conv ─┘

A region is what pointwise operators, Concat, Pad, Slice and their like join together. Its border has Transposes that
would vanish, and values that would need one. The whole region is turned where fewer bytes are transposed than before:
that number falls with every region that is turned, so this ends.
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.engine import Engine
from sardonyx.passes.rewriting.ledger import STAND_IN
from sardonyx.passes.rules.layout_forms import Order, absorbed, carried_by, turned
from sardonyx.sizes import evaluate, symbols

__all__ = ["turn_regions"]

_ABOUT = "Operators between transposes are computed in the order of axes that needs fewer of them."


def turn_regions(engine: Engine) -> None:
    """Turn every region of every graph where fewer bytes are transposed then."""
    for graph in engine.work.graphs():
        if not any(node.op_type == "Transpose" for node in graph):
            continue
        for nodes in _regions(graph, Draft(engine.work)):
            if engine.is_spent:
                return
            if any(node.graph is not graph for node in nodes):
                continue  # a region that was turned before took it away
            region = _Region(nodes, Draft(engine.work))
            order = region.best_order()
            if order is not None:
                _Turning(engine, region, order).run()


def _regions(graph: ir.Graph, draft: Draft) -> list[list[ir.Node]]:
    """Nodes that pass values on to each other, in the order of the graph."""
    carried: dict[ir.Node, list[ir.Value]] = {}
    for node in graph:
        found = None if normal_domain(node.domain) else carried_by(node, draft)
        if found is not None:
            carried[node] = found
    root = {node: node for node in carried}

    def find(node: ir.Node) -> ir.Node:
        while root[node] is not node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for node, values in carried.items():
        for value in values:
            maker = value.producer()
            if maker is not None and maker in carried:
                root[find(node)] = find(maker)
    regions: dict[ir.Node, list[ir.Node]] = {}
    for node in carried:
        regions.setdefault(find(node), []).append(node)
    return list(regions.values())


def _order(node: ir.Node, rank: int, draft: Draft) -> Order:
    return tuple(int(axis) for axis in draft.attribute(node, "perm", range(rank)[::-1]))


def _inverse(order: Order) -> Order:
    return tuple(sorted(range(len(order)), key=lambda axis: order[axis]))


class _Region:
    """A region with its border: what it reads from outside, and who outside reads what it makes."""

    def __init__(self, nodes: list[ir.Node], draft: Draft) -> None:
        self.nodes, self.draft = nodes, draft
        self.inside = set(nodes)
        self.graph = nodes[0].graph
        self.rank = draft.rank(nodes[0].outputs[0]) or 0
        self.read: dict[ir.Value, ir.Node | None] = {}  # with the Transpose that makes it
        for node in nodes:
            for value in carried_by(node, draft) or ():
                if value.producer() not in self.inside and not draft.is_constant(value):
                    self.read[value] = draft.made_by(value, "Transpose")

    def transposes(self, value: ir.Value) -> list[ir.Node]:
        """The Transposes of this graph that read a value."""
        found = dict.fromkeys(node for node, _ in value.uses() if node.op_type == "Transpose")
        return [n for n in found if n.graph is self.graph and not normal_domain(n.domain)]

    def absorbing(self, value: ir.Value, order: Order) -> list[ir.Node]:
        """Readers outside that can as well read the twin."""
        found = dict.fromkeys(node for node, _ in value.uses() if node not in self.inside)
        return [
            node
            for node in found
            if node.graph is self.graph
            and not normal_domain(node.domain)
            and absorbed(node, order, None, self.draft)
        ]

    def is_read(self, value: ir.Value, order: Order) -> bool:
        """Whether somebody needs the value as it is."""
        served = {*self.inside, *self.transposes(value), *self.absorbing(value, order)}
        return value.is_graph_output() or any(node not in served for node, _ in value.uses())

    def best_order(self) -> Order | None:
        """What the region's values are transposed by, for the fewest bytes; None as they are."""
        orders = {_order(n, self.rank, self.draft) for n in self.read.values() if n is not None}
        for node in self.nodes:
            for value in node.outputs:
                for reader in self.transposes(value):
                    orders.add(_inverse(_order(reader, self.rank, self.draft)))
        if not orders:
            return None
        same = tuple(range(self.rank))
        best, least = None, self.cost(same)
        for order in sorted(orders):
            cost = self.cost(order) if len(order) == self.rank else least
            if cost < least:
                best, least = order, cost
        return best

    def cost(self, order: Order) -> int:
        """Bytes that are transposed at the border if the region is computed in this order."""
        total, rank, draft = 0, self.rank, self.draft
        is_turned = order != tuple(range(rank))
        for value, maker in self.read.items():
            own = tuple(range(rank)) if maker is None else _order(maker, rank, draft)
            is_shared = value.is_graph_output() or any(
                n not in self.inside for n, _ in value.uses()
            )
            # A Transpose that others read too stays, whatever we do.
            stays = maker is not None and is_shared and is_turned
            total += self.bytes(value) * ((own != order) + stays)
        for node in self.nodes:
            for value in node.outputs:
                wanted = [_inverse(_order(n, rank, draft)) for n in self.transposes(value)]
                needed = sum(one != order for one in wanted)
                needed += is_turned and self.is_read(value, order)
                total += self.bytes(value) * needed if needed else 0
        return total

    def bytes(self, value: ir.Value) -> int:
        facts = self.draft.facts(value)
        elements, dims = facts.elements, self.draft.work.dims
        if elements is None or facts.dtype is None:
            return STAND_IN
        try:
            known = {name: dims.get(name, STAND_IN) for name in symbols(elements)}
            return max(1, evaluate(elements, known) * facts.dtype.bitwidth // 8)
        except ShapeError:  # dimensions that cannot be equal, here forced to be
            return STAND_IN


class _Turning:
    """A region while it is turned: each of its values has a twin in the other order of axes."""

    def __init__(self, engine: Engine, region: _Region, order: Order) -> None:
        self.engine, self.region, self.order = engine, region, order
        self.back = _inverse(order)
        self.twins: dict[ir.Value, ir.Value] = {}

    def run(self) -> None:
        """Give every reader outside the twin; in the order of the graph, so that twins come before readers."""
        for node in self._changed():
            if node.graph is None:
                continue
            draft = Draft(self.engine.work)
            known = dict(self.twins)
            try:
                values = self._instead(node, draft)
            except ShapeError:
                draft.discard()
                return
            if values is None or not self.engine.replace(
                "turned-region", _ABOUT, node, values, draft
            ):
                draft.discard()
                self.twins = known
                if self.engine.is_spent:
                    return

    def _changed(self) -> list[ir.Node]:
        """Readers at the border, and nodes of the region that others read, as they stand in the graph."""
        region = self.region
        found: set[ir.Node] = set()
        for node in region.nodes:
            for value in node.outputs:
                found.update(region.transposes(value), region.absorbing(value, self.order))
            if any(region.is_read(value, self.order) for value in node.outputs):
                found.add(node)
        return [node for node in region.graph or () if node in found]

    def _instead(self, node: ir.Node, draft: Draft) -> list[ir.Value | None] | None:
        """What stands for a node's outputs."""
        if node in self.region.inside:
            read = [value for value in node.outputs if self.region.is_read(value, self.order)]
            values: list[ir.Value | None] = []
            for value in node.outputs:
                if value not in read and not value.uses():
                    values.append(None)
                    continue
                twin = self._twin(value, draft)
                plain = draft.call("Transpose", twin, perm=list(self.order))
                self.twins[plain] = twin
                values.append(plain)
            return values
        source = node.inputs[0]
        if source is None:
            return None
        twin = self._twin(source, draft)
        if node.op_type == "Transpose":
            outer = _order(node, self.region.rank, draft)
            return [_transposed(twin, tuple(self.order[axis] for axis in outer), draft)]
        made = absorbed(node, self.order, twin, draft)
        return None if isinstance(made, bool) else list(made)

    def _twin(self, value: ir.Value, draft: Draft) -> ir.Value:
        """The value in the other order of axes; whatever it is made of is turned first."""
        waiting = [value]
        while waiting:
            one = waiting[-1]
            if one in self.twins:
                waiting.pop()
                continue
            node = one.producer()
            if node is None or node not in self.region.inside:
                self.twins[one] = self._from_outside(one, draft)
                continue
            missing = [v for v in carried_by(node, draft) or () if v not in self.twins]
            if missing:
                waiting += missing
                continue
            made = turned(node, self.order, self.twins.__getitem__, draft)
            self.twins.update(zip(node.outputs, made, strict=True))
        return self.twins[value]

    def _from_outside(self, value: ir.Value, draft: Draft) -> ir.Value:
        maker = draft.made_by(value, "Transpose")
        if maker is None or maker.inputs[0] is None:
            return draft.call("Transpose", value, perm=list(self.back))
        inner = _order(maker, self.region.rank, draft)
        return _transposed(maker.inputs[0], tuple(inner[axis] for axis in self.back), draft)


def _transposed(value: ir.Value, order: Order, draft: Draft) -> ir.Value:
    if order == tuple(range(len(order))):
        return value
    return draft.call("Transpose", value, perm=list(order))
