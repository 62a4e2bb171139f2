"""The graph as planning sees it: the nodes that must run, what is known of their values, who reads what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.nodes import Dtype
from sardonyx.loops.operations import NARROW
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe
from sardonyx.ops import find_operator
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape, as_array, fact_symbols
from sardonyx.ops.lowering import (
    DTYPES,
    USUAL_SUMS,
    Counted,
    Element,
    Lowering,
    NotNative,
    Relabel,
    loop_dtype,
)
from sardonyx.ops.lowerings.views import IDENTITY, is_foretold
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.flow import Bind, Control, Flow, Go, Item, Region, Turn
from sardonyx.sizes import Size, symbols

__all__ = [
    "Array",
    "Fold",
    "Graph",
    "Opaque",
    "Work",
    "bodies_of",
    "find_constants",
    "late_sizes",
    "nodes_of",
    "read_graph",
]

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
        region: the body that it is in.
        within: the node of the main graph that it is a part of.
    """

    node: ir.Node
    number: int
    call: Call
    outputs: tuple[Facts, ...]
    lowering: Lowering | Opaque | Control
    reads: tuple[ir.Value, ...]
    region: Region | None = None
    within: ir.Node | None = None

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
        flow: Flow | None = None,
    ) -> None:
        self.model = model
        self.shapes = shapes
        self.constants = constants
        self.works = works
        self.definitions = definitions
        self.flow = flow or Flow()
        self.outputs = frozenset(model.graph.outputs)
        self.narrow: frozenset[ir.Value] = frozenset()  # stored as float16 (see `narrow`)
        self.sums = USUAL_SUMS  # numbers that registers hold

    @cached_property
    def producer(self) -> dict[ir.Value, Work]:
        return {value: work for work in self.works for value in work.node.outputs}

    @cached_property
    def variables(self) -> frozenset[ir.Value]:
        """Values that are written by kernels of others."""
        return frozenset(
            self.flow.tensor_of(value)
            for work in self.works
            if work.within is not None
            for value in work.node.outputs
            if value in self.flow.aliases
        )

    @cached_property
    def forced(self) -> frozenset[ir.Value]:
        """Values that control flow wants to have bytes."""
        made = {v for work in self.works if work.within is not None for v in work.reads}
        made.update(v for work in self.works if work.within is not None for v in work.node.outputs)
        return frozenset(self.flow.stored & made)

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
        seen |= self.flow.symbols
        found: dict[str, Work] = {}
        for work in self.works:
            for facts in work.outputs:
                for size in (facts.shape or ()) if facts.kind == "tensor" else ():
                    for name in sorted(symbols(size) - seen):
                        found[name] = work
                        seen.add(name)
        return found

    def decided_by(self, work: Work) -> list[str]:
        """The sizes that this node decides."""
        return [name for name, decider in self.decides.items() if decider is work]

    @cached_property
    def sizing(self) -> frozenset[ir.Value]:
        """Small values that a native node's sizes depend on: they are asked for before it runs."""
        return frozenset(
            value
            for work in self.decides.values()
            if not isinstance(work.lowering, Opaque | Counted)
            for value in work.reads
            if value not in self.constants and self._is_small(value)
        )

    def _is_small(self, value: ir.Value) -> bool:
        shape = self.facts(value).shape
        return shape is not None and len(shape) <= 1

    def facts(self, value: ir.Value) -> Facts:
        return self.shapes.of(value)

    def shape(self, value: ir.Value) -> Shape:
        shape = self.facts(value).shape
        if shape is None:
            raise NotNative(f"the rank of {value.name!r} is not known before it runs")
        return shape

    def dtype(self, value: ir.Value) -> Dtype:
        """The type that a value has in the model."""
        return loop_dtype(self.facts(value).dtype)

    def stored_dtype(self, value: ir.Value) -> Dtype:
        """The type of its bytes."""
        return "f16" if value in self.narrow else self.dtype(value)

    def suited(self, narrow: frozenset[ir.Value], sums: int) -> Graph:
        """The same graph for a machine: with some values stored as float16, and so many sums in registers."""
        graph = copy(self)
        graph.narrow, graph.sums = narrow, sums
        return graph


def find_constants(model: ir.Model, shapes: Shapes, fold: Fold | None) -> dict[ir.Value, Array]:
    """Values that are the same in every run: initializers, known values, and what follows from them."""
    found: dict[ir.Value, Array] = {}
    initializers = [
        value
        for graph in (model.graph, *model.graph.subgraphs())
        for value in graph.initializers.values()
    ]
    for value in initializers:
        if value.const_value is not None and _plain(shapes.of(value)):
            found[value] = value.const_value.numpy()
    for node in nodes_of(model, bodies_first=True):
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
    flow: Flow | None = None,
) -> Graph:
    """The nodes that outputs depend on.

    Args:
        refused: nodes that have no native code after all, with the reason.
        required: values that are known before a run but must have bytes all the same.
    """
    flow = flow or Flow()
    if flow.facts:
        shapes = shapes.extended(flow.facts)
        constants = {**constants, **flow.constants}
    needed = {*model.graph.outputs, *required}
    reader = _Reader(model, shapes, constants, refused, needed, flow, definitions)
    for number, node in reversed(list(enumerate(model.graph))):
        reader.read(node, number)
    reader.works.reverse()
    return Graph(model, shapes, constants, reader.works, definitions, flow)


