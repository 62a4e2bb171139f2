"""Matrix products with what stands beside them: bias, factors, neighbours that read the same input."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.chains import never_infinite
from sardonyx.sizes import at_least

__all__ = ["RULES"]


@rule("Add", bound=ROUNDED)
def product_and_bias(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul of two matrices and Add of a bias are a Gemm."""
    for side in (0, 1):
        product = draft.made_by(node.inputs[side], "MatMul")
        bias = node.inputs[1 - side]
        if product is None or bias is None:
            continue
        if draft.rank(product.inputs[0]) != 2 or draft.rank(product.inputs[1]) != 2:
            continue
        if draft.dtype(product.outputs[0]) not in (
            ir.DataType.FLOAT,
            ir.DataType.DOUBLE,
            ir.DataType.FLOAT16,
        ):
            continue
        if not draft.is_only_use(product.outputs[0]):
            return Refusal("another node reads the product")
        rank = draft.rank(bias)
        if (
            rank is None
            or rank > 2
            or draft.shape(node.outputs[0]) != draft.shape(product.outputs[0])
        ):
            return Refusal("the bias is not broadcast to the product's shape")
        if rank == 0:
            return Refusal("the bias is a scalar without dimensions")
        return draft.call("Gemm", *product.inputs, bias)
    return None


@rule("Gemm", bound=ROUNDED)
def gemm_factors(node: ir.Node, draft: Draft) -> Outcome:
    """Gemm with alpha or beta other than 1 on a constant has them in the constant."""
    alpha, beta = (float(draft.attribute(node, name, 1.0)) for name in ("alpha", "beta"))
    if alpha == 1 and beta == 1:
        return None
    weight = draft.constant(node.inputs[1])
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    bias = draft.constant(node.inputs[2]) if has_bias else None
    if (alpha != 1 and weight is None) or (beta not in (0, 1) and has_bias and bias is None):
        return None
    inputs = list(node.inputs)
    if beta == 0 and has_bias:  # 0 times the bias is nothing, whatever the bias is
        if draft.opset < 11:
            return Refusal("before opset 11, Gemm needs a bias")
        inputs, bias = inputs[:2], None
    for index, factor, array in ((1, alpha, weight), (2, beta, bias)):
        if factor == 1 or array is None:
            continue
        if array.dtype.kind not in "f" or not np.isfinite(factor):
            return None
        scaled = (array.astype(np.float64) * factor).astype(array.dtype)
        if not np.isfinite(scaled).all() and np.isfinite(array).all():
            return Refusal("a weight would overflow")
        inputs[index] = draft.tensor(scaled, draft.dtype(node.inputs[index]))
    flags = {name: int(draft.attribute(node, name, 0)) for name in ("transA", "transB")}
    return draft.call("Gemm", *inputs, **flags)


@rule("MatMul", bound=ROUNDED)
def product_chain(node: ir.Node, draft: Draft) -> Outcome:
    """(a b) c is a (b c), and the other way round, where that is less work whatever the sizes are."""
    for side in (0, 1):
        inner = draft.made_by(node.inputs[side], "MatMul")
        if inner is None:
            continue
        a, b, c = (*inner.inputs, node.inputs[1]) if side == 0 else (node.inputs[0], *inner.inputs)
        values = [value for value in (a, b, c) if value is not None]
        shapes = [shape for value in values if (shape := draft.shape(value)) is not None]
        if [len(shape) for shape in shapes] != [2, 2, 2]:
            continue  # a batch of products may be shared by some of them only
        (rows, first), (_, second), (_, columns) = shapes
        left = rows * second * (first + columns)
        right = first * columns * (rows + second)
        now, then = (left, right) if side == 0 else (right, left)
        if now == then or not at_least(now, then):
            continue
        if not draft.is_only_use(inner.outputs[0]):
            return Refusal("another node reads the product in between")
        if not all(never_infinite(value, draft) for value in values):
            return Refusal("infinity minus infinity would appear at another place")
        if side == 0:
            return draft.call("MatMul", a, draft.call("MatMul", b, c))
        return draft.call("MatMul", draft.call("MatMul", a, b), c)
    return None


RULES = (product_and_bias, gemm_factors, product_chain)
