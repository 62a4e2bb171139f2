"""Normalisations: a set's mean and variance, then every element by them.

mean = sum(x) / n
variance = sum((x - mean)²) / n        around the mean: a difference of squares would cancel
y = (x - mean) / sqrt(variance + epsilon) * scale + bias
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import (
    Element,
    Nest,
    Position,
    Site,
    computed,
    loop_dtype,
)
from sardonyx.ops.lowerings.folding import BLOCK, Cell, Folding
from sardonyx.sizes import Size, ceil_div, exact_div, max_of, min_of, product

__all__ = [
    "BATCH_NORM",
    "GROUP_NORM",
    "INSTANCE_NORM",
    "LAYER_NORM",
    "LP_NORM",
    "LRN",
    "MEAN_VARIANCE_NORM",
    "RMS_NORM",
]

LRN_BLOCK = 256  # elements of space that are summed over channels at once

Read = Callable[[Position], Expr]


def _epsilon(site: Site) -> float:
    return float(site.call.attr("epsilon", 1e-5))


def _computed_dtype(site: Site) -> Dtype:
    return "f64" if site.dtype(0) == "f64" else "f32"


# Statistics


@dataclass(frozen=True)
class Stash:
    """The type that the first stage of a normalisation is computed in: `stash_type`.

    Small floats are computed with in f32, once the input was rounded to them.
    """

    dtype: Dtype

    @staticmethod
    def of(site: Site) -> Stash:
        asked = site.call.dtype_attr("stash_type")
        return Stash("f32" if asked is None else loop_dtype(asked))

    @property
    def computed(self) -> Dtype:
        return "f64" if self.dtype == "f64" else "f32"

    def read(self, site: Site, position: Position) -> Expr:
        value = site.read(0, position)
        if self.dtype in ("f16", "bf16"):
            return computed(cast(value, self.dtype))
        return cast(computed(value), self.dtype)


def mean_of(site: Site, folding: Folding, read: Read, dtype: Dtype) -> Cell:
    total = folding.sum(dtype, read)
    size = cast(site.b.size(folding.size), dtype)
    return folding.derive(dtype, lambda at: total.get() / size)


def variance_of(site: Site, folding: Folding, read: Read, mean: Cell) -> Cell:
    def square(at: Position) -> Expr:
        centred = site.b.let(read(at) - mean.get())
        return centred * centred

    return mean_of(site, folding, square, mean.dtype)


def _inverse_deviation(site: Site, folding: Folding, variance: Cell) -> Cell:
    epsilon = _epsilon(site)
    return folding.derive(variance.dtype, lambda at: 1 / apply("sqrt", variance.get() + epsilon))


# Over the last axes


def _scaled(site: Site, value: Expr, position: Position) -> Expr:
    """value * scale + bias, for parameters that broadcast to the input's shape."""
    for index, op in ((1, "mul"), (2, "add")):
        if site.call.has(index):
            parameter = site.operand(index, _broadcast(site.shape(index), position))
            value = apply(op, value, cast(parameter, value.dtype))
    return value


def _broadcast(shape: Shape, position: Position) -> Position:
    """Where a parameter of this shape has its element; `_check_parameters` saw that it fits."""
    inner = position[len(position) - len(shape) :]
    return tuple(0 if size == 1 else at for size, at in zip(shape, inner, strict=True))


def _check_parameters(site: Site) -> None:
    """Scale and bias broadcast to the input; a size that is a number and not 1 is the input's own."""
    shape = site.shape(0)
    for index in (1, 2):
        if not site.call.has(index):
            continue
        given = site.shape(index)
        if len(given) > len(shape):
            site.refuse(f"input {index} has more dimensions than the input that it scales")
        for size, whole in zip(given, shape[len(shape) - len(given) :], strict=True):
            if size == 1:
                continue
            if not isinstance(size, int) and size != whole:
                site.refuse(f"whether {size} broadcasts to {whole} is not known before it runs")
            check_equal(site, size, whole, f"of input {index}")


