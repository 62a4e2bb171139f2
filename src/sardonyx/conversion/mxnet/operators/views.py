"""The same elements in other axes, parts of arrays, and arrays put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer
from sardonyx.sizes import Expr, Size, product, quotient

_END = (1 << 63) - 1


@TABLE.layer("Flatten", "flatten")
def flatten(layer: Layer) -> ir.Value:
    return layer.graph.flat(layer.input(0))


@TABLE.layer("Reshape", "reshape")
def reshape(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    layer.ignore("keep_highest")
    codes = layer.integers("shape", ())
    if not codes or any(layer.integers("target_shape", ())):
        raise layer.refuse("it has no shape, but a target_shape.", "Give shape instead.")
    shape = list(graph.shape(x))
    if layer.flag("reverse"):
        found = _decode(layer, codes[::-1], shape[::-1], reverse=True)[::-1]
    else:
        found = _decode(layer, codes, shape)
    return graph.reshape(x, found)


def _decode(
    layer: Layer, codes: Sequence[int], shape: Sequence[Size], *, reverse: bool = False
) -> list[Size]:
    """MXNet's codes: 0 keeps a size, -1 takes the rest, -2 all that follow, -3 joins two, -4 splits one."""
    made: list[Size | None] = []
    at, left = 0, list(codes)
    while left:
        code = left.pop(0)
        if code > 0:
            made.append(code)
            at += 1
        elif code == 0:
            made.append(shape[at])
            at += 1
        elif code == -1:
            made.append(None)
            at += 1
        elif code == -2:
            made.extend(shape[at:])
            at = len(shape)
        elif code == -3:
            made.append(product(shape[at : at + 2]))
            at += 2
        elif code == -4 and not reverse:
            first, second = left.pop(0), left.pop(0)
            made.extend(_split(layer, shape[at], first, second))
            at += 1
        else:
            raise layer.refuse(f"the code {code} in {list(codes)} cannot be read.")
    if made.count(None) > 1:
        raise layer.refuse(f"{list(codes)} leaves more than one size open.")
    sizes = [size for size in made if size is not None]
    if len(sizes) == len(made):
        return sizes
    rest = quotient(product(shape), product(sizes))
    if rest is None:
        raise layer.refuse(f"{[str(size) for size in shape]} cannot become {list(codes)}.")
    return [rest if size is None else size for size in made]


def _split(layer: Layer, size: Size, first: int, second: int) -> tuple[Size, Size]:
    if first == second == -1 or 0 in (first, second):
        raise layer.refuse(f"-4 splits a size into {first} and {second}.")
    if first == -1:
        part = quotient(size, second)
        return (_divided(layer, part, size, second), second)
    return (first, _divided(layer, quotient(size, first), size, first))


def _divided(layer: Layer, found: Size | None, size: Size, by: int) -> Size:
    if found is None:
        raise layer.refuse(f"-4 splits a size of {size} by {by}.")
    return found


@TABLE.layer("reshape_like")
def reshape_like(layer: Layer) -> ir.Value:
    return layer.graph.reshape(layer.input(0), layer.graph.shape(layer.input(1)))


@TABLE.layer("transpose")
def transpose(layer: Layer) -> ir.Value:
    x = layer.input(0)
    order = layer.integers("axes", ()) or list(range(layer.graph.rank(x)))[::-1]
    return layer.graph.transpose(x, [layer.graph.axis(x, axis) for axis in order])


@TABLE.layer("SwapAxis", "swapaxes")
def swap_axes(layer: Layer) -> ir.Value:
    x = layer.input(0)
    a = layer.graph.axis(x, layer.integer("dim1", 0))
    b = layer.graph.axis(x, layer.integer("dim2", 0))
    order = list(range(layer.graph.rank(x)))
    order[a], order[b] = order[b], order[a]
    return layer.graph.transpose(x, order)


@TABLE.layer("expand_dims")
def expand_dims(layer: Layer) -> ir.Value:
    axis = layer.graph.integers([layer.integer("axis")])
    return layer.op("Unsqueeze", layer.input(0), axis)


