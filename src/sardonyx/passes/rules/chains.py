"""Chains of constant operands: x + a + b, x * a * b, (x * a + b) * c + d; and products of constant matrices.

A chain of Add, Sub, Mul, Div and Neg with constants is factor * x + offset, so two nodes say it. Integers wrap
around, and are exact. Floats are put together in float64, and refused where that would lose what the chain had:
where constants cancel, or their product leaves the range of the type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.ops.facts import CONTINUOUS, DISCRETE
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import EXACT, ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES", "never_infinite"]

Array = npt.NDArray[Any]
_LINEAR = ("Add", "Sub", "Mul", "Div", "Neg")
_LONGEST = 8  # links that are looked at
_CANCELLED = 1 / 16  # what must be left of the larger of two constants


class _Affine(NamedTuple):
    """factor * x + offset, in float64 or in the integers' own type."""

    factor: Array
    offset: Array

    @property
    def nodes(self) -> int:
        if self.factor.size == 1 and (self.factor == -np.ones_like(self.factor)).all():
            return 1  # a Neg, or a Sub from the offset
        return int(bool((self.factor != 1).any())) + int(bool((self.offset != 0).any()))


def _link(node: ir.Node, draft: Draft) -> tuple[ir.Value, _Affine] | None:
    """What a node of a chain is: the value that it reads, and what it does to it."""
    dtype = draft.dtype(node.outputs[0])
    if dtype is None or not (dtype in CONTINUOUS or dtype in DISCRETE):
        return None
    wide = np.dtype(np.float64) if dtype in CONTINUOUS else np.dtype(dtype.numpy())
    one, none = np.ones((), dtype=wide), np.zeros((), dtype=wide)
    if node.op_type == "Neg":
        return None if node.inputs[0] is None else (node.inputs[0], _Affine(-one, none))
    for side in (0, 1):
        value, constant = node.inputs[side], draft.constant(node.inputs[1 - side])
        if value is None or constant is None or constant.size == 0 or draft.is_constant(value):
            continue
        number = constant.astype(wide)
        match node.op_type, side:
            case "Add", _:
                return value, _Affine(one, number)
            case "Sub", 0:
                return value, _Affine(one, -number)
            case "Sub", 1:
                return value, _Affine(-one, number)
            case "Mul", _:
                return value, _Affine(number, none)
            case "Div", 0 if dtype in CONTINUOUS and (number != 0).all():
                return value, _Affine(1 / number, none)
    return None


def _then(first: _Affine, second: _Affine, limits: np.finfo[Any] | None) -> _Affine | str:
    """Both in a row; a reason where that would not be the same."""
    factor = first.factor * second.factor
    moved = first.offset * second.factor
    offset = moved + second.offset
    if limits is None:
        return _Affine(factor, offset)
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return "a constant is not finite"
    for product, a, b in (
        (factor, first.factor, second.factor),
        (moved, first.offset, second.factor),
    ):
        if not (np.abs(product) <= limits.max**0.5).all():
            return "a product of the constants overflows, or nearly"
        if ((np.abs(product) < limits.tiny) & (a != 0) & (b != 0)).any():
            return "a product of the constants underflows"
    if not (np.abs(offset) <= limits.max**0.5).all():
        return "a sum of the constants overflows, or nearly"
    larger = np.maximum(np.abs(moved), np.abs(second.offset))
    if (np.abs(offset) < _CANCELLED * larger).any():
        return "the constants nearly cancel: x would be rounded less than before"
    return _Affine(factor, offset)


