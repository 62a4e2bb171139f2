"""Normalisations that exporters write out, as the one operator that they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.activations import split

__all__ = ["RULES", "axes_of"]


def axes_of(node: ir.Node, draft: Draft) -> list[int] | None:
    """The axes of a reduction that keeps them, counted from the front."""
    rank = draft.rank(node.inputs[0])
    if rank is None or not draft.attribute(node, "keepdims", 1):
        return None
    given = draft.attribute(node, "axes")
    if given is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        given = draft.integers(node.inputs[1])
    if given is None:
        return None
    return sorted(int(axis) % rank for axis in given)


def _trailing(node: ir.Node, draft: Draft) -> int | None:
    """Where the last axes begin that a reduction takes together."""
    axes, rank = axes_of(node, draft), draft.rank(node.inputs[0])
    if not axes or rank is None or axes != list(range(axes[0], rank)):
        return None
    return axes[0]


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


@rule("Div", "Mul", bound=ROUNDED)
def layer_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """(x - mean) / sqrt(variance + e) over the last axes is LayerNormalization."""
    found = _inverse_root(node, draft)
    if found is None:
        return None
    centered, variance, epsilon = found
    mean_of = draft.made_by(variance, "ReduceMean")
    sub = draft.made_by(centered, "Sub")
    if mean_of is None or sub is None or _squared(mean_of.inputs[0], draft) is not centered:
        return None
    mean = draft.made_by(sub.inputs[1], "ReduceMean")
    if mean is None or mean.inputs[0] is not sub.inputs[0]:
        return None
    axis, other = _trailing(mean, draft), _trailing(mean_of, draft)
    shape = draft.shape(sub.inputs[0])
    if axis is None or axis != other or shape is None:
        return Refusal("the means are not over the same last axes")
    sizes = [size for size in shape[axis:] if isinstance(size, int)]
    dtype = draft.dtype(node.outputs[0])
    if len(sizes) < len(shape) - axis or dtype is None:
        return Refusal("the sizes of the normalised axes are not known")
    missing = needs_opset("LayerNormalization", 17, draft)
    if missing is not None:
        return missing
    scale = draft.tensor(np.ones(sizes, dtype=dtype.numpy()), dtype)
    return draft.call("LayerNormalization", sub.inputs[0], scale, axis=axis, epsilon=epsilon)


@rule("Mul", "Add", bound=ROUNDED)
def layer_normalization_parameters(node: ir.Node, draft: Draft) -> Outcome:
    """LayerNormalization followed by a constant factor or offset has it as its own."""
    for side in (0, 1):
        norm = draft.made_by(node.inputs[side], "LayerNormalization")
        constant = draft.constant(node.inputs[1 - side])
        if norm is None or constant is None:
            continue
        shape = draft.shape(norm.inputs[1])
        sizes = [size for size in shape or () if isinstance(size, int)]
        dtype = draft.dtype(norm.outputs[0])
        if shape is None or len(sizes) < len(shape) or dtype is None:
            return None
        if not draft.is_only_use(norm.outputs[0]):
            return Refusal("another node reads what the normalisation gives")
        has_bias = len(norm.inputs) > 2 and norm.inputs[2] is not None
        ones = draft.number(norm.inputs[1])
        if (node.op_type == "Mul" and (has_bias or ones != 1)) or (
            node.op_type == "Add" and has_bias
        ):
            return None
        try:
            array = np.broadcast_to(constant, sizes)
        except ValueError:
            return Refusal("the constant is not broadcast to the normalised axes")
        axis = int(draft.attribute(norm, "axis", -1))
        given = {"axis": axis, "epsilon": draft.attribute(norm, "epsilon", 1e-5)}
        tensor = draft.tensor(np.array(array), dtype)
        if node.op_type == "Mul":
            return draft.call("LayerNormalization", norm.inputs[0], tensor, **given)
        return draft.call("LayerNormalization", norm.inputs[0], norm.inputs[1], tensor, **given)
    return None


@rule("Mul", bound=ROUNDED)
def rms_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """x / sqrt(mean(x²) + e), times a constant, is RMSNormalization."""
    for side in (0, 1):
        inner = draft.made_by(node.inputs[side], "Div", "Mul")
        scale = draft.constant(node.inputs[1 - side])
        found = None if inner is None else _inverse_root(inner, draft)
        if inner is None or scale is None or found is None:
            continue
        value, mean_square, epsilon = found
        mean_of = draft.made_by(mean_square, "ReduceMean")
        if mean_of is None or _squared(mean_of.inputs[0], draft) is not value:
            continue
        axis, shape = _trailing(mean_of, draft), draft.shape(value)
        if axis is None or shape is None:
            return Refusal("the mean is not over the last axes")
        if not draft.is_only_use(inner.outputs[0]):
            return Refusal("another node reads the value before the factor")
        if list(scale.shape) != _plain(shape[axis:]):
            return Refusal("the factor has not the shape of the normalised axes")
        return needs_opset("RMSNormalization", 23, draft) or draft.call(
            "RMSNormalization", value, node.inputs[1 - side], axis=axis, epsilon=epsilon
        )
    return None


def _plain(sizes: Sequence[object]) -> list[int]:
    return [size for size in sizes if isinstance(size, int)]


RULES = (layer_normalization, layer_normalization_parameters, rms_normalization)
