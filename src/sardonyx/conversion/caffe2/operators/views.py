"""The same elements in other axes, parts of arrays, and arrays put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.caffe2.operators.table import TABLE, channel_axis, channels_first
from sardonyx.conversion.stored.layer import Layer
from sardonyx.sizes import Size, product, quotient

_END = (1 << 63) - 1
_TYPES: dict[Any, Any] = {
    1: np.float32,
    2: np.int32,
    5: np.bool_,
    10: np.int64,
    12: np.float16,
    13: np.float64,
    "float": np.float32,
    "int32": np.int32,
    "int64": np.int64,
}


@TABLE.layer("Copy", "Alias", "StopGradient", "EnsureCPUOutput", "CopyFromCPUInput", "Dropout")
def identity(layer: Layer) -> ir.Value:
    """What does nothing when a network is used."""
    layer.ignore("ratio")
    if layer.kind == "Dropout" and not layer.flag("is_test"):
        raise layer.refuse("it drops at random.", "Save the network for inference: is_test=True.")
    return layer.input(0)


@TABLE.layer("Concat")
def concat(layer: Layer) -> Sequence[ir.Value]:
    graph = layer.graph
    parts = [layer.input(index) for index in range(len(layer.inputs))]
    axis = layer.integer("axis") if layer.has("axis") else channel_axis(layer)
    if layer.flag("add_axis"):
        parts = [layer.op("Unsqueeze", part, graph.integers([axis])) for part in parts]
    axis = graph.axis(parts[0], axis)
    made = [layer.op("Concat", *parts, axis=axis)]
    if layer.outputs > 1:
        sizes = [graph.shape(part)[axis] for part in parts]
        if all(isinstance(size, int) for size in sizes):
            made.append(graph.constant(sizes, np.int32))
    return made


@TABLE.layer("Split")
def split(layer: Layer) -> Sequence[ir.Value]:
    graph, x = layer.graph, layer.input(0)
    if len(layer.inputs) > 1:
        raise layer.refuse("the sizes of its parts are computed.")
    axis = graph.axis(x, layer.integer("axis") if layer.has("axis") else channel_axis(layer))
    sizes = layer.integers("split", ())
    if sizes:
        return graph.node("Split", [x, graph.integers(sizes)], len(sizes), axis=axis)
    if graph.size(x, axis) % max(layer.outputs, 1):
        raise layer.refuse(f"{graph.size(x, axis)} has no {layer.outputs} equal parts.")
    return graph.node("Split", [x], layer.outputs, axis=axis, num_outputs=layer.outputs)


@TABLE.layer("Reshape")
def reshape(layer: Layer) -> Sequence[ir.Value]:
    graph, x = layer.graph, layer.input(0)
    if len(layer.inputs) > 1:
        wanted = [int(size) for size in layer.weight(1, "shape").reshape(-1)]
    else:
        wanted = layer.integers("shape")
    shape = graph.shape(x)
    made: list[Size] = [shape[at] if size == 0 else size for at, size in enumerate(wanted)]
    if made.count(-1) > 1 or any(isinstance(size, int) and size < -1 for size in made):
        raise layer.refuse(f"{wanted} is no shape.")
    if -1 in made:
        rest = quotient(product(shape), product(size for size in made if size != -1))
        if rest is None:
            raise layer.refuse(f"{[str(size) for size in shape]} cannot become {wanted}.")
        made[made.index(-1)] = rest
    old = layer.op("Shape", x) if layer.outputs > 1 else None
    return [graph.reshape(x, made), *([] if old is None else [old])]


@TABLE.layer("Flatten")
def flatten(layer: Layer) -> ir.Value:
    return layer.op("Flatten", layer.input(0), axis=layer.integer("axis", 1))


@TABLE.layer("FlattenToVec")
def flatten_to_vector(layer: Layer) -> ir.Value:
    return layer.op("Reshape", layer.input(0), layer.graph.integers([-1]))


@TABLE.layer("Squeeze", "ExpandDims")
def change_axes(layer: Layer) -> ir.Value:
    operator = "Squeeze" if layer.kind == "Squeeze" else "Unsqueeze"
    return layer.op(operator, layer.input(0), layer.graph.integers(layer.integers("dims")))


@TABLE.layer("Transpose")
def transpose(layer: Layer) -> ir.Value:
    x = layer.input(0)
    order = layer.integers("axes", ()) or list(range(layer.graph.rank(x)))[::-1]
    return layer.graph.transpose(x, order)


@TABLE.layer("NCHW2NHWC", "NHWC2NCHW")
def switch_order(layer: Layer) -> ir.Value:
    rank = layer.graph.rank(layer.input(0))
    last = [0, *range(2, rank), 1]
    first = [0, rank - 1, *range(1, rank - 1)]
    return layer.graph.transpose(layer.input(0), last if layer.kind == "NCHW2NHWC" else first)


@TABLE.layer("Slice")
def slice_by_ends(layer: Layer) -> ir.Value:
    """Ends below zero count from behind the last: -1 is the end itself."""
    if len(layer.inputs) > 1:
        raise layer.refuse("its bounds are computed.")
    starts, ends = layer.integers("starts"), layer.integers("ends")
    if any(start < 0 for start in starts) or len(starts) != len(ends):
        raise layer.refuse(f"its parts begin at {starts} and end at {ends}.")
    last = [end if end >= 0 else (_END if end == -1 else end + 1) for end in ends]
    axes = list(range(len(starts)))
    numbers = [layer.graph.integers(each) for each in (starts, last, axes)]
    return layer.op("Slice", layer.input(0), *numbers)


@TABLE.layer("Gather")
def gather(layer: Layer) -> ir.Value:
    return layer.op("Gather", layer.input(0), layer.input(1), axis=layer.integer("axis", 0))


@TABLE.layer("Shape")
def shape_of(layer: Layer) -> ir.Value:
    return layer.op("Shape", layer.input(0))


@TABLE.layer("Cast")
def cast(layer: Layer) -> ir.Value:
    kind = layer.get("to")
    if isinstance(kind, list) or kind not in _TYPES:
        raise layer.refuse(f"it casts to {kind!r:.40}.")
    layer.ignore("from_type")
    return layer.graph.cast(layer.input(0), _TYPES[kind])


@TABLE.layer("ChannelShuffle")
def channel_shuffle(layer: Layer) -> ir.Value:
    graph, groups = layer.graph, layer.integer("group")

    def run(x: ir.Value) -> ir.Value:
        batch, channels, *space = graph.shape(x)
        each = quotient(channels, groups)
        if each is None:
            raise layer.refuse(f"{channels} channels have no {groups} equal groups.")
        apart = graph.reshape(x, (batch, groups, each, *space))
        order = [0, 2, 1, *range(3, 3 + len(space))]
        return graph.reshape(graph.transpose(apart, order), graph.shape(x))

    return channels_first(layer, run)
