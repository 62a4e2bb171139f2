"""The graph as planning sees it: the nodes that must run, what is known of their values, who reads what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.nodes import Dtype
from sardonyx.loops.operations import NARROW
from sardonyx.model.opset import normal_domain
from sardonyx.ops import find_operator
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape, as_array
from sardonyx.ops.lowering import DTYPES, Element, Lowering, NotNative, Relabel, loop_dtype
from sardonyx.passes.shapes import Shapes
from sardonyx.sizes import Size, symbols

__all__ = ["Array", "Fold", "Graph", "Opaque", "Work", "find_constants", "read_graph"]

Array: TypeAlias = npt.NDArray[Any]
Fold: TypeAlias = Callable[[ir.Node, Sequence["Array | None"]], "Sequence[Array] | None"]

MAX_FOLDED = 1 << 24  # elements of one constant that is computed from others


@dataclass(frozen=True)
class Opaque:
    """No native code, and why: the node runs on the reference backend."""

    reason: str


@dataclass(frozen=True, eq=False)
class Work:
    """A node to be planned. Two works are the same only if they are the same object.

    Attributes:
        reads: the node's inputs and, for a node with subgraphs, what those take from outside.
    """

    node: ir.Node
    number: int
    call: Call
    outputs: tuple[Facts, ...]
    lowering: Lowering | Opaque
    reads: tuple[ir.Value, ...]

    @property
    def name(self) -> str:
        return self.node.name or self.node.op_type


class Graph:
    """The nodes that must run, in order."""

    def __init__(
        self,
        model: ir.Model,
        shapes: Shapes,
        constants: Mapping[ir.Value, Array],
        works: Sequence[Work],
        definitions: tuple[tuple[str, Size], ...] = (),
    ) -> None:
        self.model = model
        self.shapes = shapes
        self.constants = constants
        self.works = works
        self.definitions = definitions
        self.outputs = frozenset(model.graph.outputs)

    @cached_property
    def producer(self) -> dict[ir.Value, Work]:
        return {value: work for work in self.works for value in work.node.outputs}

    @cached_property
    def readers(self) -> dict[ir.Value, list[Work]]:
        found: dict[ir.Value, list[Work]] = {}
        for work in self.works:
            for value in dict.fromkeys(work.reads):
                found.setdefault(value, []).append(work)
        return found

    @cached_property
    def decides(self) -> dict[str, Work]:
        """Sizes that no input's shape binds, by the node whose output has them first."""
        seen = {*self.shapes.input_symbols, *(name for name, _ in self.definitions)}
        found: dict[str, Work] = {}
        for work in self.works:
            for facts in work.outputs:
                for size in (facts.shape or ()) if facts.kind == "tensor" else ():
                    for name in sorted(symbols(size) - seen):
                        found[name] = work
                        seen.add(name)
        return found

    @cached_property
    def sizing(self) -> frozenset[ir.Value]:
        """Small values that a native node's sizes depend on: they are asked for before it runs."""
        return frozenset(
            value
            for work in self.decides.values()
            if not isinstance(work.lowering, Opaque)
            for value in work.reads
            if value not in self.constants and len(self.facts(value).shape or (0, 0)) <= 1
        )

    def facts(self, value: ir.Value) -> Facts:
        return self.shapes.of(value)

    def shape(self, value: ir.Value) -> Shape:
        shape = self.facts(value).shape
        if shape is None:
            raise NotNative(f"the rank of {value.name!r} is not known before it runs")
        return shape

    def dtype(self, value: ir.Value) -> Dtype:
        return loop_dtype(self.facts(value).dtype)


def find_constants(model: ir.Model, shapes: Shapes, fold: Fold | None) -> dict[ir.Value, Array]:
    """Values that are the same in every run: initializers, known values, and what follows from them."""
    graph = model.graph
    found: dict[ir.Value, Array] = {}
    for value in graph.initializers.values():
        if value.const_value is not None and _plain(shapes.of(value)):
            found[value] = value.const_value.numpy()
    for node in graph:
        known = {v: _known(shapes.of(v)) for v in node.outputs}
        if all(array is not None for array in known.values()):
            found.update((v, a) for v, a in known.items() if a is not None)
        elif fold is not None and _folds(node, shapes, found):
            results = fold(node, [None if v is None else found[v] for v in node.inputs])
            if results is not None:
                found.update(zip(node.outputs, results, strict=True))
    return found


