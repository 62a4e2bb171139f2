"""Resize and Upsample: every mode and version, one axis after the other.

Interpolation is separable, so each axis is a weighted sum of a few gathered rows:

    output[x] = Σ_k weight[x, k] × input[index[x, k]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axes
from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_REASON = "scales of 0, NaN and below are errors; vectorised, and bytes are claimed first"


@dataclass(frozen=True)
class Axis:
    """How one axis is resized: `width` is the output's length before it is rounded down."""

    axis: int
    size: int
    output: int
    scale: float
    width: float
    start: float = 0.0
    end: float = 1.0


@dataclass(frozen=True)
class Style:
    """The attributes that decide where and how to sample."""

    mode: str
    coordinates: str
    nearest: str
    antialias: bool
    cubic_a: float
    exclude_outside: bool
    extrapolation: float
    ceil_when_smaller: bool = False


# Of opset 10 the standard has one case of shrinking: [1, 2, 3, 4] by 0.6 is [1, 3].
@corrects("Upsample", reason=_REASON)
@corrects("Resize", until=10, reason=_REASON + "; opset 10 rounds down, and up where it shrinks")
def upsample(call: Call, x: Array, scales: Array | None = None) -> Array:
    if call.has("height_scale") and call.since < 7:
        factors = [1.0, 1.0, call.attr("height_scale"), call.attr("width_scale")]
    else:
        factors = [float(f) for f in (call.attr("scales", ()) if scales is None else scales)]
    style = Style(
        mode={"bilinear": "linear"}.get(call.attr("mode", "nearest"), call.attr("mode", "nearest")),
        coordinates="asymmetric",
        nearest="floor",
        antialias=False,
        cubic_a=-0.75,
        exclude_outside=False,
        extrapolation=0.0,
        ceil_when_smaller=True,
    )
    plan = _by_scales(x.shape, range(x.ndim), factors, [], style)
    return _resized(call, x, plan, style)


