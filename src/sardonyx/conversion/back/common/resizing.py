"""Resize: every axis by itself, as a weighted sum of few of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, number_text
from sardonyx.conversion.back.support.resizing import (
    cubic_weights,
    linear_weights,
    resize_nearest,
    resize_weighted,
    sampled_at,
)
from sardonyx.sizes import Ratio

__all__ = ["ENTRIES"]

_COORDINATES = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
)
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _resize(step: Step) -> str:
    shape, wanted = step.shape(0), step.outputs[0].shape
    mode = step.word("mode", "nearest", "linear", "cubic")
    how = step.word("coordinate_transformation_mode", *_COORDINATES)
    if step.word("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller") != "stretch":
        step.refuse("it keeps an aspect ratio")
    if wanted is None:
        step.refuse("the size of its output is not known before a run")
    axes = step.call.axes(step.call.ints_attr("axes") or range(len(shape)), len(shape))
    given = step.has(2) and step.call.shape(2) != (0,)
    scales = step.call.vector(2) if given else None
    if given and scales is None:
        step.refuse("its scales are not known before a run")
    text = step[0]
    for place, axis in enumerate(axes):
        scale = None if not scales else scales[place]
        if wanted[axis] == shape[axis] and scale in (None, 1.0):
            continue
        if not step.writer.can_size(wanted[axis]):
            step.refuse("the size of its output is data")
        size, output = step.size(shape[axis]), step.size(wanted[axis])
        factor = f"{output} / ({size})" if scale is None else _factor(step, scale)
        width = output if scale is None else f"({size}) * {factor}"
        where = f"{step.use(sampled_at)}({step[0]}, {size}, {output}, {factor}, {width}, {how!r})"
        text = _axis(step, text, axis, size, where, mode, factor)
    return text


def _factor(step: Step, scale: Any) -> str:
    if isinstance(scale, Ratio):
        return f"({step.size(scale.numerator)}) / {scale.denominator}"
    return number_text(np.float32(scale))


def _axis(step: Step, text: str, axis: int, size: str, where: str, mode: str, factor: str) -> str:
    if mode == "nearest":
        nearest = step.word("nearest_mode", *_NEAREST)
        return f"{step.use(resize_nearest)}({text}, {axis}, {size}, {where}, {nearest!r})"
    shrink = f"min({factor}, 1.0)" if step.flag("antialias") else "1.0"
    outside = step.flag("exclude_outside")
    weights = f"lambda d: {step.use(linear_weights)}(d)"
    if mode == "cubic":
        weights = f"lambda d: {step.use(cubic_weights)}(d, {step.number('cubic_coeff_a', -0.75)})"
    reach = 1 if mode == "linear" else 2
    return (
        f"{step.use(resize_weighted)}({text}, {axis}, {size}, {where}, {weights}, {reach}, "
        f"{shrink}, {outside})"
    )


ENTRIES: Mapping[str, Entry] = {"Resize": _resize}
