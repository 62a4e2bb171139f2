"""Shape and type inference over a whole model.

shapes = infer_shapes(model)
shapes.of(value)         # Facts("tensor", FLOAT, (batch, 2*seq, 768))
shapes.conflicts         # declarations that the graph contradicts
shapes.data_symbols      # sizes that only data decides
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import VARYING, Facts, fact_symbols, facts_of_tensor, unknown
from sardonyx.passes.inference.declared import Conflict, declared_facts
from sardonyx.passes.inference.walk import Scope, Walk
from sardonyx.sizes import Expr, Size, symbol

__all__ = ["Conflict", "Shapes", "infer_shapes"]


class Shapes:
    """What inference found out about a model's values."""

    def __init__(
        self,
        facts: Mapping[ir.Value, Facts],
        conflicts: Iterable[Conflict],
        input_symbols: frozenset[str],
    ) -> None:
        self._facts = facts
        self.conflicts = tuple(conflicts)
        self.input_symbols = input_symbols

    def of(self, value: ir.Value) -> Facts:
        """Facts about a value of the model's graph or its subgraphs.

        Raises:
            KeyError: for a value inside a function, whose callers decide its shape.
        """
        return self._facts[value]

    def all(self) -> dict[ir.Value, Facts]:
        """Facts about every value, to be changed freely."""
        return dict(self._facts)

    @cached_property
    def data_symbols(self) -> frozenset[str]:
        """Symbols that no input's shape binds: only running the model tells their sizes."""
        found: set[str] = set()
        for facts in self._facts.values():
            found |= fact_symbols(facts)
        return frozenset(found - self.input_symbols - fact_symbols(Facts(shape=(VARYING,))))

    def extended(self, facts: Mapping[ir.Value, Facts]) -> Shapes:
        """The same, with facts about values that are not the model's own."""
        return Shapes({**self._facts, **facts}, self.conflicts, self.input_symbols)

    def mapped(self, change: Callable[[Facts], Facts]) -> Shapes:
        """The same, with other facts about every value."""
        facts = {value: change(one) for value, one in self._facts.items()}
        return Shapes(facts, self.conflicts, self.input_symbols)

    def write_back(self, model: ir.Model) -> None:
        """Write types and shapes into the model's own values, symbolic sizes as dim_param text."""
        for graph in (model.graph, *model.graph.subgraphs()):
            for value in (*graph.inputs, *(v for node in graph for v in node.outputs)):
                if value in self._facts:
                    _write(value, self._facts[value])


def infer_shapes(model: ir.Model) -> Shapes:
    """Types and shapes of every value, over the symbols of the model's inputs.

    Raises:
        ShapeError: a node's inputs or attributes contradict its operator's specification.
    """
    facts: dict[ir.Value, Facts] = {}
    inputs = _input_facts(model)
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    walk = Walk(model)
    walk.graph(model.graph, inputs, Scope(versions, facts))
    named: frozenset[str] = frozenset().union(*(fact_symbols(one) for one in inputs))
    return Shapes(facts, walk.conflicts.values(), named)


def _input_facts(model: ir.Model) -> list[Facts]:
    graph = model.graph
    taken = {
        dim.value
        for value in graph.inputs
        for dim in value.shape or ()
        if isinstance(dim, ir.SymbolicDim)
    }
    # Before IR version 4 every initializer had to be an input too, and no caller could replace it.
    constants = graph.initializers if (model.ir_version or 4) < 4 else {}
    found = []
    for value in graph.inputs:
        constant = constants.get(value.name or "")
        if constant is not None and constant.const_value is not None:
            found.append(facts_of_tensor(constant.const_value))
        else:
            found.append(_declared_input(value, taken))
    return found


def _declared_input(value: ir.Value, taken: set[str | None]) -> Facts:
    def fresh(axis: int) -> Expr:
        name = f"{value.name}.{axis}"
        while name in taken:
            name += "_"
        return symbol(name)

    declared = declared_facts(value, fresh)
    if declared is None:
        return unknown()
    if declared.shape is None and value.const_value is not None:
        return Facts("tensor", declared.dtype, facts_of_tensor(value.const_value).shape)
    return declared


def _write(value: ir.Value, facts: Facts) -> None:
    kind = _ir_type(facts)
    if kind is None:
        return
    value.type = kind
    while facts.element is not None and facts.kind in ("sequence", "optional"):
        facts = facts.element
    if facts.shape is not None:
        value.shape = ir.Shape([None if size == VARYING else _dim(size) for size in facts.shape])


def _ir_type(facts: Facts) -> ir.TypeProtocol | None:
    if facts.kind == "sequence" or facts.kind == "optional":
        element = _ir_type(facts.element) if facts.element is not None else None
        if element is None:
            return None
        return ir.SequenceType(element) if facts.kind == "sequence" else ir.OptionalType(element)
    if facts.dtype is None or facts.kind == "map":
        return None
    return (
        ir.TensorType(facts.dtype) if facts.kind == "tensor" else ir.SparseTensorType(facts.dtype)
    )


def _dim(size: Size) -> int | str:
    if isinstance(size, int):
        return size
    return size.lone_symbol or str(size)
