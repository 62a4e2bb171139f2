"""The account of a run of the optimizer: what each rule did, and what it saved of each part of the cost.

C = C_compute + C_memory + C_transfer + C_launch     of the nodes that went and of those that came in their place
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops.bill import cost_of
from sardonyx.passes.rewriting.bill import DEFAULT_RATES, NOTHING, Bill, Rates
from sardonyx.passes.rewriting.workspace import Workspace
from sardonyx.sizes import Size, evaluate, symbols

__all__ = ["Entry", "Ledger", "Refused", "bill_of", "total_bill"]

STAND_IN = 32  # of a dynamic dimension that the caller gave no size for
_MOST_REFUSALS = 50  # of one rule that are remembered


@dataclass
class Entry:
    """What one rule did: how often, and the bill of what went and of what came."""

    rule: str
    about: str
    matches: int = 0
    before: Bill = NOTHING
    after: Bill = NOTHING

    @property
    def saved(self) -> Bill:
        return self.before - self.after

    def to_json(self, rates: Rates) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "about": self.about,
            "matches": self.matches,
            "before": _priced(self.before, rates),
            "after": _priced(self.after, rates),
        }


@dataclass(frozen=True)
class Refused:
    """A pattern that was found and left as it is."""

    rule: str
    node: str
    source: str | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "node": self.node,
            "source": self.source,
            "reason": self.reason,
        }


@dataclass
class Ledger:
    """What was done to a model, in the order in which rules first applied.

    Attributes:
        before, after: the whole model's bill.
        rewrites: how many there were in all.
        notes: what a user should know, as a raised opset.
        rates: what the bills are priced by. They are put in when the work is done: no rule looks at them.
    """

    before: Bill = NOTHING
    after: Bill = NOTHING
    entries: dict[str, Entry] = field(default_factory=dict)
    refusals: dict[tuple[str, str], Refused] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rewrites: int = 0
    rates: Rates = DEFAULT_RATES

    def record(self, rule: str, about: str, before: Bill, after: Bill) -> None:
        entry = self.entries.setdefault(rule, Entry(rule, about))
        entry.matches += 1
        entry.before += before
        entry.after += after
        self.rewrites += 1

    def refuse(self, rule: str, node: ir.Node, reason: str) -> None:
        """Remember a refusal; the last word about a node counts."""
        where = describe(node)
        known = (rule, where) in self.refusals
        if known or sum(key[0] == rule for key in self.refusals) < _MOST_REFUSALS:
            self.refusals[rule, where] = Refused(rule, where, source_line(node), reason)

    def to_json(self) -> dict[str, Any]:
        return {
            "before": _priced(self.before, self.rates),
            "after": _priced(self.after, self.rates),
            "rates": asdict(self.rates),
            "rules": [entry.to_json(self.rates) for entry in self.entries.values()],
            "refusals": [refused.to_json() for refused in self.refusals.values()],
            "notes": list(self.notes),
        }


def _priced(bill: Bill, rates: Rates) -> dict[str, Any]:
    return {**bill.to_json(), "seconds": bill.price(rates).to_json()}


def bill_of(work: Workspace, node: ir.Node) -> Bill:
    """What one node costs, as far as it is known; a value in another's place changes nothing about it."""
    known = work.bills.get(node)
    if known is None:
        known = work.bills[node] = _bill(work, node)
    return known


def _bill(work: Workspace, node: ir.Node) -> Bill:
    if node.op_type == "Constant" and not normal_domain(node.domain):
        return Bill(nodes=1)
    facts = work.facts
    inputs = [None if value is None else facts.get(value) for value in node.inputs]
    outputs = [facts[value] for value in node.outputs if value in facts]
    version = work.versions.get(normal_domain(node.domain))
    if version is None or len(outputs) != len(node.outputs):
        return Bill(nodes=1, launches=1)
    try:
        cost = cost_of(node, inputs, outputs, version)
    except ShapeError:
        return Bill(nodes=1, launches=1)
    macs, flops = _number(cost.macs, work.dims), _number(cost.flops, work.dims)
    read, written = _number(cost.bytes_read, work.dims), _number(cost.bytes_written, work.dims)
    launches = 0 if read == written == 0 else 1
    computes = cost.macs is None or cost.flops is None or macs + flops > 0
    moved = (read + written, 0) if computes else (0, read + written)
    return Bill(1, 2 * macs + flops, *moved, launches)


def total_bill(work: Workspace, nodes: Iterable[ir.Node] | None = None) -> Bill:
    """What these nodes, or all outside of functions, cost."""
    every = work.model.graph.all_nodes() if nodes is None else nodes
    total = NOTHING
    for node in every:
        total += bill_of(work, node)
    return total


def _number(size: Size | None, dims: Mapping[str, int]) -> int:
    if size is None or isinstance(size, int):
        return size or 0
    try:
        return evaluate(size, {name: dims.get(name, STAND_IN) for name in symbols(size)})
    except ShapeError:  # dimensions that cannot be equal, here forced to be
        return 0
