"""Products and convolutions between QuantizeLinear and DequantizeLinear, as products of integers.

    DequantizeLinear(x) ─┐                     x, w → ConvInteger → Cast ─ Mul(scale) ─ Add(bias)
    DequantizeLinear(w) ─┴ Conv(…, bias)  →    scale: those of both operands, multiplied

    DequantizeLinear(q) ─┐
    DequantizeLinear(k) ─┴ MatMul         →    q, k → MatMulInteger → Cast ─ Mul(scale)      both computed: attention

Sums of integers are exact, so that the result is nearer to the truth than the one in float32; and a quarter of the
bytes is read. What follows, up to the next QuantizeLinear, is fused into the same kernel: tensors stay integers between
kernels. Where nothing but limits is in between, all is counted in steps of that QuantizeLinear (`steps`), which then
has nothing to divide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.expand import Expanded, copy_of, inferred, put_in_place
from sardonyx.passes.preparing.signs import turn_signs
from sardonyx.passes.preparing.steps import Steps, count_in_steps, find_steps
from sardonyx.passes.preparing.sums import count_sums
from sardonyx.passes.shapes import Shapes

__all__ = ["multiply_integers"]

Array = npt.NDArray[Any]
_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
_MOST_TERMS = 1 << 15  # products whose sum fits into 32 bits
_FEW_ROWS = 8  # of a first factor: to put the second in order takes longer than to multiply it
_MOST_BETWEEN = 8  # nodes between a product and the softmax behind it


@dataclass(frozen=True)
class _Found:
    """A contraction of dequantized operands.

    Attributes:
        scale: of the products: one for all, or one for every column of the result, as it broadcasts.
        spatial: dimensions of the images of a convolution.
        steps: what the result is counted in; None where it is a float that somebody else reads.
    """

    node: ir.Node
    scale: Array
    spatial: int
    steps: Steps | None


def multiply_integers(expanded: Expanded, *, unsigned: bool) -> Expanded:
    """The model with such contractions of integers; the same one where there are none.

    Args:
        unsigned: whether the processor multiplies bytes without a sign.
    """
    graph, shapes = expanded.model.graph, expanded.shapes
    found = [one for node in graph if (one := _find(node, shapes)) is not None]
    if not found:
        return expanded
    copied = copy_of(expanded)
    origins = dict(copied.expanded.origins)
    for one in found:
        twin = copied.nodes[one.node]
        made = _write(one, twin)
        if one.steps is not None:
            for constant, user in count_in_steps(one.steps, copied.nodes):
                origins[constant] = origins[user]
        copied.expanded.model.graph.insert_before(twin, made)
        origins.update(dict.fromkeys(made, origins[twin]))
        sources = [value.producer() for value in twin.inputs[:2] if value is not None]
        put_in_place(made[-1].outputs[0], twin.outputs[0])
        copied.expanded.model.graph.remove(twin, safe=True)
        del origins[twin]
        first = made[0]
        for source in sources:
            if source is not None and _is_dead(source):
                origins[first] = (*origins[first], *origins.pop(source))
                copied.expanded.model.graph.remove(source, safe=True)
    for made_node, node in count_sums(copied.expanded.model.graph):
        origins[made_node] = origins[node]
    origins = {node: of for node, of in origins.items() if node.graph is not None}
    for constant, node in turn_signs(copied.expanded.model.graph, unsigned=unsigned):
        origins[constant] = origins[node]
    return inferred(copied, origins) or expanded


def _is_dead(node: ir.Node) -> bool:
    return not any(value.uses() or value.is_graph_output() for value in node.outputs)


def _find(node: ir.Node, shapes: Shapes) -> _Found | None:
    """What a node is where it multiplies dequantized bytes by constant ones; None where it does not."""
    if node.op_type not in ("Conv", "MatMul", "Gemm") or normal_domain(node.domain):
        return None
    x, w = (_dequantized(value) for value in node.inputs[:2])
    if x is None or w is None or shapes.of(node.outputs[0]).dtype != ir.DataType.FLOAT:
        return None
    if any(_type(one.inputs[0], shapes) not in _BYTES for one in (x, w)):
        return None
    weights, x_scale, w_scale = (_constant(v) for v in (w.inputs[0], x.inputs[1], w.inputs[1]))
    if x_scale is None or w_scale is None or x_scale.size != 1:
        return None
    if not all(_has_known_zero(one) for one in (x, w)):
        return None
    if weights is None:
        return _of_runs(node, x_scale, w_scale, shapes)
    if not _suits(node, weights):
        return None
    turned = node.op_type == "Gemm" and _number(node, "transB")
    axis = 0 if node.op_type == "Conv" or turned else weights.ndim - 1
    if w_scale.size != 1 and not _is_per_column(w, weights, w_scale, axis):
        return None
    # One rounding: the operator's definition has one for each scale.
    scale = x_scale.reshape(-1)[0].astype(np.float64) * w_scale.astype(np.float64)
    spatial = weights.ndim - 2 if node.op_type == "Conv" else 0
    shape = (-1, *(1,) * spatial) if scale.size != 1 else ()
    steps = find_steps(node.outputs[0])
    if steps is not None:
        scale = scale / steps.size
    return _Found(node, scale.reshape(shape).astype(np.float32), spatial, steps)


def _of_runs(node: ir.Node, x_scale: Array, y_scale: Array, shapes: Shapes) -> _Found | None:
    """The product of two factors that only a run knows; None where floats are better."""
    if node.op_type != "MatMul" or y_scale.size != 1 or _is_weighed(node.outputs[0]):
        return None
    first = None if node.inputs[0] is None else shapes.of(node.inputs[0]).shape
    if first is None or len(first) < 2 or (isinstance(first[-2], int) and first[-2] < _FEW_ROWS):
        return None
    # Weights of a softmax add up to 1, however many there are.
    short = isinstance(first[-1], int) and first[-1] <= _MOST_TERMS
    if not short and not _are_weights(node.inputs[0]):
        return None
    scale = x_scale.reshape(-1)[0].astype(np.float64) * y_scale.reshape(-1)[0].astype(np.float64)
    steps = find_steps(node.outputs[0])
    if steps is not None:
        scale = scale / steps.size
    return _Found(node, np.array(scale, np.float32), 0, steps)


def _are_weights(value: ir.Value | None) -> bool:
    """Whether a value was made by a softmax, and quantized."""
    for _ in range(_MOST_BETWEEN):
        node = None if value is None else value.producer()
        if node is None or node.op_type == "Softmax":
            return node is not None
        if node.op_type not in ("DequantizeLinear", "QuantizeLinear", "Where"):
            return False
        value = node.inputs[2 if node.op_type == "Where" else 0]
    return False


def _is_weighed(value: ir.Value) -> bool:
    """Whether a product becomes weights that are not quantized: then all of an attention is one kernel of floats."""
    behind = False
    for _ in range(_MOST_BETWEEN):
        users = [use.node for use in value.uses()]
        behind = behind or any(node.op_type == "Softmax" for node in users)
        if behind and any(node.op_type == "QuantizeLinear" for node in users):
            return False
        onward = [node for node in users if node.op_type != "IsNaN"]  # rows without a key are zeros
        if len(onward) != 1:
            break
        value = onward[0].outputs[0]
    return behind


def _suits(node: ir.Node, weights: Array) -> bool:
    if node.op_type == "Conv":
        return weights.ndim > 2 and weights[0].size <= _MOST_TERMS
    if weights.ndim != 2 or max(weights.shape) > _MOST_TERMS:
        return False
    return node.op_type == "MatMul" or _is_plain_gemm(node)


def _has_known_zero(node: ir.Node) -> bool:
    """Whether its zero point is none, one number, or zeros."""
    zero = _input(node, 2)
    known = _constant(zero)
    return zero is None or (known is not None and (known.size == 1 or not known.any()))


def _type(value: ir.Value | None, shapes: Shapes) -> ir.DataType | None:
    return None if value is None else shapes.of(value).dtype


def _dequantized(value: ir.Value | None) -> ir.Node | None:
    node = None if value is None else value.producer()
    if node is None or node.op_type != "DequantizeLinear" or normal_domain(node.domain):
        return None
    return None if _number(node, "block_size") else node


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _constant(value: ir.Value | None) -> Array | None:
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def _number(node: ir.Node, name: str, default: int = 0) -> int:
    found = node.attributes.get(name)
    return default if found is None or found.is_ref() else found.as_int()


def _is_plain_gemm(node: ir.Node) -> bool:
    def factor(name: str) -> float:
        found = node.attributes.get(name)
        return 1.0 if found is None or found.is_ref() else found.as_float()

    return factor("alpha") == factor("beta") == 1.0 and not _number(node, "transA")


def _is_per_column(w: ir.Node, weights: Array, scale: Array, axis: int) -> bool:
    given = _number(w, "axis", 1) % weights.ndim
    return scale.ndim == 1 and scale.size == weights.shape[axis] and given == axis


def _write(found: _Found, twin: ir.Node) -> list[ir.Node]:
    """The nodes in its place; the last one makes its output."""
    made: list[ir.Node] = []
    base = twin.outputs[0].name

    def call(op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        node = ir.Node("", op, inputs, ir.convenience.convert_attributes(attributes))
        node.outputs[0].name = f"{base}.{len(made)}"
        node.name = twin.name or f"→ {base}"  # as profiles show it: the user's own
        made.append(node)
        return node.outputs[0]

    def constant(array: Array | np.float32) -> ir.Value:
        return call("Constant", value=ir.tensor(array))

    x, w = (value.producer() for value in twin.inputs[:2] if value is not None)
    assert x is not None
    assert w is not None
    source, weights = x.inputs[0], w.inputs[0]
    zeros = _without_vectors(_input(x, 2), _input(w, 2))
    if twin.op_type == "Conv":
        total = call("ConvInteger", source, weights, *zeros)
        made[-1].attributes.update(twin.attributes)
    else:
        if _number(twin, "transB"):
            weights = call("Transpose", weights, perm=[1, 0])
        total = call("MatMulInteger", source, weights, *zeros)
    result = call("Mul", call("Cast", total, to=ir.DataType.FLOAT), constant(found.scale))
    bias = _input(twin, 2)
    if bias is not None:
        if found.spatial:
            shape = np.array([-1, *(1,) * found.spatial], np.int64)
            bias = call("Reshape", bias, constant(shape))
        if found.steps is not None:
            bias = call("Div", bias, constant(np.float32(found.steps.size)))
        call("Add", result, bias)
    return made


def _without_vectors(*zeros: ir.Value | None) -> list[ir.Value | None]:
    """Zero points as the integer operators take them: zeros are left out."""
    kept: list[ir.Value | None] = []
    for zero in zeros:
        known = _constant(zero)
        kept.append(None if known is not None and not known.any() else zero)
    while kept and kept[-1] is None:
        kept.pop()
    return kept