def check_equal(site: Site, size: Size, expected: Size, what: str) -> None:
    """Sizes that only the run knows to be equal are compared before anything is read by them."""
    if size == expected:
        return
    given, wanted = site.b.size(size), site.b.size(expected)
    reason = f"the size {{value}} {what} must be {{limit}}"
    site.b.fail_if(apply("ne", given, wanted), reason, given, wanted)


def _check_channels(site: Site, channels: Size, *parameters: int) -> None:
    """Each of these inputs has one number a channel."""
    for index in parameters:
        shape = site.shape(index)
        if len(shape) != 1:
            site.refuse(f"input {index} has {len(shape)} dimensions instead of one")
        check_equal(site, shape[0], channels, f"of input {index}")


def _whole_axes(site: Site, axis: int) -> int:
    """From which axis on the parameters lie in memory as the input does."""
    shape = site.shape(0)
    given = [site.shape(index) for index in (1, 2) if site.call.has(index)]
    alike = all(one == shape[axis:] for one in given)
    return axis if alike else len(shape) - 1


def _layer_norm(site: Site) -> None:
    shape, stash = site.shape(0), Stash.of(site)
    axis = site.call.axis(site.call.int_attr("axis", -1), len(shape))
    folding = Folding(site.b, shape, range(axis, len(shape)))
    _check_parameters(site)

    def read(at: Position) -> Expr:
        return stash.read(site, at)

    with folding.sets(work=4):
        mean = mean_of(site, folding, read, stash.computed)
        inverse = _inverse_deviation(site, folding, variance_of(site, folding, read, mean))
        folding.each(
            lambda at: site.store(at, _scaled(site, (read(at) - mean.get()) * inverse.get(), at)),
            merge_from=_whole_axes(site, axis),
        )

        def store_statistics(at: Position) -> None:
            for output, statistic in enumerate((mean, inverse)[: len(site.outputs) - 1], 1):
                site.store(at, statistic.get(), output)

        folding.for_sets(store_statistics)


def _rms_norm(site: Site) -> None:
    shape, stash = site.shape(0), Stash.of(site)
    axis = site.call.axis(site.call.int_attr("axis", -1), len(shape))
    folding = Folding(site.b, shape, range(axis, len(shape)))
    _check_parameters(site)

    def square(at: Position) -> Expr:
        value = site.b.let(stash.read(site, at))
        return value * value

    with folding.sets(work=3):
        mean = mean_of(site, folding, square, stash.computed)
        inverse = _inverse_deviation(site, folding, mean)
        folding.each(
            lambda at: site.store(at, _scaled(site, stash.read(site, at) * inverse.get(), at)),
            merge_from=_whole_axes(site, axis),
        )


# Over the space of each channel or group


def _instance_norm(site: Site) -> None:
    shape, dtype = site.shape(0), _computed_dtype(site)
    folding = Folding(site.b, shape, range(2, len(shape)), site.memory_order())
    _check_channels(site, shape[1], 1, 2)

    def read(at: Position) -> Expr:
        return site.operand(0, at)

    with folding.sets(work=4):
        mean = mean_of(site, folding, read, dtype)
        inverse = _inverse_deviation(site, folding, variance_of(site, folding, read, mean))
        factor = folding.derive(dtype, lambda at: inverse.get() * site.operand(1, at[1:2]))
        folding.each(
            lambda at: site.store(
                at, (read(at) - mean.get()) * factor.get() + site.operand(2, at[1:2])
            )
        )


def _group_norm(site: Site) -> None:
    """The channels are seen as groups × channels of a group; before opset 21 a group has one scale."""
    shape = site.shape(0)
    groups = site.call.int_attr("num_groups", 1)
    if groups < 1:
        site.refuse(f"num_groups is {groups}")
    if not isinstance(shape[1], int):
        rest = site.b.size(shape[1] % groups)
        reason = f"{{value}} channels do not divide into {groups} groups"
        site.b.fail_if(apply("ne", rest, 0), reason, site.b.size(shape[1]))
    _check_channels(site, groups if site.call.version < 21 else shape[1], 1, 2)
    channels = exact_div(shape[1], groups)
    if site.channels_last and isinstance(channels, int) and 1 < channels <= BLOCK:
        _group_norm_by_columns(site, channels)
    else:
        _group_norm_by_rows(site, groups, channels)


