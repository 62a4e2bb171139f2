"""Pools over regions of interest: RoiAlign and MaxRoiPool."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.pooling import lowest
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import Lanes, check_same
from sardonyx.sizes import Size

__all__ = ["MAX_ROI_POOL", "ROI_ALIGN"]

MAX_SAMPLES = 65536  # of one bin along one axis: a region may be absurdly large
FAR = 2.0**40  # beyond any image


@dataclass(frozen=True)
class Bin:
    """A part of a region along one axis: where it begins, how long it is, how many samples it has."""

    begin: Expr
    length: Expr
    samples: Size

    def place(self, site: Site, sample: Size) -> Expr:
        b, dtype = site.b, self.begin.dtype
        count = cast(b.size(self.samples), dtype)
        return b.let(self.begin + (cast(b.size(sample), dtype) + 0.5) * self.length / count)


def _roi_align(site: Site) -> None:
    """Each bin of a region is the mean, or the largest, of samples between the pixels."""
    b, shape, dtype = site.b, site.shape(0), sum_dtype(site.dtype(0))
    rois, channels, height, width = site.out_shape()
    check_same(b, site.shape(1)[0], site.shape(2)[0], "{value} rois, but {limit} batch_indices")
    check_same(b, site.shape(1)[1], 4, "a roi has {value} corners, where {limit} are needed")
    empty = apply("eq", b.size(shape[2] * shape[3]), 0) & (b.size(rois) > 0)
    b.fail_if(empty, "{value} regions of an image without elements", b.size(rois))
    largest = site.call.str_attr("mode", "avg") == "max"
    lanes = Lanes(b, channels)
    with b.parallel((rois, height, width, lanes.blocks), 32 * lanes.width) as (roi, i, j, block):
        image = _image(site, roi)
        rows, columns = _bin(site, roi, 1, i, height), _bin(site, roi, 0, j, width)
        start, count = lanes.block(block)
        total = b.array(dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, lowest(dtype) if largest else const(0, dtype))
        with b.loop(rows.samples) as s, b.loop(columns.samples) as t:
            down, inside = _neighbours(site, rows.place(site, s), shape[2])
            across, inside_too = _neighbours(site, columns.place(site, t), shape[3])
            valid = b.let(inside & inside_too)
            with lanes.walk(start, count) as (lane, c):
                parts = [
                    cast(site.operand(0, (image, c, y, x)), dtype) * upright * level
                    for y, upright in down
                    for x, level in across
                ]
                # The official case takes the largest of the weighted neighbours, not of their sum.
                joined = reduce(maximum if largest else lambda a, c: a + c, parts)
                value, so_far = where(valid, joined, 0), b.element(total, lane)
                b.put(total, lane, maximum(so_far, value) if largest else so_far + value)
        samples = b.size(rows.samples * columns.samples)
        with lanes.walk(start, count) as (lane, c):
            found = b.element(total, lane)
            if not largest:
                found = found / cast(maximum(samples, 1), dtype)
            site.store((roi, c, i, j), where(samples > 0, found, 0))


def _image(site: Site, roi: Size) -> Size:
    b, images = site.b, site.shape(0)[0]
    found = b.let(cast(site.read(2, (roi,)), "i64"))
    fault = (found < 0) | (found >= b.size(images))
    b.fail_if(fault, "batch index {value} is outside the {limit} images", found, b.size(images))
    return b.index(found, images)


def _bin(site: Site, roi: Size, axis: int, number: Size, bins: Size) -> Bin:
    """In the regions' own precision: 5 × 0.8 / 2 is 2 samples in float32, and 3 in float64."""
    b, call = site.b, site.call
    mode = call.str_attr("coordinate_transformation_mode", "half_pixel")
    half = call.version >= 16 and mode == "half_pixel"
    scale = float(call.attr("spatial_scale", 1.0))
    corners = []
    for corner in (axis, axis + 2):
        given = b.let(site.operand(1, (roi, corner)))
        fault = apply("isnan", given) | apply("isinf", given)
        b.fail_if(fault, "roi {value} is not finite", b.size(roi))
        corners.append(given * scale - (0.5 if half else 0.0))
    begin, end = (b.let(corner) for corner in corners)
    whole = b.let(end - begin if half else maximum(end - begin, 1))
    length = b.let(whole / cast(b.size(bins), whole.dtype))
    samples: Size = call.int_attr("sampling_ratio")
    if samples == 0:
        wanted = b.let(cast(maximum(apply("ceil", length), 0), "i64"))
        reason = "a region needs {value} samples a bin, more than the limit of {limit}"
        b.fail_if(wanted > MAX_SAMPLES, reason, wanted, MAX_SAMPLES)
        samples = b.index(wanted, MAX_SAMPLES + 1)
    first = b.let(begin + cast(b.size(number), whole.dtype) * length)
    return Bin(first, length, samples)


