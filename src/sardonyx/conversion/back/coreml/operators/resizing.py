"""Images in other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.conversion.back.coreml.network import Array
from sardonyx.conversion.back.coreml.operators.products import inner
from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.conversion.back.support.resizing import cubic_weights, linear_weights
from sardonyx.sizes import Size

__all__ = ["ENTRIES"]

_IMAGE = 4
_COORDINATES = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
)
_ROUNDING: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda where: np.ceil(where - 0.5),
    "round_prefer_ceil": lambda where: np.floor(where + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
_BILINEAR = 1  # UpsampleLayerParams.InterpolationMode
_CORNERS, _CENTRES = 1, 2  # UpsampleLayerParams.LinearUpsampleMode
_LINEAR = {"align_corners": _CORNERS, "half_pixel": _CENTRES, "pytorch_half_pixel": _CENTRES}


def resize(step: Step) -> str:
    """Up by whole factors with CoreML's own layer; all else as products with constant matrices."""
    scales = _scales(step)
    factors = _factors(step, scales)
    how = None if factors is None else _upsampling(step, factors)
    if how is None:
        return _by_matrices(step, scales)
    return step.layer("upsample", step[0], scalingFactor=factors, **how)


def _scales(step: Step) -> Mapping[int, float] | None:
    """The scale of every axis, where the node has scales; sizes are asked for elsewhere."""
    if step.count < 3 or not step.has(2) or step.shape(2) == (0,):
        return None
    rank, given = step.rank(0), step.need_numbers(2, "scales").reshape(-1)
    axes = step.call.axes(step.call.ints_attr("axes") or range(rank), rank)
    return dict.fromkeys(range(rank), 1.0) | dict(zip(axes, given.tolist(), strict=True))


def _factors(step: Step, scales: Mapping[int, float] | None) -> list[int] | None:
    """What height and width of an image are multiplied by, where that is whole."""
    before, after = step.shape(0), step.output_shape()
    if len(before) != _IMAGE or before[:2] != after[:2]:
        return None
    found = []
    for axis in (2, 3):
        old, new = before[axis], after[axis]
        if scales is not None:
            factor = scales[axis]
        elif isinstance(old, int) and isinstance(new, int):
            factor = new / old
        else:
            return None
        if factor < 1 or factor != int(factor):
            return None
        found.append(int(factor))
    return found


def _upsampling(step: Step, factors: list[int]) -> dict[str, int] | None:
    """The fields of a layer that does the same."""
    mode = step.call.str_attr("mode", "nearest")
    how = step.call.str_attr("coordinate_transformation_mode", "half_pixel")
    nearest = step.call.str_attr("nearest_mode", "round_prefer_floor")
    if mode == "nearest":
        by_floor = how == "asymmetric" and nearest == "floor"
        by_centre = how in ("half_pixel", "half_pixel_symmetric") and nearest in (
            "round_prefer_floor",
            "round_prefer_ceil",
        )
        return {} if by_floor or by_centre else None
    if mode != "linear" or how not in _LINEAR or (how == "align_corners" and min(factors) == 1):
        return None
    step.walk.network.need(5)
    return {"mode": _BILINEAR, "linearUpsampleMode": _LINEAR[how]}


def _by_matrices(step: Step, scales: Mapping[int, float] | None) -> str:
    """Every axis by itself: what a unit vector becomes is a row of the matrix."""
    if step.word("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller") != "stretch":
        step.refuse("it keeps an aspect ratio")
    before, after = step.shape(0), step.output_shape()
    made, rank = step[0], len(before)
    for axis in range(rank):
        scale = None if scales is None else scales[axis]
        if before[axis] == after[axis] and scale in (None, 1.0):
            continue
        sizes: list[Size] = [before[axis], after[axis]]
        old, new = step.fixed(sizes, "a size that it changes")
        matrix = _matrix(step, old, new, scale)
        order = [place for place in range(rank) if place != axis] + [axis]
        turned = inner(step, step.transpose(made, order), rank, matrix)
        made = step.transpose(turned, [order.index(place) for place in range(rank)])
    return made


def _matrix(step: Step, old: int, new: int, scale: float | None) -> Array:
    """[old, new]: how much of every old place is in every new one."""
    mode = step.word("mode", "nearest", "linear", "cubic")
    factor = new / old if scale is None else scale
    where = _sampled_at(step, old, new, factor, new if scale is None else old * scale)
    if mode == "nearest":
        rounding = _ROUNDING[step.word("nearest_mode", *_ROUNDING)]
        places = np.clip(rounding(where), 0, old - 1).astype(int)
        return np.asarray(np.eye(old, dtype=np.float32)[:, places])
    shrink = min(factor, 1.0) if step.flag("antialias") else 1.0
    reach = int(np.ceil((1 if mode == "linear" else 2) / shrink))
    taps = np.arange(1 - reach, reach + 1)[:, None]
    base = np.floor(where)[None, :]
    distance = (base + taps - where) * shrink
    weights = (
        linear_weights(distance)
        if mode == "linear"
        else cubic_weights(distance, step.number("cubic_coeff_a", -0.75))
    )
    places = (base + taps).astype(int)
    if step.flag("exclude_outside"):
        weights = weights * ((places >= 0) & (places < old))
    if step.flag("exclude_outside") or shrink != 1.0:
        weights = weights / weights.sum(axis=0)
    matrix = np.zeros((old, new))
    columns = np.broadcast_to(np.arange(new), places.shape)
    np.add.at(matrix, (np.clip(places, 0, old - 1), columns), weights)
    return matrix.astype(np.float32)


def _sampled_at(step: Step, old: int, new: int, factor: float, width: float) -> Array:
    """Where each new place samples the old ones; in float32, as runtimes do: a nearest place may hang on it."""
    how = step.word("coordinate_transformation_mode", *_COORDINATES)
    place = np.arange(new, dtype=np.float32)
    if how == "asymmetric":
        return place / np.float32(factor)
    if how == "align_corners":
        return place * (old - 1) / (width - 1) if width != 1 else place * 0
    if how == "pytorch_half_pixel" and new <= 1:
        return place * 0
    shift = old * 0.5 * (1 - new / width) if how == "half_pixel_symmetric" else 0.0
    return np.asarray(shift + (place + 0.5) / np.float32(factor) - 0.5)


ENTRIES: Mapping[str, Entry] = {"Resize": resize}
