"""Convolutions and products with weights. Axes are [batch, height, width, channels] there, channels first here."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.quantized import is_quantized, round_rows
from sardonyx.conversion.tflite.table import Site, operator

__all__ = ["channels_first", "channels_last", "same_pads"]

_SAME, _VALID = 0, 1


def channels_first(site: Site, x: ir.Value, rank: int = 4) -> ir.Value:
    return site.graph.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(site: Site, x: ir.Value, rank: int = 4) -> ir.Value:
    return site.graph.op("Transpose", x, perm=[0, *range(2, rank), 1])


def same_pads(
    site: Site, kernel: list[int], strides: list[int], dilations: list[int]
) -> dict[str, Any]:
    """What a window reaches over the edges by: as numbers where sizes are known, else by the rule."""
    padding = int(site.option("padding"))
    if padding == _VALID:
        return {}
    if padding != _SAME:
        raise site.refuse(f"there is no padding {padding}.")
    before, after = [], []
    for size, width, step, gap in zip(site.sizes(0)[1:-1], kernel, strides, dilations, strict=True):
        if size is None:
            if any(each != 1 for each in dilations):
                raise site.refuse(
                    "its window is dilated, and the size of its input is open.",
                    "Leave height and width fixed.",
                )
            return {"auto_pad": "SAME_UPPER"}
        reach = (width - 1) * gap + 1
        total = max(0, (-(-size // step) - 1) * step + reach - size)
        before.append(total // 2)
        after.append(total - total // 2)
    return {"pads": [*before, *after]}


def _bias(site: Site, index: int = 2) -> ir.Value | None:
    return site.real(index) if site.has(index) else None


def _is_hybrid(site: Site, weights: int = 1, x: int = 0) -> bool:
    """Whether reals meet weights of integers: the kernel then rounds the reals too."""
    return site.tensor(x).dtype == np.float32 and is_quantized(site.tensor(weights))


def _window(site: Site, names: str) -> tuple[list[int], list[int]]:
    strides = [int(site.option(f"stride_{name}")) for name in names]
    gaps = [int(site.operator.options.get(f"dilation_{name}", 1)) for name in names]
    if min(*strides, *gaps) < 1:
        raise site.refuse(f"its strides are {strides}, its dilations {gaps}.")
    return strides, gaps


@operator("CONV_2D", "CONV_3D")
def convolution(site: Site) -> ir.Value:
    deep = site.operator.kind == "CONV_3D"
    rank = 5 if deep else 4
    shape = _filter_shape(site, rank)
    strides, gaps = _window(site, "dhw" if deep else "hw")
    # Filters are [out, height, width, in], those of CONV_3D [depth, height, width, in, out].
    kernel = list(shape[:3] if deep else shape[1:3])
    order, taken = ((4, 3, 0, 1, 2), shape[3]) if deep else ((0, 3, 1, 2), shape[3])
    x = site.real(0)
    if _is_hybrid(site):
        x = round_rows(site.graph, x, tuple(range(1, rank)), asymmetric=True)
    made = site.graph.op(
        "Conv",
        channels_first(site, x, rank),
        site.turned(1, order),
        _bias(site),
        kernel_shape=kernel,
        strides=strides,
        dilations=gaps,
        group=_groups(site, taken),
        **same_pads(site, kernel, strides, gaps),
    )
    return site.activated(channels_last(site, made, rank))


def _filter_shape(site: Site, rank: int) -> tuple[int, ...]:
    shape = site.tensor(1).shape
    if shape is None or len(shape) != rank or 0 in shape:
        raise site.refuse(f"its filter has the shape {shape}.")
    return shape


def _groups(site: Site, taken: int) -> int:
    channels = site.tensor(0).sizes[-1]
    if channels is None or channels % taken:
        raise site.refuse(f"its filter takes {taken} of {channels} channels.")
    return channels // taken


@operator("DEPTHWISE_CONV_2D")
def depthwise(site: Site) -> ir.Value:
    """Filters are [1, height, width, in · multiplier]: every channel has its own."""
    _, height, width, made_channels = _filter_shape(site, 4)
    channels = site.tensor(0).sizes[-1]
    if not channels or made_channels % channels:
        raise site.refuse(f"it makes {made_channels} of {channels} channels.")
    strides, gaps = _window(site, "hw")
    x = site.real(0)
    if _is_hybrid(site):
        x = round_rows(site.graph, x, (1, 2, 3), asymmetric=True)
    made = site.graph.op(
        "Conv",
        channels_first(site, x),
        site.turned(1, (3, 0, 1, 2)),
        _bias(site),
        kernel_shape=[height, width],
        strides=strides,
        dilations=gaps,
        group=channels,
        **same_pads(site, [height, width], strides, gaps),
    )
    return site.activated(channels_last(site, made))


@operator("TRANSPOSE_CONV")
def transposed(site: Site) -> ir.Value:
    """Its inputs: the shape of the result, the filter [out, height, width, in], what is convolved, a bias."""
    graph = site.graph
    out, height, width, _ = _filter_shape(site, 4)
    strides, _ = _window(site, "hw")
    kernel = [height, width]
    x = site.real(2)
    if _is_hybrid(site, 1, 2):
        x = round_rows(graph, x, (1, 2, 3), asymmetric=True)
    made = graph.op(
        "ConvTranspose",
        channels_first(site, x),
        site.turned(1, (3, 0, 1, 2)),
        _bias(site, 3),
        kernel_shape=kernel,
        strides=strides,
    )
    return site.activated(_cut(site, channels_last(site, made), kernel, strides, out))


def _cut(site: Site, x: ir.Value, kernel: list[int], strides: list[int], channels: int) -> ir.Value:
    """The part of the full transposed convolution that a SAME or VALID one with this result had come from."""
    wanted = site.known(0)
    sizes: list[int | None] = list(site.made_sizes(0)[1:3])
    if wanted is not None:
        sizes = [int(size) for size in wanted[1:3]]
    begins, ends, missing = [], [], []
    for size, given, width, step in zip(sizes, _given(site), kernel, strides, strict=True):
        if int(site.option("padding")) == _VALID and size is None:
            return x  # the full one is it, as far as converters write it
        if size is None or given is None:
            raise site.refuse("the size of its result is open.", "Leave height and width fixed.")
        total = 0
        if int(site.option("padding")) == _SAME:
            total = max(0, (given - 1) * step + width - size)
        full = (given - 1) * step + width
        begins.append(total // 2)
        ends.append(min(total // 2 + size, full))
        missing.append(total // 2 + size - ends[-1])
    if any(missing):
        raise site.refuse(f"its result of {sizes} is larger than what its filter reaches.")
    graph = site.graph
    axes = graph.constant([1, 2], np.int64)
    return graph.op(
        "Slice", x, graph.constant(begins, np.int64), graph.constant(ends, np.int64), axes
    )


def _given(site: Site) -> list[int | None]:
    return list(site.sizes(2)[1:3])


@operator("FULLY_CONNECTED")
def fully_connected(site: Site) -> ir.Value:
    """Weights are [out, in]; what is not of two axes is taken as rows of `in`."""
    graph = site.graph
    if site.option("weights_format"):
        raise site.refuse("its weights are shuffled for one kind of CPU.")
    if site.rank(1) != 2:
        raise site.refuse(f"its weights have {site.rank(1)} axes.")
    x, rank = site.real(0), site.rank(0)
    taken = site.tensor(1).sizes[1]
    keeps = bool(site.option("keep_num_dims")) and rank >= 2
    if not keeps and not (rank == 2 and site.tensor(0).sizes[1] == taken):
        if not taken:
            raise site.refuse("the size of its rows is open.")
        x = graph.op("Reshape", x, graph.constant([-1, taken], np.int64))
        rank = 2
    if _is_hybrid(site):
        x = round_rows(graph, x, (-1,), bool(site.option("asymmetric")))
    weights = site.turned(1, (1, 0))
    made = graph.op("MatMul", x, weights)
    bias = _bias(site)
    return site.activated(made if bias is None else graph.op("Add", made, bias))


@operator("BATCH_MATMUL")
def product(site: Site) -> ir.Value:
    graph = site.graph
    x, y = site.real(0), site.real(1)
    if _is_hybrid(site):
        axis = -2 if site.option("adj_x") else -1
        x = round_rows(graph, x, (axis,), bool(site.option("asymmetric")))
    if site.option("adj_x"):
        x = _swapped(site, x, site.rank(0))
    if site.option("adj_y"):
        y = _swapped(site, y, site.rank(1))
    return graph.op("MatMul", x, y)


def _swapped(site: Site, x: ir.Value, rank: int) -> ir.Value:
    return site.graph.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])
