"""What spreads instead of gathering: ConvTranspose and Col2Im, told from the output's side.

Output o is reached by tap t from input i where o + begin = i*stride + t*dilation. So o + begin - t*dilation
must be a multiple of the stride. Along a row, outputs of one phase (o + begin modulo the stride) are
reached by the same taps, and are lanes side by side:

    for phase < stride
      for input channels, for taps that reach this phase
        vector lane: total[lane] += factor * x[lane + shift]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sardonyx.loops.build import Builder, maximum
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Element, Nest, Position, Site, TransposedConvolution
from sardonyx.ops.lowering import Window as Geometry
from sardonyx.ops.lowerings.convolution import Terms, bias_of, check_groups, turned_weights
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import Lanes, check_same, place_at
from sardonyx.ops.window import Window, read_window
from sardonyx.sizes import Size, ceil_div, exact_div, max_of, min_of, product

__all__ = ["COL2IM", "CONV_TRANSPOSE"]


@dataclass(frozen=True)
class Spread:
    """One spatial dimension: the input's size, the output's, and how taps reach from one to the other."""

    size: Size
    output: Size
    kernel: Size
    stride: int
    dilation: int
    begin: Size


@contextmanager
def reaching(
    b: Builder, axes: Sequence[Spread], outputs: Sequence[Size]
) -> Iterator[tuple[tuple[Size, ...], tuple[Size, ...]]]:
    """Loops over the taps that reach one output: (taps, the inputs they reach it from)."""
    if not axes:
        yield (), ()
        return
    axis, output = axes[0], outputs[0]
    with b.loop(axis.kernel) as tap:
        ahead = output + axis.begin - tap * axis.dilation
        hit = b.size(ahead) >= 0
        if axis.stride > 1:
            hit = hit & apply("eq", b.size(ahead % axis.stride), 0)
        inside = b.size(ahead // axis.stride) < b.size(axis.size)
        with b.when(hit & inside):
            place = b.index(b.size(ahead // axis.stride), axis.size)
            with reaching(b, axes[1:], outputs[1:]) as (taps, places):
                yield (tap, *taps), (place, *places)


def _begins(call: Call, window: Window, spatial: Shape, outputs: Shape) -> tuple[Size, ...]:
    """How far into the full spread the output begins, for each dimension."""
    given = call.ints_attr("output_shape")
    if not given and not window.auto_pad.startswith("SAME"):
        return (0,) * len(spatial) if window.auto_pad == "VALID" else window.begins
    extra = call.ints_attr("output_padding") or (0,) * len(spatial)
    begins: list[Size] = []
    for axis, (size, output) in enumerate(zip(spatial, outputs, strict=True)):
        full = (size - 1) * window.strides[axis] + window.extent(axis)
        total = max_of(full + extra[axis] - output, 0)
        less = total // 2
        begins.append(less if window.auto_pad == "SAME_UPPER" else total - less)
    return tuple(begins)


def _spreads(window: Window, spatial: Shape, outputs: Shape, begins: Shape) -> tuple[Spread, ...]:
    return tuple(
        Spread(
            size,
            outputs[axis],
            window.kernel[axis],
            window.strides[axis],
            window.dilations[axis],
            begins[axis],
        )
        for axis, size in enumerate(spatial)
    )


def _conv_transpose(site: Site) -> None:
    shape, weights = site.shape(0), site.shape(1)
    groups = site.call.int_attr("group", 1)
    check_groups(site, weights[0], weights[0], groups)
    window = read_window(site.call, len(shape) - 2, weights[2:])
    for size, said in zip(weights[2:], site.call.ints_attr("kernel_shape") or (), strict=False):
        reason = "the weights are {value} wide, but kernel_shape says {limit}"
        check_same(site.b, size, said, reason)
    outputs = site.out_shape()[2:]
    begins = tuple(
        begin if isinstance(begin, int) else site.b.index(site.b.size(begin), begin + 1)
        for begin in _begins(site.call, window, shape[2:], outputs)
    )
    axes = _spreads(window, shape[2:], outputs, begins)
    dtype = sum_dtype(site.dtype(0))
    terms = Terms(
        dtype, partial(site.operand, 0), partial(site.operand, 1), bias_of(site, 2, dtype)
    )
    if site.channels_last:
        _by_pixel(site, axes, groups, terms)
    else:
        _by_row(site, axes, groups, terms)


def _by_row(site: Site, axes: tuple[Spread, ...], groups: int, terms: Terms) -> None:
    b, (batch, _, *rows, _) = site.b, site.out_shape()
    channels, each = site.shape(1)[:2]
    inputs, last = exact_div(channels, groups), axes[-1]
    # Lane q of a phase is the output q*stride + phase - begin.
    extent = ceil_div(last.output + last.begin, last.stride)
    lanes = Lanes(b, extent)
    work = inputs * product(axis.kernel for axis in axes) * lanes.width
    extents = (batch, groups, each, *rows, last.stride, lanes.blocks)
    with b.parallel(extents, work) as (n, g, one, *at, phase, block):
        start, count = lanes.block(block)
        total = b.array(terms.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, terms.dtype))
        with (
            b.loop(inputs) as c,
            reaching(b, axes[:-1], at) as (others, places),
            b.loop(last.kernel) as tap,
        ):
            ahead = phase - tap * last.dilation
            with b.when(apply("eq", b.size(ahead % last.stride), 0)):
                factor = b.let(terms.weight((g * inputs + c, one, *others, tap)))
                shift = b.index(b.size(ahead // last.stride + start))  # the input of lane 0
                low = b.index(b.size(min_of(max_of(-shift, 0), count)), count + 1)
                end = min_of(last.size - shift, count)
                turns = b.index(b.size(max_of(end - low, 0)), count + 1)
                with b.loop(turns, "vector") as turn:
                    lane = low + turn
                    place = place_at(b, shift + lane, last.size)
                    value = terms.pixel((n, g * inputs + c, *places, place))
                    b.put(total, lane, b.element(total, lane) + factor * value)
        # Those of the block's outputs that exist.
        offset = b.index(b.size(start * last.stride + phase - last.begin))  # the output of lane 0
        low = b.index(b.size(min_of(ceil_div(max_of(-offset, 0), last.stride), count)), count + 1)
        end = min_of(ceil_div(last.output - offset, last.stride), count)
        with b.loop(b.index(b.size(max_of(end - low, 0)), count + 1), "vector") as turn:
            lane = low + turn
            x = place_at(b, offset + lane * last.stride, last.output)
            position = (n, g * each + one, *at, x)
            site.store(position, terms.finish(position, b.element(total, lane)))


def _by_pixel(site: Site, axes: tuple[Spread, ...], groups: int, terms: Terms) -> None:
    b, (batch, _, *space) = site.b, site.out_shape()
    channels, each, *kernel = site.shape(1)
    inputs = exact_div(channels, groups)
    extents = (*kernel, channels, each)
    turned = turned_weights(site, lambda o, c, k: (c, o, *k), extents, terms)
    lanes = Lanes(b, each)
    work = inputs * product(kernel) * lanes.width
    with b.parallel((batch, groups, *space, lanes.blocks), work) as (n, g, *at, block):
        start, count = lanes.block(block)
        total = b.array(terms.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, terms.dtype))
        with reaching(b, axes, at) as (taps, places), b.loop(inputs) as one:
            c = g * inputs + one
            pixel = b.let(terms.pixel((n, c, *places)))
            with lanes.walk(start, count) as (lane, output):
                factor = b.load(turned, flatten((*taps, c, output), extents))
                b.put(total, lane, b.element(total, lane) + pixel * factor)
        with lanes.walk(start, count) as (lane, output):
            position = (n, g * each + output, *at)
            site.store(position, terms.finish(position, b.element(total, lane)))


def _col2im(site: Site, position: Position) -> Expr:
    """Every place of the image is the sum of the blocks that cover it."""
    b, call = site.b, site.call
    batch, channel, *space = position
    image = site.out_shape()[2:]
    if any(side == call.fresh(axis + 2) for axis, side in enumerate(image)):
        site.refuse("the size of the image is not known before it runs")
    for axis, side in enumerate(image if call.vector(1) is None else ()):
        found = "image_shape has {value} where the model declares {limit}"
        check_same(b, b.index(site.read(1, (axis,))), side, found)
    block = _block(site, len(image))
    window = read_window(call, len(image), block)
    blocks = window.slide(call, image)
    columns = "the input has {value} columns, where {limit} blocks cover the image"
    check_same(b, site.shape(0)[2], product(blocks), columns)
    rows = "the input has {value} rows, where {limit} are blocks of every channel"
    check_same(b, site.shape(0)[1], site.out_shape()[1] * product(block), rows)
    total = b.local(const(0, sum_dtype(site.dtype(0))))
    spreads = _spreads(window, blocks, image, window.begins)
    with reaching(b, spreads, space) as (taps, places):
        row = channel * product(block) + flatten(taps, block)
        b.set(total, total + site.operand(0, (batch, row, flatten(places, blocks))))
    return total


def _block(site: Site, rank: int) -> Shape:
    """The sides of a block, which may be data."""
    b, known = site.b, site.call.integers(2)
    if known is not None and (len(known) != rank or min(known, default=1) < 1):
        site.refuse(f"a block of {known} does not fit an image of rank {rank}")
    if known is not None:
        return tuple(known)
    sides = []
    for axis in range(rank):
        side = b.let(site.read(2, (axis,)))
        b.fail_if(side < 1, "a block has a side of {value}", side)
        sides.append(b.index(maximum(side, 1), 2**31))
    return tuple(sides)


def _describe(site: Site) -> Geometry:
    """The window, for the backend's own kernels."""
    shape, weights = site.shape(0), site.shape(1)
    window = read_window(site.call, len(shape) - 2, weights[2:])
    kernel = tuple(size for size in window.kernel if isinstance(size, int))
    if len(kernel) != len(shape) - 2:
        site.refuse("the size of the convolution's kernel is not known before it runs")
    begins = _begins(site.call, window, shape[2:], site.out_shape()[2:])
    groups = site.call.int_attr("group", 1)
    return Geometry(kernel, window.strides, window.dilations, tuple(begins), groups)


CONV_TRANSPOSE = TransposedConvolution(_describe, Nest(_conv_transpose))
COL2IM = Element(_col2im, weight=16)
