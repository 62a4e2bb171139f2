"""Constant weights in panels: for every k, the weights of `WIDTH` columns side by side.

    table[d][column // WIDTH][k][column % WIDTH] = weights[d, column, k]

A product's sums then fill vector registers and need no adding up at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.loops.build import Builder
from sardonyx.loops.nodes import Dtype, Expr, const
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size

__all__ = ["WIDTH", "Panels", "panels_of", "sum_panels"]

WIDTH = 16


@dataclass(frozen=True)
class Panels:
    """A table of weights."""

    table: str
    panels: int
    depth: int

    def at(self, d: Size, panel: Size, k: Size) -> Size:
        """Where the weights of a panel begin."""
        return ((d * self.panels + panel) * self.depth + k) * WIDTH


def panels_of(site: Site, index: int, dtype: Dtype, columns: Size) -> Panels | None:
    """The weights of an input [d, column, k]; None where they are no constants, or do not fill panels.

    Args:
        columns: how many of them belong together: no panel may reach over their border.
    """
    weights = site.constant(index)
    if weights is None or site.dtype(index) != dtype or not isinstance(columns, int):
        return None
    directions, count, depth = weights.shape
    if columns % WIDTH or count % WIDTH or not weights.size:
        return None
    split = weights.reshape(directions, count // WIDTH, WIDTH, depth)
    table = np.ascontiguousarray(split.swapaxes(2, 3)).reshape(-1)
    return Panels(site.table(table), count // WIDTH, depth)


def sum_panels(
    b: Builder,
    dtype: Dtype,
    panels: Panels,
    rows: Sequence[Callable[[Size], Expr]],
    places: Callable[[Size], Sequence[Size]],
) -> str:
    """An array of sums over k of rows[r](k) times the weights at places(k)[p]: [r][p][lane]."""
    count = len(places(0))
    size = len(rows) * count * WIDTH
    sums = b.array(dtype, size)
    with b.loop(size, "vector") as at:
        b.put(sums, at, const(0, dtype))
    with b.loop(panels.depth) as k:
        factors = [b.let(row(k)) for row in rows]
        starts = places(k)
        with b.loop(WIDTH, "vector") as lane:
            weights = [b.let(b.load(panels.table, start + lane)) for start in starts]
            for r, factor in enumerate(factors):
                for p, weight in enumerate(weights):
                    at = (r * count + p) * WIDTH + lane
                    b.put(sums, at, b.element(sums, at) + factor * weight)
    # Who reads them at variable places reads a copy: the sums themselves are registers.
    copy = b.array(dtype, size)
    with b.loop(size, "vector") as at:
        b.put(copy, at, b.element(sums, at))
    return copy
