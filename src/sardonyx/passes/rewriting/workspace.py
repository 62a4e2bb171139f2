"""A model while it is rewritten: its graph, what is known of every value, and what the rewriter may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Facts
from sardonyx.passes.preparing.expand import nodes_of_model
from sardonyx.passes.rewriting.bill import Bill
from sardonyx.passes.shapes import infer_shapes

__all__ = ["Evaluate", "Workspace"]

# Computes a node whose inputs are all constants; None leaves it to the run.
Evaluate: TypeAlias = Callable[
    [ir.Model, ir.Node, Sequence["npt.NDArray[Any] | None"]], "list[npt.NDArray[Any]] | None"
]

_OPEN = frozenset({"If", "Loop", "Scan"})
_GRAPH = ir.AttributeType.GRAPH


@dataclass
class Workspace:
    """The model under work.

    Attributes:
        model: is changed in place.
        facts: of every value outside of functions; kept true by whoever changes the graph.
        versions: of the operator sets, by domain.
        bills: what nodes cost, as far as somebody has asked.
        evaluate: computes a node on constants.
        fold_budget: bytes that the model may grow by where constants are stored that every run would compute.
        grown: bytes that it has grown by so.
        dims: sizes of dynamic dimensions for the account; others count as a stand-in.
    """

    model: ir.Model
    evaluate: Evaluate | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    fold_budget: int = 0
    grown: int = field(init=False, default=0)
    facts: dict[ir.Value, Facts] = field(init=False)
    versions: dict[str, int] = field(init=False)
    bills: dict[ir.Node, Bill] = field(init=False, default_factory=dict)
    _names: set[str] = field(init=False)
    _counter: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Find out everything anew, after a change that no rule made."""
        model = self.model
        self.versions = {normal_domain(d): v for d, v in model.opset_imports.items()}
        self.facts = infer_shapes(model).all()
        graphs = (model.graph, *model.graph.subgraphs())
        self._names = {node.name for node in nodes_of_model(model) if node.name}
        for graph in graphs:
            self._names.update(value.name or "" for value in graph.inputs)
            self._names.update(graph.initializers)
            self._names.update(value.name or "" for node in graph for value in node.outputs)

    def graphs(self) -> list[ir.Graph]:
        """The graph and the branches and bodies inside of it, outer ones first.

        A graph that belongs to any other operator may not read values from outside: it is left alone.
        """
        found = [self.model.graph]
        for graph in found:
            for node in graph:
                if node.op_type in _OPEN and not normal_domain(node.domain):
                    graphs = (a for a in node.attributes.values() if a.type == _GRAPH)
                    found += [attribute.as_graph() for attribute in graphs]
        return found

    def fresh_name(self, what: str) -> str:
        """A name that nothing in the model has."""
        while True:
            self._counter += 1
            name = f"sx_{what}_{self._counter}"
            if name not in self._names:
                self._names.add(name)
                return name

    def add_constant(self, value: ir.Value) -> None:
        """Make a value an initializer of the model; before IR version 4 it must be listed as an input too."""
        self.model.graph.register_initializer(value)
        if (self.model.ir_version or 4) < 4:
            self.model.graph.inputs.append(value)

    def tensor_of(self, value: ir.Value) -> ir.TensorProtocol | None:
        """What a value is in every run: an initializer that no caller can replace, or a Constant."""
        if value.is_graph_input():
            return None
        if value.const_value is not None and value.is_initializer():
            return value.const_value
        node = value.producer()
        if node is not None and node.op_type == "Constant" and not normal_domain(node.domain):
            return ir.convenience.get_const_tensor(value)
        return value.const_value if node is None else None
