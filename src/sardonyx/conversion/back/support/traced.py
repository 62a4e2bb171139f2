"""Loops of programs that are traced, and places that are known when they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.conversion.back.support.words import counter, scan, while_loop, xp

__all__ = ["counted_loop", "flip", "loop", "places"]


def flip(x: Any, axis: int) -> Any:
    return xp.flip(x, axis)


def places(count: int, like: Any) -> Any:
    """0, 1, 2, … as numbers that are known when the program is traced."""
    return np.arange(count, dtype=np.float32)


def loop(body: Any, trips: Any, condition: Any, states: Any) -> Any:
    """As often as `trips` and the condition allow."""

    def goes_on(index: Any, going: Any, *_: Any) -> Any:
        return going if trips is None else xp.logical_and(index < trips, going)

    def once(index: Any, going: Any, *old: Any) -> Any:
        found = body(index, going, *old)
        going, *new = found if isinstance(found, tuple) else (found,)
        return index + 1, xp.reshape(going, ()), *new

    going = xp.reshape(xp.array(condition), ())
    found = while_loop(goes_on, once, (counter(1)[0], going, *states))[2:]
    return found[0] if len(found) == 1 else tuple(found)


def counted_loop(body: Any, trips: Any, condition: Any, states: Any) -> Any:
    """So often as was known before; what each turn gives besides states is stacked."""
    count = len(states)

    def turn(old: Any, index: Any) -> Any:
        found = body(index, xp.array(True), *old)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(found[1 : 1 + count]), tuple(found[1 + count :])

    last, outputs = scan(turn, states, counter(trips))
    found = (*last, *outputs)
    return found[0] if len(found) == 1 else found
