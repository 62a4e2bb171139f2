"""Convolutions as loops: Conv, ConvInteger and QLinearConv.

    parallel over rows of one output channel           (NCHW)
      total[lane] = 0
      for input channels, for taps that stand on the input
        factor = w[…]
        vector lane: total[lane] += factor * x[…]      lanes: the pixels of a row

    parallel over pixels                               (channels last)
      for taps that stand on the input, for input channels
        pixel = x[…]
        vector lane: total[lane] += pixel * turned[…]  lanes: output channels; the weights turned for that

The nests define the operators and serve where no kernel of the backend does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sardonyx.loops.build import cast
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import (
    Bytes,
    Convolution,
    IntegerConvolution,
    Nest,
    Position,
    Site,
    Window,
)
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.quantized import saturated
from sardonyx.ops.lowerings.windows import Axis, Lanes, axes_of, check_room, check_same, taps
from sardonyx.ops.window import read_window
from sardonyx.sizes import Size, exact_div, product

__all__ = [
    "CONV",
    "CONV_INTEGER",
    "QLINEAR_CONV",
    "Terms",
    "bias_of",
    "check_groups",
    "turned_weights",
]


Finish: TypeAlias = Callable[[Position, Expr], Expr]


@dataclass(frozen=True)
class Terms:
    """What a convolution multiplies, and what becomes of the sum."""

    dtype: Dtype
    pixel: Callable[[Position], Expr]
    weight: Callable[[Position], Expr]
    finish: Finish


def describe(site: Site, filters: int = 1) -> Window:
    """The window, for the backend's own kernels; the filters are the input of that number."""
    shape, weights = site.shape(0), site.shape(filters)
    window = read_window(site.call, len(shape) - 2, weights[2:])
    kernel = tuple(size for size in window.kernel if isinstance(size, int))
    if len(kernel) != len(shape) - 2:
        site.refuse("the size of the convolution's kernel is not known before it runs")
    axes = axes_of(window, shape[2:], site.out_shape()[2:])
    return Window(
        kernel,
        window.strides,
        window.dilations,
        tuple(axis.begin for axis in axes),
        site.call.int_attr("group", 1),
        tuple(axis.size + axis.begin + axis.end for axis in axes),
    )


def check_groups(site: Site, channels: Size, divided: Size, groups: int) -> None:
    """Whether the channels are those of the weights, and divide into the groups."""
    b = site.b
    reason = "the input has {value} channels, but the weights are for {limit}"
    check_same(b, site.shape(0)[1], channels, reason)
    rest = divided % groups
    fault = apply("ne", b.size(rest), 0)
    b.fail_if(fault, "{value} channels do not divide into {limit} groups", b.size(divided), groups)


def bias_of(site: Site, index: int, dtype: Dtype) -> Finish:
    """Adds the bias of the position's channel, where there is one."""
    if not site.call.has(index):
        return lambda position, total: total
    reason = "a bias of {value} elements for {limit} channels"
    check_same(site.b, site.shape(index)[0], site.out_shape()[1], reason)
    return lambda position, total: total + cast(site.operand(index, (position[1],)), dtype)


def _axes(site: Site, weights: int) -> tuple[Axis, ...]:
    shape = site.shape(0)
    window = read_window(site.call, len(shape) - 2, site.shape(weights)[2:])
    axes = axes_of(window, shape[2:], site.out_shape()[2:])
    declared = site.call.ints_attr("kernel_shape")
    for size, said in zip(site.shape(weights)[2:], declared or (), strict=False):
        check_same(
            site.b, size, said, "the weights are {value} wide, but kernel_shape says {limit}"
        )
    check_room(site, axes)
    return axes


def convolve(site: Site, weights: int, terms: Terms) -> None:
    """The nest of a convolution whose weights are the input of that number."""
    groups, shape = site.call.int_attr("group", 1), site.shape(weights)
    check_groups(site, shape[1] * groups, shape[0], groups)
    axes = _axes(site, weights)
    if site.channels_last:
        _by_pixel(site, shape, axes, groups, terms)
    else:
        _by_row(site, shape, axes, groups, terms)


def _by_row(
    site: Site, weights: Position, axes: tuple[Axis, ...], groups: int, terms: Terms
) -> None:
    b, (batch, outputs, *rows, row) = site.b, site.out_shape()
    _, inputs, *kernel = weights
    last, lanes = axes[-1], Lanes(b, row)
    work = inputs * product(kernel) * lanes.width
    each = exact_div(outputs, groups)
    extents = (batch, groups, each, *rows, lanes.blocks)
    with b.parallel(extents, work) as (n, g, one, *at, block):
        output = g * each + one
        start, count = lanes.block(block)
        total = b.array(terms.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, terms.dtype))
        with (
            b.loop(inputs) as c,
            taps(b, axes[:-1], at) as (others, places),
            b.loop(last.kernel) as tap,
        ):
            factor = b.let(terms.weight((output, c, *others, tap)))
            with lanes.served(last, tap, start, count) as (lane, place):
                value = terms.pixel((n, g * inputs + c, *places, place))
                b.put(total, lane, b.element(total, lane) + factor * value)
        with lanes.walk(start, count) as (lane, x):
            position = (n, output, *at, x)
            site.store(position, terms.finish(position, b.element(total, lane)))


