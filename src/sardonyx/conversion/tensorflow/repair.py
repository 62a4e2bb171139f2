"""What tf2onnx leaves undone: operators that it has no mapping for stay in its result under TensorFlow's names.

Those that ONNX can say are written here; all others are an error that names them and where they stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import ConvertError

__all__ = ["repair"]

_MOST_NAMED = 8


class _Writer:
    """Nodes that stand for one of TensorFlow's."""

    def __init__(self, node: ir.Node) -> None:
        self.tape = ir.tape.Tape()
        first = node.inputs[0]
        self._dtype = None if first is None else first.dtype

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> ir.Value:
        return self.tape.op(kind, list(inputs), attributes)

    def number(self, value: float) -> ir.Value:
        """A constant of the type that the node computes in."""
        dtype = self._dtype or ir.DataType.FLOAT
        tensor = ir.tensor(np.asarray(value, dtype.numpy()), dtype=dtype)
        return self.tape.op("Constant", [], {"value": tensor})


Rule: TypeAlias = Callable[..., ir.Value]


def _erfc(to: _Writer, x: ir.Value) -> ir.Value:
    return to.op("Sub", to.number(1), to.op("Erf", x))


def _expm1(to: _Writer, x: ir.Value) -> ir.Value:
    """By tanh, which loses nothing near zero: e^x - 1 = tanh(x/2) · (e^x + 1)."""
    half = to.op("Tanh", to.op("Mul", x, to.number(0.5)))
    near = to.op("Mul", half, to.op("Add", to.op("Exp", x), to.number(1)))
    far = to.op("Sub", to.op("Exp", x), to.number(1))
    small = to.op("Less", to.op("Abs", x), to.number(1))
    return to.op("Where", small, near, far)


def _log1p(to: _Writer, x: ir.Value) -> ir.Value:
    """log(1 + x) · x / ((1 + x) - 1), which undoes the rounding of 1 + x."""
    moved = to.op("Add", x, to.number(1))
    back = to.op("Sub", moved, to.number(1))
    lost = to.op("Equal", back, to.number(0))
    safe = to.op("Where", lost, to.number(1), back)
    return to.op("Where", lost, x, to.op("Div", to.op("Mul", to.op("Log", moved), x), safe))


def _no_zero(function: Callable[[_Writer, ir.Value, ir.Value], ir.Value]) -> Rule:
    def rule(to: _Writer, x: ir.Value, y: ir.Value) -> ir.Value:
        nothing = to.op("Equal", x, to.number(0))
        return to.op("Where", nothing, to.number(0), function(to, x, y))

    return rule


_RULES: dict[str, Rule] = {
    "Erfc": _erfc,
    "Expm1": _expm1,
    "Log1p": _log1p,
    "Inv": lambda to, x: to.op("Reciprocal", x),
    "Rint": lambda to, x: to.op("Round", x),
    "Xlogy": _no_zero(lambda to, x, y: to.op("Mul", x, to.op("Log", y))),
    "Xlog1py": _no_zero(lambda to, x, y: to.op("Mul", x, _log1p(to, y))),
    "Xdivy": _no_zero(lambda to, x, y: to.op("Div", x, y)),
}


def repair(model: ir.Model) -> None:
    """Write what tf2onnx left.

    Raises:
        ConvertError: something is left that has no translation.
    """
    left: list[ir.Node] = []
    for graph in _graphs(model):
        for node in list(graph):
            if onnx.defs.has(node.op_type, node.domain) or _is_function(model, node):
                continue
            rule = _RULES.get(node.op_type)
            if rule is None or node.domain:
                left.append(node)
                continue
            _replace(graph, node, rule)
    if left:
        raise _unmapped(left)


def _graphs(model: ir.Model) -> Sequence[ir.Graph | ir.Function]:
    found: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in list(found):
        for node in ir.traversal.RecursiveGraphIterator(graph):
            found += [a.as_graph() for a in node.attributes.values() if a.type.name == "GRAPH"]
    return found


def _is_function(model: ir.Model, node: ir.Node) -> bool:
    return node.op_identifier() in model.functions


def _replace(graph: ir.Graph | ir.Function, node: ir.Node, rule: Rule) -> None:
    to = _Writer(node)
    made = rule(to, *node.inputs)
    made.type, made.shape = node.outputs[0].type, node.outputs[0].shape
    ir.convenience.replace_nodes_and_values(
        graph, node, [node], list(to.tape.nodes), [node.outputs[0]], [made]
    )


def _unmapped(nodes: Sequence[ir.Node]) -> ConvertError:
    kinds = Counter(node.op_type for node in nodes)
    some = [f"{kind} ({count} times)" for kind, count in kinds.most_common(_MOST_NAMED)]
    return ConvertError(
        f"there is no translation to ONNX for {', '.join(some)}.",
        where=(nodes[0].name or "").partition(":")[0][:120] or None,
        value=dict(kinds),
        hint="Write it with other functions of TensorFlow, or convert the part of the model before it.",
    )
