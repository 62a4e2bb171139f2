"""CenterCropPad: the middle of the input in the middle of the output, and zeros around it."""

from __future__ import annotations

from sardonyx.loops.build import cast
from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowering import Element, Position, Site
from sardonyx.ops.lowerings.generating import number
from sardonyx.sizes import Size, min_of

__all__ = ["CENTER_CROP_PAD"]


def _center_crop_pad(site: Site, position: Position) -> Expr:
    b = site.b
    source: list[Size] = []
    inside: Expr | None = None
    for at, size, side in zip(position, site.shape(0), site.out_shape(), strict=True):
        kept = min_of(side, size)
        offset = at - (side - kept) // 2
        source.append(offset + (size - kept) // 2)
        if side != size:
            here = (b.size(offset) >= 0) & (b.size(offset) < b.size(kept))
            inside = here if inside is None else inside & here
    if inside is None:
        return site.operand(0, position)
    value = b.local(number(0, site.dtype(0)))
    with b.when(inside):
        pairs = zip(source, site.shape(0), strict=True)
        found = site.operand(0, [b.named(index, size) for index, size in pairs])
        b.set(value, cast(found, value.dtype))
    return value


CENTER_CROP_PAD = Element(_center_crop_pad, weight=8)
