"""Model -> Plan.

Nodes are grouped and written as kernels. Whoever turns out to have no native code is set aside, and
the rest is grouped anew; a value that turns out to need bytes gets them likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from sardonyx.model.source import describe, source_line
from sardonyx.ops.lowering import (
    Convolution,
    Counted,
    IntegerConvolution,
    IntegerProduct,
    NotNative,
    Product,
    TransposedConvolution,
)
from sardonyx.passes.preparing.expand import Border
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.aliases import name_sizes
from sardonyx.plan.assemble import assemble
from sardonyx.plan.attend import write_attention
from sardonyx.plan.attention import find_attentions
from sardonyx.plan.coded import write_coded_product
from sardonyx.plan.contract import write_matrix_product
from sardonyx.plan.convolve import write_convolution, write_transposed
from sardonyx.plan.flatten import flatten
from sardonyx.plan.flow import Control, Flow
from sardonyx.plan.graph import (
    Array,
    Fold,
    Graph,
    Opaque,
    bodies_of,
    find_constants,
    late_sizes,
    nodes_of,
    read_graph,
)
from sardonyx.plan.group import Group, Grouping, group_nodes
from sardonyx.plan.integers import write_integer_convolution, write_integer_product
from sardonyx.plan.layout import choose_orders
from sardonyx.plan.narrow import find_narrow
from sardonyx.plan.nests import write_group
from sardonyx.plan.origins import PlannedNode
from sardonyx.plan.plan import Order, Plan, Texts
from sardonyx.plan.pull import blaming
from sardonyx.plan.target import Target
from sardonyx.plan.write import NeedsBytes, Writer, Written, value_of
from sardonyx.sizes import Size, symbols

__all__ = ["Planned", "make_plan"]

MAX_ROUNDS = (
    64  # each sets at least one node aside; a model that needs more runs on the reference backend
)


@dataclass(frozen=True)
class Planned:
    """A plan, with the arrays of its constants in its order."""

    plan: Plan
    constants: tuple[Array, ...]


def make_plan(
    model: ir.Model,
    shapes: Shapes,
    fold: Fold | None = None,
    target: Target | None = None,
    border: Border | None = None,
) -> Planned:
    """Plan a model. Every node is in the plan's `nodes`, with the reason for where it runs.

    Args:
        target: what the backend has; without one, every kernel is plain loops.
        fold: computes a node whose inputs are all constants; None from it leaves the node to the run.
        border: where callers have something else than the model.
    """
    constants = find_constants(model, shapes, fold)
    shapes, definitions = name_sizes(shapes)
    numbers = {node: number for number, node in enumerate(nodes_of(model))}
    flow = flatten(model, shapes, constants, numbers)
    try:
        made = _plan_rounds(model, shapes, constants, definitions, flow, target)
        return made if border is None else replace(made, plan=_bordered(made.plan, model, border))
    finally:
        flow.release()


def _plan_rounds(
    model: ir.Model,
    shapes: Shapes,
    constants: dict[ir.Value, Array],
    definitions: tuple[tuple[str, Size], ...],
    flow: Flow,
    target: Target | None,
) -> Planned:
    refused: dict[ir.Node, str] = {}
    required: set[ir.Value] = set()
    for _ in range(MAX_ROUNDS):
        graph = read_graph(model, shapes, constants, refused, required, definitions, flow)
        late = late_sizes(graph)
        if late:
            refused.update(late)
            continue
        before = len(refused), len(required)
        forced = required | (graph.sizing & graph.producer.keys()) | graph.forced
        attentions = () if target is None else find_attentions(graph, forced, target)
        grouping = group_nodes(graph, forced, attentions)
        orders = {} if target is None else choose_orders(graph, grouping)
        if target is not None:
            graph = graph.suited(find_narrow(graph, grouping, target), target.sums)
        written = _write(graph, grouping, orders, refused, required, target)
        if (len(refused), len(required)) == before:
            plan, arrays = assemble(graph, written, orders, _nodes(model, graph))
            return Planned(plan, arrays)
    raise NotNative("too many nodes of the model have no native code")


def _write(
    graph: Graph,
    grouping: Grouping,
    orders: dict[ir.Value, Order],
    refused: dict[ir.Node, str],
    required: set[ir.Value],
    target: Target | None,
) -> list[tuple[Group, Written | None]]:
    """Kernels for all that something asks for, from the outputs backwards."""
    asked: set[ir.Value] = set(graph.outputs) | required | graph.sizing | graph.forced
    found: list[tuple[Group, Written | None]] = []
    for group in reversed(grouping.groups):
        results = {*group.root.node.outputs, *group.last.node.outputs}
        is_mark = isinstance(group.root.lowering, Control)
        if not is_mark and not results & asked:
            continue
        if is_mark or isinstance(group.root.lowering, Opaque):
            asked.update(group.root.reads)
            found.append((group, None))
            continue
        try:
            with blaming(group.root.node):
                written = _write_one(graph, group, grouping.stored, orders, target)
        except NotNative as refusal:
            refused[refusal.node or group.root.node] = str(refusal)
            asked.update(_all_reads(graph, group, grouping))
            continue
        except NeedsBytes as need:
            required.add(need.value)
            asked.update(_all_reads(graph, group, grouping))
            continue
        if _too_long(graph, written):
            refused[group.root.node] = "its sizes are too involved to compute with"
            continue
        for one in (written, *written.more):
            values = list(filter(None, map(value_of, one.arguments)))
            asked.update(values)
            asked.update(_deciders(graph, values, one.kernel.symbols))
        found.append((group, written))
    found.reverse()
    return found


def _deciders(graph: Graph, values: Sequence[ir.Value], names: Sequence[str]) -> Iterator[ir.Value]:
    """Outputs of the nodes that have to run before these sizes are known."""
    hidden = {name: symbols(size) for name, size in graph.definitions}
    shown = {*names, *(n for v in values for size in graph.shape(v) for n in symbols(size))}
    for plain in {one for name in shown for one in hidden.get(name, {name})}:
        work = graph.decides.get(plain)
        if work is not None and isinstance(work.lowering, Counted | Opaque):
            yield from work.node.outputs


def _too_long(graph: Graph, written: Written) -> bool:
    """Whether index arithmetic has outgrown its limits somewhere in the kernels."""
    return any(
        name not in graph.decides and name.startswith("#")
        for one in (written, *written.more)
        for name in one.kernel.symbols
    )


def _all_reads(graph: Graph, group: Group, grouping: Grouping) -> set[ir.Value]:
    """What a group that has no kernel yet may read, so that this round finds all there is to find."""
    found: set[ir.Value] = set()
    pending = [group.root, *group.tail]
    while pending:
        for value in pending.pop().reads:
            producer = graph.producer.get(value)
            if producer is not None and value not in found:
                found.add(value)
                if value not in grouping.stored:
                    pending.append(producer)
    return found


def _write_one(
    graph: Graph,
    group: Group,
    stored: frozenset[ir.Value],
    orders: dict[ir.Value, Order],
    target: Target | None,
) -> Written:
    """A kernel of the backend where it has one that suits, else plain loops."""
    if target is not None and group.attention is not None:
        return write_attention(Writer(graph, stored, orders), group, group.attention, target)
    if target is not None and isinstance(group.root.lowering, Product):
        coded = write_coded_product(Writer(graph, stored, orders), group, target)
        if coded is not None:
            return coded
    write = {
        Product: write_matrix_product,
        Convolution: write_convolution,
        TransposedConvolution: write_transposed,
        IntegerProduct: write_integer_product,
        IntegerConvolution: write_integer_convolution,
    }.get(type(group.root.lowering))
    if target is not None and write is not None:
        written = write(Writer(graph, stored, orders), group, target)
        if written is not None:
            return written
    return write_group(graph, group, stored, orders)


def _bordered(plan: Plan, model: ir.Model, border: Border) -> Plan:
    """The plan that says what its inputs and outputs are for callers."""
    inputs = [value for value in model.graph.inputs if value.const_value is None]
    outputs = model.graph.outputs

    def places(values: Sequence[ir.Value], which: Collection[ir.Value]) -> tuple[int, ...]:
        return tuple(number for number, value in enumerate(values) if value in which)

    texts = None
    if border.texts:
        ends = places(inputs, border.texts), places(outputs, border.texts)
        texts = Texts(border.known, *ends)
    nodes = tuple(
        replace(one, reason=f"{one.reason}, {border.notes[node]}") if node in border.notes else one
        for node, one in zip(nodes_of(model), plan.nodes, strict=True)
    )
    squeezed = places(outputs, border.squeezed)
    return replace(plan, nodes=nodes, texts=texts, squeezed=squeezed)


def _nodes(model: ir.Model, graph: Graph) -> tuple[PlannedNode, ...]:
    works = {work.number: work for work in graph.works}
    opaque = {
        inner: work.lowering.reason
        for work in graph.works
        if isinstance(work.lowering, Opaque)
        for inner in (work.node, *bodies_of(work.node))
    }
    found = []
    for number, node in enumerate(nodes_of(model)):
        reason = opaque.get(node, "compiled" if number in works else "known before the model runs")
        native = node not in opaque
        found.append(PlannedNode(describe(node), node.op_type, native, reason, source_line(node)))
    return tuple(found)
