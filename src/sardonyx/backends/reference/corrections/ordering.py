"""Operators that sort, select and find: TopK, Unique, NonZero, and boxes that overlap."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects("TopK", reason="k below 0 or above the axis is an error; ties go to the lower index")
def top_k(call: Call, x: Array, count: Array | None = None) -> tuple[Array, Array]:
    axis = normalize_axis(call.attr("axis", -1), x.ndim)
    k = int(call.attr("k") if count is None else count.item())
    size = x.shape[axis]
    if not 0 <= k <= size:
        raise RunError(f"k is {k}, outside 0..{size}", value=k, limit=size)
    call.claim(x.size * (x.dtype.itemsize + 8))
    if call.attr("largest", 1):
        # Sorting the reversed axis and reading it backward keeps ties in their order.
        backward = np.argsort(np.flip(x, axis), axis, kind="stable")
        order = size - 1 - np.flip(backward, axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    chosen = np.take(order, range(k), axis).astype(np.int64)
    return np.take_along_axis(x, chosen, axis), chosen


@corrects(
    "Unique", reason="sorted = 0 with an axis, strings, and each optional output in its place"
)
def unique(call: Call, x: Array) -> tuple[Array, ...]:
    axis = None if not call.has("axis") else normalize_axis(call.attr("axis"), x.ndim)
    strings = x.dtype.kind == "O"
    keys = x.astype(str) if strings else x
    values, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.attr("sorted", 1):
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, inverse, counts = first[order], rank[inverse], counts[order]
        values = np.take(values, order, 0 if axis is None else axis)
    if strings:
        values = values.astype(object)
    return (values, *(array.astype(np.int64) for array in (first, inverse, counts)))


@corrects("NonZero", reason="a scalar gives a [0, n] tensor; strings count as nonzero unless empty")
def non_zero(call: Call, x: Array) -> Array:
    if x.ndim == 0:
        return np.empty((0, int(bool(x.item()))), dtype=np.int64)
    if x.dtype.kind == "O":
        x = x != ""
    return np.array(np.nonzero(x), dtype=np.int64).reshape(x.ndim, -1)


@corrects("ReverseSequence", reason="lengths past the axis are an error; equal axes are refused")
def reverse_sequence(call: Call, x: Array, lengths: Array) -> Array:
    batch, time = int(call.attr("batch_axis", 1)), int(call.attr("time_axis", 0))
    if {batch, time} != {0, 1} or x.ndim < 2:
        raise RunError(f"batch_axis {batch} and time_axis {time} must be 0 and 1")
    moved = x if batch == 0 else x.swapaxes(0, 1)
    size = moved.shape[1]
    if lengths.shape != (moved.shape[0],):
        raise RunError(f"sequence_lens {list(lengths.shape)} for a batch of {moved.shape[0]}")
    if ((lengths < 0) | (lengths > size)).any():
        raise RunError(f"sequence_lens {lengths.tolist()} outside 0..{size}", limit=size)
    at = np.arange(size)[None, :]
    ends = lengths.astype(np.int64)[:, None]
    source = np.where(at < ends, ends - 1 - at, at)
    result = moved[np.arange(moved.shape[0])[:, None], source]
    return result if batch == 0 else result.swapaxes(0, 1)


@corrects("Trilu", reason="a diagonal far outside does not overflow")
def trilu(call: Call, x: Array, k: Array | None = None) -> Array:
    if x.ndim < 2:
        raise RunError(f"the input has rank {x.ndim}, below 2", value=x.ndim, limit=2)
    rows, columns = x.shape[-2:]
    offset = 0 if k is None else int(np.clip(int(k.item()), -(rows + 1), columns + 1))
    difference = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    kept = difference >= offset if call.attr("upper", 1) else difference <= offset
    return np.where(kept, x, np.zeros((), dtype=x.dtype))


@corrects("NonMaxSuppression", reason="vectorised, polls the guard, and a NaN box overlaps nothing")
def non_max_suppression(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
) -> Array:
    limit = 0 if most is None or not most.size else max(int(most.reshape(-1)[0]), 0)
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.reshape(-1)[0])
    if not 0 <= overlap <= 1:
        raise RunError(f"iou_threshold is {overlap}, outside 0..1", value=overlap, limit=1)
    corners = _corners(boxes, bool(call.attr("center_point_box", 0)))
    chosen: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            score = scores[batch, label]
            order = np.argsort(-score, kind="stable")
            if score_threshold is not None and score_threshold.size:
                order = order[score[order] > score_threshold.reshape(-1)[0]]
            else:
                order = order[~np.isnan(score[order])]
            kept = _suppress(call, corners[batch], order, limit, overlap)
            chosen.extend((batch, label, box) for box in kept)
    return np.array(chosen, dtype=np.int64).reshape(-1, 3)


def _corners(boxes: Array, centred: bool) -> Array:
    """Boxes as [y0, x0, y1, x1] with the low corner first."""
    if centred:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        half_width, half_height = width / 2, height / 2
        return np.stack([y - half_height, x - half_width, y + half_height, x + half_width], -1)
    low = np.minimum(boxes[..., :2], boxes[..., 2:])
    return np.concatenate([low, np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def _suppress(call: Call, boxes: Array, order: Array, limit: int, overlap: float) -> list[int]:
    kept: list[int] = []
    while order.size and len(kept) < limit:
        call.check()
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[~(_iou(boxes[best], boxes[order]) > overlap)]
    return kept


def _iou(box: Array, others: Array) -> Array:
    """0 where boxes have no area; the comparison that uses it is false for NaN."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    area = np.prod(box[2:] - box[:2])
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - common
    valid = (common > 0) & (area > 0) & (areas > 0) & (union > 0)
    result: Array = np.where(valid, common / np.where(valid, union, 1), 0)
    return result
