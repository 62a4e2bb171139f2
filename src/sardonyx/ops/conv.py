"""Convolutions: Conv, ConvTranspose, their integer kin, DeformConv, CausalConvWithState, Col2Im."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator, ShapeRule
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings.convolution import CONV, CONV_INTEGER, QLINEAR_CONV
from sardonyx.ops.lowerings.deformed import CAUSAL_CONV, DEFORM_CONV
from sardonyx.ops.lowerings.transposed import COL2IM, CONV_TRANSPOSE
from sardonyx.ops.plain import flops_per_input
from sardonyx.ops.window import read_window
from sardonyx.sizes import Size, exact_div, product

__all__ = ["OPERATORS"]


def convolution(weights: int) -> ShapeRule:
    """Conv and its kin differ only in which input holds the weights."""

    def rule(call: Call) -> list[Facts]:
        x, w = call.input(0).shape, call.input(weights).shape
        if x is None or w is None:
            return [call.out(call.fresh_shape(len(x or w or ())) if x or w else None)]
        _check_ranks(call, x, w)
        group = _group(call)
        call.agree(
            x[1], w[1] * group, f"input channels and the weights' {w[1]} times {group} groups"
        )
        if isinstance(w[0], int) and w[0] % group:
            call.fail(f"{w[0]} output channels do not divide into {group} groups")
        window = read_window(call, len(x) - 2, w[2:])
        return [call.out((x[0], w[0], *window.slide(call, x[2:])))]

    return rule


def _check_ranks(call: Call, x: Shape, w: Shape) -> None:
    if len(x) != len(w):
        call.fail(f"input and weights must have one rank, but have {len(x)} and {len(w)}")
    if len(x) < 3:
        call.fail(f"input of rank {len(x)} has no spatial dimension (batch, channels, …)")


def _group(call: Call) -> int:
    group = call.int_attr("group", 1)
    if group < 1:
        call.fail(f"group is {group}, but at least 1 is needed")
    return group


def conv_transpose(call: Call) -> list[Facts]:
    x, w = call.input(0).shape, call.input(1).shape
    if x is None or w is None:
        return [call.out(call.fresh_shape(len(x or w or ())) if x or w else None)]
    _check_ranks(call, x, w)
    rank, group = len(x) - 2, _group(call)
    call.agree(x[1], w[0], "input channels and the weights' first dimension")
    if isinstance(w[0], int) and w[0] % group:
        call.fail(f"{w[0]} input channels do not divide into {group} groups")
    window = read_window(call, rank, w[2:])
    extra = call.ints_attr("output_padding") or (0,) * rank
    if len(extra) != rank:
        call.fail(f"output_padding has {len(extra)} entries for {rank} spatial dimensions")
    spatial: Shape | None = call.ints_attr("output_shape")
    if spatial is None:
        spatial = window.spread(x[2:], extra)
    elif len(spatial) == rank + 2:
        spatial = spatial[2:]  # some exporters write batch and channels too
    elif len(spatial) != rank:
        call.fail(f"output_shape has {len(spatial)} entries for {rank} spatial dimensions")
    for axis, size in enumerate(spatial):
        if isinstance(size, int) and size < 1 and x[2 + axis] != 0:
            call.fail(f"spatial dimension {axis} of the output would be {size}")
    return [call.out((x[0], w[1] * group, *spatial))]


def deform_conv(call: Call) -> list[Facts]:
    outputs = list(convolution(1)(call))
    offsets, shape = call.shape(2), outputs[0].shape
    if offsets is not None and shape is not None:
        if len(offsets) != len(shape):
            call.fail(f"offset has rank {len(offsets)}, but the input has rank {len(shape)}")
        for axis in range(2, len(shape)):
            call.agree(offsets[axis], shape[axis], f"offset and output along dimension {axis}")
    return outputs


def causal_conv(call: Call) -> list[Facts]:
    x, w = call.need_rank(0, 3), call.need_rank(1, 3)
    if x is None:
        return [call.out(call.fresh_shape(3)), call.out(call.fresh_shape(3, 1), 1)]
    history = call.fresh(2, 1) if w is None else w[2] - 1
    if w is not None:
        call.agree(x[1], w[0], "input channels and the weights'")
    return [call.out(x), call.out((x[0], x[1], history), 1)]


def col2im(call: Call) -> list[Facts]:
    x, image, block = call.need_rank(0, 3), call.vector(1), call.vector(2)
    if image is None:
        listed = call.shape(1)
        known = listed is not None and len(listed) == 1 and isinstance(listed[0], int)
        rank = listed[0] if known and listed is not None else None
        return [call.out(call.fresh_shape(rank + 2) if isinstance(rank, int) else None)]
    batch: Size = call.fresh(0)
    channels: Size = call.fresh(1)
    if x is not None:
        batch = x[0]
        if block is not None:
            patch = product(block)
            if isinstance(x[1], int) and isinstance(patch, int) and (not patch or x[1] % patch):
                call.fail(f"{x[1]} columns do not divide into blocks of {patch}")
            channels = exact_div(x[1], patch)
    return [call.out((batch, channels, *image))]


def conv_cost(weights: int, call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every output element is a product with one filter."""
    count, w = outputs[0].elements, call.shape(weights)
    macs = None if count is None or w is None else count * product(w[1:])
    return moved(call.inputs, outputs, macs=macs, flops=_bias_flops(call, weights, count))


def _bias_flops(call: Call, weights: int, count: Size | None) -> Size | None:
    has_bias = call.node.op_type in ("Conv", "ConvTranspose", "DeformConv") and (
        call.has(3 if call.node.op_type == "DeformConv" else weights + 1)
    )
    return count if has_bias else 0


def transpose_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every input element is spread by one filter."""
    count, w = call.input(0).elements, call.shape(1)
    macs = None if count is None or w is None else count * product(w[1:])
    flops = outputs[0].elements if call.has(2) else 0
    return moved(call.inputs, outputs, macs=macs, flops=flops)


def causal_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    count, w = outputs[0].elements, call.shape(1)
    macs = None if count is None or w is None else count * w[2]
    return moved(call.inputs, outputs, macs=macs)


OPERATORS = (
    Operator("Conv", "contraction", convolution(1), cost=partial(conv_cost, 1), lower=CONV),
    Operator(
        "ConvInteger", "contraction", convolution(1), cost=partial(conv_cost, 1), lower=CONV_INTEGER
    ),
    Operator(
        "QLinearConv", "contraction", convolution(3), cost=partial(conv_cost, 3), lower=QLINEAR_CONV
    ),
    Operator(
        "ConvTranspose", "contraction", conv_transpose, cost=transpose_cost, lower=CONV_TRANSPOSE
    ),
    Operator(
        "DeformConv", "contraction", deform_conv, cost=partial(conv_cost, 1), lower=DEFORM_CONV
    ),
    Operator(
        "CausalConvWithState", "contraction", causal_conv, cost=causal_cost, lower=CAUSAL_CONV
    ),
    Operator("Col2Im", "opaque", col2im, cost=flops_per_input(1), lower=COL2IM),
)
