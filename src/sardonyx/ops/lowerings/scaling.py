"""How far each axis of a Resize is scaled, and where on the input its outputs lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sardonyx.loops.build import Builder, cast, maximum, minimum, where
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size

__all__ = [
    "Axis",
    "Style",
    "coordinate",
    "plan_resize",
    "plan_upsample",
    "turns_out_the_same",
]

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "asymmetric",
    "align_corners",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")


@dataclass(frozen=True)
class Axis:
    """How one axis is resized.

    Attributes:
        scale: f32.
        width: the output's length before it was rounded down, f32.
        known: the scale, where it is known before the run.
        region: the part of the input that the output shows, f32; all of it if None.
    """

    axis: int
    size: Size
    output: Size
    scale: Expr
    width: Expr
    known: float | None
    region: tuple[Expr, Expr] | None = None

    @property
    def least(self) -> float | None:
        """What the scale is known not to be below: rounding down only takes away."""
        if self.known is not None or not isinstance(self.size, int) or not self.size:
            return self.known
        return self.output / self.size if isinstance(self.output, int) else None

    @property
    def unchanged(self) -> bool:
        return self.region is None and self.known == 1.0 and self.size == self.output


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


def plan_upsample(site: Site) -> tuple[list[Axis], Style]:
    """Upsample, and Resize-10: scales for every axis; rounded down, and up where it shrinks."""
    call, shape = site.call, site.shape(0)
    mode = call.str_attr("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    if mode not in MODES:
        site.refuse(f"the mode {mode!r} has no native code")
    style = Style(mode, "asymmetric", "floor", False, -0.75, False, 0.0, ceil_when_smaller=True)
    attribute = call.node.op_type == "Upsample" and call.version < 9
    if not attribute:
        return _by_scales(site, 1, range(len(shape)), None), style
    factors = call.attr("scales", ())
    if call.version < 7:
        space = [call.attr("height_scale", 1.0), call.attr("width_scale", 1.0)]
        factors = [1.0] * (len(shape) - 2) + space
    return [_scaled(site, axis, float(factor)) for axis, factor in enumerate(factors)], style


def plan_resize(site: Site) -> tuple[list[Axis], Style]:
    """Resize from opset 11 on."""
    call, rank = site.call, len(site.shape(0))
    style = Style(
        call.str_attr("mode", "nearest"),
        call.str_attr("coordinate_transformation_mode", "half_pixel"),
        call.str_attr("nearest_mode", "round_prefer_floor"),
        bool(call.int_attr("antialias")),
        float(call.attr("cubic_coeff_a", -0.75)),
        bool(call.int_attr("exclude_outside")),
        float(call.attr("extrapolation_value", 0.0)),
    )
    given = (style.mode, style.coordinates, style.nearest)
    for name, known in zip(given, (MODES, COORDINATES, NEAREST), strict=True):
        if name not in known:
            site.refuse(f"{name!r} has no native code; it is none of {', '.join(known)}")
    listed = call.ints_attr("axes")
    axes = call.axes(range(rank) if listed is None else listed, rank)
    regions = None
    if style.coordinates == "tf_crop_and_resize":
        regions = _regions(site, len(axes))
    scales = call.shape(2)
    if call.has(2) and scales is not None and 0 not in scales:
        return _by_scales(site, 2, axes, regions), style
    return _by_sizes(site, axes, regions), style


def _regions(site: Site, count: int) -> list[tuple[Expr, Expr]]:
    """Where the region of interest begins and ends along each axis, as f64."""
    if not site.call.has(1) or site.shape(1) != (2 * count,):
        site.refuse(f"tf_crop_and_resize needs a roi of {2 * count} numbers")
    ends = [cast(site.operand(1, (number,)), "f64") for number in range(2 * count)]
    for end in ends:
        fault = apply("isnan", end) | apply("isinf", end)
        site.b.fail_if(fault, "the roi is not finite", const(0, "i64"))
    return list(zip(ends[:count], ends[count:], strict=True))


def _by_scales(
    site: Site, index: int, axes: Sequence[int], regions: list[tuple[Expr, Expr]] | None
) -> list[Axis]:
    values = site.call.vector(index)
    planned = []
    for place, axis in enumerate(axes):
        region = None if regions is None else regions[place]
        known = None if values is None else values[place]
        if isinstance(known, (int, float)):
            planned.append(_scaled(site, axis, float(known), region))
            continue
        scale = site.b.let(cast(site.operand(index, (place,)), "f32"))
        fault = ~(scale > 0) | apply("isinf", scale)
        site.b.fail_if(fault, "a scale must be a number above 0", cast(scale, "i64"))
        part = const(1, "f64") if region is None else region[1] - region[0]
        length = cast(site.b.size(site.shape(0)[axis]), "f32") * cast(part, "f32") * scale
        length = maximum(apply("floor", length), 0)
        _check_output(site.b, cast(length, "i64"), site.out_shape()[axis])
        planned.append(_planned(site, axis, scale, None, region))
    return planned


def _scaled(site: Site, axis: int, scale: float, region: tuple[Expr, Expr] | None = None) -> Axis:
    return _planned(site, axis, const(float(np.float32(scale)), "f32"), scale, region)


def _planned(
    site: Site, axis: int, scale: Expr, known: float | None, region: tuple[Expr, Expr] | None
) -> Axis:
    """An axis by its scale; the width is the product, before it is rounded down to the output's size."""
    size, output = site.shape(0)[axis], site.out_shape()[axis]
    width = cast(site.b.size(size), "f64") * cast(scale, "f64")
    if region is not None:
        width = width * (region[1] - region[0])
    return Axis(axis, size, output, scale, site.b.let(cast(width, "f32")), known, _single(region))


