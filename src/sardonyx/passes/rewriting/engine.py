"""Applying rules: one place where the graph changes, counts what changed, and can stop after any change.

Every change of the graph is one numbered rewrite, in an order that follows from the model alone. So a run that is
stopped after the first n rewrites is the beginning of the whole run, and the first wrong one is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Facts
from sardonyx.passes.rewriting.bill import Bill
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.editing import give_place, remove_unused
from sardonyx.passes.rewriting.ledger import Ledger, bill_of, total_bill
from sardonyx.passes.rewriting.rule import Refusal, Rule
from sardonyx.passes.rewriting.workspace import Workspace

__all__ = ["Engine", "Listener"]

Listener = Callable[
    [int, str, ir.Node], None
]  # a rewrite's number, its rule and its node, before it is done
Pair: TypeAlias = "tuple[ir.Value, ir.Value | None]"  # what stood there, and what stands there then
_KEPT_METADATA = ("pkg.torch.onnx.stack_trace", "pkg.torch.onnx.name_scopes", "namespace")


class Engine:
    """Rewrites one model.

    Args:
        limit: stop after so many rewrites; None for no limit.
        listener: hears of each rewrite just before it is done.
    """

    def __init__(
        self,
        work: Workspace,
        ledger: Ledger,
        *,
        limit: int | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.work = work
        self.ledger = ledger
        self._limit = limit
        self._listener = listener

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached: nothing may change any more."""
        return self._limit is not None and self.ledger.rewrites >= self._limit

    def sweep(self, rules: Mapping[str, Sequence[Rule]]) -> int:
        """Offer every node, in order, to the rules for its operator; how often one applied."""
        begin = self.ledger.rewrites
        for graph in self.work.graphs():
            for node in list(graph):
                if node.graph is not graph:
                    continue  # a rewrite before it took it away
                named = () if normal_domain(node.domain) else rules.get(node.op_type, ())
                for one in (*named, *rules.get("*", ())):
                    if self.is_spent:
                        return self.ledger.rewrites - begin
                    if self.apply(one, node):
                        break
        return self.ledger.rewrites - begin

    def apply(self, rule: Rule, node: ir.Node) -> bool:
        """Let one rule look at one node; whether the graph has changed."""
        draft = Draft(self.work)
        try:
            outcome = rule.body(node, draft)
        except ShapeError as error:
            outcome = Refusal(f"the result would not be valid: {error}")
        if outcome is None or isinstance(outcome, Refusal):
            if outcome is not None:
                self.ledger.refuse(rule.name, node, outcome.reason)
            draft.discard()
            return False
        pairs = _pairs(node, outcome)
        reason = self._objection(pairs)
        if reason is not None:
            self.ledger.refuse(rule.name, node, reason)
            draft.discard()
            return False
        return self._exchange(rule.name, rule.about, node, pairs, draft)

    def replace(
        self,
        rule: str,
        about: str,
        node: ir.Node,
        values: Sequence[ir.Value | None],
        draft: Draft | None = None,
    ) -> bool:
        """Put values in the place of a node's outputs; whether that was done."""
        draft = Draft(self.work) if draft is None else draft
        return self._exchange(rule, about, node, _pairs(node, values), draft)

    def _exchange(
        self, rule: str, about: str, node: ir.Node, pairs: Sequence[Pair], draft: Draft
    ) -> bool:
        """Put values in the place of others, the new nodes before this one; whether that was done."""
        if self.is_spent or not self._moves(pairs):
            draft.discard()
            return False
        if self._listener is not None:
            self._listener(self.ledger.rewrites, rule, node)
        graph = node.graph
        assert graph is not None, "a node that was offered is in a graph"
        for value in draft.tensors:
            self.work.add_constant(value)
        new = list(draft.nodes)
        _carry_over(node, new)
        graph.insert_before(node, new)
        for old, other in pairs:
            if other is not None:
                new += give_place(self.work, old, other)
        came = sum((bill_of(self.work, one) for one in new if one.graph is not None), Bill())
        makers = dict.fromkeys(old.producer() or node for old, _ in pairs)
        gone = self._drop([node, *makers, *draft.nodes])
        if any(maker is not node for maker in makers):
            graph.sort()  # what other nodes made may be read before this node
        self.ledger.record(rule, about, gone, came)
        return True

    def share(self, rule: str, about: str, value: ir.Value, first: ir.Value) -> bool:
        """Read one constant wherever another one, equal to it, is read."""
        if self.is_spent:
            return False
        for node, index in list(value.uses()):
            node.replace_input_with(index, first)
        self.ledger.record(rule, about, Bill(), Bill())
        return True

    def splice(self, rule: str, about: str, node: ir.Node, body: ir.Graph) -> bool:
        """Put the nodes of a subgraph without inputs in the place of the node that it belongs to."""
        graph = node.graph
        if self.is_spent or graph is None:
            return False
        if self._listener is not None:
            self._listener(self.ledger.rewrites, rule, node)
        before = bill_of(self.work, node)
        for name, value in list(body.initializers.items()):
            del body.initializers[name]
            value.name = self.work.fresh_name("constant")
            self.work.add_constant(value)
        nodes = list(body)
        outputs = list(body.outputs)
        body.outputs.clear()
        body.remove(nodes)
        for one in nodes:
            one.name = self.work.fresh_name(one.op_type)
            for value in one.outputs:
                if value.name:
                    value.name = self.work.fresh_name(one.op_type)
        graph.insert_before(node, nodes)
        for old, value in zip(node.outputs, outputs, strict=True):
            give_place(self.work, old, value)
        gone = self._drop([node])
        self.ledger.record(rule, about, before if gone.nodes else Bill(), Bill())
        return True

    def rebuild(self, rule: str, about: str, node: ir.Node, change: Callable[[], object]) -> bool:
        """Let others change the model, in one rewrite that begins at a node; all is found out anew after it."""
        if self.is_spent:
            return False
        if self._listener is not None:
            self._listener(self.ledger.rewrites, rule, node)
        graph = self.work.model.graph
        before = list(graph.all_nodes())
        bills = {one: bill_of(self.work, one) for one in before}
        change()
        self.work.refresh()
        after = dict.fromkeys(graph.all_nodes())
        gone = sum((bill for one, bill in bills.items() if one not in after), Bill())
        came = total_bill(self.work, (one for one in after if one not in bills))
        self.ledger.record(rule, about, gone, came)
        return True

    def drop(self, rule: str, about: str, nodes: Iterable[ir.Node]) -> bool:
        """Remove nodes that nothing reads, and what only they read."""
        if self.is_spent:
            return False
        gone = self._drop(list(nodes))
        if gone.nodes:
            self.ledger.record(rule, about, gone, Bill())
        return gone.nodes > 0

    def _drop(self, nodes: Sequence[ir.Node]) -> Bill:
        gone = Bill()
        for removed in remove_unused(nodes, lambda one: bill_of(self.work, one)):
            gone += removed
        return gone

    def _moves(self, pairs: Sequence[Pair]) -> bool:
        """Whether anything would change: an output that nothing reads needs no other value."""
        return any(
            value is not None and value is not old and (old.uses() or old.is_graph_output())
            for old, value in pairs
        )

    def _objection(self, pairs: Sequence[Pair]) -> str | None:
        """Why these values cannot stand there: other types or shapes are never the same answer."""
        for old, value in pairs:
            if value is None:
                if old.uses() or old.is_graph_output():
                    return f"its output {old.name!r} is read"
                continue
            was, now = self.work.facts.get(old), self.work.facts.get(value)
            if was is None or now is None:
                continue
            if was.dtype is not None and now.dtype is not None and was.dtype != now.dtype:
                return f"the result would be {now} instead of {was}"
            if _differ(was, now):
                return f"the result would be {now} instead of {was}"
            if was.shape is not None and now.shape is None:
                self.work.facts[value] = was
        return None


def _pairs(
    node: ir.Node,
    values: ir.Value | Sequence[ir.Value | None] | Mapping[ir.Value, ir.Value],
) -> list[Pair]:
    """Which value stands for which one."""
    if isinstance(values, Mapping):
        return list(values.items())
    listed = [values] if isinstance(values, ir.Value) else values
    return list(zip(node.outputs, listed, strict=False))


def _differ(was: Facts, now: Facts) -> bool:
    """Whether two shapes are known and not the same; a size that only data decides has another name then."""
    if was.shape is None or now.shape is None:
        return False
    if len(was.shape) != len(now.shape):
        return True
    return any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(was.shape, now.shape, strict=True)
    )


def _carry_over(node: ir.Node, new: Sequence[ir.Node]) -> None:
    """New nodes come from where the old one came from: its source line is theirs."""
    for one in new:
        for key in _KEPT_METADATA:
            if key in node.metadata_props:
                one.metadata_props.setdefault(key, node.metadata_props[key])
        if one.doc_string is None:
            one.doc_string = node.doc_string
