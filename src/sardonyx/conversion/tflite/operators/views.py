"""Operators that move elements and compute none: shapes, axes, parts, padding; and sizes as numbers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.operators.layers import channels_first, channels_last
from sardonyx.conversion.tflite.quantized import is_quantized
from sardonyx.conversion.tflite.schema import Array
from sardonyx.conversion.tflite.table import Site, check_steps, operator

__all__: list[str] = []


@operator("RESHAPE", moving=True, takes_pairs=True)
def reshape(site: Site) -> ir.Value:
    graph = site.graph
    if site.has(1):
        shape = graph.numbers(site.raw(1))
        known = graph.known(shape)
        if known is not None and known.ndim != 1:
            shape = graph.constant(known.reshape(-1), np.int64)
    else:
        shape = graph.constant(list(site.option("new_shape")), np.int64)
    known = graph.known(shape)
    zero = {"allowzero": 1} if known is not None and (known == 0).any() else {}
    if site.is_complex:
        shape = graph.op("Concat", shape, graph.constant([2], np.int64), axis=0)
    return graph.op("Reshape", site.raw(0), shape, **zero)


@operator("DENSIFY", moving=True)
def densify(site: Site) -> ir.Value:
    """Sparse constants are written out as they are read."""
    return site.graph.op("Identity", site.raw(0))


@operator("TRANSPOSE", moving=True)
def transpose(site: Site) -> ir.Value:
    order = site.constant(1, "the order of axes").reshape(-1)
    rank = site.rank(0)
    return site.graph.op(
        "Transpose", site.raw(0), perm=[int(axis) % max(rank, 1) for axis in order]
    )


@operator("SQUEEZE", moving=True, takes_pairs=True)
def squeeze(site: Site) -> ir.Value:
    axes = list(site.option("squeeze_dims"))
    if not axes:
        axes = [axis for axis, size in enumerate(site.tensor(0).sizes) if size == 1]
    if site.is_complex:
        axes = [axis % max(site.rank(0), 1) for axis in axes]
    return site.graph.op("Squeeze", site.raw(0), site.graph.constant(axes, np.int64))


@operator("EXPAND_DIMS", moving=True, takes_pairs=True)
def expand_dims(site: Site) -> ir.Value:
    axis = site.constant(1, "the axis").reshape(-1)
    if site.is_complex:
        axis = axis % (site.rank(0) + 1)
    return site.graph.op("Unsqueeze", site.raw(0), site.graph.constant(axis, np.int64))


@operator("CONCATENATION")
def concatenate(site: Site) -> ir.Value:
    if site.tensor(0).dtype == np.int16:  # its kernel leaves them as they are
        check_steps(site)
    parts = [site.real(index) for index in range(site.count)]
    return site.activated(site.graph.op("Concat", *parts, axis=int(site.option("axis"))))


@operator("PACK", moving=True)
def pack(site: Site) -> ir.Value:
    graph, axis = site.graph, int(site.option("axis"))
    where = graph.constant([axis], np.int64)
    parts = [graph.op("Unsqueeze", site.raw(index), where) for index in range(site.count)]
    return graph.op("Concat", *parts, axis=axis)


@operator("UNPACK", moving=True)
def unpack(site: Site) -> list[ir.Value]:
    graph, axis, count = site.graph, int(site.option("axis")), len(site.outputs)
    parts = graph.node("Split", [site.raw(0)], count, axis=axis, num_outputs=count)
    where = graph.constant([axis], np.int64)
    return [graph.op("Squeeze", part, where) for part in parts]


@operator("SPLIT", moving=True)
def split(site: Site) -> list[ir.Value]:
    axis, count = int(site.constant(0, "the axis").reshape(())), len(site.outputs)
    if count == 1:
        return [site.graph.op("Identity", site.raw(1))]
    return list(site.graph.node("Split", [site.raw(1)], count, axis=axis, num_outputs=count))


@operator("SPLIT_V", moving=True)
def split_by_sizes(site: Site) -> list[ir.Value]:
    axis, count = int(site.constant(2, "the axis").reshape(())), len(site.outputs)
    sizes = site.constant(1, "the list of sizes").astype(np.int64)
    if (sizes < 0).any():
        whole = site.tensor(0).sizes[axis]
        if whole is None:
            raise site.refuse("one of its sizes is what is left, of a size that is open.")
        sizes = np.where(sizes < 0, whole - sizes[sizes >= 0].sum(), sizes)
    inputs = [site.raw(0), site.graph.constant(sizes, np.int64)]
    return list(site.graph.node("Split", inputs, count, axis=axis))


@operator("SLICE", moving=True)
def slice_(site: Site) -> ir.Value:
    """Begins and sizes; a size of -1 is all that is left."""
    graph = site.graph
    begins, sizes = graph.numbers(site.raw(1)), graph.numbers(site.raw(2))
    ends = graph.op("Add", begins, sizes)
    rest = graph.op("Less", sizes, graph.constant(0, np.int64))
    ends = graph.op("Where", rest, graph.constant(np.iinfo(np.int64).max, np.int64), ends)
    axes = graph.constant(list(range(site.rank(0))), np.int64)
    return graph.op("Slice", site.raw(0), begins, ends, axes)


def _pads(site: Site) -> ir.Value:
    """[before, after] by axis → all before, all after."""
    graph, known = site.graph, site.known(1)
    if known is not None:
        return graph.constant(np.ascontiguousarray(known.T).reshape(-1), np.int64)
    turned = graph.op("Transpose", graph.numbers(site.raw(1)), perm=[1, 0])
    return graph.op("Reshape", turned, graph.constant([-1], np.int64))


@operator("PAD", "PADV2", moving=True)
def pad(site: Site) -> ir.Value:
    graph, tensor = site.graph, site.tensor(0)
    if site.has(2):
        filler = site.raw(2)
        if site.rank(2):
            filler = graph.op("Reshape", filler, graph.constant(np.zeros(0, np.int64)))
    else:
        zero = 0
        if is_quantized(tensor):
            assert tensor.quantization is not None
            zero = int(tensor.quantization.zero[0])
        filler = graph.constant(np.asarray(zero, tensor.dtype))
    return graph.op("Pad", site.raw(0), _pads(site), filler)


@operator("MIRROR_PAD", moving=True)
def mirror_pad(site: Site) -> ir.Value:
    """Symmetric ones, with the edge itself twice, by the places that are read."""
    graph = site.graph
    if int(site.option("mode")) == 0:
        return graph.op("Pad", site.raw(0), _pads(site), mode="reflect")
    x, widths = site.raw(0), site.constant(1, "the list of widths")
    for axis, (before, after) in enumerate(widths.tolist()):
        size = site.sizes(0)[axis]
        if not before and not after:
            continue
        if size is None or not 0 <= max(before, after) <= size:
            raise site.refuse(f"it mirrors {before} and {after} of {size} elements.")
        places = np.pad(np.arange(size), (before, after), mode="symmetric")
        x = graph.op("Gather", x, graph.constant(places, np.int64), axis=axis)
    return x


@operator("TILE", moving=True)
def tile(site: Site) -> ir.Value:
    return site.graph.op("Tile", site.raw(0), site.graph.numbers(site.raw(1)))


@operator("BROADCAST_TO", moving=True)
def broadcast_to(site: Site) -> ir.Value:
    return site.graph.op("Expand", site.raw(0), site.graph.numbers(site.raw(1)))


@operator("BROADCAST_ARGS", moving=True)
def broadcast_shapes(site: Site) -> ir.Value:
    """The larger of two shapes, from the last axis on."""
    graph, shapes = site.graph, []
    ranks = [size for index in (0, 1) for size in site.tensor(index).sizes]
    for index, rank in zip((0, 1), ranks, strict=False):
        if len(ranks) != 2 or rank is None or None in ranks:
            raise site.refuse("it compares shapes whose lengths are open.")
        missing = max(size or 0 for size in ranks) - rank
        ones = graph.constant(np.ones(missing, site.tensor(index).dtype))
        shapes.append(graph.op("Concat", ones, site.raw(index), axis=0))
    return graph.op("Max", *shapes)


@operator("REVERSE_V2", moving=True)
def reverse(site: Site) -> ir.Value:
    graph = site.graph
    axes = site.constant(1, "the list of axes").reshape(-1).tolist()
    count, lowest = len(axes), int(np.iinfo(np.int64).min)
    begins, ends, steps = [-1] * count, [lowest] * count, [-1] * count
    bounds = (graph.constant(each, np.int64) for each in (begins, ends, axes, steps))
    return graph.op("Slice", site.raw(0), *bounds)


@operator("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", moving=True)
def blocks(site: Site) -> ir.Value:
    size = int(site.option("block_size"))
    if size < 1:
        raise site.refuse(f"its blocks have the size {size}.")
    kind = "DepthToSpace" if site.operator.kind == "DEPTH_TO_SPACE" else "SpaceToDepth"
    return channels_last(
        site, site.graph.op(kind, channels_first(site, site.raw(0)), blocksize=size)
    )


def _blocked(site: Site) -> tuple[list[int], Array, list[int]]:
    """Blocks and widths of the middle axes, and the sizes of all but the first."""
    block = site.constant(1, "the size of blocks").reshape(-1).tolist()
    widths = site.constant(2, "the list of widths").reshape(-1, 2)
    sizes = [size for size in site.sizes(0)[1:] if size is not None]
    if len(sizes) != site.rank(0) - 1 or len(widths) != len(block) or min(block, default=1) < 1:
        raise site.refuse("the sizes of its input are open.", "Leave all axes but the batch fixed.")
    return block, widths, sizes


@operator("SPACE_TO_BATCH_ND", moving=True)
def space_to_batch(site: Site) -> ir.Value:
    """[n, h·b, w·b, c] → [n, h, b, w, b, c] → [b, b, n, h, w, c] → [b·b·n, h, w, c]."""
    graph, tensor = site.graph, site.tensor(0)
    block, widths, sizes = _blocked(site)
    padded = [s + int(w.sum()) for s, w in zip(sizes, widths, strict=False)] + sizes[len(block) :]
    zero = int(tensor.quantization.zero[0]) if tensor.quantization and is_quantized(tensor) else 0
    rest = [0] * (len(sizes) - len(block))
    pads = [0, *widths[:, 0].tolist(), *rest, 0, *widths[:, 1].tolist(), *rest]
    filler = graph.constant(np.asarray(zero, tensor.dtype))
    x = graph.op("Pad", site.raw(0), graph.constant(pads, np.int64), filler)
    pairs = [n for s, b in zip(padded, block, strict=False) for n in (s // b, b)]
    tail = padded[len(block) :]
    x = graph.op("Reshape", x, graph.constant([-1, *pairs, *tail], np.int64))
    count = len(block)
    inner, outer = [2 * i + 2 for i in range(count)], [2 * i + 1 for i in range(count)]
    last = list(range(2 * count + 1, 2 * count + 1 + len(tail)))
    x = graph.op("Transpose", x, perm=[*inner, 0, *outer, *last])
    smaller = [s // b for s, b in zip(padded, block, strict=False)]
    return graph.op("Reshape", x, graph.constant([-1, *smaller, *tail], np.int64))


@operator("BATCH_TO_SPACE_ND", moving=True)
def batch_to_space(site: Site) -> ir.Value:
    """[b·b·n, h, w, c] → [b, b, n, h, w, c] → [n, h, b, w, b, c] → [n, h·b, w·b, c], and its edges cut."""
    graph = site.graph
    block, widths, sizes = _blocked(site)
    count, tail = len(block), sizes[len(block) :]
    x = graph.op("Reshape", site.raw(0), graph.constant([*block, -1, *sizes], np.int64))
    pairs = [n for i in range(count) for n in (count + 1 + i, i)]
    last = list(range(2 * count + 1, 2 * count + 1 + len(tail)))
    x = graph.op("Transpose", x, perm=[count, *pairs, *last])
    larger = [s * b for s, b in zip(sizes, block, strict=False)]
    x = graph.op("Reshape", x, graph.constant([-1, *larger, *tail], np.int64))
    begins = widths[:, 0].tolist()
    ends = [s - int(w[1]) for s, w in zip(larger, widths, strict=True)]
    bounds = (graph.constant(n, np.int64) for n in (begins, ends, list(range(1, count + 1))))
    return graph.op("Slice", x, *bounds)


@operator("SHAPE")
def shape(site: Site) -> ir.Value:
    return site.graph.cast(site.graph.op("Shape", site.raw(0)), site.outputs[0].dtype)


@operator("RANK")
def rank(site: Site) -> ir.Value:
    return site.graph.constant(np.asarray(site.rank(0), site.outputs[0].dtype))


@operator("FILL", moving=True)
def fill(site: Site) -> ir.Value:
    return site.graph.op("Expand", site.raw(1), site.graph.numbers(site.raw(0)))


@operator("ZEROS_LIKE", moving=True)
def zeros_like(site: Site) -> ir.Value:
    zero = site.graph.constant(np.zeros((), site.tensor(0).dtype))
    return site.graph.op("Expand", zero, site.graph.op("Shape", site.raw(0)))


@operator("RANGE", moving=True)
def range_(site: Site) -> ir.Value:
    return site.graph.op("Range", site.raw(0), site.raw(1), site.raw(2))
