"""Losses."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import places, take, xp

__all__ = ["cross_entropy"]


def cross_entropy(x: Any, labels: Any, weights: Any, ignored: Any, how: str) -> Any:
    """The loss of scores [batch, class, …] by labels [batch, …], and the logarithms of the probabilities."""
    away = x - xp.amax(x, 1, keepdims=True)
    logs = away - xp.log(xp.sum(xp.exp(away), 1, keepdims=True))
    kinds = places(x.shape[1], x)[(None, slice(None), *(None,) * (len(x.shape) - 2))]
    loss = -xp.sum(xp.where(labels[:, None] == kinds, logs, xp.zeros_like(logs)), 1)
    share = xp.ones_like(loss)
    known = None if ignored is None else labels != ignored
    if weights is not None:
        safe = labels if known is None else xp.where(known, labels, labels * 0)
        share = take(weights, safe, 0)
    if known is not None:
        share = xp.where(known, share, xp.zeros_like(share))
    loss = loss * share
    if how == "mean":
        return xp.sum(loss) / xp.sum(share), logs
    return (xp.sum(loss) if how == "sum" else loss), logs
