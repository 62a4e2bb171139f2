"""Pools: over windows, over everything, and the way back.

parallel over rows of windows                      (of NCHW; where channels lie last, over windows)
  best[lane] = -inf
  for taps that stand on the input
    vector lane                                    a row of windows, or the channels of one
      best[lane] = max(best[lane], x[…])
  vector lane
    y[…] = best[lane]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.loops.operations import FLOATS, SIGNED, UNSIGNED
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.by_columns import Fold, is_separable, pool_by_columns
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import Axis, Lanes, axes_of, check_room, check_same, taps
from sardonyx.ops.window import read_window
from sardonyx.sizes import Size, product

__all__ = [
    "AVERAGE_POOL",
    "GLOBAL_AVERAGE_POOL",
    "GLOBAL_LP_POOL",
    "GLOBAL_MAX_POOL",
    "LP_POOL",
    "MAX_POOL",
    "MAX_UNPOOL",
]


def lowest(dtype: Dtype) -> Expr:
    """What every element is at least."""
    if dtype in SIGNED:
        return const(-(2 ** (int(dtype[1:]) - 1)), dtype)
    return const(0, dtype) if dtype in UNSIGNED else const(-math.inf, dtype)


def window_of(site: Site) -> tuple[Axis, ...]:
    shape = site.shape(0)
    window = read_window(site.call, len(shape) - 2, None)
    return axes_of(window, shape[2:], site.out_shape()[2:])


def _check_room(site: Site, axes: tuple[Axis, ...]) -> None:
    without = site.call.str_attr("auto_pad", "NOTSET") in ("NOTSET", "")
    check_room(site, axes, without and bool(site.call.int_attr("ceil_mode")))


def _pool(site: Site, axes: tuple[Axis, ...], fold: Fold) -> None:
    _check_room(site, axes)
    if is_separable(axes, site.channels_last):
        pool_by_columns(site, axes, fold)
    elif site.channels_last:
        _pool_channels(site, axes, fold)
    else:
        _pool_rows(site, axes, fold)


def _pool_channels(site: Site, axes: tuple[Axis, ...], fold: Fold) -> None:
    b, (batch, channels, *space) = site.b, site.out_shape()
    lanes = Lanes(b, channels)
    work = product(axis.kernel for axis in axes) * lanes.width
    with b.parallel((batch, *space, lanes.blocks), work) as (n, *at, block):
        start, count = lanes.block(block)
        total = b.array(fold.start.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, fold.start)
        with taps(b, axes, at) as (_, places), lanes.walk(start, count) as (lane, c):
            value = site.operand(0, (n, c, *places))
            b.put(total, lane, fold.join(b.element(total, lane), fold.lift(value)))
        with lanes.walk(start, count) as (lane, c):
            position = (n, c, *at)
            site.store(position, fold.finish(position, b.element(total, lane)))


def _pool_rows(site: Site, axes: tuple[Axis, ...], fold: Fold) -> None:
    b, (batch, channels, *rows, row) = site.b, site.out_shape()
    last, lanes = axes[-1], Lanes(b, row)
    work = product(axis.kernel for axis in axes) * lanes.width
    with b.parallel((batch, channels, *rows, lanes.blocks), work) as (n, c, *at, block):
        start, count = lanes.block(block)
        total = b.array(fold.start.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, fold.start)
        with (
            taps(b, axes[:-1], at) as (_, places),
            b.loop(last.kernel) as tap,
            lanes.served(last, tap, start, count) as (lane, place),
        ):
            value = site.operand(0, (n, c, *places, place))
            b.put(total, lane, fold.join(b.element(total, lane), fold.lift(value)))
        with lanes.walk(start, count) as (lane, x):
            position = (n, c, *at, x)
            site.store(position, fold.finish(position, b.element(total, lane)))


def _max_pool(site: Site) -> None:
    axes = window_of(site)
    if len(site.outputs) > 1:
        _max_pool_with_indices(site, axes)
        return
    _pool(site, axes, _maxima(site))


def _maxima(site: Site) -> Fold:
    return Fold(lowest(sum_dtype(site.dtype(0))), maximum, again=True)


def _added(one: Expr, other: Expr) -> Expr:
    return one + other


def _max_pool_with_indices(site: Site, axes: tuple[Axis, ...]) -> None:
    """The first maximum and where it is, counted over the whole input without padding; NaN is largest."""
    _check_room(site, axes)
    b, shape = site.b, site.shape(0)
    by_columns = bool(site.call.int_attr("storage_order"))
    space = shape[2:]
    work = product(axis.kernel for axis in axes) * 4
    with b.parallel(site.out_shape(), work) as (n, c, *at):
        best = b.local(lowest(sum_dtype(site.dtype(0))))
        chosen = b.local(const(-1, "i64"))
        with taps(b, axes, at) as (_, places):
            value = b.let(site.operand(0, (n, c, *places)))
            better = (value > best) | (chosen < 0)
            if value.dtype in FLOATS:
                better = better | (apply("isnan", value) & ~apply("isnan", best))
            inside = flatten(places[::-1], space[::-1]) if by_columns else flatten(places, space)
            where_found = b.size(flatten((n, c), shape[:2]) * product(space) + inside)
            better = b.let(better)
            b.set(best, where(better, value, best))
            b.set(chosen, where(better, where_found, chosen))
        site.store((n, c, *at), best)
        site.store((n, c, *at), chosen, output=1)


def _average_pool(site: Site) -> None:
    """Padding counts where count_include_pad says so; what ceil_mode adds beyond it never does."""
    axes, dtype = window_of(site), sum_dtype(site.dtype(0))
    with_padding = bool(site.call.int_attr("count_include_pad"))

    def counted(axis: Axis, window: Size) -> Size:
        low, high = (-axis.begin, axis.size + axis.end) if with_padding else (0, axis.size)
        return axis.within(site.b, window, low, high)[1]

    def mean(position: Position, total: Expr) -> Expr:
        count = product(counted(axis, at) for axis, at in zip(axes, position[2:], strict=True))
        return total / cast(site.b.size(count), dtype)

    _pool(site, axes, Fold(const(0, dtype), _added, finish=mean))


def _power(value: Expr, order: float) -> Expr:
    if order == 2:
        return value * value
    if order == 0.5:
        return apply("sqrt", value)
    return value if order == 1 else apply("pow", value, order)


def _norm(site: Site) -> Fold:
    order = float(site.call.attr("p", 2))
    return Fold(
        const(0, sum_dtype(site.dtype(0))),
        _added,
        lambda element: _power(apply("abs", element), order),
        lambda position, total: _power(total, 1 / order),
    )


def _lp_pool(site: Site) -> None:
    _pool(site, window_of(site), _norm(site))


# Over everything


def _global(site: Site, fold_of: Callable[[Site], Fold]) -> None:
    """One result a channel: sums run along memory, whichever way it lies."""
    b, shape, fold = site.b, site.shape(0), fold_of(site)
    batch, channels, *space = shape
    ones = (0,) * len(space)
    if not site.channels_last:
        with b.parallel((batch, channels), product(space)) as (n, c):
            total = b.local(fold.start)
            with b.loop(product(space), "vector") as flat:
                at = unflatten(flat, space, b.ranges)
                b.set(total, fold.join(total, fold.lift(site.operand(0, (n, c, *at)))))
            site.store((n, c, *ones), fold.finish((n, c, *ones), total))
        return
    lanes = Lanes(b, channels)
    with b.parallel((batch, lanes.blocks), product(space) * lanes.width) as (n, block):
        start, count = lanes.block(block)
        totals = b.array(fold.start.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(totals, lane, fold.start)
        with b.loops(space) as at, lanes.walk(start, count) as (lane, c):
            value = site.operand(0, (n, c, *at))
            b.put(totals, lane, fold.join(b.element(totals, lane), fold.lift(value)))
        with lanes.walk(start, count) as (lane, c):
            position = (n, c, *ones)
            site.store(position, fold.finish(position, b.element(totals, lane)))


def _mean(site: Site) -> Fold:
    dtype = sum_dtype(site.dtype(0))
    count = cast(site.b.size(product(site.shape(0)[2:])), dtype)
    return Fold(const(0, dtype), _added, finish=lambda position, total: total / count)


def _largest(site: Site) -> Fold:
    b, (batch, channels, *space) = site.b, site.shape(0)
    empty = apply("eq", b.size(product(space)), 0)
    fault = empty & apply("ne", b.size(batch * channels), 0)
    b.fail_if(fault, "an image of {value} elements has no maximum", b.size(product(space)))
    return _maxima(site)


# The way back


def _max_unpool(site: Site) -> None:
    """Elements go where the indices say, into the shape that the attributes give; the rest is 0.

    The scatter is one thread's: of two elements for one place, the last wins.
    """
    b, call, shape = site.b, site.call, site.shape(0)
    for a, c in zip(shape, site.shape(1), strict=True):
        check_same(b, a, c, "a dimension of X is {value}, but that of I is {limit}")
    if call.has(2) and call.value(2) is None:
        _check_output_shape(site)
    window = read_window(call, len(shape) - 2, None)
    natural = (*shape[:2], *window.spread(shape[2:], (0,) * (len(shape) - 2)))
    size = product(natural)
    dtype = site.out_dtype()
    spread = site.scratch(dtype, size)
    zero = cast(const(0, sum_dtype(dtype)), dtype)
    with b.loop(size, "parallel", grain=4096) as flat:
        b.store(spread, flat, zero)
    with b.loops(shape) as at:
        found = b.let(cast(site.read(1, at), "i64"))
        fault = (found < 0) | (found >= b.size(size))
        b.fail_if(fault, "index {value} is outside an output of {limit}", found, b.size(size))
        b.store(spread, b.index(found, size), site.read(0, at))
    with b.parallel(site.out_shape()) as at:
        inside = reduce(
            lambda a, c: a & c,
            (b.size(one) < b.size(limit) for one, limit in zip(at, natural, strict=True)),
        )
        value = b.local(const(0, sum_dtype(dtype)))
        with b.when(inside):
            b.set(value, cast(b.load(spread, flatten(at, natural)), value.dtype))
        site.store(at, value)


def _check_output_shape(site: Site) -> None:
    """A shape that only the run knows must be the one that was declared."""
    b = site.b
    for axis, dim in enumerate(site.out_shape()):
        if dim == site.call.fresh(axis):
            site.refuse("the output_shape of MaxUnpool is not known before it runs")
        found = b.let(site.read(2, (axis,)))
        reason = "output_shape has {value} where the model declares {limit}"
        b.fail_if(apply("ne", found, b.size(dim)), reason, found, b.size(dim))


MAX_POOL = Nest(_max_pool)
AVERAGE_POOL = Nest(_average_pool)
LP_POOL = Nest(_lp_pool)
GLOBAL_AVERAGE_POOL = Nest(partial(_global, fold_of=_mean), reads_once=True)
GLOBAL_LP_POOL = Nest(partial(_global, fold_of=_norm), reads_once=True)
GLOBAL_MAX_POOL = Nest(partial(_global, fold_of=_largest), reads_once=True)
MAX_UNPOOL = Nest(_max_unpool)