def turned_weights(
    site: Site, order: Callable[[Size, Size, Position], Position], extents: Position, terms: Terms
) -> str:
    """A copy of the weights as [kernel…, input channels, output channels]: lanes lie side by side."""
    b = site.b
    turned = site.scratch(terms.dtype, product(extents))
    with b.parallel(extents[:-1], extents[-1]) as (*kernel, c), b.loop(extents[-1]) as output:
        where = (*kernel, c, output)
        b.store(turned, flatten(where, extents), terms.weight(order(output, c, tuple(kernel))))
    return turned


def _by_pixel(
    site: Site, weights: Position, axes: tuple[Axis, ...], groups: int, terms: Terms
) -> None:
    b, (batch, outputs, *space) = site.b, site.out_shape()
    _, inputs, *kernel = weights
    extents = (*kernel, inputs, outputs)
    turned = turned_weights(site, lambda o, c, k: (o, c, *k), extents, terms)
    # One output a group: all channels are lanes, and each reads its own input channels.
    depthwise = outputs == groups
    each: Size = outputs if depthwise else exact_div(outputs, groups)
    lanes = Lanes(b, each)
    work = inputs * product(kernel) * lanes.width
    loops = (batch, 1 if depthwise else groups, *space, lanes.blocks)
    with b.parallel(loops, work) as (n, g, *at, block):
        start, count = lanes.block(block)
        total = b.array(terms.dtype, lanes.width)
        with b.loop(count, "vector") as lane:
            b.put(total, lane, const(0, terms.dtype))
        with taps(b, axes, at) as (others, places), b.loop(inputs) as c:
            shared = None if depthwise else b.let(terms.pixel((n, g * inputs + c, *places)))
            with lanes.walk(start, count) as (lane, one):
                factor = b.load(turned, flatten((*others, c, g * each + one), extents))
                pixel = shared or terms.pixel((n, one * inputs + c, *places))
                b.put(total, lane, b.element(total, lane) + pixel * factor)
        with lanes.walk(start, count) as (lane, one):
            position = (n, g * each + one, *at)
            site.store(position, terms.finish(position, b.element(total, lane)))


def _conv(site: Site) -> None:
    dtype = sum_dtype(site.dtype(0))
    terms = Terms(
        dtype, partial(site.operand, 0), partial(site.operand, 1), bias_of(site, 2, dtype)
    )
    convolve(site, 1, terms)


def _one_each(site: Site, index: int) -> bool:
    """Whether a scale or zero point is a vector with one number an output channel."""
    shape = site.shape(index)
    return len(shape) == 1 and shape[0] != 1


def _check_parameters(site: Site, *indices: int) -> None:
    reason = "{value} scales or zero points for {limit} channels"
    for index in indices:
        if site.call.has(index) and _one_each(site, index):
            check_same(site.b, site.shape(index)[0], site.out_shape()[1], reason)


def _parameter(site: Site, index: int, channel: Size) -> Expr:
    at = channel if _one_each(site, index) else 0
    return site.operand(index, (at,) * len(site.shape(index)))


def _integer_terms(
    site: Site, inputs: tuple[int, int], weights: tuple[int, int], finish: Finish
) -> Terms:
    """Exact products in 32 bits, which wrap; padding is x's zero point, so that it adds nothing."""

    def moved(index: int, zero: int, position: Position, channel: Size) -> Expr:
        value = cast(site.read(index, position), "i32")
        if not site.call.has(zero):
            return value
        return value - cast(_parameter(site, zero, channel), "i32")

    return Terms(
        "i32",
        lambda position: moved(*inputs, position, 0),
        lambda position: moved(*weights, position, position[0]),
        finish,
    )


def _finish_integer(site: Site) -> Finish:
    _check_parameters(site, 3)
    return lambda position, total: total


def _conv_integer(site: Site) -> None:
    convolve(site, 1, _integer_terms(site, (0, 2), (1, 3), _finish_integer(site)))


def _finish_qlinear(site: Site) -> Finish:
    """Accumulated integers to the output's scale and zero point; rounded half to even, and clipped."""
    kind = site.out_dtype()
    if kind not in ("i8", "u8"):
        site.refuse(f"QLinearConv to {kind} has no native code")
    _check_parameters(site, 4, 5)
    with_bias = bias_of(site, 8, "i32")

    def finish(position: Position, total: Expr) -> Expr:
        channel = position[1]
        x_scale, w_scale, y_scale = (
            cast(_parameter(site, index, channel), "f32") for index in (1, 4, 6)
        )
        exact = cast(with_bias(position, total), "f32") * ((x_scale * w_scale) / y_scale)
        return saturated(site.b, exact, _parameter(site, 7, channel), kind)

    return finish


def _qlinear_conv(site: Site) -> None:
    convolve(site, 3, _integer_terms(site, (0, 2), (3, 5), _finish_qlinear(site)))


CONV = Convolution(describe, Nest(_conv))
CONV_INTEGER = IntegerConvolution(Bytes(0, 2, 1, 3), describe, _finish_integer, Nest(_conv_integer))
QLINEAR_CONV = IntegerConvolution(
    Bytes(0, 2, 3, 5), partial(describe, filters=3), _finish_qlinear, Nest(_qlinear_conv)
)
