"""Normalisations over the last axes that exporters write out, as the one operator that they are.

d = x - mean(x)
d / sqrt(mean(d²) + e) * scale + bias       →   LayerNormalization(x, scale, bias)
x / sqrt(mean(x²) + e) * scale              →   RMSNormalization(x, scale)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.activations import split

__all__ = ["RULES", "Normalised", "axes_of", "centred_and_scaled", "stash_of"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)


class Normalised(NamedTuple):
    """What is normalised, over which axes, and what is added to the variance."""

    value: ir.Value
    axes: list[int]
    epsilon: float


def axes_of(node: ir.Node, draft: Draft) -> list[int] | None:
    """The axes of a reduction that keeps them, counted from the front."""
    return _axes(node, draft) if draft.attribute(node, "keepdims", 1) else None


def _axes(node: ir.Node, draft: Draft) -> list[int] | None:
    rank = draft.rank(node.inputs[0])
    given = draft.attribute(node, "axes")
    if given is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        given = draft.integers(node.inputs[1])
    if given is None or rank is None:
        return None
    return sorted(int(axis) % rank for axis in given)


def _mean(value: ir.Value | None, draft: Draft) -> tuple[ir.Value, list[int]] | None:
    """What a value is the mean of, and over which axes, which it keeps with size 1."""
    mean, view = draft.made_by(value, "ReduceMean"), None
    if mean is None:
        view = draft.made_by(value, "Reshape", "Unsqueeze")
        mean = None if view is None else draft.made_by(view.inputs[0], "ReduceMean")
    axes = None if mean is None else _axes(mean, draft)
    shape = None if mean is None else draft.shape(mean.inputs[0])
    if mean is None or mean.inputs[0] is None or not axes or shape is None:
        return None
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return (mean.inputs[0], axes) if draft.shape(value) == kept else None


def _squared(value: ir.Value | None, draft: Draft) -> ir.Value | None:
    """What a value is the square of."""
    power = draft.made_by(value, "Pow")
    if power is not None and draft.number(power.inputs[1]) == 2:
        return power.inputs[0]
    product = draft.made_by(value, "Mul")
    if product is not None and product.inputs[0] is product.inputs[1]:
        return product.inputs[0]
    return None


def _inverse_root(node: ir.Node, draft: Draft) -> tuple[ir.Value, ir.Value, float] | None:
    """From d / sqrt(v + e), or d * (1 / sqrt(v + e)): d, v and e."""
    if node.op_type == "Div":
        root = draft.made_by(node.inputs[1], "Sqrt")
        candidates = [(node.inputs[0], root)]
    else:
        candidates = []
        for side in (0, 1):
            inverse = draft.made_by(node.inputs[side], "Reciprocal", "Div")
            if inverse is None:
                continue
            if inverse.op_type == "Div" and draft.number(inverse.inputs[0]) != 1:
                continue
            inside = inverse.inputs[0] if inverse.op_type == "Reciprocal" else inverse.inputs[1]
            candidates.append((node.inputs[1 - side], draft.made_by(inside, "Sqrt")))
    for value, root in candidates:
        shifted = None if root is None else split(draft.made_by(root.inputs[0], "Add"), draft)
        if value is not None and shifted is not None and shifted[1] >= 0:
            return value, shifted[0], shifted[1]
    return None


def centred_and_scaled(node: ir.Node, draft: Draft) -> Normalised | Refusal | None:
    """From (x - mean) / sqrt(variance + e): x, the axes of both means, and e."""
    found = _inverse_root(node, draft)
    if found is None:
        return None
    centred, variance, epsilon = found
    squares = _mean(variance, draft)
    sub = draft.made_by(centred, "Sub")
    mean = None if sub is None else _mean(sub.inputs[1], draft)
    if squares is None or sub is None or mean is None or mean[0] is not sub.inputs[0]:
        return None
    if _squared(squares[0], draft) is not centred:
        return None
    if mean[1] != squares[1]:
        return Refusal("the means are not over the same axes")
    return _representable(Normalised(mean[0], mean[1], epsilon), draft)


def _scaled(node: ir.Node, draft: Draft) -> Normalised | Refusal | None:
    """From x / sqrt(mean(x²) + e): x, the axes of the mean, and e."""
    found = _inverse_root(node, draft)
    squares = None if found is None else _mean(found[1], draft)
    if found is None or squares is None or _squared(squares[0], draft) is not found[0]:
        return None
    return _representable(Normalised(found[0], squares[1], found[2]), draft)


def _representable(found: Normalised, draft: Draft) -> Normalised | Refusal:
    """Whether the operator, which computes in float32 or more, says the same."""
    dtype = draft.dtype(found.value)
    if dtype not in _FLOATS:
        return Refusal(
            "squares of float16 overflow beyond 255, and the operator would compute them in float32"
        )
    if dtype == ir.DataType.DOUBLE and float(np.float32(found.epsilon)) != found.epsilon:
        return Refusal(f"the operator's epsilon is a float32, which {found.epsilon!r} is not")
    return found


def stash_of(value: ir.Value | None, draft: Draft) -> int | None:
    """The `stash_type` for values of this type; None where the default, float32, is right."""
    dtype = draft.dtype(value)
    return int(ir.DataType.DOUBLE) if dtype == ir.DataType.DOUBLE else None


def _over_last_axes(
    op: str, version: int, found: Normalised, node: ir.Node, draft: Draft
) -> Outcome:
    shape, dtype = draft.shape(found.value), draft.dtype(node.outputs[0])
    if shape is None or dtype is None or found.axes != list(range(found.axes[0], len(shape))):
        return Refusal("the means are not over the last axes")
    if draft.shape(node.outputs[0]) != shape:
        return Refusal("a constant broadcasts x")
    axis = found.axes[0]
    sizes = [size for size in shape[axis:] if isinstance(size, int)]
    if len(sizes) < len(shape) - axis:
        return Refusal("the sizes of the normalised axes are not known")
    missing = needs_opset(op, version, draft)
    if missing is not None:
        return missing
    scale = draft.tensor(np.ones(sizes, dtype=dtype.numpy()), dtype)
    given = {
        "axis": axis - len(shape),
        "epsilon": found.epsilon,
        "stash_type": stash_of(found.value, draft),
    }
    return draft.call(op, found.value, scale, **given)


@rule("Div", "Mul", bound=ROUNDED)
def layer_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """(x - mean) / sqrt(variance + e) over the last axes is LayerNormalization."""
    found = centred_and_scaled(node, draft)
    if not isinstance(found, Normalised):
        return found
    return _over_last_axes("LayerNormalization", 17, found, node, draft)


@rule("Div", "Mul", bound=ROUNDED)
def rms_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """x / sqrt(mean(x²) + e) over the last axes is RMSNormalization."""
    found = _scaled(node, draft)
    if not isinstance(found, Normalised):
        return found
    return _over_last_axes("RMSNormalization", 23, found, node, draft)


@rule("Mul", "Add", bound=ROUNDED)
def normalization_parameters(node: ir.Node, draft: Draft) -> Outcome:
    """LayerNormalization or RMSNormalization followed by a constant factor or offset has it as its own."""
    for side in (0, 1):
        norm = draft.made_by(node.inputs[side], "LayerNormalization", "RMSNormalization")
        constant = draft.constant(node.inputs[1 - side])
        if norm is None or constant is None:
            continue
        shape, dtype = draft.shape(norm.inputs[1]), draft.dtype(norm.outputs[0])
        sizes = _plain(shape)
        if sizes is None or dtype is None:
            return None
        has_bias = len(norm.inputs) > 2 and norm.inputs[2] is not None
        if has_bias or (node.op_type == "Mul" and draft.number(norm.inputs[1]) != 1):
            return None
        if node.op_type == "Add" and norm.op_type == "RMSNormalization":
            return None
        if not draft.is_only_use(norm.outputs[0]) or any(v.uses() for v in norm.outputs[1:]):
            return Refusal("another node reads what the normalisation gives")
        try:
            array = np.broadcast_to(constant, sizes)
        except ValueError:
            return Refusal("the constant is not broadcast to the normalised axes")
        tensor = draft.tensor(np.array(array), dtype)
        scale = tensor if node.op_type == "Mul" else norm.inputs[1]
        bias = [] if node.op_type == "Mul" else [tensor]
        return draft.call(norm.op_type, norm.inputs[0], scale, *bias, **_given(norm, draft))
    return None


def _given(norm: ir.Node, draft: Draft) -> dict[str, Any]:
    names = ("axis", "epsilon", "stash_type")
    return {name: draft.attribute(norm, name) for name in names}


def _plain(shape: Sequence[object] | None) -> list[int] | None:
    sizes = [size for size in shape or () if isinstance(size, int)]
    return None if shape is None or len(sizes) < len(shape) else sizes


_SMALL = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@rule("Cast", bound=ROUNDED)
def normalization_of_small_floats(node: ir.Node, draft: Draft) -> Outcome:
    """A normalisation of small floats between Casts to float32 and back computes so by itself."""
    norm = draft.made_by(node.inputs[0], "LayerNormalization", "RMSNormalization")
    wide = None if norm is None else draft.made_by(norm.inputs[0], "Cast")
    if norm is None or wide is None or len(norm.outputs) > 1:
        return None
    small, value = draft.dtype(node.outputs[0]), wide.inputs[0]
    if small not in _SMALL or small is None or small != draft.dtype(value):
        return None
    if (
        draft.dtype(norm.inputs[0]) != ir.DataType.FLOAT
        or draft.attribute(norm, "stash_type", 1) != 1
    ):
        return None
    if not draft.is_only_use(norm.outputs[0]):
        return Refusal("another node reads what the normalisation gives in float32")
    parameters: list[ir.Value] = []
    for given in norm.inputs[1:]:
        array = draft.constant(given)
        narrow = None if array is None else array.astype(small.numpy())
        if array is None or narrow is None or (narrow.astype(array.dtype) != array).any():
            return Refusal(f"its factor or offset is not the same in {small}")
        parameters.append(draft.tensor(narrow, small))
    return draft.call(norm.op_type, value, *parameters, **_given(norm, draft))


RULES = (
    layer_normalization,
    rms_normalization,
    normalization_parameters,
    normalization_of_small_floats,
)
