"""Numbers that steer a node: known before it runs, or read and checked when it does.

Where such a number decides a size, the size stands in the output's shape already; what is read is then
only compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.loops.build import cast, where
from sardonyx.loops.nodes import Const, Expr, apply
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Expr as SizeExpr
from sardonyx.sizes import Size

__all__ = ["axes_of", "length_of", "require_size", "spread", "whole"]


def length_of(site: Site, index: int) -> int:
    """How many numbers an input of one dimension holds."""
    shape = site.shape(index)
    if len(shape) != 1 or not isinstance(shape[0], int):
        site.refuse(f"how many numbers input {index} holds is not known before it runs")
    return shape[0]


def whole(site: Site, index: int, at: int = 0) -> Expr:
    """One number of an input (of one dimension, or a scalar), cut to an integer; said once."""
    value = site.call.value(index)
    if value is not None and isinstance(value.reshape(-1)[at], (int, SizeExpr)):
        return site.b.size(value.reshape(-1)[at])
    with site.b.once():
        return site.b.let(cast(site.operand(index, (at,) * len(site.shape(index))), "i64"))


def require_size(site: Site, value: Expr, size: Size, what: str) -> None:
    """Stop the run where a number is not the size that it was taken for."""
    limit = site.b.size(size)
    if value == limit:
        return
    with site.b.once():
        reason = f"{what} is {{value}}, where {{limit}} was foretold"
        site.b.fail_if(apply("ne", value, limit), reason, value, limit)


def axes_of(site: Site, index: int, count: int, rank: int) -> list[Expr]:
    """The axes that an input names, counted from the front; the first ones where it is left out."""
    b = site.b
    known = site.call.integers(index) if site.call.has(index) else range(count)
    if known is not None:
        return [b.size(axis) for axis in site.call.axes(known, rank)]
    found: list[Expr] = []
    for at in range(length_of(site, index)):
        axis = whole(site, index, at)
        with b.once():
            b.fail_if((axis < -rank) | (axis >= rank), "axis {value} of {limit} axes", axis, rank)
            axis = b.let(where(axis < 0, axis + rank, axis))
            for other in found:
                b.fail_if(apply("eq", axis, other), "axis {value} is named twice", axis)
        found.append(axis)
    return found


def spread(
    site: Site, axes: Sequence[Expr], values: Sequence[Expr], default: Sequence[Expr]
) -> list[Expr]:
    """Numbers that belong to some axes, one for every axis."""
    found = list(default)
    for axis, value in zip(axes, values, strict=True):
        if isinstance(axis, Const):
            found[int(axis.value)] = value
            continue
        with site.b.once():
            for at, other in enumerate(found):
                found[at] = site.b.let(where(apply("eq", axis, at), value, other))
    return found
