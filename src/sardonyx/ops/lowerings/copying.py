"""Loops that copy: long runs along the innermost axes, in parallel over the rest.

with copy_loops(b, outer, inner) as position:
    site.store(position, site.read(0, position))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sardonyx.loops.build import Builder
from sardonyx.loops.index import unflatten
from sardonyx.ops.lowering import Position
from sardonyx.sizes import Size, product

__all__ = ["copy_all", "copy_loops"]

COST = 4  # of moving one element, in the units of a parallel loop's grain


@contextmanager
def copy_loops(b: Builder, outer: Sequence[Size], inner: Sequence[Size]) -> Iterator[Position]:
    """A parallel loop over the outer sizes around one vector loop over the inner ones."""
    extent = product(inner)
    if product(outer) == 1:
        with b.parallel((extent,), COST) as (flat,):
            yield (*((0,) * len(outer)), *unflatten(flat, inner, b.ranges))
    else:
        with b.parallel(outer, extent * COST) as where, b.loop(extent, "vector") as flat:
            yield (*where, *unflatten(flat, inner, b.ranges))


@contextmanager
def copy_all(b: Builder, shape: Sequence[Size]) -> Iterator[Position]:
    """Every position, in the order of memory."""
    with copy_loops(b, (), shape) as position:
        yield position
