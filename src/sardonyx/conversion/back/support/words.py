"""Names that generated programs have, for the type checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "counter",
    "flip",
    "pick",
    "places",
    "scan",
    "scatter_elements",
    "sigmoid",
    "take",
    "weights_like",
    "while_loop",
    "whole",
    "xp",
]

xp: Any = None
take: Callable[..., Any]  # (x, indices, axis)
pick: Callable[..., Any]  # (x, places): of every row the elements at its own places
scatter_elements: Callable[..., Any]  # (x, indices, updates, axis, how)
sigmoid: Callable[..., Any]  # (x)
flip: Callable[..., Any]  # (x, axis)
scan: Callable[..., Any]  # (turn, states, sequence): as jax.lax.scan
places: Callable[..., Any]  # (count, like): 0, 1, 2, … in float32, where sizes are computed
weights_like: Callable[..., Any]  # (weights, x): such numbers in the type of x
while_loop: Callable[..., Any]  # (goes_on, once, states): states are arguments of both
counter: Callable[..., Any]  # (count): 0, 1, 2, … as integers
whole: Callable[..., Any]  # (x): numbers without fractions as integers


def _missing(*_: Any) -> Any:
    raise NotImplementedError("only generated programs have it")


take = pick = flip = scan = sigmoid = places = weights_like = scatter_elements = while_loop = (
    counter
) = whole = _missing
