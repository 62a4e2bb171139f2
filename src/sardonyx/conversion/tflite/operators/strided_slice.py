"""STRIDED_SLICE: Python's x[a:b:c, i, None, ...], with the forms of its entries in bit masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.schema import Array
from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []

_MOST, _LEAST = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class _Entries:
    """The entries by what they do.

    Attributes:
        sliced: entry → axis of the input, of slices and of single places.
        single: those of single places, whose axis goes.
        fresh: axes that come, counted in the result.
        gone: axes that go, counted in the input.
    """

    sliced: dict[int, int]
    single: set[int]
    fresh: list[int]
    gone: list[int]


def _entries(site: Site, count: int) -> _Entries:
    masks = {n: int(site.option(f"{n}_mask")) for n in ("ellipsis", "new_axis", "shrink_axis")}

    def marked(name: str, index: int) -> bool:
        return bool(masks[name] >> index & 1)

    found = _Entries({}, set(), [], [])
    axis = placed = 0
    for index in range(count):
        if marked("ellipsis", index):
            later = [i for i in range(index + 1, count) if not marked("new_axis", i)]
            passed = site.rank(0) - len(later) - axis
            axis, placed = axis + passed, placed + passed
        elif marked("new_axis", index):
            found.fresh.append(placed)
            placed += 1
        else:
            found.sliced[index] = axis
            if marked("shrink_axis", index):
                found.single.add(index)
                found.gone.append(axis)
            else:
                placed += 1
            axis += 1
    if axis > site.rank(0):
        raise site.refuse(f"it has {axis} entries for {site.rank(0)} axes.")
    return found


@operator("STRIDED_SLICE", moving=True)
def strided_slice(site: Site) -> ir.Value:
    graph, x = site.graph, site.raw(0)
    strides = site.constant(3, "the list of strides").reshape(-1).astype(np.int64)
    entries = _entries(site, len(strides))
    if entries.sliced:
        chosen = np.array(list(entries.sliced), np.int64)
        steps = strides[chosen]
        begins, ends = _bounds(site, entries, chosen, steps)
        axes = graph.constant(list(entries.sliced.values()), np.int64)
        x = graph.op("Slice", x, begins, ends, axes, graph.constant(steps, np.int64))
    if entries.gone:
        x = graph.op("Squeeze", x, graph.constant(entries.gone, np.int64))
    if entries.fresh:
        x = graph.op("Unsqueeze", x, graph.constant(entries.fresh, np.int64))
    return x


def _bounds(
    site: Site, entries: _Entries, chosen: Array, steps: Array
) -> tuple[ir.Value, ir.Value]:
    """Begins and ends of the entries that slice, as numbers or as the model computes them."""
    single = np.array([index in entries.single for index in chosen])
    if (steps[single] != 1).any() or (steps == 0).any():
        raise site.refuse(f"its strides are {steps.tolist()}.")

    def masked(name: str) -> Array:
        mask = int(site.option(f"{name}_mask"))
        marked = np.array([bool(mask >> int(i) & 1) for i in chosen])
        both: Array = np.logical_and(marked, ~single)
        return both

    begin_fill = np.where(steps > 0, 0, _MOST)
    end_fill = np.where(steps > 0, _MOST, _LEAST)
    graph, known = site.graph, (site.known(1), site.known(2))
    if known[0] is not None and known[1] is not None:
        begin = known[0].reshape(-1).astype(np.int64)[chosen]
        end = known[1].reshape(-1).astype(np.int64)[chosen]
        if site.option("offset"):
            end = begin + end
        end = np.where(single, np.where(begin == -1, _MOST, begin + 1), end)
        begin = np.where(masked("begin"), begin_fill, begin)
        end = np.where(masked("end"), end_fill, end)
        return graph.constant(begin, np.int64), graph.constant(end, np.int64)
    return _computed(site, chosen, single, masked, begin_fill, end_fill)


def _computed(
    site: Site,
    chosen: Array,
    single: Array,
    masked: Callable[[str], Array],
    begin_fill: Array,
    end_fill: Array,
) -> tuple[ir.Value, ir.Value]:
    graph = site.graph

    def choose(where: Any, yes: ir.Value, no: ir.Value) -> ir.Value:
        if isinstance(where, np.ndarray):
            if not where.any():
                return no
            where = graph.constant(where)
        return graph.op("Where", where, yes, no)

    places = graph.constant(chosen, np.int64)
    begin = graph.op("Gather", graph.numbers(site.raw(1)), places, axis=0)
    end = graph.op("Gather", graph.numbers(site.raw(2)), places, axis=0)
    if site.option("offset"):
        end = graph.op("Add", begin, end)
    if single.any():
        after = graph.op("Add", begin, graph.constant(1, np.int64))
        last = graph.op("Equal", begin, graph.constant(-1, np.int64))
        after = choose(last, graph.constant(_MOST, np.int64), after)
        end = choose(single, after, end)
    begin = choose(masked("begin"), graph.constant(begin_fill, np.int64), begin)
    end = choose(masked("end"), graph.constant(end_fill, np.int64), end)
    return begin, end