def _merged(node: ir.Node, draft: Draft) -> Outcome:
    dtype = draft.dtype(node.outputs[0])
    found = _link(node, draft)
    if dtype is None or found is None:
        return None
    limits = _limits(dtype)
    value, whole = found
    sizes = [max(whole.factor.size, whole.offset.size)]
    count, best = 1, None
    reason = None
    while count < _LONGEST:
        inner = draft.made_by(value, *_LINEAR)
        link = None if inner is None else _link(inner, draft)
        if inner is None or link is None:
            break
        if not draft.is_only_use(inner.outputs[0]):
            reason = "another node reads a value in between"
            break
        with np.errstate(all="ignore"):
            joined = _then(link[1], whole, limits)
        if isinstance(joined, str):
            reason = joined
            break
        sizes.append(max(link[1].factor.size, link[1].offset.size))
        if max(joined.factor.size, joined.offset.size) > max(sizes):
            reason = "the constants are broadcast against each other, and would grow"
            break
        value, whole, count = link[0], joined, count + 1
        if whole.nodes < count:
            best = value, whole
    if best is None:
        return None if reason is None or count > 1 else Refusal(reason)
    return _written(node, *best, dtype, draft)


def _limits(dtype: ir.DataType) -> np.finfo[Any] | None:
    if dtype in DISCRETE:
        return None
    finfo: Any = ml_dtypes.finfo  # knows bfloat16, and numpy's own types too
    found: np.finfo[Any] = finfo(dtype.numpy())
    return found


def _written(
    node: ir.Node, value: ir.Value, whole: _Affine, dtype: ir.DataType, draft: Draft
) -> Outcome:
    """The chain as a Mul, an Add, both or none of them."""
    target = dtype.numpy()
    minus = -np.ones((), dtype=whole.factor.dtype)  # of unsigned integers: the largest one
    made: ir.Value = value
    if (whole.factor == minus).all() and whole.factor.size == 1:
        if (whole.offset != 0).any():
            made = draft.call("Sub", draft.tensor(whole.offset.astype(target), dtype), made)
        elif dtype in CONTINUOUS or np.dtype(target).kind == "i":
            made = draft.call("Neg", made)
        else:
            made = draft.call("Mul", made, draft.tensor(whole.factor.astype(target), dtype))
    else:
        if (whole.factor != 1).any():
            made = draft.call("Mul", made, draft.tensor(whole.factor.astype(target), dtype))
        if (whole.offset != 0).any():
            made = draft.call("Add", made, draft.tensor(whole.offset.astype(target), dtype))
    if draft.shape(made) is None or draft.shape(made) != draft.shape(node.outputs[0]):
        return Refusal("a constant that would go broadcasts x")
    return made


@rule(*_LINEAR, bound=EXACT)
def integer_chain(node: ir.Node, draft: Draft) -> Outcome:
    """Constants added to or multiplied with integers one after the other are one Mul and one Add."""
    dtype = draft.dtype(node.outputs[0])
    if dtype not in DISCRETE or dtype == ir.DataType.BOOL or draft.opset < 7:
        return None
    with np.errstate(all="ignore"):
        return _merged(node, draft)


@rule(*_LINEAR, bound=ROUNDED)
def float_chain(node: ir.Node, draft: Draft) -> Outcome:
    """Constants added to or multiplied with floats one after the other are one Mul and one Add."""
    if draft.dtype(node.outputs[0]) not in CONTINUOUS or draft.opset < 7:
        return None
    return _merged(node, draft)


