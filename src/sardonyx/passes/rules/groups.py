"""Normalisations of images, channel by channel or group by group, as the one operator that they are.

(x - mean) / sqrt(variance + e) over all axes but batch and channel   →   InstanceNormalization(x, 1, 0)
Reshape(InstanceNormalization(Reshape(x, [N, groups, -1])), [N, C, H, W])  →   GroupNormalization(x, 1, 0)
y * scale + bias, one number a channel                                →   the operator's own parameters
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.norms import Normalised, centred_and_scaled, stash_of

__all__ = ["RULES"]

Array = npt.NDArray[Any]
_SINCE = 21  # before, GroupNormalization had one factor a group instead of one a channel


@rule("Div", "Mul", bound=ROUNDED)
def instance_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """(x - mean) / sqrt(variance + e) over all axes but batch and channel is InstanceNormalization."""
    found = centred_and_scaled(node, draft)
    if not isinstance(found, Normalised):
        return None  # why, `layer-normalization` says
    shape, dtype = draft.shape(found.value), draft.dtype(node.outputs[0])
    if shape is None or dtype is None or found.axes != list(range(2, len(shape))):
        return None
    if len(shape) == 3 and isinstance(shape[2], int):
        return None  # rows: a LayerNormalization
    if dtype == ir.DataType.BFLOAT16 and draft.opset < 22:
        return Refusal("InstanceNormalization takes bfloat16 from opset 22 on")
    if not isinstance(shape[1], int):
        return Refusal("the number of channels is not known")
    if draft.shape(node.outputs[0]) != shape:
        return Refusal("a constant broadcasts x")
    numpy = dtype.numpy()
    scale, bias = (draft.tensor(np.full(shape[1], n, numpy), dtype) for n in (1, 0))
    return draft.call("InstanceNormalization", found.value, scale, bias, epsilon=found.epsilon)


@rule("Reshape", bound=ROUNDED)
def group_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """Normalising the groups that a Reshape has parted channels into is GroupNormalization."""
    norm = draft.made_by(node.inputs[0], "InstanceNormalization", "LayerNormalization")
    parted = None if norm is None else draft.made_by(norm.inputs[0], "Reshape")
    if norm is None or parted is None or parted.inputs[0] is None:
        return None
    value, dtype = parted.inputs[0], draft.dtype(node.outputs[0])
    shape, grouped = draft.shape(value), draft.shape(parted.outputs[0])
    if shape is None or grouped is None or dtype is None or draft.shape(node.outputs[0]) != shape:
        return None
    if len(shape) < 3 or len(grouped) < 3 or shape[0] != grouped[0]:
        return None
    channels, groups = shape[1], grouped[1]
    if not (isinstance(channels, int) and isinstance(groups, int)) or not groups:
        return Refusal("the number of channels or groups is not known")
    if channels % groups or channels == groups:
        return None
    if not draft.is_only_use(norm.outputs[0]):
        return Refusal("another node reads what the normalisation gives")
    parameters = _of_groups(norm, groups, draft)
    if not isinstance(parameters, tuple):
        return parameters
    missing = needs_opset("GroupNormalization", _SINCE, draft)
    if missing is not None:
        return missing
    scale, bias = (
        draft.tensor(np.repeat(one, channels // groups).astype(dtype.numpy()), dtype)
        for one in parameters
    )
    given = {
        "num_groups": groups,
        "epsilon": draft.attribute(norm, "epsilon", 1e-5),
        "stash_type": draft.attribute(norm, "stash_type", stash_of(value, draft)),
    }
    return draft.call("GroupNormalization", value, scale, bias, **given)


def _of_groups(norm: ir.Node, groups: int, draft: Draft) -> tuple[Array, Array] | Refusal | None:
    """One factor and one offset a group."""
    if norm.op_type == "InstanceNormalization":
        given = [draft.constant(value) for value in norm.inputs[1:3]]
        if given[0] is None or given[1] is None:
            return Refusal("its factors and offsets are not constants")
        return given[0], given[1]
    rank = draft.rank(norm.inputs[0]) or 0
    if int(draft.attribute(norm, "axis", -1)) % rank != 2 or any(
        value.uses() for value in norm.outputs[1:]
    ):
        return None
    has_bias = len(norm.inputs) > 2 and norm.inputs[2] is not None
    scale = draft.number(norm.inputs[1])
    bias = draft.number(norm.inputs[2]) if has_bias else 0.0
    if scale is None or bias is None:
        return Refusal("its factors differ inside of a group")
    return np.full(groups, scale), np.full(groups, bias)


@rule("Mul", "Add", bound=ROUNDED)
def channel_parameters(node: ir.Node, draft: Draft) -> Outcome:
    """InstanceNormalization or GroupNormalization, then a constant a channel, has it as its own."""
    for side in (0, 1):
        norm = draft.made_by(node.inputs[side], "InstanceNormalization", "GroupNormalization")
        constant = draft.constant(node.inputs[1 - side])
        if norm is None or constant is None:
            continue
        shape, dtype = draft.shape(norm.outputs[0]), draft.dtype(norm.outputs[0])
        if shape is None or dtype is None or draft.shape(node.outputs[0]) != shape:
            return None
        if norm.op_type == "GroupNormalization" and draft.opset < _SINCE:
            return None
        numbers = _by_channel(constant, shape)
        given = [draft.constant(value) for value in norm.inputs[1:3]]
        if numbers is None or given[0] is None or given[1] is None:
            return Refusal(
                "the constant is not one number a channel, or the parameters are not constants"
            )
        if not draft.is_only_use(norm.outputs[0]):
            return Refusal("another node reads what the normalisation gives")
        scale, bias = (one.astype(np.float64) for one in (given[0], given[1]))
        if node.op_type == "Mul":
            scale, bias = scale * numbers, bias * numbers
        else:
            bias = bias + numbers
        narrow = [one.astype(dtype.numpy()) for one in (scale, bias)]
        if not all(np.isfinite(one.astype(np.float64)).all() for one in narrow):
            return Refusal("a factor or an offset is not finite, or would overflow")
        tensors = [draft.tensor(one, dtype) for one in narrow]
        return draft.copy(norm, [norm.inputs[0], *tensors])[0]
    return None


def _by_channel(constant: Array, shape: tuple[object, ...]) -> Array | None:
    """The numbers of a constant that is broadcast to [N, C, …] and is the same in all of a channel."""
    whole = (1,) * (len(shape) - constant.ndim) + constant.shape
    if len(whole) != len(shape) or any(size != 1 for axis, size in enumerate(whole) if axis != 1):
        return None
    channels = shape[1]
    if not isinstance(channels, int):
        return None
    return np.broadcast_to(constant.astype(np.float64).reshape(-1), (channels,))


RULES = (instance_normalization, group_normalization, channel_parameters)
