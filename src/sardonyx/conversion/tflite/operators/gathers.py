"""Elements by their places: gathered, scattered, found."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.table import Site, check_steps, operator

__all__: list[str] = []

_MOST_PLACES = 1 << 20  # of a part that is written into a tensor


@operator("GATHER", moving=True)
def gather(site: Site) -> ir.Value:
    graph, axis = site.graph, int(site.option("axis"))
    shared = int(site.option("batch_dims"))
    axis = axis + site.rank(0) if axis < 0 else axis
    shared = shared + site.rank(1) if shared < 0 else shared
    if shared == 0:
        return graph.op("Gather", site.raw(0), site.raw(1), axis=axis)
    if axis != shared:
        raise site.refuse(f"it gathers along axis {axis} with {shared} axes of batches.")
    places = graph.op("Unsqueeze", graph.numbers(site.raw(1)), graph.constant([-1], np.int64))
    return graph.op("GatherND", site.raw(0), places, batch_dims=shared)


@operator("GATHER_ND", moving=True)
def gather_nd(site: Site) -> ir.Value:
    return site.graph.op("GatherND", site.raw(0), site.graph.numbers(site.raw(1)))


@operator("EMBEDDING_LOOKUP")
def embedding(site: Site) -> ir.Value:
    """Rows of a table; a table of integers is made real before, unless rows of it are wanted as they are."""
    check_steps(site)
    return site.graph.op("Gather", site.real(1), site.raw(0), axis=0)


@operator("ONE_HOT", moving=True)
def one_hot(site: Site) -> ir.Value:
    """Places below 0 are nowhere; ONNX would count them from the end."""
    graph = site.graph
    places, depth = graph.numbers(site.raw(0)), graph.numbers(site.raw(1))
    below = graph.op("Less", places, graph.constant(0, np.int64))
    places = graph.op("Where", below, depth, places)
    one = graph.constant([1], np.int64)
    values = [graph.op("Reshape", site.raw(index), one) for index in (3, 2)]
    pair = graph.op("Concat", *values, axis=0)
    return graph.op("OneHot", places, depth, pair, axis=int(site.option("axis")))


@operator("SCATTER_ND", moving=True)
def scatter(site: Site) -> ir.Value:
    """Added up where places meet, as they are stored."""
    graph, tensor = site.graph, site.tensor(1)
    zero = graph.constant(np.zeros((), tensor.dtype))
    blank = graph.op("Expand", zero, graph.numbers(site.raw(2)))
    places = graph.numbers(site.raw(0))
    return graph.op("ScatterND", blank, places, site.raw(1), reduction="add")


@operator("WHERE")
def places_of_true(site: Site) -> ir.Value:
    made = site.graph.op("Transpose", site.graph.op("NonZero", site.raw(0)), perm=[1, 0])
    return site.graph.cast(made, site.outputs[0].dtype)


@operator("DYNAMIC_UPDATE_SLICE", moving=True)
def update_slice(site: Site) -> ir.Value:
    """A part is written over; its place is moved inside."""
    graph, part = site.graph, site.sizes(1)
    sizes = [size for size in part if size is not None]
    if len(sizes) != len(part) or int(np.prod(sizes)) > _MOST_PLACES:
        raise site.refuse("the size of the part is open, or too large.")
    whole = graph.op("Shape", site.raw(0))
    room = graph.op("Sub", whole, graph.constant(sizes, np.int64))
    begin = graph.op("Max", graph.numbers(site.raw(2)), graph.constant(0, np.int64))
    begin = graph.op("Min", begin, room)
    places = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1)
    moved = graph.op("Add", graph.constant(places, np.int64), begin)
    return graph.op("ScatterND", site.raw(0), moved, site.raw(1))
