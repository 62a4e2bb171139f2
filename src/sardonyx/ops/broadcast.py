"""Broadcasting over sizes that may be symbols."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.call import Call
from sardonyx.ops.facts import Shape
from sardonyx.sizes import Size, broadcast_of

__all__ = ["broadcast_dim", "broadcast_shapes"]


def broadcast_shapes(call: Call, shapes: Sequence[Shape | None]) -> Shape | None:
    """The common shape, aligned from the right; None when a rank is unknown."""
    result: Shape = ()
    for shape in shapes:
        if shape is None:
            return None
        if shape == result:
            continue
        if len(shape) > len(result):
            shape, result = result, shape
        offset = len(result) - len(shape)
        try:
            result = (
                *result[:offset],
                *(
                    a if a == b else broadcast_dim(a, b)
                    for a, b in zip(result[offset:], shape, strict=True)
                ),
            )
        except ValueError:
            listed = " and ".join(str(list(map(str, s))) for s in shapes if s is not None)
            call.fail(
                f"shapes {listed} do not broadcast".replace("'", ""),
                hint="Aligned from the right, dimensions must be equal or 1.",
            )
    return result


def broadcast_dim(a: Size, b: Size) -> Size:
    """One dimension of the result; ValueError when two numbers cannot meet."""
    if isinstance(a, int) and isinstance(b, int):
        if a == b or b == 1:
            return a
        if a == 1:
            return b
        raise ValueError(f"{a} and {b} do not broadcast")
    return broadcast_of(a, b)
