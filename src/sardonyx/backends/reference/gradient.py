"""`Gradient` (ai.onnx.preview.training): reverse-mode differentiation of part of the enclosing graph.

The node's attributes name tensors of its own graph: `y` is differentiated with respect to each of `xs`, and
the node's inputs are the values at which to do so. The nodes from `xs` to `y` become a block of their own;
a run of it keeps every value, then each step hands its output's gradient back to its inputs.

Rules exist for the operators of smooth arithmetic; any other on the way is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.program import Block, Kernel, run_step
from sardonyx.backends.reference.values import Array, Value
from sardonyx.errors import RunError, StructureError, UnsupportedError

if TYPE_CHECKING:
    from sardonyx.backends.reference.compile import Compiler, Context

__all__ = ["make_gradient"]

# (gradient of the output, output, inputs, operator) -> gradients of the inputs
Rule = Callable[[Array, Array, Sequence[Array], Operator], Sequence[Array]]


def _transpose(g: Array, y: Array, x: Sequence[Array], op: Operator) -> Sequence[Array]:
    order = op.attributes.get("perm") or list(range(g.ndim))[::-1]
    return (np.transpose(g, np.argsort(order)),)


def _reduce_sum(g: Array, y: Array, x: Sequence[Array], op: Operator) -> Sequence[Array]:
    given = x[1].tolist() if len(x) > 1 else op.attributes.get("axes")
    axes = [axis % x[0].ndim for axis in (given or range(x[0].ndim))]
    kept = [1 if axis in axes else size for axis, size in enumerate(x[0].shape)]
    return (np.broadcast_to(g.reshape(kept), x[0].shape),)


def _matmul(g: Array, y: Array, x: Sequence[Array], op: Operator) -> Sequence[Array]:
    a, b = x
    if a.ndim < 2 or b.ndim < 2:
        raise UnsupportedError(
            "the gradient of MatMul needs matrices, not vectors.", where=op.label
        )
    return g @ np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2) @ g


RULES: dict[str, Rule] = {
    "Identity": lambda g, y, x, op: (g,),
    "Neg": lambda g, y, x, op: (-g,),
    "Add": lambda g, y, x, op: (g, g),
    "Sub": lambda g, y, x, op: (g, -g),
    "Mul": lambda g, y, x, op: (g * x[1], g * x[0]),
    "Div": lambda g, y, x, op: (g / x[1], -g * y / x[1]),
    "Sum": lambda g, y, x, op: [g for _ in x],
    "Pow": lambda g, y, x, op: (g * x[1] * x[0] ** (x[1] - 1), g * y * np.log(x[0])),
    "Exp": lambda g, y, x, op: (g * y,),
    "Log": lambda g, y, x, op: (g / x[0],),
    "Sqrt": lambda g, y, x, op: (g / (2 * y),),
    "Sin": lambda g, y, x, op: (g * np.cos(x[0]),),
    "Cos": lambda g, y, x, op: (-g * np.sin(x[0]),),
    "Tanh": lambda g, y, x, op: (g * (1 - y * y),),
    "Sigmoid": lambda g, y, x, op: (g * y * (1 - y),),
    "Relu": lambda g, y, x, op: (g * (x[0] > 0),),
    "MatMul": _matmul,
    "Transpose": _transpose,
    "Reshape": lambda g, y, x, op: (g.reshape(x[0].shape),),
    "ReduceSum": _reduce_sum,
}


def make_gradient(operator: Operator, compiler: Compiler, context: Context) -> Kernel:
    """Compile the nodes from `xs` and `zs` to `y`, and differentiate them when run."""
    graph = operator.node.graph
    assert graph is not None
    values = {v.name: v for v in (*graph.inputs, *graph.initializers.values())}
    values.update({o.name: o for node in graph for o in node.outputs})
    xs, zs = (list(operator.attributes.get(name) or ()) for name in ("xs", "zs"))
    y = operator.attributes["y"]
    for name in (*xs, *zs, y):
        if name not in values:
            raise StructureError(
                f"the graph has no tensor {name!r}", where=operator.label, value=name
            )
    leaves = [values[name] for name in (*xs, *zs)]
    nodes = _nodes_between(set(leaves), values[y], graph)
    for node in nodes:
        if node.op_type not in RULES or node.domain:
            raise UnsupportedError(
                f"there is no gradient rule for {node.op_type}, which lies between {', '.join(xs)} and {y}.",
                where=operator.label,
                value=node.op_type,
                hint=f"There are rules for {', '.join(sorted(RULES))}.",
            )
    constants = [v for v in graph.initializers.values() if v not in leaves]
    scope = compiler.compile_nodes(leaves, nodes, [values[y]], constants, context.inner())
    if scope.captured:
        names = ", ".join(repr(v.name) for v in scope.captured)
        raise StructureError(
            f"{y!r} depends on {names}, which neither xs nor zs names",
            where=operator.label,
            value=names,
        )
    block = scope.block
    wanted = block.inputs[: len(xs)]

    def run_gradient(inputs: Sequence[Value], guard: Guard) -> Sequence[object]:
        slots: list[Value] = [None] * block.slots
        held: dict[int, int] = {}
        for slot, value in zip(block.inputs, inputs, strict=True):
            slots[slot] = value
        try:
            block.place_constants(slots, held, guard)
            for step in block.steps:
                run_step(step, slots, held, guard)
            return _walk_back(block, slots, wanted, guard)
        finally:
            guard.release(sum(held.values()))

    return run_gradient


def _nodes_between(leaves: set[ir.Value], result: ir.Value, graph: ir.Graph) -> list[ir.Node]:
    needed: set[ir.Node] = set()
    todo = [result]
    while todo:
        value = todo.pop()
        node = value.producer()
        if value in leaves or node is None or node in needed:
            continue
        needed.add(node)
        todo.extend(v for v in node.inputs if v is not None)
    return [node for node in graph if node in needed]


def _walk_back(
    block: Block, slots: list[Value], wanted: Sequence[int], guard: Guard
) -> list[Array]:
    """The gradients of the sum of the result with respect to the wanted slots."""
    result = block.outputs[0]
    assert result is not None
    gradients: dict[int, Array] = {result: np.ones_like(_array(slots[result]))}
    for step in reversed(block.steps):
        guard.check(step.operator.label)
        output = step.outputs[0]
        if output is None or output not in gradients:
            continue
        inputs = [_array(slots[slot]) for slot in step.inputs if slot is not None]
        back = RULES[step.operator.name](
            gradients[output], _array(slots[output]), inputs, step.operator
        )
        for slot, value, gradient in zip(step.inputs, inputs, back, strict=False):
            if slot is not None:
                summed = _unbroadcast(np.asarray(gradient), value)
                gradients[slot] = gradients[slot] + summed if slot in gradients else summed
    return [gradients.get(slot, np.zeros_like(_array(slots[slot]))) for slot in wanted]


def _unbroadcast(gradient: Array, value: Array) -> Array:
    """What was broadcast forward is summed on the way back."""
    extra = tuple(range(gradient.ndim - value.ndim))
    gradient = gradient.sum(axis=extra) if extra else gradient
    stretched = tuple(i for i, n in enumerate(value.shape) if n == 1 and gradient.shape[i] != 1)
    summed: Any = gradient.sum(axis=stretched, keepdims=True) if stretched else gradient
    return np.asarray(summed, dtype=value.dtype)


def _array(value: Value) -> Array:
    if not isinstance(value, np.ndarray):
        raise RunError(f"a tensor was expected, not {type(value).__name__}")
    return value