def _single(region: tuple[Expr, Expr] | None) -> tuple[Expr, Expr] | None:
    return None if region is None else (cast(region[0], "f32"), cast(region[1], "f32"))


def _by_sizes(
    site: Site, axes: Sequence[int], regions: list[tuple[Expr, Expr]] | None
) -> list[Axis]:
    """The scale is what the sizes make of it, or the one that keeps the aspect."""
    b, policy = site.b, site.call.str_attr("keep_aspect_ratio_policy", "stretch")
    sizes = [(site.shape(0)[axis], site.out_shape()[axis]) for axis in axes]
    common = None if policy == "stretch" else _kept_aspect(site, axes, policy)
    planned = []
    for place, (axis, (size, output)) in enumerate(zip(axes, sizes, strict=True)):
        if common is None and site.call.vector(3) is None:
            _check_output(b, cast(site.operand(3, (place,)), "i64"), output)
        ratio = common
        if ratio is None and isinstance(size, int) and isinstance(output, int):
            ratio = output / size if size else 1.0
        elif ratio is None:
            ratio = 1.0 if size == output else b.let(_ratio(b, b.size(output), size))
        known = ratio if isinstance(ratio, float) else None
        scale = cast(const(ratio, "f64") if isinstance(ratio, float) else ratio, "f32")
        region = None if regions is None else _single(regions[place])
        width = cast(b.size(output), "f32")
        planned.append(Axis(axis, size, output, b.let(scale), width, known, region))
    return planned


def _ratio(b: Builder, want: Expr, size: Size) -> Expr:
    """want / size; 1 for an axis without elements, which nothing is made of."""
    empty = apply("eq", b.size(size), 0)
    return where(empty, 1, cast(want, "f64") / cast(b.size(size), "f64"))


def _kept_aspect(site: Site, axes: Sequence[int], policy: str) -> float | Expr:
    """The one scale of all axes that stays within the sizes, or just does not."""
    b, shape = site.b, site.shape(0)
    wanted, dims = site.call.integers(3), [shape[axis] for axis in axes]
    smaller = policy == "not_larger"
    if wanted is not None and all(isinstance(dim, int) and dim > 0 for dim in dims):
        ratios = [want / dim for want, dim in zip(wanted, dims, strict=True)]  # type: ignore[operator]
        return float(min(ratios) if smaller else max(ratios))
    found = [
        b.let(_ratio(b, cast(site.operand(3, (place,)), "i64"), dim))
        for place, dim in enumerate(dims)
    ]
    common = b.let(reduce(minimum if smaller else maximum, found))
    for axis, dim in zip(axes, dims, strict=True):
        length = apply("floor", common * cast(b.size(dim), "f64") + 0.5)
        _check_output(b, cast(length, "i64"), site.out_shape()[axis])
    return common


def _check_output(b: Builder, found: Expr, output: Size) -> None:
    """What was declared of the result is no promise: the scales or sizes of the run decide."""
    found = b.let(found)
    reason = "an axis of the result has {value} elements, but {limit} were declared"
    b.fail_if(apply("ne", found, b.size(output)), reason, found, b.size(output))


def coordinate(b: Builder, axis: Axis, style: Style, place: Expr) -> Expr:
    """Where on the input an output's place lies, in f32: 3 / 0.6 is 5 there."""
    found = _coordinate(b, axis, style.coordinates, place)
    same = turns_out_the_same(b, axis)
    return found if same is None else where(same, place, found)


def turns_out_the_same(b: Builder, axis: Axis) -> Expr | None:
    """Whether an axis keeps its length after all, and is left alone; None where that was known before."""
    if axis.known is not None or axis.region is not None:
        return None
    return apply("eq", axis.scale, 1) & apply("eq", b.size(axis.size), b.size(axis.output))


def _coordinate(b: Builder, axis: Axis, mode: str, place: Expr) -> Expr:
    size, output = cast(b.size(axis.size), "f32"), cast(b.size(axis.output), "f32")
    width, scale = axis.width, axis.scale
    centre = (place + 0.5) / scale - 0.5
    if mode == "half_pixel":
        return centre
    if mode == "half_pixel_symmetric":
        adjustment = where(apply("eq", width, 0), 1, output / width)
        return size * 0.5 * (1.0 - adjustment) + (place + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return where(output > 1, centre, 0)
    if mode == "tf_half_pixel_for_nn":
        return (place + 0.5) / scale
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return where(apply("eq", width, 1), 0, place * (size - 1.0) / (width - 1.0))
    assert axis.region is not None, "only a crop has a region"
    start, end = axis.region
    alone = apply("eq", width, 1) | (output <= 1)
    spread = start * (size - 1.0) + place * (end - start) * (size - 1.0) / (width - 1.0)
    return where(alone, 0.5 * (start + end) * (size - 1.0), spread)
