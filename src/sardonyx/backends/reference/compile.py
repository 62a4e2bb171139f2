"""From a model to a program: slots, lifetimes, and an implementation for every node.

Graphs are walked in order without recursion over nodes; only subgraphs and functions nest, and
their depth is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.control_flow import Subgraph
from sardonyx.backends.reference.functions import FunctionKey, bind_function, function_key
from sardonyx.backends.reference.operator import Operator, make_operator, resolve_references
from sardonyx.backends.reference.program import Block, Program, Step
from sardonyx.backends.reference.selection import select_kernel
from sardonyx.backends.reference.values import Value, stored_tensor
from sardonyx.errors import LimitError, SardonyxError, StructureError
from sardonyx.model.source import describe, source_line

__all__ = ["NodeProgram", "compile_model", "compile_node"]

MAX_DEPTH = 96  # subgraphs and functions inside each other; each level takes a few Python frames
MAX_NODES = 4_000_000  # nodes in all, each specialisation of a function counted


def compile_model(model: ir.Model) -> Program:
    """Prepare a model for the reference backend.

    Weights are not copied. The model must not be changed while the program is in use.

    Raises:
        UnsupportedError: a node's operator, domain or version has no meaning here.
        StructureError: a value is used that nothing computes, or a function calls itself.
        LimitError: subgraphs and functions nest too deep, or expand into too many nodes.
    """
    graph = model.graph
    scope = Compiler(model.functions).compile_nodes(
        graph.inputs,
        graph,
        graph.outputs,
        graph.initializers.values(),
        Context(model.opset_imports),
    )
    if scope.captured:
        names = ", ".join(repr(value.name) for value in scope.captured)
        raise StructureError(f"nothing computes {names}", where=f"graph {graph.name!r}")
    defaults = {
        value.name: _constant(value)
        for value in graph.inputs
        if value.name and value.const_value is not None
    }
    return Program(
        block=scope.block,
        inputs=tuple(value.name or "" for value in graph.inputs),
        defaults=defaults,
        outputs=tuple(value.name or "" for value in graph.outputs),
        values={slot: value.name for value, slot in scope.slot_of.items() if value.name},
    )


@dataclass(frozen=True)
class NodeProgram:
    """One node, to be run by itself.

    Attributes:
        reads: the values it takes, outer values of its subgraphs among them, each once.
    """

    block: Block
    reads: tuple[ir.Value, ...]

    def run(self, inputs: Sequence[Value], guard: Guard) -> list[Value]:
        """The node's outputs; `inputs` are in the order of `reads`."""
        with np.errstate(all="ignore"):
            return self.block.run((), inputs, guard)


def compile_node(model: ir.Model, node: ir.Node) -> NodeProgram:
    """Prepare one node of the model's graph."""
    outputs = [value if value.name else None for value in node.outputs]
    scope = Compiler(model.functions).compile_nodes(
        (), (node,), outputs, (), Context(model.opset_imports)
    )
    return NodeProgram(scope.block, scope.captured)


@dataclass(frozen=True)
class Context:
    """What surrounds a graph while it is compiled.

    Attributes:
        opsets: versions by domain.
        bindings: inside a function, the attributes of the call.
        depth: how many subgraphs and functions are around it.
    """

    opsets: Mapping[str, int]
    bindings: Mapping[str, ir.Attr] | None = None
    depth: int = 0

    def inner(self) -> Context:
        return Context(self.opsets, self.bindings, self.depth + 1)


@dataclass(frozen=True)
class Scope:
    """A compiled graph with what its surroundings must know of it."""

    block: Block
    slot_of: Mapping[ir.Value, int]
    captured: tuple[ir.Value, ...]


