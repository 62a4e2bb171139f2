"""Operators that can be computed in another order of axes, and how each is written then.

An order says where the axes of a value are in its turned twin: axis i is axis order[i] of the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rules.slices import cuts_of, slice_by

__all__ = ["FORMS", "Order", "absorbed", "carried_by", "turned"]

Order: TypeAlias = tuple[int, ...]
Twin: TypeAlias = Callable[[ir.Value], ir.Value]
# Which inputs have the axes that are turned; None where the node cannot be turned.
Carried: TypeAlias = "Callable[[ir.Node, Draft], list[ir.Value] | None]"
Turned: TypeAlias = "Callable[[ir.Node, Order, Twin, Draft], Sequence[ir.Value]]"

_UNARY = (
    *("Abs", "Cast", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid"),
    *("HardSwish", "Identity", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu"),
    *("Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh"),
    *("ThresholdedRelu",),
)
_MANY = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Where", "Equal", "Less"),
    *("Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor"),
)
_REDUCE = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
_MOST_CONSTANT = 1 << 22  # elements of a constant that is written in another order


def carried_by(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    """The inputs of a node that a region passes on; None where the node belongs to none."""
    form = FORMS.get(node.op_type)
    rank = draft.rank(node.outputs[0])
    if form is None or rank is None or rank < 2 or draft.opset < 7:
        return None
    return form[0](node, draft)


def turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    """The node in another order of axes; the twins of its outputs."""
    return FORMS[node.op_type][1](node, order, twin, draft)


# Pointwise


def _first(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    return None if node.inputs[0] is None else [node.inputs[0]]


def _first_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    assert node.inputs[0] is not None, "a pointwise operator reads something"
    return draft.copy(node, [twin(node.inputs[0]), *node.inputs[1:]])


def _is_single(value: ir.Value, draft: Draft) -> bool:
    shape = draft.shape(value)
    return shape is not None and all(size == 1 for size in shape)


def _may_be_turned(value: ir.Value, draft: Draft) -> bool:
    """Whether a constant may be written in another order of axes: it is not huge, and numpy has its type."""
    tensor = draft.work.tensor_of(value)
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return False
    return tensor.size <= _MOST_CONSTANT


def _many(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    rank = draft.rank(node.outputs[0])
    found = []
    for value in node.inputs:
        if value is None:
            return None
        if _is_single(value, draft):
            continue
        if draft.is_constant(value):
            if not _may_be_turned(value, draft):
                return None
        elif draft.rank(value) != rank:
            return None
        else:
            found.append(value)
    return found or None


def _many_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    inputs: list[ir.Value | None] = []
    for value in node.inputs:
        assert value is not None, "as _many has found"
        if _is_single(value, draft):
            inputs.append(value)
        elif draft.is_constant(value):
            inputs.append(_constant_turned(value, order, draft))
        else:
            inputs.append(twin(value))
    return draft.copy(node, inputs)


def _constant_turned(value: ir.Value, order: Order, draft: Draft) -> ir.Value:
    array = draft.constant(value)
    assert array is not None, "a constant of known size"
    wide = array.reshape((1,) * (len(order) - array.ndim) + array.shape)
    return draft.tensor(np.ascontiguousarray(wide.transpose(np.argsort(order))), draft.dtype(value))


# Operators with axes


def _axis(node: ir.Node, rank: int, draft: Draft, default: int) -> int:
    return int(draft.attribute(node, "axis", default)) % rank


def _along(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    if node.op_type == "Softmax" and draft.opset < 13:
        return None  # flattens what comes after its axis
    return _first(node, draft)


def _along_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    assert node.inputs[0] is not None, "as _along has found"
    axis = order[_axis(node, len(order), draft, -1 if node.op_type == "Softmax" else 0)]
    rest = {name: a.value for name, a in node.attributes.items() if name != "axis"}
    inputs = [twin(node.inputs[0]), *node.inputs[1:]]
    return draft.calls(node.op_type, inputs, len(node.outputs), {**rest, "axis": axis})


def _concat_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    inputs: list[ir.Value | None] = [
        _constant_turned(value, order, draft) if draft.is_constant(value) else twin(value)
        for value in node.inputs
        if value is not None
    ]
    axis = order[_axis(node, len(order), draft, 0)]
    return draft.calls("Concat", inputs, 1, {"axis": axis})


def _concat(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    found = []
    for value in node.inputs:
        if value is None:
            return None
        if not draft.is_constant(value):
            found.append(value)
        elif not _may_be_turned(value, draft):
            return None
    return found or None


def _pad(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    if draft.opset < 11 or (len(node.inputs) > 3 and node.inputs[3] is not None):
        return None
    return None if draft.integers(node.inputs[1]) is None else _first(node, draft)


def _pad_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    pads = draft.integers(node.inputs[1])
    assert pads is not None and node.inputs[0] is not None, "as _pad has found"  # noqa: PT018
    both = np.array(pads).reshape(2, -1)[:, np.argsort(order)].reshape(-1)
    given = [twin(node.inputs[0]), draft.ints([int(n) for n in both]), *node.inputs[2:]]
    return draft.copy(node, given)


def _slice(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    return None if cuts_of(node, draft) is None else _first(node, draft)


def _slice_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    cuts = cuts_of(node, draft)
    assert cuts is not None and node.inputs[0] is not None, "as _slice has found"  # noqa: PT018
    moved = {order[axis]: cut for axis, cut in cuts.items()}
    return [slice_by(twin(node.inputs[0]), moved, draft)]


def _axes(node: ir.Node, draft: Draft) -> list[int] | None:
    rank = draft.rank(node.inputs[0])
    since = 13 if node.op_type in ("ReduceSum", "Squeeze") else 18
    if draft.opset >= since:
        axes = draft.integers(node.inputs[1]) if len(node.inputs) > 1 else None
    else:
        axes = draft.attribute(node, "axes")
    return None if rank is None or not axes else [int(axis) % rank for axis in axes]


def _with_axes(node: ir.Node, value: ir.Value, axes: list[int], draft: Draft) -> Sequence[ir.Value]:
    keep = draft.attribute(node, "keepdims")
    since = 13 if node.op_type in ("ReduceSum", "Squeeze") else 18
    if draft.opset >= since:
        return [draft.call(node.op_type, value, draft.ints(axes), keepdims=keep)]
    return [draft.call(node.op_type, value, axes=axes, keepdims=keep)]


def _reduce(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    if not draft.attribute(node, "keepdims", 1) or _axes(node, draft) is None:
        return None
    return _first(node, draft)


def _reduce_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    axes = _axes(node, draft)
    assert axes is not None and node.inputs[0] is not None, "as _reduce has found"  # noqa: PT018
    return _with_axes(node, twin(node.inputs[0]), sorted(order[axis] for axis in axes), draft)


def _resize(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    """Only nearest: interpolation would round at other places."""
    if draft.opset < 11 or draft.attribute(node, "mode", "nearest") != "nearest":
        return None
    if draft.attribute(node, "axes") is not None:
        return None
    if draft.attribute(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return None
    rank = draft.rank(node.outputs[0])
    for value in node.inputs[2:]:
        array = draft.constant(value)
        if value is not None and (array is None or array.size not in (0, rank)):
            return None
    return _first(node, draft)


def _resize_turned(node: ir.Node, order: Order, twin: Twin, draft: Draft) -> Sequence[ir.Value]:
    assert node.inputs[0] is not None, "as _resize has found"
    inputs: list[ir.Value | None] = [twin(node.inputs[0]), *node.inputs[1:2]]
    for value in node.inputs[2:]:
        array = draft.constant(value)
        if array is not None and array.size:
            value = draft.tensor(array[np.argsort(order)])
        inputs.append(value)
    return draft.copy(node, inputs)


def _quantized(node: ir.Node, draft: Draft) -> list[ir.Value] | None:
    """Only one scale for all: else it belongs to an axis."""
    if any(value is not None and draft.rank(value) != 0 for value in node.inputs[1:]):
        return None
    return _first(node, draft)


FORMS: Mapping[str, tuple[Carried, Turned]] = {
    **dict.fromkeys(_UNARY, (_first, _first_turned)),
    **dict.fromkeys(_MANY, (_many, _many_turned)),
    **dict.fromkeys(_REDUCE, (_reduce, _reduce_turned)),
    "Concat": (_concat, _concat_turned),
    "DequantizeLinear": (_quantized, _first_turned),
    "Pad": (_pad, _pad_turned),
    "QuantizeLinear": (_quantized, _first_turned),
    "Resize": (_resize, _resize_turned),
    "Slice": (_slice, _slice_turned),
    "Softmax": (_along, _along_turned),
    "Split": (_along, _along_turned),
}


# Readers at the border that need no Transpose


def absorbed(
    node: ir.Node, order: Order, value: ir.Value | None, draft: Draft
) -> Sequence[ir.Value] | bool:
    """A reduction or Squeeze that reads the twin instead; without a value: whether it could.

    The axes that it leaves must be in the same order in both.
    """
    if node.op_type not in (*_REDUCE, "Squeeze"):
        return False
    if node.op_type in _REDUCE and draft.attribute(node, "keepdims", 1):
        return False
    axes = _axes(node, draft)
    if axes is None:
        return False
    left = [order[axis] for axis in range(len(order)) if axis not in axes]
    if left != sorted(left):
        return False
    if value is None:
        return True
    return _with_axes(node, value, sorted(order[axis] for axis in axes), draft)
