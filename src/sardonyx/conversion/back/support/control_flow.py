"""Loops, and windows that are looked at place by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sardonyx.conversion.back.support.words import scan, xp

__all__ = ["batch_first", "scan_graph", "seen_by_windows"]


def scan_graph(body: Any, states: Any, sequences: Any) -> Any:
    """A body through sequences: the last states, and all that came out besides."""
    count = len(states)

    def turn(state: Any, parts: Any) -> Any:
        found = body(*state, *parts)
        found = found if isinstance(found, tuple) else (found,)
        return found[:count], found[count:]

    last, outputs = scan(turn, states, sequences)
    found = (*last, *outputs)
    return found[0] if len(found) == 1 else found


def batch_first(outputs: Any, *states: Any) -> Any:
    """[time, direction, batch, …] and [direction, batch, …] with the batch in front."""
    turned = xp.swapaxes(xp.swapaxes(outputs, 1, 2), 0, 1)
    return turned, *(xp.swapaxes(state, 0, 1) for state in states)


def seen_by_windows(x: Any, kernel: Any, strides: Any, dilations: Any) -> Iterator[Any]:
    """What each place of a window sees, one tensor after the other."""
    total = 1
    for size in kernel:
        total *= size
    for place in range(total):
        index, rest = [], place
        for axis in reversed(range(len(kernel))):
            begin, rest = rest % kernel[axis] * dilations[axis], rest // kernel[axis]
            reach = x.shape[axis + 2] - (kernel[axis] - 1) * dilations[axis]
            index.append(slice(begin, begin + reach, strides[axis]))
        yield x[(slice(None), slice(None), *reversed(index))]
