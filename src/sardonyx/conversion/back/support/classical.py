"""Scores and dictionaries of classical models."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import take, xp

__all__ = ["inverse_normal", "looked_up", "shares_of_votes"]


def shares_of_votes(scores: Any, top: Any) -> Any:
    """Softmax in which a score of 0 stays 0: that class had no vote. `top` is the largest of each row."""
    powers = xp.where(xp.abs(scores) > 1e-7, xp.exp(scores - top), scores * xp.exp(-top))
    total = xp.sum(powers, -1, keepdims=True)
    none = total == 0
    return xp.where(none, powers * 0 + 0.5, powers / xp.where(none, total + 1, total))


def inverse_normal(p: Any) -> Any:
    """The normal distribution's inverse, by Winitzki's approximation."""
    x = 2 * p - 1
    log = xp.log((1 - x) * (1 + x))
    half = 4.3307467508 + 0.5 * log
    return 1.41421356 * xp.sign(x) * xp.sqrt(xp.sqrt(half * half - log / 0.147) - half)


def looked_up(x: Any, keys: Any, values: Any, other: Any) -> Any:
    """The value of each key, and `other` for what is no key."""
    hits = x[..., None] == keys
    found = xp.argmax(xp.where(hits, 1, 0), -1)
    return xp.where(xp.any(hits, -1), take(values, found, 0), other)