def _neighbours(site: Site, place: Expr, size: Size) -> tuple[list[tuple[Size, Expr]], Expr]:
    """The two elements beside a place with their weights, and whether it is on the image at all."""
    b, whole = site.b, cast(site.b.size(size), place.dtype)
    valid = b.let((place >= -1) & (place <= whole))
    inside = b.let(maximum(minimum(place, whole - 1.0), 0))
    low = b.let(apply("floor", inside))
    ratio = b.let(inside - low)
    first = b.index(cast(low, "i64"), size)
    second = b.index(cast(minimum(low + 1.0, whole - 1.0), "i64"), size)
    return [(first, b.let(1.0 - ratio)), (second, ratio)], valid


def _max_roi_pool(site: Site) -> None:
    """Each bin of a region, in whole pixels, is its largest element; 0 where it has none."""
    b, (images, _, *space) = site.b, site.shape(0)
    rois, channels, *bins = site.out_shape()
    check_same(b, site.shape(1)[1], 5, "a roi has {value} numbers, where {limit} are needed")
    dtype = sum_dtype(site.dtype(0))
    with b.parallel((rois, channels, *bins), 64) as (roi, c, *at):
        given = b.let(apply("trunc", cast(site.operand(1, (roi, 0)), "f64")))
        fault = ~((given >= 0) & (given < cast(b.size(images), "f64")))
        reason = "a roi is of image {value}, of {limit}"
        b.fail_if(fault, reason, cast(given, "i64"), b.size(images))
        image = b.index(cast(given, "i64"), images)
        (top, rows), (left, columns) = (
            _pixels(site, roi, 2 - axis, at[axis], bins[axis], space[axis]) for axis in range(2)
        )
        best = b.local(lowest(dtype))
        with b.loop(rows) as i, b.loop(columns, "vector") as j:
            y, x = b.index(b.size(top + i), space[0]), b.index(b.size(left + j), space[1])
            b.set(best, maximum(best, site.operand(0, (image, c, y, x))))
        site.store((roi, c, *at), where(b.size(rows * columns) > 0, best, 0))


def _pixels(
    site: Site, roi: Size, corner: int, number: Size, bins: Size, size: Size
) -> tuple[Size, Size]:
    """The first pixel of a bin along one axis, and how many it has."""
    b, scale = site.b, float(site.call.attr("spatial_scale", 1.0))

    def rounded(index: int) -> Expr:
        """Half away from zero."""
        value = b.let(cast(site.operand(1, (roi, index)), "f64") * scale)
        fault = apply("isnan", value) | apply("isinf", value)
        b.fail_if(fault, "roi {value} is not finite", b.size(roi))
        away = apply("floor", apply("abs", value) + 0.5) * apply("sign", value)
        return b.let(maximum(minimum(away, FAR), -FAR))

    first, last = rounded(corner), rounded(corner + 2)
    length = b.let(maximum(last - first + 1.0, 1) / cast(b.size(bins), "f64"))
    place, whole = cast(b.size(number), "f64"), cast(b.size(size), "f64")
    begin = maximum(minimum(apply("floor", place * length) + first, whole), 0)
    end = maximum(minimum(apply("ceil", (place + 1.0) * length) + first, whole), 0)
    start = b.index(cast(begin, "i64"), size + 1)
    return start, b.index(maximum(cast(end, "i64") - b.size(start), 0), size + 1)


ROI_ALIGN = Nest(_roi_align)
MAX_ROI_POOL = Nest(_max_roi_pool)
