"""Operators that move elements: their output reads an input at another position."""

from __future__ import annotations

from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowering import Element, Position, Relabel, Site, broadcast_position

__all__ = ["EXPAND", "RELABEL", "TRANSPOSE"]

RELABEL = Relabel()


def _transpose(site: Site, position: Position) -> Expr:
    rank = len(site.shape(0))
    perm = site.call.ints_attr("perm") or tuple(reversed(range(rank)))
    source: list[object] = [0] * rank
    for axis, from_axis in enumerate(perm):
        source[from_axis] = position[axis]
    return site.read(0, tuple(source))  # type: ignore[arg-type]


def _expand(site: Site, position: Position) -> Expr:
    return site.read(0, broadcast_position(site.shape(0), position, site.out_shape()))


TRANSPOSE = Element(_transpose, weight=0)
EXPAND = Element(_expand, weight=0)