class Compiler:
    """Compiles the graphs and functions of one model; a function once for each set of attributes."""

    def __init__(self, functions: Mapping[ir.OperatorIdentifier, ir.Function]) -> None:
        self.functions = functions
        # The functions stay here with their blocks: the keys hold their ids.
        self._blocks: dict[FunctionKey, tuple[ir.Function, Block]] = {}
        self._open: list[FunctionKey] = []
        self._nodes = 0

    def fresh(self) -> Compiler:
        """Another compiler over the same functions, for what is only known at run time."""
        return Compiler(self.functions)

    def compile_nodes(
        self,
        inputs: Sequence[ir.Value],
        nodes: Iterable[ir.Node],
        outputs: Sequence[ir.Value | None],
        initializers: Iterable[ir.Value],
        context: Context,
    ) -> Scope:
        """Compile a graph, or the body of a function, given as its parts."""
        if context.depth > MAX_DEPTH:
            raise LimitError(
                f"subgraphs and functions nest {context.depth} deep",
                value=context.depth,
                limit=MAX_DEPTH,
                hint="Inline the functions of the model first.",
            )
        slots = _Slots()
        for value in inputs:
            slots.define(value)
        constants: list[tuple[int, Value]] = [
            (slots.define(value), _constant(value))
            for value in initializers
            if value not in slots.slot_of
        ]
        steps = [self._step(node, slots, context) for node in nodes]
        kept = [None if value is None else slots.use(value) for value in outputs]
        block = Block(
            inputs=tuple(slots.slot_of[value] for value in inputs),
            captures=tuple(slots.slot_of[value] for value in slots.captured),
            constants=tuple(constants),
            steps=tuple(_with_lifetimes(steps, {slot for slot in kept if slot is not None})),
            outputs=tuple(kept),
            slots=len(slots.slot_of),
        )
        return Scope(block, slots.slot_of, tuple(slots.captured))

    def compile_function(
        self, function: ir.Function, given: Mapping[str, ir.Attr], context: Context
    ) -> Block:
        """The body of a function under the attributes of one call."""
        bindings = bind_function(function, given)
        key = function_key(function, bindings)
        if key in self._blocks:
            return self._blocks[key][1]
        if any(key[0] == open_key[0] for open_key in self._open):
            raise StructureError(
                "the function calls itself, directly or through others",
                where=f"function '{function.domain}::{function.name}'",
            )
        self._open.append(key)
        try:
            scope = self.compile_nodes(
                function.inputs,
                function,
                function.outputs,
                function.graph.initializers.values(),
                Context({**context.opsets, **function.opset_imports}, bindings, context.depth + 1),
            )
        finally:
            self._open.pop()
        if scope.captured:
            names = ", ".join(repr(value.name) for value in scope.captured)
            raise StructureError(
                f"nothing computes {names}", where=f"function '{function.domain}::{function.name}'"
            )
        self._blocks[key] = (function, scope.block)
        return scope.block

    def _step(self, node: ir.Node, slots: _Slots, context: Context) -> Step:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise LimitError(
                f"functions expand into more than {MAX_NODES} nodes",
                value=self._nodes,
                limit=MAX_NODES,
                hint="The model's functions call each other too often.",
            )
        try:
            operator = make_operator(resolve_references(node, context.bindings), context.opsets)
            subgraphs, captured = self._subgraphs(operator, len(node.inputs), context)
            selected = select_kernel(operator, subgraphs, self, context)
        except (SardonyxError, RecursionError, MemoryError):
            raise
        except Exception as error:
            # An attribute is missing or not of the type that the operator needs.
            raise StructureError(
                f"cannot be prepared: {type(error).__name__}: {str(error)[:500]}",
                where=describe(node),
                source=source_line(node),
            ) from error
        inputs = [None if value is None else slots.use(value) for value in node.inputs]
        inputs += [slots.use(value) for value in captured]
        return Step(
            operator=operator,
            kernel=selected.kernel,
            inputs=tuple(inputs),
            outputs=tuple(slots.define(value) if value.name else None for value in node.outputs),
            dead_after=(),
            predicts=selected.predicts,
        )

    def _subgraphs(
        self, operator: Operator, first: int, context: Context
    ) -> tuple[dict[str, Subgraph], list[ir.Value]]:
        """Compile the graphs in a node's attributes; their outer values become its inputs."""
        subgraphs: dict[str, Subgraph] = {}
        captured: list[ir.Value] = []
        for name, attribute in operator.node.attributes.items():
            if attribute.type != ir.AttributeType.GRAPH:
                continue
            graph = attribute.as_graph()
            scope = self.compile_nodes(
                graph.inputs, graph, graph.outputs, graph.initializers.values(), context.inner()
            )
            start = first + len(captured)
            captured += scope.captured
            subgraphs[name] = Subgraph(
                scope.block, slice(start, first + len(captured)), tuple(graph.outputs)
            )
        return subgraphs, captured


class _Slots:
    """Numbers the values of one graph in the order they are met."""

    def __init__(self) -> None:
        self.slot_of: dict[ir.Value, int] = {}
        self.captured: list[ir.Value] = []

    def define(self, value: ir.Value) -> int:
        return self.slot_of.setdefault(value, len(self.slot_of))

    def use(self, value: ir.Value) -> int:
        if value not in self.slot_of:
            self.captured.append(value)
        return self.define(value)


def _with_lifetimes(steps: Sequence[Step], kept: set[int]) -> list[Step]:
    """Give each step the slots that nothing reads after it."""
    seen = set(kept)
    timed = []
    for step in reversed(steps):
        touched = [slot for slot in (*step.inputs, *step.outputs) if slot is not None]
        dead = tuple(dict.fromkeys(slot for slot in touched if slot not in seen))
        seen.update(dead)
        timed.append(
            Step(step.operator, step.kernel, step.inputs, step.outputs, dead, step.predicts)
        )
    return timed[::-1]


def _constant(value: ir.Value) -> Value:
    if value.const_value is None:
        raise StructureError("the initializer has no data", where=f"initializer {value.name!r}")
    return stored_tensor(value.const_value)