def _group_norm_by_rows(site: Site, groups: int, channels: Size) -> None:
    """Group by group, where a run of its elements in memory is long."""
    shape, stash = site.shape(0), Stash.of(site)
    grouped = (shape[0], groups, channels, *shape[2:])
    space = range(3, len(grouped))
    order = (0, *space, 1, 2) if site.channels_last else (0, 1, 2, *space)
    folding = Folding(site.b, grouped, range(2, len(grouped)), order)

    def whole(at: Position) -> Position:
        return (at[0], at[1] * channels + at[2], *at[3:])

    def read(at: Position) -> Expr:
        return stash.read(site, whole(at))

    with folding.sets(work=4):
        mean = mean_of(site, folding, read, stash.computed)
        inverse = _inverse_deviation(site, folding, variance_of(site, folding, read, mean))

        def parameter(index: int, at: Position) -> Expr:
            number = at[1] if site.call.version < 21 else at[1] * channels + at[2]
            return cast(site.operand(index, (number,)), stash.computed)

        def store(at: Position) -> None:
            normal = (read(at) - mean.get()) * inverse.get()
            site.store(whole(at), normal * parameter(1, at) + parameter(2, at))

        folding.each(store, merge_from=3)


def _group_norm_by_columns(site: Site, channels: int) -> None:
    """Channel by channel, side by side as they lie, and the sums of a group's put together."""
    shape, stash = site.shape(0), Stash.of(site)
    space = range(2, len(shape))
    folding = Folding(site.b, shape, space, site.memory_order(), unit=channels)
    size = cast(site.b.size(folding.size * channels), stash.computed)

    def read(at: Position) -> Expr:
        return stash.read(site, at)

    with folding.sets(work=4):
        total = folding.sum(stash.computed, read)
        mean = folding.derive_of_units(total, lambda total: total / size)

        def square(at: Position) -> Expr:
            centred = site.b.let(read(at) - mean.get())
            return centred * centred

        squares = folding.sum(stash.computed, square)
        inverse = folding.derive_of_units(
            squares, lambda total: 1 / apply("sqrt", total / size + _epsilon(site))
        )

        def parameter(index: int, at: Position) -> Expr:
            number = at[1] if site.call.version >= 21 else at[1] // channels
            return cast(site.operand(index, (number,)), stash.computed)

        factor = folding.derive(stash.computed, lambda at: inverse.get() * parameter(1, at))
        offset = folding.derive(stash.computed, lambda at: parameter(2, at))
        folding.each(
            lambda at: site.store(at, (read(at) - mean.get()) * factor.get() + offset.get())
        )


def _mean_variance_norm(site: Site) -> None:
    shape, dtype = site.shape(0), _computed_dtype(site)
    axes = site.call.axes(site.call.ints_attr("axes") or (0, 2, 3), len(shape))
    folding = Folding(site.b, shape, axes, site.memory_order())

    def read(at: Position) -> Expr:
        return site.operand(0, at)

    with folding.sets(work=4):
        mean = mean_of(site, folding, read, dtype)
        variance = variance_of(site, folding, read, mean)
        deviation = folding.derive(dtype, lambda at: apply("sqrt", variance.get()) + 1e-9)
        folding.each(lambda at: site.store(at, (read(at) - mean.get()) / deviation.get()))


def _lp_norm(site: Site) -> None:
    """A vector without length stays what it is: zero."""
    shape, order = site.shape(0), site.call.int_attr("p", 2)
    if order not in (1, 2):
        site.refuse(f"p is {order}, not 1 or 2")
    axis = site.call.axis(site.call.int_attr("axis", -1), len(shape))
    dtype = _computed_dtype(site)
    folding = Folding(site.b, shape, (axis,), site.memory_order())

    def power(at: Position) -> Expr:
        value = site.operand(0, at)
        return apply("abs", value) if order == 1 else value * value

    with folding.sets(work=2):
        total = folding.sum(dtype, power)

        def norm(at: Position) -> Expr:
            length = site.b.let(total.get() if order == 1 else apply("sqrt", total.get()))
            return where(apply("eq", length, 0), 1, length)

        length = folding.derive(dtype, norm)
        folding.each(lambda at: site.store(at, site.operand(0, at) / length.get()))