@rule("MatMul", bound=ROUNDED)
def product_of_constants(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul(MatMul(x, A), B) is MatMul(x, A @ B) where that is less work."""
    inner = draft.made_by(node.inputs[0], "MatMul")
    if inner is None:
        return None
    dtype = draft.dtype(node.outputs[0])
    first, second = draft.constant(inner.inputs[1]), draft.constant(node.inputs[1])
    if first is None or second is None or dtype not in CONTINUOUS:
        return None
    if first.ndim != 2 or second.ndim != 2:
        return None
    (rows, middle), columns = first.shape, second.shape[1]
    if rows * columns > rows * middle + middle * columns or not rows * middle * columns:
        return Refusal(
            f"[{rows}, {middle}] and [{middle}, {columns}] are fewer numbers than their product"
        )
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the product in between")
    if not never_infinite(inner.inputs[0], draft):
        return Refusal("x may be infinite: infinity minus infinity would appear at another place")
    if any(len(value.uses()) > 1 for value in (inner.inputs[1], node.inputs[1]) if value):
        return Refusal("one of the matrices is read elsewhere too")
    if rows * middle * columns > 1 << 32:
        return Refusal("multiplying the matrices would take too long")
    wide = first.astype(np.float64) @ second.astype(np.float64)
    product = wide.astype(first.dtype)
    if not np.isfinite(product.astype(np.float64)).all():
        return Refusal("the product of the matrices is not finite")
    return draft.call("MatMul", inner.inputs[0], draft.tensor(product, dtype))


_BOUNDED = ("Sigmoid", "Tanh", "Softmax", "HardSigmoid", "Erf", "Sin", "Cos", "Softsign", "Sign")
_MOVING = ("Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Dropout")


def never_infinite(value: ir.Value | None, draft: Draft) -> bool:
    """Whether no element can be infinite, because of what makes them."""
    while (node := draft.made_by(value, *_MOVING)) is not None:
        value = node.inputs[0]
    if draft.made_by(value, *_BOUNDED) is not None:
        return True
    table = draft.made_by(value, "Gather")
    array = None if table is None else draft.constant(table.inputs[0])
    return array is not None and bool(np.isfinite(array.astype(np.float64)).all())


def _axes(node: ir.Node, draft: Draft) -> list[int] | None:
    rank = draft.rank(node.inputs[0])
    by_input = draft.opset >= (13 if node.op_type == "ReduceSum" else 18)
    if by_input:
        axes = draft.integers(node.inputs[1]) if len(node.inputs) > 1 else None
    else:
        axes = draft.attribute(node, "axes")
    if rank is None or not axes:
        return None
    return sorted(int(axis) % rank for axis in axes)


def _reduction_of_reduction(node: ir.Node, draft: Draft) -> Outcome:
    inner = draft.made_by(node.inputs[0], node.op_type)
    if inner is None:
        return None
    keeps = [int(draft.attribute(one, "keepdims", 1)) for one in (inner, node)]
    first, second = _axes(inner, draft), _axes(node, draft)
    rank = draft.rank(inner.inputs[0])
    if first is None or second is None or rank is None:
        return None
    if keeps[0] != keeps[1]:
        return Refusal("one keeps the axes that it reduces, the other does not")
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the value between the two")
    if not keeps[0]:
        left = [axis for axis in range(rank) if axis not in first]
        second = [left[axis] for axis in second]
    if set(first) & set(second):
        return None
    axes = sorted({*first, *second})
    if draft.opset >= (13 if node.op_type == "ReduceSum" else 18):
        return draft.call(node.op_type, inner.inputs[0], draft.ints(axes), keepdims=keeps[0])
    return draft.call(node.op_type, inner.inputs[0], axes=axes, keepdims=keeps[0])


@rule("ReduceMax", "ReduceMin")
def extreme_of_extremes(node: ir.Node, draft: Draft) -> Outcome:
    """ReduceMax of a ReduceMax, and ReduceMin of a ReduceMin, over other axes are one."""
    return _reduction_of_reduction(node, draft)


@rule("ReduceSum", "ReduceMean", bound=ROUNDED)
def sum_of_sums(node: ir.Node, draft: Draft) -> Outcome:
    """ReduceSum of a ReduceSum, and ReduceMean of a ReduceMean, over other axes are one."""
    if node.op_type == "ReduceMean" and draft.dtype(node.outputs[0]) in DISCRETE:
        return Refusal("means of integers are cut off, one after the other")
    return _reduction_of_reduction(node, draft)


RULES = (integer_chain, float_chain, product_of_constants, extreme_of_extremes, sum_of_sums)
