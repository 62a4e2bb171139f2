"""Operators whose definition changed in more than the types that it takes: how one version is written in another.

An adapter edits a `Form`. It answers None when the form is right, a `Refusal` when there is no such form, and a
value when other nodes take the node's place.

What only moved from an attribute to an input is in `moved`, what a schema says by itself in `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.passes.opset.form import Form
from sardonyx.passes.rewriting.rule import Refusal

__all__ = ["ADAPTERS", "Adapter"]

Adapter: TypeAlias = Callable[[Form], "Refusal | ir.Value | None"]


def _softmax(form: Form) -> Refusal | ir.Value | None:
    """Before 13 all axes from `axis` on are one; since then it is one axis."""
    if not (form.rises_over(13) or form.falls_under(13)):
        return None
    draft, x = form.draft, form.inputs[0]
    shape = draft.shape(x)
    axis = int(form.take("axis", 1 if form.source < 13 else -1))
    if shape is not None and axis < 0:
        axis += len(shape)
    if shape is not None and all(size == 1 for size in shape[axis + 1 :]):
        form.put("axis", axis)
        return None
    if form.falls_under(13):
        return _softmax_of_last(form, axis)
    if form.target < 14 and (
        shape is None or not all(isinstance(size, int) and size for size in shape)
    ):
        return Refusal(
            "its axes become one axis, and an empty tensor cannot be given its shape again before opset 14"
        )
    flat = draft.call("Flatten", x, axis=axis)
    soft = draft.call(form.op, flat, axis=-1)
    allow = 1 if form.target >= 14 else None
    return draft.call("Reshape", soft, draft.call("Shape", x), allowzero=allow)


def _softmax_of_last(form: Form, axis: int) -> Refusal | ir.Value:
    draft, rank = form.draft, form.draft.rank(form.inputs[0])
    if rank is None:
        return Refusal("the rank of its input is not known, and before opset 13 it counts")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    moved = draft.call("Transpose", form.inputs[0], perm=order)
    return draft.call("Transpose", draft.call(form.op, moved, axis=rank - 1), perm=order)


def _batch_normalization(form: Form) -> Refusal | None:
    """The inference form of all versions is one; what trains has changed too much."""
    if form.source < 7 and not form.take("is_test", 0):
        return Refusal("it trains (is_test = 0)")
    if form.source < 9 and not form.take("spatial", 1):
        return Refusal("it normalises every element by itself (spatial = 0)")
    if any(form.is_read(i) for i in range(1, 5)) or form.take("training_mode", 0):
        return Refusal("it trains")
    return None


def _dropout(form: Form) -> Refusal | None:
    if any(form.is_read(i) for i in range(1, 2)):
        return Refusal("its mask is read")
    if form.source < 7 and not form.take("is_test", 0):
        return Refusal("it trains (is_test = 0)")
    trains = form.input(2) if form.source >= 12 else None
    if trains is not None and form.draft.number(trains) is not False:
        return Refusal("it may train")
    form.cut_inputs(1)
    form.take("ratio")
    form.take("seed")
    return None


def _upsample(form: Form) -> Refusal | None:
    """Upsample is a Resize that knows no corners: asymmetric, and nearest is the one below."""
    if form.source < 7:
        return Refusal("before opset 7 it had another form")
    if form.target < 10:
        return None
    mode, scales = form.get("mode", "nearest"), form.input(1)
    form.op = "Resize"
    known = form.draft.constant(scales)
    if known is None or (known < 1).any():
        return Refusal("its scales may shrink the image")
    _as_resize(form, mode, scales)
    return None


def _as_resize(form: Form, mode: str, scales: ir.Value | None) -> None:
    """Resize of opset 10 or Upsample in the words of the target."""
    form.cut_inputs(1)
    if form.target < 11:
        form.set_input(1, scales)
        return
    form.set_input(2, scales)
    form.put("coordinate_transformation_mode", "asymmetric")
    if mode == "nearest":
        form.put("nearest_mode", "floor")
    if form.target < 13:
        form.set_input(1, form.draft.tensor(np.zeros(0, np.float32)))


def _resize(form: Form) -> Refusal | None:
    if form.source < 11:
        known = form.draft.constant(form.input(1))
        mode = form.get("mode", "nearest")
        if mode == "nearest" and (known is None or (known < 1).any()):
            return Refusal("it may shrink the image, where opset 10 rounds up")
        _as_resize(form, mode, form.input(1))
        return None
    how = form.get("coordinate_transformation_mode", "half_pixel")
    if how == "tf_half_pixel_for_nn" and form.rises_over(13):
        return Refusal("coordinate_transformation_mode = 'tf_half_pixel_for_nn' went with opset 13")
    if form.target < 11:
        return Refusal("before opset 11 it has no coordinate_transformation_mode")
    if form.falls_under(13):
        empty = form.draft.tensor(np.zeros(0, np.float32))
        for index in (1, 2):
            if form.input(index) is None:
                form.set_input(index, empty)
    return None


def _grid_sample(form: Form) -> Refusal | None:
    renamed = {"bilinear": "linear", "bicubic": "cubic"}
    mode = form.get("mode", "bilinear" if form.source < 20 else "linear")
    if form.rises_over(20):
        form.put("mode", renamed.get(mode, mode))
    elif form.falls_under(20):
        if form.draft.rank(form.inputs[0]) != 4:
            return Refusal("before opset 20 it takes images of two dimensions only")
        form.put("mode", {new: old for old, new in renamed.items()}.get(mode, mode))
    return None


def _split(form: Form) -> Refusal | None:
    """Since 18 a Split without sizes says how many parts there are."""
    if form.source < 2 and form.input(1) is not None:
        return Refusal("before opset 2 its sizes came from a run")
    if form.input(1) is not None or form.get("split") is not None:
        return None
    if form.rises_over(18):
        form.put("num_outputs", len(form.node.outputs))
    elif form.falls_under(18):
        count = int(form.take("num_outputs", len(form.node.outputs)))
        shape, axis = form.draft.shape(form.inputs[0]), int(form.get("axis", 0))
        size = None if shape is None else shape[axis]
        if not isinstance(size, int) or size % count:
            return Refusal(f"before opset 18 a dimension of {size} has no {count} equal parts")
    return None


def _gemm(form: Form) -> Refusal | ir.Value | None:
    if form.source < 7:
        form.take("broadcast")
    if not form.falls_under(11) or form.input(2) is not None:
        return None
    plain = not form.get("transA", 0) and not form.get("transB", 0)
    if not plain or float(form.get("alpha", 1.0)) != 1:
        return Refusal("before opset 11 it needs a third input")
    return form.draft.call("MatMul", *form.inputs[:2])


def _broadcast(form: Form) -> Refusal | None:
    """Before 7 the second input is laid along the axes from `axis` on, if it may be broadcast at all."""
    if form.source >= 7:
        return None
    axis, allowed = form.take("axis"), form.take("broadcast", 0)
    if not allowed or axis is None:
        return None
    ranks = [form.draft.rank(value) for value in form.inputs[:2]]
    if ranks[0] is None or ranks[1] is None:
        return Refusal("the ranks of its inputs are not known")
    after = ranks[0] - int(axis) % ranks[0] - ranks[1]
    if after > 0:
        form.inputs[1] = _with_ones(form, form.inputs[1], ranks[1], after)
    return None


def _prelu(form: Form) -> Refusal | None:
    """Before 7 a slope of one dimension belongs to the channels."""
    if form.source >= 7:
        return None
    rank, slope = form.draft.rank(form.inputs[0]), form.draft.shape(form.inputs[1])
    if rank is None or slope is None:
        return Refusal("the ranks of its inputs are not known")
    if len(slope) == 1 and slope[0] != 1 and rank > 2:
        form.inputs[1] = _with_ones(form, form.inputs[1], 1, rank - 2)
    return None


def _with_ones(form: Form, value: ir.Value | None, rank: int, count: int) -> ir.Value:
    axes = list(range(rank, rank + count))
    if form.target < 13:
        return form.draft.call("Unsqueeze", value, axes=axes)
    return form.draft.call("Unsqueeze", value, form.draft.ints(axes))


def _constant(form: Form) -> Refusal | None:
    """Before 12 a Constant holds a tensor."""
    if not form.falls_under(12):
        return None
    if form.target < 11 and "sparse_value" in form.attributes:
        return Refusal("before opset 11 it cannot be sparse")
    tensor = ir.convenience.get_const_tensor(form.node.outputs[0])
    if tensor is not None and "sparse_value" not in form.attributes:
        form.attributes = {"value": ir.AttrTensor("value", tensor)}
    return None


def _cast(form: Form) -> Refusal | None:
    if form.source < 6:
        name = str(form.take("to", ""))
        if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  (a protobuf wrapper)
            return Refusal(f"it casts to {name[:40]!r}")
        form.put("to", onnx.TensorProto.DataType.Value(name))
    return None


def _concat(form: Form) -> Refusal | None:
    if form.source < 4:
        form.put("axis", int(form.get("axis", 1)))
    return None


def _one_hot(form: Form) -> Refusal | None:
    if not (form.rises_over(11) or form.falls_under(11)):
        return None
    indices = form.draft.constant(form.inputs[0])
    if indices is None or (indices < 0).any():
        return Refusal(
            "before opset 11 a negative index is nowhere, since then it counts from the end"
        )
    return None


def _gather(form: Form) -> Refusal | None:
    if not form.falls_under(11):
        return None
    indices = form.draft.constant(form.inputs[1])
    if indices is None or (indices < 0).any():
        return Refusal("before opset 11 an index cannot count from the end")
    return None


def _scatter(form: Form) -> Refusal | None:
    if form.target >= 11:
        form.op = "ScatterElements"
    return None


def _recurrent(form: Form) -> Refusal | None:
    if form.source < 7 and form.take("output_sequence", 0):
        return Refusal("before opset 7 it gave its outputs otherwise")
    return None


def _range(form: Form) -> Refusal | None:
    narrow = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    if form.rises_over(27) and form.draft.dtype(form.node.outputs[0]) in narrow:
        return Refusal("since opset 27 it counts in float32")
    return None


_BROADCAST = ("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "Pow")

ADAPTERS: Mapping[str, Adapter] = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "Dropout": _dropout,
    "Gather": _gather,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "OneHot": _one_hot,
    "PRelu": _prelu,
    "Range": _range,
    "Resize": _resize,
    "Scatter": _scatter,
    "Split": _split,
    "Upsample": _upsample,
}
