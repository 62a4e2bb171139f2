"""If, Loop, Scan, SequenceMap: operators whose meaning is a subgraph.

Symbols that come up inside a subgraph are named under the node's own prefix and do not leave it: a
size that every turn of a loop decides anew is not one size outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.source import describe, source_line
from sardonyx.ops import infer_node
from sardonyx.ops.call import Call
from sardonyx.ops.facts import VARYING, Facts, objects, unknown
from sardonyx.passes.inference.declared import declared_facts
from sardonyx.passes.inference.merge import conceal, merge, prepend, without_value
from sardonyx.sizes import Expr, Size, max_of, symbol

if TYPE_CHECKING:
    from sardonyx.passes.inference.walk import Scope, Walk

__all__ = ["DOMAINS", "RULES"]

Rule: TypeAlias = "Callable[[Walk, ir.Node, Sequence[Facts | None], Scope], Sequence[Facts]]"

DOMAINS = ("", "ai.onnx.preview")
MAX_TURNS = 8  # walks of a loop's body before what still changes is given up

RUNNING = Facts("tensor", ir.DataType.BOOL, (), objects([True], ()))


def _body(node: ir.Node, name: str) -> ir.Graph:
    attribute = node.attributes.get(name)
    if attribute is None or not isinstance(attribute.value, ir.Graph):
        raise _error(node, f"the subgraph {name!r} is missing.")
    return attribute.value


def _inside(node: ir.Node, scope: Scope, part: str = "") -> Scope:
    name = node.outputs[0].name if node.outputs else node.name
    return replace(scope, prefix=f"{scope.prefix}{name}{part}/")


def _leave(node: ir.Node, index: int, facts: Facts, inner: Scope, scope: Scope) -> Facts:
    value = node.outputs[index]
    return conceal(facts, inner.prefix, lambda axis: scope.fresh(value, axis))


def _enter(value: ir.Value, facts: Facts, scope: Scope) -> Facts:
    """What the caller knows, or what the body declares where the caller knows nothing."""
    if facts.kind != "tensor" or facts.shape is not None:
        return facts
    declared = declared_facts(value, lambda axis: scope.fresh(value, axis))
    if declared is None or (facts.dtype is not None and declared.dtype != facts.dtype):
        return facts
    return declared


def branch(
    walk: Walk, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
) -> Sequence[Facts]:
    """If: what both branches agree on, or the one that a known condition picks."""
    results: list[list[Facts] | ShapeError] = []
    for name in ("then_branch", "else_branch"):
        inner, graph = _inside(node, scope, f":{name[:4]}"), _body(node, name)
        _check_arity(node, graph, 0, len(node.outputs))
        try:
            outputs = walk.graph(graph, (), inner)
        except ShapeError as refusal:
            walk.skip(graph, scope)
            results.append(refusal)
        else:
            left = [_leave(node, i, facts, inner, scope) for i, facts in enumerate(outputs)]
            results.append(left)
    condition = inputs[0].value if inputs and inputs[0] is not None else None
    if condition is not None and condition.size == 1:
        return _working(results[0 if condition.reshape(-1)[0] else 1])
    # A branch that cannot work is one that a valid run does not take.
    if any(isinstance(result, ShapeError) for result in results):
        return _working(next((r for r in results if isinstance(r, list)), results[0]))
    first, second = map(_working, results)
    return [
        merge(a, b, _naming(scope, value))
        for a, b, value in zip(first, second, node.outputs, strict=True)
    ]


def _working(result: list[Facts] | ShapeError) -> list[Facts]:
    if isinstance(result, ShapeError):
        raise result
    return result


def _settle_states(
    states: list[Facts],
    values: Sequence[ir.Value],
    turn: Callable[[list[Facts]], tuple[list[Facts], list[Facts]]],
    inner: Scope,
) -> list[Facts]:
    """Walk the body until what it carries from turn to turn no longer changes.

    `turn` gives the states after one walk and all else that the body puts out. The result is what
    the last walk put out besides states, preceded by the states after any number of turns.
    """
    current = states
    for turns in range(MAX_TURNS + 1):
        after, others = turn(current)
        widened = [
            merge(before, now, _naming(inner, value))
            for before, now, value in zip(current, after, values, strict=True)
        ]
        if widened == current:
            break
        current = widened
        if turns >= MAX_TURNS - 1:
            current = [replace(without_value(facts), shape=None) for facts in current]
    return [*current, *others]


def _naming(scope: Scope, value: ir.Value) -> Callable[[int], Expr]:
    return lambda axis: scope.fresh(value, axis)


def loop(
    walk: Walk, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
) -> Sequence[Facts]:
    """Loop: states to a fixpoint; scan outputs get the number of turns in front."""
    body, inner = _body(node, "body"), _inside(node, scope)
    start = [facts or unknown() for facts in inputs[2:]]
    count = len(start)
    _check_arity(node, body, count + 2, len(node.outputs) + 1)
    carried = body.inputs[2:]
    goes_on = RUNNING
    number = symbol(f"{inner.prefix}{body.inputs[0].name}")
    turns = Facts("tensor", ir.DataType.INT64, (), objects([number], ()))

    def turn(current: list[Facts]) -> tuple[list[Facts], list[Facts]]:
        nonlocal goes_on
        goes_on, *outputs = walk.graph(body, [turns, RUNNING, *current], inner)
        return outputs[:count], outputs[count:]

    states = [_enter(value, facts, inner) for value, facts in zip(carried, start, strict=True)]
    outputs = _settle_states(states, carried, turn, inner)
    for index in range(count, len(outputs)):
        trips = _trip_count(inputs, goes_on)
        size = scope.fresh(node.outputs[index], 0) if trips is None else trips
        outputs[index] = prepend(outputs[index], size)
    return [_leave(node, index, facts, inner, scope) for index, facts in enumerate(outputs)]


def _trip_count(inputs: Sequence[Facts | None], goes_on: Facts) -> Size | None:
    """The limit M, when nothing but M can end the loop."""
    limit = inputs[0] if inputs else None
    condition = inputs[1] if len(inputs) > 1 else None
    if limit is None or limit.value is None or limit.value.size != 1:
        return None
    if condition is not None:
        first = condition.value
        if first is None or first.size != 1:
            return None
        if not first.reshape(-1)[0]:
            return 0
        again = goes_on.value
        if again is None or again.size != 1 or not again.reshape(-1)[0]:
            return None
    trips: Size = limit.value.reshape(-1)[0]
    return max_of(trips, 0)


def scan(
    walk: Walk, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
) -> Sequence[Facts]:
    """Scan: slices of the inputs go in one by one, what comes out is stacked."""
    call = Call(node, inputs, scope.versions.get("", 9), bound=scope.bound)
    if call.version < 9:
        return _scan_8(walk, call, scope)
    inner = _inside(node, scope)
    given = [facts or unknown() for facts in inputs]
    split = len(given) - _scanned(call, len(given))
    axes = call.ints_attr("scan_input_axes") or (0,) * (len(given) - split)
    length: Size | None = None
    slices = []
    for facts, axis in zip(given[split:], axes, strict=False):
        part, size = _take(node, facts, axis)
        length = _same_length(node, length, size)
        slices.append(part)
    outputs = _run_scan(walk, node, given[:split], slices, inner)
    out_axes = call.ints_attr("scan_output_axes") or (0,) * (len(outputs) - split)
    for index, axis in zip(range(split, len(outputs)), out_axes, strict=False):
        size = scope.fresh(node.outputs[index], 0) if length is None else length
        outputs[index] = prepend(outputs[index], size, axis)
    return [_leave(node, index, facts, inner, scope) for index, facts in enumerate(outputs)]


def _scan_8(walk: Walk, call: Call, scope: Scope) -> Sequence[Facts]:
    """Opset 8: everything has a batch in front, and time comes second."""
    node, inner = call.node, _inside(call.node, scope)
    given = [facts or unknown() for facts in call.inputs[1:]]  # the first input is sequence_lens
    split = len(given) - _scanned(call, len(given))
    batch: Size | None = None
    length: Size | None = None
    parts = []
    for index, facts in enumerate(given):
        part, size = _take(node, facts, 0)
        batch = _same_length(node, batch, size)
        if index >= split:
            part, steps = _take(node, part, 0)
            length = _same_length(node, length, steps)
        parts.append(part)
    outputs = _run_scan(walk, node, parts[:split], parts[split:], inner)
    for index, value in enumerate(node.outputs):
        if index >= split:
            steps = scope.fresh(value, 1) if length is None else length
            outputs[index] = prepend(outputs[index], steps)
        size = scope.fresh(value, 0) if batch is None else batch
        outputs[index] = prepend(outputs[index], size)
    return [_leave(node, index, facts, inner, scope) for index, facts in enumerate(outputs)]


def _scanned(call: Call, inputs: int) -> int:
    count = call.int_attr("num_scan_inputs")
    if not 1 <= count <= inputs:
        call.fail(f"num_scan_inputs is {count}, but it has {inputs} inputs to scan")
    return count


def _run_scan(
    walk: Walk, node: ir.Node, states: list[Facts], slices: list[Facts], inner: Scope
) -> list[Facts]:
    body, count = _body(node, "body"), len(states)
    _check_arity(node, body, count + len(slices), len(node.outputs))
    carried = body.inputs[:count]

    def turn(current: list[Facts]) -> tuple[list[Facts], list[Facts]]:
        outputs = walk.graph(body, [*current, *slices], inner)
        return outputs[:count], outputs[count:]

    entered = [_enter(value, facts, inner) for value, facts in zip(carried, states, strict=True)]
    return _settle_states(entered, carried, turn, inner)


def _check_arity(node: ir.Node, body: ir.Graph, inputs: int, outputs: int) -> None:
    if len(body.inputs) != inputs or len(body.outputs) != outputs:
        raise _error(
            node,
            f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs, but the "
            f"node calls for {inputs} and {outputs}.",
        )


def _error(node: ir.Node, message: str) -> ShapeError:
    return ShapeError(message, where=describe(node), source=source_line(node))


def _take(node: ir.Node, facts: Facts, axis: int) -> tuple[Facts, Size | None]:
    """One slice along an axis, and how many there are."""
    if facts.shape is None:
        return without_value(facts), None
    rank = len(facts.shape)
    if not -rank <= axis < rank:
        raise _error(node, f"scan axis {axis} is outside the rank {rank}.")
    at = axis % rank
    rest = (*facts.shape[:at], *facts.shape[at + 1 :])
    return replace(facts, shape=rest, value=None), facts.shape[at]


def _same_length(node: ir.Node, known: Size | None, size: Size | None) -> Size | None:
    if known is None or size is None:
        return size if known is None else known
    if isinstance(known, int) and isinstance(size, int) and known != size:
        raise _error(node, f"scanned inputs have {known} and {size} slices, which must be equal.")
    return known if isinstance(known, int) else size


def sequence_map(
    walk: Walk, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
) -> Sequence[Facts]:
    """SequenceMap: the body for each element; other sequences go along element by element."""
    body, inner = _body(node, "body"), _inside(node, scope)
    given = [facts or unknown() for facts in inputs]
    elements = [
        conceal(facts.element or unknown(), "*", _naming(inner, value))
        if facts.kind == "sequence"
        else facts
        for facts, value in zip(given, body.inputs, strict=False)
    ]
    outputs = walk.graph(body, elements, inner)
    length = given[0].shape if given and given[0].kind == "sequence" else None
    return [
        conceal(
            Facts("sequence", shape=length, element=without_value(facts)),
            inner.prefix,
            lambda axis: VARYING,
        )
        for facts in outputs
    ]


def flex_attention(
    walk: Walk, node: ir.Node, inputs: Sequence[Facts | None], scope: Scope
) -> Sequence[Facts]:
    """FlexAttention: its subgraphs see the scores, and change neither their shape nor its own."""
    version = scope.versions.get("ai.onnx.preview", 1)
    outputs = infer_node(node, inputs, version, scope=scope.prefix, bound=scope.bound)
    shapes = [facts.shape if facts is not None else None for facts in inputs[:2]]
    scores: Facts = unknown()
    query, key = shapes if len(shapes) == 2 else (None, None)
    if query is not None and key is not None and len(query) == len(key) == 4:
        scores = Facts("tensor", None, (*query[:3], key[2]))  # of whatever type softmax has
    for name in ("score_mod", "prob_mod"):
        if name in node.attributes:
            inner = _inside(node, scope, f":{name}")
            graph = _body(node, name)
            walk.graph(graph, [_enter(value, scores, inner) for value in graph.inputs], inner)
    return outputs


RULES: dict[str, Rule] = {
    "If": branch,
    "Loop": loop,
    "Scan": scan,
    "SequenceMap": sequence_map,
    "FlexAttention": flex_attention,
}
