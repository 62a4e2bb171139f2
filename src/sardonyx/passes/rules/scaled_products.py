"""Constants that a product with constant weights is multiplied with, or added to, become part of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.ops.facts import CONTINUOUS
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.convolutions import affine_of_normalization

__all__ = ["RULES"]

Array = npt.NDArray[Any]
_SMALL = 1 << 12  # elements of a weight that may be stored twice


def _scaled(value: ir.Value, factor: Array, draft: Draft) -> ir.Value | Refusal | None:
    """A constant weight times factors that are broadcast to it; a reason where that would not say the same."""
    weight, dtype = draft.constant(value), draft.dtype(value)
    if weight is None or dtype not in CONTINUOUS or dtype is None:
        return None
    if len(value.uses()) > 1 and weight.size > _SMALL:
        return Refusal("the weight is read elsewhere too, and would be stored twice")
    if np.broadcast_shapes(weight.shape, factor.shape) != weight.shape:
        return Refusal("the weight would grow")
    return _product(weight, factor, dtype, draft)


def _product(array: Array, factor: Array, dtype: ir.DataType, draft: Draft) -> ir.Value | Refusal:
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = wide * factor
        narrow = exact.astype(dtype.numpy())
    back = narrow.astype(np.float64)
    if not np.isfinite(back).all() or not np.isfinite(factor).all():
        return Refusal("a weight is not finite, or would overflow")
    if ((back == 0) & (wide != 0) & (factor != 0)).any():
        return Refusal("a weight would underflow")
    return draft.tensor(narrow, dtype)


def _factor(node: ir.Node, side: int, draft: Draft) -> Array | None:
    """What a Mul or Div multiplies the input on this side with; a number, or one a column."""
    constant = draft.constant(node.inputs[1 - side])
    if constant is None or constant.dtype.kind not in "fV" or (node.op_type == "Div" and side == 1):
        return None
    shape = draft.shape(node.inputs[side])
    if shape is None or shape != draft.shape(node.outputs[0]) or constant.size == 0:
        return None
    if any(size != 1 for size in constant.shape[:-1]):
        return None
    number = constant.astype(np.float64).reshape(-1)
    if node.op_type == "Mul":
        return number
    return 1 / number if (number != 0).all() else None


@rule("Mul", "Div", bound=ROUNDED)
def product_then_scale(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul or Gemm with constant weights, then Mul or Div by constants, is one product."""
    for side in (0, 1):
        product = draft.made_by(node.inputs[side], "MatMul", "Gemm", "Add")
        factor = None if product is None else _factor(node, side, draft)
        if product is None or factor is None:
            continue
        if product.op_type == "Add":
            return _with_bias(product, factor, draft)
        return _times(product, factor, draft)
    return None


def _times(product: ir.Node, factor: Array, draft: Draft) -> ir.Value | Refusal | None:
    """The product with its columns multiplied."""
    weight = product.inputs[1]
    if weight is None or not draft.is_constant(weight) or (draft.rank(weight) or 0) < 2:
        return None
    if not draft.is_only_use(product.outputs[0]):
        return Refusal("another node reads the product")
    flipped = product.op_type == "Gemm" and draft.attribute(product, "transB", 0)
    made = _scaled(weight, factor.reshape(-1, 1) if flipped else factor, draft)
    if not isinstance(made, ir.Value):
        return made
    inputs = [product.inputs[0], made]
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    if bias is not None:
        if draft.constant(bias) is None:
            return Refusal("the bias is not constant")
        moved = _scaled_bias(bias, factor, draft)
        if not isinstance(moved, ir.Value):
            return moved
        inputs.append(moved)
    return draft.copy(product, inputs)[0]


def _scaled_bias(bias: ir.Value, factor: Array, draft: Draft) -> ir.Value | Refusal | None:
    """A bias times a number, or one a column: what is one number for all columns grows."""
    array, dtype = draft.constant(bias), draft.dtype(bias)
    if array is None or dtype is None or dtype not in CONTINUOUS:
        return None
    return _product(array, factor if factor.size > 1 else factor.reshape(()), dtype, draft)


def _with_bias(node: ir.Node, factor: Array, draft: Draft) -> ir.Value | Refusal | None:
    """(MatMul(x, W) + b) * c is MatMul(x, W * c) + b * c."""
    for side in (0, 1):
        product, bias = draft.made_by(node.inputs[side], "MatMul"), node.inputs[1 - side]
        if product is None or bias is None or draft.constant(bias) is None:
            continue
        if draft.shape(product.outputs[0]) != draft.shape(node.outputs[0]):
            return None
        if not draft.is_only_use(node.outputs[0]):
            return Refusal("another node reads the sum")
        made = _times(product, factor, draft)
        moved = _scaled_bias(bias, factor, draft)
        if not isinstance(made, ir.Value):
            return made
        return draft.call("Add", made, moved) if isinstance(moved, ir.Value) else moved
    return None


@rule("MatMul", "Gemm", bound=ROUNDED)
def scale_then_product(node: ir.Node, draft: Draft) -> Outcome:
    """Mul or Div by constants, then a MatMul or Gemm with constant weights, is one product."""
    scale = draft.made_by(node.inputs[0], "Mul", "Div")
    weight = node.inputs[1]
    if scale is None or weight is None or not draft.is_constant(weight):
        return None
    if draft.rank(weight) != 2 or draft.attribute(node, "transA", 0):
        return None
    for side in (0, 1):
        factor = _factor(scale, side, draft)
        if factor is None or (draft.rank(scale.inputs[side]) or 0) < 2:
            continue
        if not draft.is_only_use(scale.outputs[0]):
            return Refusal("another node reads what the product is given")
        flipped = node.op_type == "Gemm" and draft.attribute(node, "transB", 0)
        made = _scaled(weight, factor if flipped else factor.reshape(-1, 1), draft)
        if not isinstance(made, ir.Value):
            return made
        return draft.copy(node, [scale.inputs[side], made, *node.inputs[2:]])[0]
    return None


@rule("BatchNormalization", bound=ROUNDED)
def gemm_then_normalization(node: ir.Node, draft: Draft) -> Outcome:
    """Gemm followed by BatchNormalization of a matrix is one Gemm."""
    gemm = draft.made_by(node.inputs[0], "Gemm")
    if gemm is None or draft.rank(node.inputs[0]) != 2:
        return None
    affine = affine_of_normalization(node, draft)
    if affine is None or isinstance(affine, Refusal):
        return affine
    factor, offset = affine
    if draft.attribute(gemm, "beta", 1.0) != 1:
        return Refusal("the bias has a factor (beta)")
    made = _times(gemm, factor, draft)
    if not isinstance(made, ir.Value):
        return made
    merged = made.producer()
    dtype = draft.dtype(made)
    if merged is None or dtype is None:
        return None
    bias = draft.constant(merged.inputs[2]) if len(merged.inputs) > 2 else np.zeros(1)
    if bias is None or not np.isfinite(offset).all():
        return Refusal("an offset is not finite")
    moved = (bias.astype(np.float64) + offset).astype(dtype.numpy())
    if not np.isfinite(moved.astype(np.float64)).all():
        return Refusal("a bias would overflow")
    inputs = [*merged.inputs[:2], draft.tensor(moved, dtype)]
    return [draft.copy(gemm, inputs)[0], *([None] * (len(node.outputs) - 1))]


RULES = (product_then_scale, scale_then_product, gemm_then_normalization)