@corrects("Resize", since=11, reason=_REASON)
def resize(
    call: Call,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> Array:
    axes = normalize_axes(call.attr("axes", range(x.ndim)), x.ndim)
    style = Style(
        mode=call.attr("mode", "nearest"),
        coordinates=call.attr("coordinate_transformation_mode", "half_pixel"),
        nearest=call.attr("nearest_mode", "round_prefer_floor"),
        antialias=bool(call.attr("antialias", 0)),
        cubic_a=call.attr("cubic_coeff_a", -0.75),
        exclude_outside=bool(call.attr("exclude_outside", 0)),
        extrapolation=call.attr("extrapolation_value", 0.0),
    )
    regions = _regions(roi, axes) if style.coordinates == "tf_crop_and_resize" else []
    given_scales = scales is not None and scales.size > 0
    given_sizes = sizes is not None and sizes.size > 0
    if given_scales == given_sizes:
        raise RunError("exactly one of scales and sizes must be given")
    if given_scales:
        factors = [float(scale) for scale in np.asarray(scales).reshape(-1)]
        plan = _by_scales(x.shape, axes, factors, regions, style)
    else:
        wanted = [int(size) for size in np.asarray(sizes).reshape(-1)]
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        plan = _by_sizes(x.shape, axes, wanted, regions, policy)
    return _resized(call, x, plan, style)


def _regions(roi: Array | None, axes: Sequence[int]) -> list[tuple[float, float]]:
    if roi is None or roi.size != 2 * len(axes):
        raise RunError(f"tf_crop_and_resize needs a roi of {2 * len(axes)} numbers")
    ends = [float(value) for value in roi.reshape(-1)]
    if not all(math.isfinite(value) for value in ends):
        raise RunError(f"roi {ends} is not finite", value=ends)
    return list(zip(ends[: len(axes)], ends[len(axes) :], strict=True))


def _by_scales(
    shape: Sequence[int],
    axes: Sequence[int],
    factors: Sequence[float],
    regions: Sequence[tuple[float, float]],
    style: Style,
) -> list[Axis]:
    if len(factors) != len(axes):
        raise RunError(
            f"{len(factors)} scales for {len(axes)} axes", value=list(factors), limit=len(axes)
        )
    if not all(math.isfinite(factor) and factor > 0 for factor in factors):
        raise RunError(f"scales {list(factors)} must be above 0", value=list(factors))
    plan = []
    for position, (axis, factor) in enumerate(zip(axes, factors, strict=True)):
        start, end = regions[position] if regions else (0.0, 1.0)
        width = shape[axis] * factor
        # In float32, as the scales are: 10 * 0.7 is 7, as onnxruntime and OpenVINO have it.
        product = np.float32(shape[axis]) * np.float32(end - start) * np.float32(factor)
        output = max(math.floor(float(product)), 0)
        plan.append(Axis(axis, shape[axis], output, factor, width * (end - start), start, end))
    return plan


def _by_sizes(
    shape: Sequence[int],
    axes: Sequence[int],
    wanted: Sequence[int],
    regions: Sequence[tuple[float, float]],
    policy: str,
) -> list[Axis]:
    if len(wanted) != len(axes) or any(size < 0 for size in wanted):
        raise RunError(
            f"sizes {list(wanted)} do not fit {len(axes)} axes", value=list(wanted), limit=len(axes)
        )
    if any(size == 0 < want for size, want in zip([shape[a] for a in axes], wanted, strict=True)):
        raise RunError(f"sizes {list(wanted)} of an empty input {list(shape)}", value=list(wanted))
    ratios = [
        want / shape[axis] if shape[axis] else 1.0 for axis, want in zip(axes, wanted, strict=True)
    ]
    if policy != "stretch":
        if policy not in ("not_larger", "not_smaller"):
            raise RunError(f"keep_aspect_ratio_policy {policy!r} is unknown", value=policy)
        common = min(ratios) if policy == "not_larger" else max(ratios)
        wanted = [math.floor(common * shape[axis] + 0.5) for axis in axes]
        ratios = [common] * len(axes)
    plan = []
    for position, (axis, want) in enumerate(zip(axes, wanted, strict=True)):
        start, end = regions[position] if regions else (0.0, 1.0)
        plan.append(Axis(axis, shape[axis], want, ratios[position], float(want), start, end))
    return plan


def _resized(call: Call, x: Array, plan: Sequence[Axis], style: Style) -> Array:
    shape = list(x.shape)
    for part in plan:
        shape[part.axis] = part.output
    widest = math.prod(max(a, b) for a, b in zip(shape, x.shape, strict=True))
    exact = style.mode == "nearest"
    call.claim(widest * (x.dtype.itemsize if exact else 8))
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    result = x if exact else x.astype(wide)
    outside = []
    for part in plan:
        call.check()
        where = _coordinates(part, style)
        if style.coordinates == "tf_crop_and_resize":
            outside.append((part.axis, (where < 0) | (where > part.size - 1)))
        elif part.scale == 1.0 and part.output == part.size:
            continue
        if exact:
            up = style.ceil_when_smaller and part.scale < 1
            index = _nearest(where, "ceil" if up else style.nearest)
            result = np.take(result, np.clip(index, 0, max(part.size - 1, 0)), part.axis)
        else:
            result = _weighted(result, part, where, style)
    for axis, flags in outside:
        if flags.any():
            line = flags.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
            result = np.where(line, np.asarray(style.extrapolation, result.dtype), result)
    return result if exact else cast_array(result, x.dtype)


def _coordinates(part: Axis, style: Style) -> Array:
    """Where in the input each place of the output samples.

    In float32, as the scales are: 3 / 0.6 is 5 there, while a float64 quotient of the same
    scale falls just below it and would round down to 4.
    """
    place: Array = np.arange(part.output, dtype=np.float32)
    scale, size = np.float32(part.scale), np.float32(part.size)
    width, half = np.float32(part.width), np.float32(0.5)
    mode = style.coordinates
    if mode == "half_pixel":
        return (place + half) / scale - half
    if mode == "half_pixel_symmetric":
        adjustment = np.float32(part.output) / width if part.width else np.float32(1)
        return size * half * (1 - adjustment) + (place + half) / scale - half
    if mode == "pytorch_half_pixel":
        return (place + half) / scale - half if part.output > 1 else place * 0
    if mode == "tf_half_pixel_for_nn":
        return (place + half) / scale
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return place * (size - 1) / (width - 1) if part.width != 1 else place * 0
    if mode == "tf_crop_and_resize":
        start, end = np.float32(part.start), np.float32(part.end)
        if part.width == 1 or part.output <= 1:
            return place * 0 + half * (start + end) * (size - 1)
        return start * (size - 1) + place * (end - start) * (size - 1) / (width - 1)
    raise RunError(f"coordinate_transformation_mode {mode!r} is unknown", value=mode)


def _nearest(where: Array, mode: str) -> Array:
    rounding: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda w: np.ceil(w - 0.5),
        "round_prefer_ceil": lambda w: np.floor(w + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in rounding:
        raise RunError(f"nearest_mode {mode!r} is unknown", value=mode, limit=list(rounding))
    return rounding[mode](where).astype(np.int64)


def _weighted(x: Array, part: Axis, where: Array, style: Style) -> Array:
    if part.output == 0:
        return np.take(x, [], part.axis)
    # The neighbour on the left counts as near even where the place is exact.
    base = np.ceil(where) - 1
    ratio = (where - base).astype(np.float64)
    reach = {"linear": 1, "cubic": 2}.get(style.mode)
    if reach is None:
        raise RunError(f"mode {style.mode!r} is unknown", value=style.mode)
    shrink = min(part.scale, 1.0) if style.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    taps = np.arange(first, 2 - first)
    distance = (taps[None, :] - ratio[:, None]) * shrink
    weight = _linear(distance) if reach == 1 else _cubic(distance, style.cubic_a)
    index = base[:, None].astype(np.int64) + taps[None, :]
    if style.exclude_outside:
        weight = np.where((index < 0) | (index >= part.size), 0, weight)
    if style.exclude_outside or style.antialias:
        weight = weight / weight.sum(1, keepdims=True)
    index = np.clip(index, 0, part.size - 1)
    shape = [-1 if axis == part.axis else 1 for axis in range(x.ndim)]
    total: Array = 0.0
    for tap in range(len(taps)):
        total = total + np.take(x, index[:, tap], part.axis) * weight[:, tap].reshape(shape)
    return total


def _linear(distance: Array) -> Array:
    return np.clip(1 - np.abs(distance), 0, 1)


def _cubic(distance: Array, a: float) -> Array:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))
