"""Frames of signals."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import places, take, xp

__all__ = ["short_time"]


def short_time(transform: Any, x: Any, every: int, window: Any, length: int, half: bool) -> Any:
    """The transforms of frames of [batch, time, 1 or 2], one from every `every`-th place on."""
    count = 1 + (x.shape[1] - length) // every
    place = places(count, x)[:, None] * every + places(length, x)
    frames = take(x, place, 1)
    if window is not None:
        frames = frames * xp.reshape(window, (-1, 1))
    return transform(frames, None, 2, False, half)
