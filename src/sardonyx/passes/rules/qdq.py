"""QuantizeLinear and DequantizeLinear: pairs that undo each other, what is moved while it is small, and saturation.

A quantized weight stays as it is: a DequantizeLinear of an initializer is never folded, the model would grow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["RULES"]

Array = npt.NDArray[Any]
_RANGES = {
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT16: (0, 65535),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT4: (0, 15),
    ir.DataType.INT4: (-8, 7),
}


class _Grid(NamedTuple):
    """Which number each step of the quantized type stands for: (q - zero) * scale."""

    scale: Array
    zero: Array
    dtype: ir.DataType
    axis: int
    block: int

    @property
    def is_single(self) -> bool:
        return self.scale.size == 1

    def equals(self, other: _Grid) -> bool:
        if self.dtype != other.dtype or self.scale.dtype != other.scale.dtype:
            return False
        same = np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)
        placed = (self.axis, self.block) == (other.axis, other.block)
        return same and (placed or (self.is_single and other.is_single))

    def refusal(self) -> str | None:
        """Why a step that becomes a number may not come back as the same step."""
        finfo: Any = ml_dtypes.finfo  # knows bfloat16, and numpy's own types too
        limits = finfo(self.scale.dtype)
        low, high = _RANGES[self.dtype]
        scale = self.scale.astype(np.float64)
        if not (np.isfinite(scale) & (scale >= float(limits.tiny))).all():
            return "a scale is not a positive normal number"
        if (scale * (high - low) > float(limits.max)).any():
            return "a step overflows the type of the scale"
        # Product and quotient are each off by half a unit in the last place, of a number of at most so many steps.
        if (high - low) * float(limits.eps) >= 0.4:
            return f"{self.scale.dtype} does not tell the steps of {self.dtype.name.lower()} apart"
        return None


def _grid(node: ir.Node, draft: Draft) -> _Grid | None:
    """The grid of a QuantizeLinear or DequantizeLinear, where it is constant."""
    quantized = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0]
    dtype, scale = draft.dtype(quantized), draft.constant(node.inputs[1])
    if dtype not in _RANGES or dtype is None or scale is None or scale.size == 0:
        return None
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero = np.zeros(scale.shape) if given is None else draft.constant(given)
    if zero is None:
        return None
    rank = draft.rank(node.inputs[0]) or 1
    axis = int(draft.attribute(node, "axis", 1)) % rank
    if draft.attribute(node, "precision", 0):
        return None
    block = int(draft.attribute(node, "block_size", 0))
    return _Grid(scale, zero.astype(np.int64), dtype, axis, block)


@rule("QuantizeLinear")
def quantized_again(node: ir.Node, draft: Draft) -> Outcome:
    """QuantizeLinear(DequantizeLinear(x)) with the same parameters is x."""
    inner = draft.made_by(node.inputs[0], "DequantizeLinear")
    if inner is None:
        return None
    return inner.inputs[0] if (reason := _undone(inner, node, draft)) is None else reason


def _undone(inner: ir.Node, outer: ir.Node, draft: Draft) -> Refusal | None:
    """None where what one dequantizes the other quantizes to the same steps."""
    first, second = _grid(inner, draft), _grid(outer, draft)
    if first is None or second is None:
        return Refusal("the parameters are not constants")
    if not first.equals(second):
        return Refusal("the parameters differ")
    reason = first.refusal()
    return None if reason is None else Refusal(reason)


_MOVING = (
    *("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather", "Expand"),
    *("Tile", "DepthToSpace", "SpaceToDepth", "Concat", "MaxPool"),
)


@rule("QuantizeLinear")
def moved_while_quantized(node: ir.Node, draft: Draft) -> Outcome:
    """DequantizeLinear, an operator that only moves or picks elements, and QuantizeLinear are that operator."""
    middle = draft.made_by(node.inputs[0], *_MOVING)
    if middle is None:
        return None
    count = len(middle.inputs) if middle.op_type == "Concat" else 1
    makers = [draft.made_by(value, "DequantizeLinear") for value in middle.inputs[:count]]
    inner = [maker for maker in makers if maker is not None]
    if len(inner) < count:
        return None
    if not draft.is_only_use(middle.outputs[0]):
        return Refusal("another node reads the value between the two")
    for maker in inner:
        reason = _undone(maker, node, draft)
        if reason is not None:
            return reason
    grid = _grid(node, draft)
    if grid is None or not grid.is_single:
        return Refusal("each channel has its own scale")
    reason_here = _not_on_integers(middle, grid, draft)
    if reason_here is not None:
        return Refusal(reason_here)
    return draft.copy(middle, [*(maker.inputs[0] for maker in inner), *middle.inputs[count:]])[0]


def _not_on_integers(node: ir.Node, grid: _Grid, draft: Draft) -> str | None:
    """Why an operator cannot do with integers what it does with floats."""
    name = grid.dtype.name.lower()
    if node.op_type == "MaxPool":
        if grid.dtype not in (ir.DataType.UINT8, ir.DataType.INT8) or draft.opset < 12:
            return f"MaxPool of opset {draft.opset} does not take {name}"
        if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return "the indices of MaxPool are read"
    elif grid.dtype not in (ir.DataType.UINT8, ir.DataType.INT8):
        return f"not every operator takes {name}"
    return None


_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
_NOT_MORE = (*_VIEWS, "Transpose", "Slice", "DepthToSpace", "SpaceToDepth")


@rule(*_NOT_MORE)
def dequantized_later(node: ir.Node, draft: Draft) -> Outcome:
    """An operator that only moves elements, or drops some, moves them before they are dequantized."""
    inner = draft.made_by(node.inputs[0], "DequantizeLinear")
    if inner is None:
        return None
    reason = _not_across(inner, node, draft)
    if reason is not None:
        return Refusal(reason)
    moved = draft.copy(node, [inner.inputs[0], *node.inputs[1:]])[0]
    return draft.copy(inner, [moved, *inner.inputs[1:]])[0]


@rule("QuantizeLinear")
def quantized_earlier(node: ir.Node, draft: Draft) -> Outcome:
    """A view of what is quantized after it is a view of the quantized elements."""
    inner = draft.made_by(node.inputs[0], *_VIEWS)
    if inner is None:
        return None
    reason = _not_across(node, inner, draft)
    if reason is not None:
        return Refusal(reason)
    steps = draft.copy(node, [inner.inputs[0], *node.inputs[1:]])[0]
    return draft.copy(inner, [steps, *inner.inputs[1:]])[0]


def _not_across(linear: ir.Node, mover: ir.Node, draft: Draft) -> str | None:
    """Why a QuantizeLinear or DequantizeLinear cannot be on the other side of an operator that moves elements."""
    first = linear if linear.op_type == "DequantizeLinear" else mover
    if not draft.is_only_use(first.outputs[0]):
        return "another node reads the value between the two"
    if any(value is not None and draft.rank(value) != 0 for value in linear.inputs[1:]):
        return "each channel has its own scale"
    quantized = linear.inputs[0] if linear.op_type == "DequantizeLinear" else linear.outputs[0]
    dtype = draft.dtype(quantized)
    if dtype not in (ir.DataType.UINT8, ir.DataType.INT8):
        return f"not every operator takes {'it' if dtype is None else dtype.name.lower()}"
    return None


@rule("Concat")
def concat_of_dequantized(node: ir.Node, draft: Draft) -> Outcome:
    """Concat of what is dequantized by the same parameters is dequantized once."""
    makers = [draft.made_by(value, "DequantizeLinear") for value in node.inputs]
    inner = [maker for maker in makers if maker is not None]
    if len(inner) < 2 or len(inner) < len(makers):
        return None
    if len({tuple(map(id, maker.inputs[1:])) for maker in inner}) > 1:
        return Refusal("the parameters differ")
    for maker in inner:
        reason = _not_across(maker, node, draft)
        if reason is not None:
            return Refusal(reason)
    steps = draft.copy(node, [maker.inputs[0] for maker in inner])[0]
    return draft.copy(inner[0], [steps, *inner[0].inputs[1:]])[0]


@rule("QuantizeLinear")
def saturated_anyway(node: ir.Node, draft: Draft) -> Outcome:
    """Relu or Clip before a QuantizeLinear that saturates there anyway goes."""
    inner = draft.made_by(node.inputs[0], "Relu", "Clip")
    if inner is None:
        return None
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads it too")
    grid = _grid(node, draft)
    if grid is None or not (grid.scale.astype(np.float64) > 0).all():
        return Refusal("the parameters are not constants, or not positive")
    low, high = _RANGES[grid.dtype]
    scale = grid.scale.astype(np.float64)
    first, last = (low - grid.zero) * scale, (high - grid.zero) * scale
    limits = _limits(inner, draft)
    if limits is None:
        return Refusal("the limits are not constants")
    if not (limits[0] <= first).all() or not (limits[1] >= last).all():
        return Refusal("it cuts off more than the quantized type does")
    return draft.copy(node, [inner.inputs[0], *node.inputs[1:]])[0]


def _limits(node: ir.Node, draft: Draft) -> tuple[float, float] | None:
    if node.op_type == "Relu":
        return 0.0, float("inf")
    if draft.opset < 11:
        low, high = draft.attribute(node, "min", -np.inf), draft.attribute(node, "max", np.inf)
        return float(low), float(high)
    found = []
    for index, default in ((1, -np.inf), (2, np.inf)):
        value = node.inputs[index] if len(node.inputs) > index else None
        number = default if value is None else draft.number(value)
        if number is None:
            return None
        found.append(float(number))
    return found[0], found[1]


RULES = (
    quantized_again,
    moved_while_quantized,
    concat_of_dequantized,
    dequantized_later,
    quantized_earlier,
    saturated_anyway,
)
