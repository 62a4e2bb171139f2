"""Convolutions and pools: kernels, strides and pads have three spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from sardonyx.conversion.caffe2.operators.table import TABLE, channels_first, is_last
from sardonyx.conversion.stored.layer import Layer

_VALID, _SAME, _CEIL = 1, 2, 3  # of legacy_pad


def _per_axis(layer: Layer, name: str, axes: int, default: int | None) -> list[int]:
    """`kernel`, `kernels`, or `kernel_h` and `kernel_w`."""
    several = layer.integers(f"{name}s", ())
    if several:
        found = several
    elif layer.has(f"{name}_h") or layer.has(f"{name}_w"):
        found = [layer.integer(f"{name}_h"), layer.integer(f"{name}_w")]
    else:
        found = [layer.integer(name, default)] * axes
    if len(found) != axes:
        raise layer.refuse(f"{name} is {found}, for {axes} axes of space.")
    return found


def _pads(layer: Layer, axes: int) -> dict[str, Any]:
    legacy = layer.integer("legacy_pad", 0)
    if legacy not in (0, _VALID, _SAME, _CEIL):
        raise layer.refuse(f"its legacy_pad is {legacy}.")
    several = layer.integers("pads", ())
    sides = ("pad_t", "pad_l", "pad_b", "pad_r")
    if several:
        found = several
    elif any(layer.has(side) for side in sides):
        found = [layer.integer(side, 0) for side in sides]
    else:
        found = [layer.integer("pad", 0)] * (2 * axes)
    if len(found) != 2 * axes:
        raise layer.refuse(f"pads are {found}, for {axes} axes of space.")
    if legacy in (_VALID, _SAME):
        if any(found):
            raise layer.refuse("it has both pads and a rule for them.")
        return {"auto_pad": "VALID" if legacy == _VALID else "SAME_UPPER"}
    return {"pads": found, **({"ceil_mode": 1} if legacy == _CEIL else {})}


@TABLE.layer("Conv", "Conv1D", "Conv2D", "Conv3D")
def convolution(layer: Layer) -> ir.Value:
    graph, weight = layer.graph, layer.input(1)
    rank = graph.rank(layer.input(0))
    if is_last(layer):
        weight = graph.transpose(weight, [0, rank - 1, *range(1, rank - 1)])
    attributes = {
        "kernel_shape": _per_axis(layer, "kernel", rank - 2, None),
        "strides": _per_axis(layer, "stride", rank - 2, 1),
        "dilations": _per_axis(layer, "dilation", rank - 2, 1),
        "group": layer.integer("group", 1),
        **_pads(layer, rank - 2),
    }
    if "ceil_mode" in attributes:
        raise layer.refuse("a convolution cannot be padded as Caffe pads pools.")
    bias = layer.optional(2)
    return channels_first(layer, lambda x: layer.op("Conv", x, weight, bias, **attributes))


@TABLE.layer("ConvTranspose")
def transposed_convolution(layer: Layer) -> ir.Value:
    graph, weight = layer.graph, layer.input(1)
    if is_last(layer):
        weight = graph.transpose(weight, [0, 3, 1, 2])
    attributes = {
        "kernel_shape": _per_axis(layer, "kernel", 2, None),
        "strides": _per_axis(layer, "stride", 2, 1),
        "output_padding": _per_axis(layer, "adj", 2, 0),
        "group": layer.integer("group", 1),
        **_pads(layer, 2),
    }
    if "pads" not in attributes or "ceil_mode" in attributes:
        raise layer.refuse("it is padded by a rule.")
    bias = layer.optional(2)
    return channels_first(layer, lambda x: layer.op("ConvTranspose", x, weight, bias, **attributes))


@TABLE.layer("MaxPool", "AveragePool", "MaxPool1D", "MaxPool2D", "AveragePool1D", "AveragePool2D")
def pool(layer: Layer) -> ir.Value:
    axes = layer.graph.rank(layer.input(0)) - 2
    operator = "MaxPool" if layer.kind.startswith("Max") else "AveragePool"
    if layer.flag("global_pooling"):
        layer.ignore("kernel", "kernels", "stride", "strides", "pad", "legacy_pad")
        return channels_first(layer, lambda x: layer.op(f"Global{operator}", x))
    attributes = {
        "kernel_shape": _per_axis(layer, "kernel", axes, None),
        "strides": _per_axis(layer, "stride", axes, 1),
        **_pads(layer, axes),
    }
    if set(_per_axis(layer, "dilation", axes, 1)) != {1}:
        raise layer.refuse("its windows are dilated.")
    if operator == "AveragePool":
        attributes["count_include_pad"] = int(layer.flag("count_include_pad"))
        _check_counts(layer, attributes)
    return channels_first(layer, lambda x: layer.op(operator, x, **attributes))


def _check_counts(layer: Layer, attributes: dict[str, Any]) -> None:
    if attributes["count_include_pad"] and "pads" not in attributes:
        raise layer.refuse("it counts a padding that a rule decides.")


@TABLE.layer("PadImage")
def pad_image(layer: Layer) -> ir.Value:
    mode = layer.choice("mode", "constant", ("constant", "reflect", "edge"))
    pads: Sequence[int] = _pads(layer, 2).get("pads", ())
    if len(pads) != 4:
        raise layer.refuse("it is padded by a rule.")
    fill = layer.scalar(layer.number("value", 0.0)) if mode == "constant" else None
    ends = layer.graph.integers([0, 0, *pads[:2], 0, 0, *pads[2:]])
    return channels_first(layer, lambda x: layer.op("Pad", x, ends, fill, mode=mode))


@TABLE.layer("ResizeNearest")
def resize_nearest(layer: Layer) -> ir.Value:
    factors = [1.0, 1.0, layer.number("height_scale", 1.0), layer.number("width_scale", 1.0)]
    return channels_first(layer, lambda x: layer.graph.enlarge(x, factors))
