"""Convolutions with a twist: DeformConv, whose taps wander, and CausalConvWithState, which remembers."""

from __future__ import annotations

from functools import partial, reduce

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Nest, Position, Site, computed
from sardonyx.ops.lowerings.convolution import Terms, bias_of, check_groups, turned_weights
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import Lanes, axes_of, check_room, check_same
from sardonyx.ops.window import read_window
from sardonyx.sizes import Size, exact_div, max_of, min_of, product

__all__ = ["CAUSAL_CONV", "DEFORM_CONV"]

FAR = 1e9  # beyond any image


def _deform_conv(site: Site) -> None:
    """Each tap reads between pixels, where the offsets move it; a sample serves many output channels."""
    b, call, shape = site.b, site.call, site.shape(0)
    if len(shape) != 4:
        site.refuse(f"DeformConv of images of rank {len(shape)} is not defined")
    groups, spread = call.int_attr("group", 1), call.int_attr("offset_group", 1)
    outputs, inputs, *kernel = site.shape(1)
    check_groups(site, inputs * groups, outputs, groups)
    axes = axes_of(read_window(call, 2, tuple(kernel)), shape[2:], site.out_shape()[2:])
    check_room(site, axes)
    volume = product(kernel)
    check_same(b, shape[1] % spread, 0, "channels do not divide by offset_group: {value} are left")
    for index, channels in ((2, spread * volume * 2), (4, spread * volume)):
        wanted = (shape[0], channels, *site.out_shape()[2:])
        for axis, size in enumerate(wanted if call.has(index) else ()):
            reason = "a dimension of offset or mask is {value}, where {limit} is due"
            check_same(b, site.shape(index)[axis], size, reason)
    dtype = sum_dtype(site.dtype(0))
    terms = Terms(
        dtype, partial(site.operand, 0), partial(site.operand, 1), bias_of(site, 3, dtype)
    )
    extents = (*kernel, inputs, outputs)
    turned = turned_weights(site, lambda o, c, k: (o, c, *k), extents, terms)
    each, together = exact_div(outputs, groups), exact_div(shape[1], spread)
    lanes = Lanes(b, each)
    loops = (shape[0], groups, *site.out_shape()[2:], lanes.blocks)
    work = inputs * volume * (lanes.width + 32)
    with b.parallel(loops, work) as (n, g, y, x, block):
        start, count = lanes.block(block)
        total = b.array(dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, dtype))
        with b.loops(kernel) as taps, b.loop(inputs) as one:
            c = g * inputs + one
            moved = (c // together) * volume + flatten(taps, kernel)
            places = [
                cast(b.size(axes[axis].place((y, x)[axis], taps[axis])), "f64")
                + cast(site.operand(2, (n, moved * 2 + axis, y, x)), "f64")
                for axis in range(2)
            ]
            pixel = _between(site, (n, c), places, terms)
            if call.has(4):
                pixel = pixel * cast(site.operand(4, (n, moved, y, x)), dtype)
            pixel = b.let(pixel)
            with lanes.walk(start, count) as (lane, output):
                factor = b.load(turned, flatten((*taps, one, g * each + output), extents))
                b.put(total, lane, b.element(total, lane) + pixel * factor)
        with lanes.walk(start, count) as (lane, output):
            position = (n, g * each + output, y, x)
            site.store(position, terms.finish(position, b.element(total, lane)))


def _between(site: Site, plane: Position, places: list[Expr], terms: Terms) -> Expr:
    """The image between its pixels; outside it is 0."""
    b, sides = site.b, site.shape(0)[2:]
    found: list[list[tuple[Size, Expr]]] = []
    for place, side in zip(places, sides, strict=True):
        size = cast(b.size(side), "f64")
        known = where(apply("isnan", place), -9, place)
        at = b.let(maximum(minimum(known, FAR), -FAR))
        low = b.let(apply("floor", at))
        corners = []
        for corner in (low, b.let(low + 1.0)):
            inside = (corner >= 0) & (corner < size)
            weight = where(inside, 1.0 - apply("abs", at - corner), 0)
            index = cast(maximum(minimum(corner, size - 1.0), 0), "i64")
            corners.append((b.index(index, side), b.let(cast(weight, terms.dtype))))
        found.append(corners)
    value = b.local(const(0, terms.dtype))
    with b.when(b.size(product(sides)) > 0):
        parts = [
            terms.pixel((*plane, row, column)) * (upright * level)
            for row, upright in found[0]
            for column, level in found[1]
        ]
        b.set(value, reduce(lambda a, c: a + c, parts))
    return value


def _causal_conv(site: Site) -> None:
    """A window over the past and the input, one filter a channel; what it last saw is the new state."""
    b, call = site.b, site.call
    batch, channels, length = site.shape(0)
    width = site.shape(1)[2]
    reason = "the input has {value} channels, but the weights are for {limit}"
    check_same(b, channels, site.shape(1)[0], reason)
    check_same(b, site.shape(1)[1], 1, "the weights have {value} rows a channel, not {limit}")
    for axis, size in enumerate((batch, channels, width - 1) if call.has(3) else ()):
        reason = "past_state has a dimension of {value}, where {limit} is needed"
        check_same(b, site.shape(3)[axis], size, reason)
    activation = call.str_attr("activation", "none")
    if activation not in ("none", "silu", "swish"):
        site.refuse(f"the activation {activation!r} has no native code")
    dtype, finish = sum_dtype(site.dtype(0)), bias_of(site, 2, sum_dtype(site.dtype(0)))
    lanes = Lanes(b, length)
    with b.parallel((batch, channels, lanes.blocks), width * lanes.width) as (n, c, block):
        start, count = lanes.block(block)
        total = b.array(dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, dtype))
        with b.loop(width) as tap:
            factor = b.let(site.operand(1, (c, 0, tap)))
            # Before this lane the tap stands in the past.
            turn = max_of(width - 1 - tap - start, 0)
            past = b.index(b.size(min_of(turn, count)), count + 1)
            if call.has(3):
                with b.loop(past, "vector") as lane:
                    at = b.index(b.size(start + lane + tap), width - 1)
                    value = site.operand(3, (n, c, at))
                    b.put(total, lane, b.element(total, lane) + factor * value)
            with b.loop(count - past, "vector") as late:
                at = b.index(b.size(start + past + late + tap - (width - 1)), length)
                value = site.operand(0, (n, c, at))
                b.put(total, past + late, b.element(total, past + late) + factor * value)
        with lanes.walk(start, count) as (lane, at):
            value = finish((n, c, at), b.element(total, lane))
            if activation != "none":
                # The unfused nodes round the convolution first, and the official cases do as they do.
                rounded = b.let(computed(cast(value, site.out_dtype())))
                value = rounded * apply("sigmoid", rounded)
            site.store((n, c, at), value)
    if len(site.outputs) > 1:
        _remember(site, width - 1)


def _remember(site: Site, history: Size) -> None:
    """The last elements of past and input together."""
    b, (batch, channels, length) = site.b, site.shape(0)
    with b.parallel((batch, channels), history) as (n, c):
        old = b.index(b.size(max_of(history - length, 0)), history + 1)
        with b.loop(old, "vector") as at:
            place = b.index(b.size(at + length), history)
            zero = const(0, sum_dtype(site.dtype(0)))
            value = site.read(3, (n, c, place)) if site.call.has(3) else zero
            site.store((n, c, at), value, output=1)
        with b.loop(b.index(b.size(history - old), history + 1), "vector") as at:
            place = b.index(b.size(old + at + length - history), length)
            site.store((n, c, old + at), site.read(0, (n, c, place)), output=1)


DEFORM_CONV = Nest(_deform_conv)
CAUSAL_CONV = Nest(_causal_conv)