@dataclass
class _Reader:
    """Goes over nodes from the last to the first, and takes those that are needed."""

    model: ir.Model
    shapes: Shapes
    constants: Mapping[ir.Value, Array]
    refused: Mapping[ir.Node, str]
    needed: set[ir.Value]
    flow: Flow
    definitions: tuple[tuple[str, Size], ...]
    works: list[Work] = field(default_factory=list)

    def __post_init__(self) -> None:
        imports = self.model.opset_imports.items()
        self.versions = {normal_domain(domain): v for domain, v in imports}
        self.hidden = {name: symbols(size) for name, size in self.definitions}
        self.deciders: dict[str, ir.Value] = {}  # sizes that no input has, and where they come up
        for value in (value for node in self.model.graph for value in node.outputs):
            facts = self.shapes.of(value)
            for size in (facts.shape or ()) if facts.kind == "tensor" else ():
                for name in symbols(size) - self.shapes.input_symbols - self.hidden.keys():
                    self.deciders.setdefault(name, value)

    def is_needed(self, node: ir.Node) -> bool:
        return any(v in self.needed and v not in self.constants for v in node.outputs)

    def read(self, node: ir.Node, number: int) -> None:
        if not self.is_needed(node):
            return
        refusal = self.refused.get(node) or self.flow.reasons.get(node)
        if node in self.flow.items and refusal is None:
            here = len(self.works)
            refusal = self._items(node)
            if refusal is None:
                return
            del self.works[here:]
        self.works.append(self._work(node, number, refusal))
        self._need(self.works[-1])

    def _work(self, node: ir.Node, number: int, refusal: str | None) -> Work:
        call, outputs = self._call(node)
        reads = (*(v for v in node.inputs if v is not None), *_captured(node))
        lowering = _lowering(self.model, call, outputs, refusal)
        return Work(node, number, call, outputs, lowering, reads)

    def _call(self, node: ir.Node) -> tuple[Call, tuple[Facts, ...]]:
        inputs = [None if v is None else self.shapes.of(v) for v in node.inputs]
        version = node.version or self.versions.get(normal_domain(node.domain), 1)
        call = Call(node, inputs, version)
        return call, tuple(self.shapes.of(v) for v in node.outputs)

    def _need(self, work: Work) -> None:
        native = not isinstance(work.lowering, Opaque | Control)
        self.needed.update(
            v
            for v in work.reads
            if v not in self.constants and not (native and self.shapes.of(v).value is not None)
        )
        if self.deciders:
            known = (facts for facts in (*work.call.inputs, *work.outputs) if facts is not None)
            names = {one for facts in known for one in fact_symbols(facts)}
            plain = {one for name in names for one in self.hidden.get(name, {name})}
            made = {self.deciders[name] for name in plain & self.deciders.keys()}
            self.needed |= made - set(work.node.outputs)

    def _items(self, within: ir.Node) -> str | None:
        """What became of a node with bodies; why it cannot be, if one of them has no native code."""
        for item in reversed(self.flow.items[within]):
            node, region = item.node, item.region
            refusal = self.refused.get(node)
            if refusal is None and isinstance(item.lowering, Control):
                work = Work(
                    node,
                    item.number,
                    *self._call(node),
                    item.lowering,
                    _read_by(item),
                    region,
                    within,
                )
            elif not self._is_wanted(item):
                continue
            else:
                work = replace(self._work(node, item.number, refusal), region=region, within=within)
                if item.lowering is not None and refusal is None:
                    work = replace(work, lowering=item.lowering)
            if isinstance(work.lowering, Opaque):
                return f"inside of it, {describe(node)}: {work.lowering.reason}"
            self.works.append(work)
            self._need(work)
        return None

    def _is_wanted(self, item: Item) -> bool:
        if item.when is not None:
            return item.when in self.needed
        return self.is_needed(item.node) or any(v in self.flow.stored for v in item.node.outputs)


def _read_by(item: Item) -> tuple[ir.Value, ...]:
    control = item.lowering
    if isinstance(control, Go):
        return () if control.unless is None else (control.unless,)
    if isinstance(control, Turn):
        return (control.limit,)
    return (control.value,) if isinstance(control, Bind) else ()


def late_sizes(graph: Graph) -> dict[ir.Node, str]:
    """Nodes with bodies inside of which sizes come up: nothing in there could have bytes before it runs."""
    hidden = {name: symbols(size) for name, size in graph.definitions}
    seen = {*graph.shapes.input_symbols, *graph.flow.symbols}
    counters = {work.lowering.counter for work in graph.works if isinstance(work.lowering, Turn)}
    found: dict[ir.Node, str] = {}
    for work in graph.works:
        for facts in work.outputs:
            for size in (facts.shape or ()) if facts.kind == "tensor" else ():
                names = {one for name in symbols(size) for one in hidden.get(name, {name})}
                if work.within is None:
                    seen |= names
                elif not names <= seen - counters:
                    where = f"inside of it, {describe(work.node)}"
                    reason = f"{where}: its size is not known before the loop or branch"
                    found.setdefault(work.within, reason)
    return found


def nodes_of(model: ir.Model, *, bodies_first: bool = False) -> Iterator[ir.Node]:
    """The nodes of the main graph, then those of its subgraphs.

    Args:
        bodies_first: in an order in which they could run, the bodies of a node before itself.
    """
    if not bodies_first:
        yield from model.graph
    for node in model.graph:
        yield from bodies_of(node)
        if bodies_first:
            yield node


def bodies_of(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes of a node's subgraphs and of theirs."""
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            yield from attribute.as_graph().all_nodes()


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
    if isinstance(operator.lower, Relabel) and _keeps_shape(call, outputs[0]):
        return IDENTITY
    return operator.lower


def _keeps_shape(call: Call, made: Facts) -> bool:
    """Whether a Reshape and its like are known to give the shape that they get: what lies channels last stays so."""
    given, *others = call.inputs
    known = all(one is None or one.value is not None for one in others)
    if not known or given is None or made.shape is None or given.shape != made.shape:
        return False
    return call.node.op_type != "Reshape" or is_foretold(call, made.shape)


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