# By given statistics, and by neighbours


def _batch_norm(site: Site, position: Position) -> Expr:
    """x * a + b, where a and b belong to the channel."""
    call = site.call
    if _trains(site):
        site.refuse("a training BatchNormalization changes its statistics")
    shape = site.shape(0)
    channel: Position = position[1:2] or (0,)
    if call.version < 9 and not call.int_attr("spatial", 1):
        channel = position[1:]
        if any(site.shape(index) != shape[1:] for index in range(1, 5)):
            site.refuse("the statistics of each element do not have the elements' shape")
    else:
        _check_channels(site, shape[1] if len(shape) > 1 else 1, 1, 2, 3, 4)
    value = site.operand(0, position)
    constants = [site.constant(index) for index in range(1, 5)]
    if value.dtype == "f32" and len(channel) == 1 and all(one is not None for one in constants):
        factor, offset = (site.table(array) for array in _folded(constants, _epsilon(site)))
        return value * site.b.load(factor, channel[0]) + site.b.load(offset, channel[0])
    scale, bias, mean, variance = (
        cast(site.operand(index, channel), value.dtype) for index in range(1, 5)
    )
    a = site.b.let(scale / apply("sqrt", variance + _epsilon(site)))
    return value * a + (bias - mean * a)


def _folded(
    constants: Sequence[npt.NDArray[Any] | None], epsilon: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The factor and the offset of each channel, computed once, in float64."""
    scale, bias, mean, variance = (np.asarray(one, np.float64).reshape(-1) for one in constants)
    with np.errstate(all="ignore"):  # what is not finite is the model's own
        factor = scale / np.sqrt(variance + epsilon)
        return factor.astype(np.float32), (bias - mean * factor).astype(np.float32)


def _trains(site: Site) -> bool:
    call = site.call
    if call.version < 7:
        return not call.int_attr("is_test")
    if call.version < 14:
        return any(value.name for value in call.node.outputs[1:])
    return bool(call.int_attr("training_mode"))


def _lrn(site: Site) -> None:
    """x / (bias + alpha / size * sum of squares of the channels around)^beta."""
    shape, call = site.shape(0), site.call
    size = call.int_attr("size", 1)
    if size < 1:
        site.refuse(f"size is {size}; one channel or more is needed")
    alpha, beta, bias = (
        float(call.attr(name, default))
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    b, dtype, space = site.b, _computed_dtype(site), product(shape[2:])
    with b.parallel(shape[:2], space * (size + 8)) as (n, c):
        first = max_of(c - before, 0)
        count = min_of(c + after + 1, shape[1]) - first
        squares = b.array(dtype, LRN_BLOCK)
        with b.loop(ceil_div(space, LRN_BLOCK)) as block:
            lanes = min_of(LRN_BLOCK, space - LRN_BLOCK * block)

            def read(channel: Size, lane: Size) -> tuple[Position, Expr]:
                where_in_space = unflatten(LRN_BLOCK * block + lane, shape[2:], b.ranges)
                position = (n, channel, *where_in_space)
                return position, site.operand(0, position)

            with b.loop(lanes, "vector") as lane:
                b.put(squares, lane, const(0, dtype))
            with b.loop(count) as near, b.loop(lanes, "vector") as lane:
                _, value = read(first + near, lane)
                b.put(squares, lane, b.element(squares, lane) + value * value)
            with b.loop(lanes, "vector") as lane:
                position, value = read(c, lane)
                base = b.let(b.element(squares, lane) * (alpha / size) + bias)
                site.store(position, value / apply("pow", base, beta))


BATCH_NORM = Element(_batch_norm, weight=2, pointwise=True)
GROUP_NORM = Nest(_group_norm)
INSTANCE_NORM = Nest(_instance_norm)
LAYER_NORM = Nest(_layer_norm)
LP_NORM = Nest(_lp_norm)
LRN = Nest(_lrn)
MEAN_VARIANCE_NORM = Nest(_mean_variance_norm)
RMS_NORM = Nest(_rms_norm)
