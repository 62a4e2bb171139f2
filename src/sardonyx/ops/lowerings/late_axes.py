"""Folding over axes that only a run names.

    o[d] is the size of axis d in the result with all axes kept: 1 where it is folded
    parallel over the result, at p          p[d] < o[d]
      loops over one set, at k              k[d] < e[d] = s[d] // o[d]
        x[p + k]                            of p[d] and k[d], one is always 0

No loop depends on which axes they are, only its extents do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sardonyx.loops.build import where
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Dtype, Expr, LoopKind, apply, const
from sardonyx.ops.lowering import Position, Site
from sardonyx.ops.lowerings.folding import Cell, Folding
from sardonyx.ops.lowerings.parameters import axes_of, length_of
from sardonyx.sizes import Size, max_of, product

__all__ = ["LateFolding"]


class LateFolding(Folding):
    """The sets of a reduction whose axes are its second input, read when it runs.

    Attributes:
        result: where the fold of the set at hand belongs in the output.
    """

    def __init__(self, site: Site) -> None:
        shape = site.shape(0)
        super().__init__(site.b, shape, range(len(shape)))
        self._target = site.out_shape()
        self._kept_dims = bool(site.call.int_attr("keepdims", 1))
        self._sizes_kept = self._target if self._kept_dims else self._read_axes(site)
        pairs = zip(shape, self._sizes_kept, strict=True)
        self._extents = [size // max_of(kept, 1) for size, kept in pairs]
        self.size = product(self._extents)
        self.result: Position = ()

    def _read_axes(self, site: Site) -> tuple[Size, ...]:
        b, rank = site.b, len(self.shape)
        axes = axes_of(site, 1, length_of(site, 1), rank)

        def kept(axis: int) -> Size:
            size: Expr = b.size(self.shape[axis])
            for named in axes:
                size = where(apply("eq", named, axis), b.size(1), size)
            return b.index(size, max_of(self.shape[axis], 1) + 1)

        return tuple(kept(axis) for axis in range(rank))

    @contextmanager
    def sets(self, work: int = 1) -> Iterator[None]:
        b = self.b
        with b.parallel((product(self._target),), work * self.size) as (flat,):
            first = unflatten(flat, self._sizes_kept, b.ranges)
            self._at = dict(enumerate(first))
            self.result = first if self._kept_dims else unflatten(flat, self._target, b.ranges)
            yield

    def sum(self, dtype: Dtype, term: Callable[[Position], Expr]) -> Cell:
        zero = const(0, dtype)
        return self.fold(zero, lambda total, position: total + term(position))

    def each(
        self,
        body: Callable[[Position], None],
        *,
        kind: LoopKind = "vector",
        merge_from: int = 0,
    ) -> None:
        b = self.b
        if not self._extents:
            body(())
            return
        with b.loops(self._extents[:-1]) as outer, b.loop(self._extents[-1], kind) as inner:
            body(tuple(self._at[d] + k for d, k in enumerate((*outer, inner))))
