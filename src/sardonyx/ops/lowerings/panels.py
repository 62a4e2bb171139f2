"""Constant weights in panels: for every k, the weights of `WIDTH` columns side by side.

    table[d][panel][k][lane] = weights[d, column, k]

A product's sums then fill vector registers and need no adding up at the end. The columns of a gate begin a panel of
their own; what their last panel has left over is zeros. Gates that are read together lie side by side, as one stream:

    table[d][panel][k][gate][lane]                  of the gates of a pass, and then those of the next
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from sardonyx.loops.build import Builder
from sardonyx.loops.nodes import Dtype, Expr, const
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size

__all__ = ["WIDTH", "Panels", "holds", "panels_of", "sum_panels"]

WIDTH = 16


@dataclass(frozen=True)
class Panels:
    """A table of weights.

    Attributes:
        panels: of a gate.
        passes: how many gates are read together, pass after pass.
    """

    table: str
    panels: int
    depth: int
    passes: tuple[int, ...]

    def at(self, d: Size, gate: int, panel: Size, k: Size) -> Size:
        """Where the weights of a panel begin."""
        ends = [*accumulate(self.passes)]
        count, end = next(pair for pair in zip(self.passes, ends, strict=True) if gate < pair[1])
        first = (d * ends[-1] + end - count) * self.panels * self.depth
        return (first + (panel * self.depth + k) * count + gate - (end - count)) * WIDTH


def panels_of(
    site: Site, index: int, dtype: Dtype, columns: Size, passes: Sequence[int] = (1,)
) -> Panels | None:
    """The weights of an input [d, column, k]; None where they are no constants, or too few to fill a panel.

    Args:
        columns: of a gate.
        passes: how many gates are read together, pass after pass.
    """
    weights = site.constant(index)
    if weights is None or site.dtype(index) != dtype or not isinstance(columns, int):
        return None
    if columns < WIDTH or not weights.size:
        return None
    directions, count, depth = weights.shape
    gates = sum(passes)
    if count != gates * columns:
        return None  # the shapes contradict each other; a run says so
    split = weights.reshape(directions, gates, columns, depth)
    if missing := -columns % WIDTH:
        split = np.pad(split, ((0, 0), (0, 0), (0, missing), (0, 0)))
    panels = (columns + missing) // WIDTH
    split = split.reshape(directions, gates, panels, WIDTH, depth)
    parts = np.split(split, [*accumulate(passes)][:-1], axis=1)
    laid = [part.transpose(0, 2, 4, 1, 3).reshape(directions, -1) for part in parts]
    table = np.concatenate(laid, axis=1).reshape(-1)
    return Panels(site.table(table), panels, depth, tuple(passes))


def holds(site: Site, rows: int, panels: int) -> bool:
    """Whether registers hold the sums of so many rows and panels, half a panel's at the least."""
    return rows * panels * (WIDTH // 2) <= site.sums


def sum_panels(
    site: Site,
    dtype: Dtype,
    panels: Panels,
    rows: Sequence[Callable[[Size], Expr]],
    places: Callable[[Size], Sequence[Size]],
) -> str:
    """An array of sums over k of rows[r](k) times the weights at places(k)[p]: [r][p][lane]."""
    b, count = site.b, len(rows) * len(places(0))
    found = b.array(dtype, count * WIDTH)
    lanes = WIDTH if count * WIDTH <= site.sums else WIDTH // 2
    for first in range(0, WIDTH, lanes):
        sums = _sums(b, dtype, panels, rows, places, first, lanes)
        # Who reads them at variable places reads a copy: the sums themselves are registers.
        with b.loop(lanes, "vector") as lane:
            for number in range(count):
                b.put(found, number * WIDTH + first + lane, b.element(sums, number * lanes + lane))
    return found


def _sums(
    b: Builder,
    dtype: Dtype,
    panels: Panels,
    rows: Sequence[Callable[[Size], Expr]],
    places: Callable[[Size], Sequence[Size]],
    first: int,
    lanes: int,
) -> str:
    """The same for some lanes of every panel."""
    count = len(places(0))
    size = len(rows) * count * lanes
    sums = b.array(dtype, size)
    with b.loop(size, "vector") as at:
        b.put(sums, at, const(0, dtype))
    with b.loop(panels.depth) as k:
        factors = [b.let(row(k)) for row in rows]
        starts = [place + first for place in places(k)]
        with b.loop(lanes, "vector") as lane:
            weights = [b.let(b.load(panels.table, start + lane)) for start in starts]
            for r, factor in enumerate(factors):
                for p, weight in enumerate(weights):
                    at = (r * count + p) * lanes + lane
                    b.put(sums, at, b.element(sums, at) + factor * weight)
    return sums