@TABLE.layer("squeeze")
def squeeze(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    axes = layer.integers("axis", ()) or [a for a, size in enumerate(graph.shape(x)) if size == 1]
    return layer.op("Squeeze", x, graph.integers([graph.axis(x, axis) for axis in axes]))


@TABLE.layer("Concat", "concat", "_rnn_param_concat")
def concat(layer: Layer) -> ir.Value:
    graph = layer.graph
    parts = [layer.input(index) for index in range(len(layer.inputs))]
    axis = graph.axis(parts[0], layer.integer("dim", 1))
    arrays = [graph.known(part) for part in parts]
    stored = [array for array in arrays if array is not None]
    if len(stored) == len(parts):  # the parameters of an RNN are put together from their parts
        return graph.parameter(layer.name, np.concatenate(stored, axis))
    return layer.op("Concat", *parts, axis=axis)


@TABLE.layer("stack")
def stack(layer: Layer) -> ir.Value:
    axis = layer.integer("axis", 0)
    place = layer.graph.integers([axis])
    parts = [layer.op("Unsqueeze", layer.input(i), place) for i in range(len(layer.inputs))]
    return layer.op("Concat", *parts, axis=axis)


@TABLE.layer("SliceChannel", "split")
def split(layer: Layer) -> Sequence[ir.Value]:
    graph, x = layer.graph, layer.input(0)
    count, axis = layer.integer("num_outputs"), graph.axis(x, layer.integer("axis", 1))
    size = graph.size(x, axis)
    if count < 1 or size % count:
        raise layer.refuse(f"a size of {size} cannot be split into {count} equal parts.")
    parts = graph.node("Split", [x], count, axis=axis, num_outputs=count)
    if layer.flag("squeeze_axis"):
        return [layer.op("Squeeze", part, graph.integers([axis])) for part in parts]
    return parts


@TABLE.layer("slice", "crop")
def slice_by_ends(layer: Layer) -> ir.Value:
    begins, ends = _items(layer, "begin"), _items(layer, "end")
    steps = _items(layer, "step")
    steps = steps + [None] * (len(begins) - len(steps))
    plain = [1 if step is None else step for step in steps]
    first = [
        (0 if step > 0 else _END) if begin is None else begin
        for begin, step in zip(begins, plain, strict=True)
    ]
    last = [
        (_END if step > 0 else -_END) if end is None else end
        for end, step in zip(ends, plain, strict=True)
    ]
    return _slice(layer, first, last, list(range(len(begins))), plain)


@TABLE.layer("slice_axis")
def slice_axis(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis"))
    end = layer.get("end")
    last = _END if end is None else layer.integer("end")
    return _slice(layer, [layer.integer("begin")], [last], [axis], [1])


@TABLE.layer("slice_like")
def slice_like(layer: Layer) -> ir.Value:
    graph, x, like = layer.graph, layer.input(0), layer.input(1)
    named = layer.integers("axes", ()) or range(graph.rank(x))
    axes = [graph.axis(x, axis) for axis in named]
    ends = [graph.shape(like)[axis] for axis in axes]
    if any(isinstance(end, Expr) for end in ends):
        raise layer.refuse("it is cut to sizes that are open.")
    return _slice(layer, [0] * len(axes), [int(str(end)) for end in ends], axes, [1] * len(axes))


def _items(layer: Layer, name: str) -> list[int | None]:
    value = layer.get(name)
    items = () if value is None else value if isinstance(value, tuple) else (value,)
    if any(item is not None and not isinstance(item, int) for item in items):
        raise layer.refuse(f"its attribute {name} is {value!r:.60}, not integers.")
    return list(items)


def _slice(
    layer: Layer, begins: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> ir.Value:
    numbers = layer.graph.integers
    operands = [numbers(each) for each in (begins, ends, axes, steps)]
    return layer.op("Slice", layer.input(0), *operands)


@TABLE.layer("tile")
def tile(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    reps = layer.integers("reps")
    rank = max(len(reps), graph.rank(x))
    wide = graph.reshape(x, (*(1,) * (rank - graph.rank(x)), *graph.shape(x)))
    return layer.op("Tile", wide, graph.integers([*[1] * (rank - len(reps)), *reps]))


@TABLE.layer("broadcast_axis", "broadcast_axes")
def broadcast_axis(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    wanted = [1] * graph.rank(x)
    for axis, size in zip(layer.integers("axis"), layer.integers("size"), strict=True):
        wanted[graph.axis(x, axis)] = size
    return layer.op("Expand", x, graph.integers(wanted))


@TABLE.layer("broadcast_to")
def broadcast_to(layer: Layer) -> ir.Value:
    wanted = [size or 1 for size in layer.integers("shape")]  # 0 keeps the size
    return layer.op("Expand", layer.input(0), layer.graph.integers(wanted))


@TABLE.layer("broadcast_like")
def broadcast_like(layer: Layer) -> ir.Value:
    if layer.get("lhs_axes") is not None or layer.get("rhs_axes") is not None:
        raise layer.refuse("it names axes.")
    return layer.op("Expand", layer.input(0), layer.op("Shape", layer.input(1)))


@TABLE.layer("Pad", "pad")
def pad(layer: Layer) -> ir.Value:
    widths = layer.integers("pad_width")
    mode = layer.choice("mode", None, ("constant", "edge", "reflect"))
    fill = layer.scalar(layer.number("constant_value", 0.0)) if mode == "constant" else None
    ends = layer.graph.integers([*widths[::2], *widths[1::2]])
    return layer.op("Pad", layer.input(0), ends, fill, mode=mode)
