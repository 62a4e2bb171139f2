"""What follows or precedes a convolution or a product by constants becomes part of its weights."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import EQUAL, ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES", "affine_of_normalization"]

Array = npt.NDArray[Any]


def affine_of_normalization(node: ir.Node, draft: Draft) -> tuple[Array, Array] | Refusal | None:
    """A batch normalisation as one factor and one offset a channel, in float64."""
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return Refusal("its running statistics are read")
    if draft.attribute(node, "training_mode", 0) or not draft.attribute(node, "spatial", 1):
        return Refusal("it is in training mode, or not spatial")
    if draft.opset < 7 and not draft.attribute(node, "is_test", 0):
        return Refusal("before opset 7, a normalisation without is_test is in training mode")
    parts = [draft.constant(value) for value in node.inputs[1:5]]
    if any(part is None or part.ndim != 1 for part in parts):
        return Refusal("its parameters are not constants")
    scale, offset, mean, variance = (np.asarray(part, dtype=np.float64) for part in parts)
    factor = scale / np.sqrt(variance + float(draft.attribute(node, "epsilon", 1e-5)))
    return factor, offset - mean * factor


def _merge(conv: ir.Node, factor: Array, offset: Array, draft: Draft) -> ir.Value | Refusal | None:
    """The convolution with its outputs multiplied and shifted, one number a channel."""
    weight = draft.constant(conv.inputs[1])
    has_bias = len(conv.inputs) > 2 and conv.inputs[2] is not None
    bias = draft.constant(conv.inputs[2]) if has_bias else None
    dtype = draft.dtype(conv.inputs[1])
    if weight is None or dtype is None or (has_bias and bias is None):
        return Refusal("the weights of the convolution are not constants")
    if not draft.is_only_use(conv.outputs[0]):
        return Refusal("another node reads what the convolution gives")
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return Refusal("a factor or an offset is not finite")
    groups = int(draft.attribute(conv, "group", 1))
    wide = weight.astype(np.float64)
    if conv.op_type == "Conv":
        channels = weight.shape[0]
        if factor.size not in (1, channels) or offset.size not in (1, channels):
            return None
        factor = np.broadcast_to(factor.reshape(-1), (channels,))
        wide = wide * factor.reshape(-1, *[1] * (weight.ndim - 1))
    else:
        channels = weight.shape[1] * groups
        if factor.size not in (1, channels) or offset.size not in (1, channels):
            return None
        factor = np.broadcast_to(factor.reshape(-1), (channels,))
        by_group = wide.reshape(groups, -1, *weight.shape[1:])
        shape = (groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
        wide = (by_group * factor.reshape(shape)).reshape(weight.shape)
    old = np.zeros(channels) if bias is None else bias.astype(np.float64)
    shifted = old * factor + np.broadcast_to(offset.reshape(-1), (channels,))
    target = dtype.numpy()
    narrow, moved = wide.astype(target), shifted.astype(target)
    if not (np.isfinite(narrow).all() and np.isfinite(moved).all()):
        return Refusal("a weight would overflow")
    inputs = [conv.inputs[0], draft.tensor(narrow, dtype), draft.tensor(moved, dtype)]
    return draft.copy(conv, inputs)[0]


@rule("BatchNormalization", bound=ROUNDED)
def conv_then_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """Conv or ConvTranspose followed by BatchNormalization is one convolution."""
    conv = draft.made_by(node.inputs[0], "Conv", "ConvTranspose")
    if conv is None:
        return None
    affine = affine_of_normalization(node, draft)
    if affine is None or isinstance(affine, Refusal):
        return affine
    merged = _merge(conv, *affine, draft)
    if not isinstance(merged, ir.Value):
        return merged
    return [merged, *([None] * (len(node.outputs) - 1))]


@rule("Mul", "Div", "Add", "Sub", bound=ROUNDED)
def conv_then_scale(node: ir.Node, draft: Draft) -> Outcome:
    """Conv or ConvTranspose followed by a constant a channel is one convolution."""
    for side in (0, 1):
        conv = draft.made_by(node.inputs[side], "Conv", "ConvTranspose")
        constant = draft.constant(node.inputs[1 - side])
        if conv is None or constant is None or constant.dtype.kind not in "fV":
            continue
        if side == 1 and node.op_type == "Div":
            return None
        rank = draft.rank(node.outputs[0])
        if rank is None or rank != draft.rank(conv.outputs[0]) or not _by_channel(constant, rank):
            return Refusal("the constant is not one number a channel")
        number = constant.astype(np.float64).reshape(-1)
        one, none = np.ones(1), np.zeros(1)
        if node.op_type == "Mul":
            return _merge(conv, number, none, draft)
        if node.op_type == "Div":
            with np.errstate(divide="ignore"):
                return _merge(conv, 1 / number, none, draft)
        if node.op_type == "Add":
            return _merge(conv, one, number, draft)
        return _merge(conv, one, -number, draft) if side == 0 else _merge(conv, -one, number, draft)
    return None


def _by_channel(constant: Array, rank: int) -> bool:
    """Whether a constant that is added to [N, C, …] is one number, or one a channel."""
    if constant.size == 1:
        return constant.ndim <= rank
    if constant.ndim not in (rank, rank - 1):
        return False
    shape = (1,) * (rank - constant.ndim) + constant.shape
    return all(size == 1 for axis, size in enumerate(shape) if axis != 1)


@rule("Conv")
def pad_before_conv(node: ir.Node, draft: Draft) -> Outcome:
    """Pad by zeros before a convolution is padding of the convolution."""
    pad = draft.made_by(node.inputs[0], "Pad")
    if pad is None:
        return None
    if draft.attribute(pad, "mode", "constant") != "constant":
        return Refusal("it does not pad by a constant")
    if draft.attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Refusal("the convolution pads by itself (auto_pad)")
    pads, value = _pads(pad, draft)
    rank = draft.rank(node.inputs[0])
    if pads is None or value is None or rank is None:
        return Refusal("how much it pads is not constant")
    if value != 0:
        return Refusal(f"it pads by {value:g}, the convolution by 0")
    if any(pads[axis] or pads[axis + rank] for axis in (0, 1)):
        return Refusal("it pads the batch or the channels")
    added = [*pads[2:rank], *pads[rank + 2 :]]
    if any(size < 0 for size in added):
        return Refusal("it cuts off")
    own = draft.attribute(node, "pads", [0] * len(added))
    if draft.attribute(node, "auto_pad", "NOTSET") == "VALID":
        own = [0] * len(added)
    attributes = {
        name: attribute.value
        for name, attribute in node.attributes.items()
        if name not in ("pads", "auto_pad")
    }
    total = [a + b for a, b in zip(own, added, strict=True)]
    return draft.call("Conv", pad.inputs[0], *node.inputs[1:], pads=total, **attributes)


def _pads(pad: ir.Node, draft: Draft) -> tuple[list[int] | None, float | None]:
    """The padding in the order of Pad (all begins, all ends), and what it pads with."""
    if draft.opset < 11:
        found = draft.attribute(pad, "pads", draft.attribute(pad, "paddings"))
        pads = None if found is None else [int(size) for size in found]
        return pads, float(draft.attribute(pad, "value", 0.0))
    pads = draft.integers(pad.inputs[1])
    given = pad.inputs[2] if len(pad.inputs) > 2 else None
    number = 0.0 if given is None else draft.number(given)
    axes = pad.inputs[3] if len(pad.inputs) > 3 else None
    rank = draft.rank(pad.inputs[0])
    if axes is not None and pads is not None and rank is not None:
        named = draft.integers(axes)
        if named is None:
            return None, None
        whole = [0] * (2 * rank)
        for index, axis in enumerate(named):
            whole[axis % rank] = pads[index]
            whole[axis % rank + rank] = pads[index + len(named)]
        pads = whole
    return pads, None if number is None else float(number)


@rule("Conv", bound=ROUNDED)
def scale_before_conv(node: ir.Node, draft: Draft) -> Outcome:
    """BatchNormalization, Mul, Div, Add or Sub by constants a channel before a convolution is in its weights."""
    before = draft.made_by(node.inputs[0], "BatchNormalization", "Mul", "Div", "Add", "Sub")
    found = None if before is None else _affine_before(before, draft)
    if before is None or found is None:
        return None
    if isinstance(found, Refusal):
        return found
    value, factor, offset = found
    if not draft.is_only_use(before.outputs[0]):
        return Refusal("another node reads what comes before the convolution")
    weight, dtype = draft.constant(node.inputs[1]), draft.dtype(node.inputs[1])
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    bias = draft.constant(node.inputs[2]) if has_bias else None
    if weight is None or dtype is None or (has_bias and bias is None):
        return Refusal("the weights of the convolution are not constants")
    if (offset != 0).any() and _pads_itself(node, draft):
        return Refusal("the convolution pads by 0, which is not what comes before it gives for 0")
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return Refusal("a factor or an offset is not finite")
    groups = int(draft.attribute(node, "group", 1))
    channels = weight.shape[1] * groups
    if factor.size not in (1, channels) or offset.size not in (1, channels):
        return None
    # Weights are [out, in of its group, …]: the channel of each, group by group.
    shape = (groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
    by_group = weight.astype(np.float64).reshape(groups, -1, *weight.shape[1:])
    factor, offset = (np.broadcast_to(a, (channels,)).reshape(shape) for a in (factor, offset))
    narrow = (by_group * factor).reshape(weight.shape).astype(dtype.numpy())
    moved = (by_group * offset).reshape(weight.shape[0], -1).sum(axis=1)
    if bias is not None:
        moved = moved + bias.astype(np.float64)
    if not (np.isfinite(narrow).all() and np.isfinite(moved.astype(dtype.numpy())).all()):
        return Refusal("a weight would overflow")
    if not _keep_signs(narrow, (by_group * factor).reshape(weight.shape)):
        return Refusal("a weight would underflow, and is not small beside the others")
    inputs = [value, draft.tensor(narrow, dtype)]
    if bias is not None or (moved != 0).any():
        inputs.append(draft.tensor(moved.astype(dtype.numpy()), dtype))
    return draft.copy(node, inputs)[0]


def _keep_signs(narrow: Array, wide: Array) -> bool:
    """Let what was rounded to 0 be the smallest number instead; whether that is nothing beside the channel's largest.

    A zero would make NaN of an infinite input.
    """
    lost = (narrow == 0) & (wide != 0)
    finfo: Any = ml_dtypes.finfo  # knows bfloat16, and numpy's own types too
    limits = finfo(narrow.dtype)
    largest = np.abs(wide).reshape(wide.shape[0], -1).max(axis=1, initial=0)
    if (lost.reshape(wide.shape[0], -1).any(axis=1) & (largest < float(limits.tiny))).any():
        return False
    np.copyto(narrow, np.copysign(limits.smallest_subnormal, wide).astype(narrow.dtype), where=lost)
    return True


def _affine_before(node: ir.Node, draft: Draft) -> tuple[ir.Value, Array, Array] | Refusal | None:
    """A node as one factor and one offset a channel of what it reads."""
    if node.op_type == "BatchNormalization":
        affine = affine_of_normalization(node, draft)
        if affine is None or isinstance(affine, Refusal) or node.inputs[0] is None:
            return None if isinstance(affine, tuple) else affine
        return node.inputs[0], *affine
    one, none = np.ones(1), np.zeros(1)
    for side in (0, 1):
        value, constant = node.inputs[side], draft.constant(node.inputs[1 - side])
        rank = draft.rank(value)
        if value is None or constant is None or constant.dtype.kind not in "fV" or rank is None:
            continue
        if draft.shape(value) != draft.shape(node.outputs[0]) or not _by_channel(constant, rank):
            return Refusal("the constant is not one number a channel")
        number = constant.astype(np.float64).reshape(-1)
        match node.op_type, side:
            case "Mul", _:
                return value, number, none
            case "Div", 0 if (number != 0).all():
                return value, 1 / number, none
            case "Add", _:
                return value, one, number
            case "Sub", 0:
                return value, one, -number
            case "Sub", 1:
                return value, -one, number
    return None


def _pads_itself(conv: ir.Node, draft: Draft) -> bool:
    mode = draft.attribute(conv, "auto_pad", "NOTSET")
    if mode == "VALID":
        return False
    return mode != "NOTSET" or any(draft.attribute(conv, "pads", []))


@rule("ConvTranspose", bound=EQUAL)
def pad_before_transposed_conv(node: ir.Node, draft: Draft) -> Outcome:
    """Pad by zeros before a ConvTranspose that cuts the padding off again goes."""
    pad = draft.made_by(node.inputs[0], "Pad")
    if pad is None or draft.attribute(pad, "mode", "constant") != "constant":
        return None
    rank = draft.rank(node.inputs[0])
    pads, value = _pads(pad, draft)
    if rank is None or pads is None or value != 0 or any(size < 0 for size in pads):
        return Refusal("it does not pad by a constant number of zeros")
    if draft.attribute(node, "auto_pad", "NOTSET") != "NOTSET" or "output_shape" in node.attributes:
        return Refusal("the convolution decides by itself what it cuts off")
    if any(pads[axis] or pads[axis + rank] for axis in (0, 1)):
        return Refusal("it pads the batch or the channels")
    weight = draft.constant(node.inputs[1])
    if weight is None or not np.isfinite(weight.astype(np.float64)).all():
        return Refusal("a weight may be infinite or NaN, and so would be its product with 0")
    added = [*pads[2:rank], *pads[rank + 2 :]]
    own = draft.attribute(node, "pads", [0] * len(added))
    strides = draft.attribute(node, "strides", [1] * (rank - 2))
    left = [o - a * s for o, a, s in zip(own, added, [*strides, *strides], strict=True)]
    if any(size < 0 for size in left):
        return Refusal("the convolution does not cut all of the padding off")
    attributes = {
        name: attribute.value for name, attribute in node.attributes.items() if name != "pads"
    }
    return draft.call("ConvTranspose", pad.inputs[0], *node.inputs[1:], pads=left, **attributes)


RULES = (
    conv_then_normalization,
    conv_then_scale,
    scale_before_conv,
    pad_before_conv,
    pad_before_transposed_conv,
)