def _known(facts: Facts) -> Array | None:
    return as_array(facts) if _plain(facts) else None


def _plain(facts: Facts) -> bool:
    return facts.kind == "tensor" and facts.dtype in DTYPES


def _folds(node: ir.Node, shapes: Shapes, constants: Mapping[ir.Value, Array]) -> bool:
    """Whether the node's outputs are constants, and small ones."""
    if node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial", "Dropout"):
        return False
    if not all(v is None or v in constants for v in node.inputs):
        return False
    if any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return False
    sizes: list[Size | None] = [shapes.of(v).elements for v in node.outputs if _plain(shapes.of(v))]
    small = all(isinstance(size, int) and size <= MAX_FOLDED for size in sizes)
    return small and len(sizes) == len(node.outputs)


def read_graph(
    model: ir.Model,
    shapes: Shapes,
    constants: Mapping[ir.Value, Array],
    refused: Mapping[ir.Node, str],
    required: Collection[ir.Value],
    definitions: tuple[tuple[str, Size], ...] = (),
) -> Graph:
    """The nodes that outputs depend on.

    Args:
        refused: nodes that have no native code after all, with the reason.
        required: values that are known before a run but must have bytes all the same.
    """
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    needed: set[ir.Value] = set(model.graph.outputs) | set(required)
    works: list[Work] = []
    nodes = list(model.graph)
    for number in reversed(range(len(nodes))):
        node = nodes[number]
        if not any(value in needed and value not in constants for value in node.outputs):
            continue
        inputs = [None if v is None else shapes.of(v) for v in node.inputs]
        call = Call(node, inputs, versions.get(normal_domain(node.domain), 1))
        outputs = tuple(shapes.of(v) for v in node.outputs)
        reads = (*(v for v in node.inputs if v is not None), *_captured(node))
        lowering = _lowering(model, call, outputs, refused.get(node))
        works.append(Work(node, number, call, outputs, lowering, reads))
        native = not isinstance(lowering, Opaque)
        needed.update(
            v
            for v in reads
            if v not in constants and not (native and shapes.of(v).value is not None)
        )
    works.reverse()
    return Graph(model, shapes, constants, works, definitions)


def _lowering(
    model: ir.Model, call: Call, outputs: Sequence[Facts], refusal: str | None
) -> Lowering | Opaque:
    node = call.node
    if refusal is not None:
        return Opaque(refusal)
    if node.op_identifier() in model.functions:
        return Opaque("it calls a function of the model")
    operator = find_operator(normal_domain(node.domain), node.op_type, call.version)
    if operator is None or operator.lower is None:
        return Opaque(f"{node.op_type} has no native code")
    for facts in (*call.inputs, *outputs):
        if facts is None:
            continue
        if facts.kind != "tensor":
            return Opaque(f"a {facts.kind} has no native form")
        if facts.dtype not in DTYPES:
            name = "unknown" if facts.dtype is None else facts.dtype.name.lower()
            return Opaque(f"elements of type {name} have no native code")
        if facts.shape is None:
            return Opaque("the rank of a value is not known before it runs")
        if DTYPES[facts.dtype] in NARROW and not _takes_narrow(operator.lower):
            return Opaque(f"{node.op_type} of {facts.dtype.name.lower()} has no native code")
    return operator.lower


def _takes_narrow(lowering: Lowering) -> bool:
    return isinstance(lowering, Relabel) or (isinstance(lowering, Element) and lowering.narrow)


def _captured(node: ir.Node) -> tuple[ir.Value, ...]:
    """What the subgraphs of a node read from outside of them."""
    found: dict[ir.Value, None] = {}
    for attribute in node.attributes.values():
        if attribute.type != ir.AttributeType.GRAPH:
            continue
        graph = attribute.as_graph()
        inside: set[ir.Value] = set()
        for part in (graph, *graph.subgraphs()):
            inside.update(part.inputs)
            inside.update(part.initializers.values())
            inside.update(v for one in part for v in one.outputs)
        for part in (graph, *graph.subgraphs()):
            used = (*(v for one in part for v in one.inputs), *part.outputs)
            found.update((v, None) for v in used if v is not None and v not in inside)
    return tuple(found)
