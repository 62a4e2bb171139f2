"""One walk over a graph's nodes, in order, from facts about its inputs to facts about all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops import find_operator, infer_node
from sardonyx.ops.facts import Facts, facts_of_tensor, unknown
from sardonyx.ops.schema import find_schema
from sardonyx.passes.inference import control_flow, functions
from sardonyx.passes.inference.declared import Conflict, declared_facts, reconcile
from sardonyx.sizes import Expr, Size, symbol

__all__ = ["Scope", "Walk"]


@dataclass(frozen=True)
class Scope:
    """Where the walk is: which opsets hold, whose symbols these are, what attributes are bound."""

    versions: Mapping[str, int]
    facts: dict[ir.Value, Facts]
    prefix: str = ""  # of symbols that come up here
    bound: Mapping[str, ir.Attr] | None = None  # of the function that the walk is inside
    depth: int = 0  # functions inside functions

    def fresh(self, value: ir.Value, axis: int) -> Expr:
        return symbol(f"{self.prefix}{value.name}.{axis}")


@dataclass
class Walk:
    """The state of one inference: the model's functions, and what was found on the way."""

    model: ir.Model
    conflicts: dict[ir.Value, Conflict] = field(default_factory=dict)
    calls: functions.Calls = field(default_factory=functions.Calls)

    def graph(self, graph: ir.Graph, inputs: Sequence[Facts], scope: Scope) -> list[Facts]:
        """Facts about a graph's outputs, its inputs being these."""
        for value, given in zip(graph.inputs, inputs, strict=False):
            scope.facts[value] = given
        for value in graph.initializers.values():
            if value.const_value is not None and value not in scope.facts:
                scope.facts[value] = facts_of_tensor(value.const_value)
        for node in graph:
            self.node(node, scope)
        return [scope.facts.get(value, unknown()) for value in graph.outputs]

    def skip(self, graph: ir.Graph, scope: Scope) -> None:
        """Nothing is known about what a graph that was not walked to its end computes."""
        for part in (graph, *graph.subgraphs()):
            for value in (*part.inputs, *(v for node in part for v in node.outputs)):
                scope.facts.setdefault(value, unknown())
            for value in part.initializers.values():
                if value.const_value is not None:
                    scope.facts.setdefault(value, facts_of_tensor(value.const_value))

    def node(self, node: ir.Node, scope: Scope) -> None:
        inputs = [
            None if value is None else scope.facts.get(value, unknown()) for value in node.inputs
        ]
        outputs = self._infer(node, inputs, scope)
        for value, facts in zip(node.outputs, outputs, strict=True):
            scope.facts[value] = self._settle(value, facts, scope)

    def _infer(
        self, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
    ) -> Sequence[Facts]:
        domain = normal_domain(node.domain)
        function = self.model.functions.get(node.op_identifier())
        if function is not None:
            return functions.call_function(self, node, function, inputs, scope)
        rule = control_flow.RULES.get(node.op_type) if domain in control_flow.DOMAINS else None
        if rule is not None:
            return rule(self, node, inputs, scope)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
                self.skip(attribute.value, scope)  # what it is fed, only its operator knows
        version = node.version or scope.versions.get(domain)
        if version is None:
            return [unknown()] * len(node.outputs)
        found = infer_node(node, inputs, version, scope=scope.prefix, bound=scope.bound)
        if find_operator(domain, node.op_type, version) is None:
            schema = find_schema(domain, node.op_type, version)
            if schema is not None and all(facts == unknown(facts.dtype) for facts in found):
                return functions.expand_schema(self, node, schema, inputs, found, scope)
        return found

    def _settle(self, value: ir.Value, inferred: Facts, scope: Scope) -> Facts:
        """Compare with what the model declares about the value."""
        if not value.name:
            return inferred
        declared = declared_facts(value, lambda axis: scope.fresh(value, axis))
        if declared is None:
            return inferred
        mark = f"{scope.prefix}{value.name}."

        def is_fresh(size: Size) -> bool:
            name = size.lone_symbol if isinstance(size, Expr) else None
            return name is not None and name.startswith(mark)

        settled, contradicted = reconcile(inferred, declared, is_fresh)
        if contradicted and scope.depth == 0:
            self.conflicts[value] = Conflict(value.name, declared, inferred)
        else:
            self.conflicts.pop(value, None)
        return settled
