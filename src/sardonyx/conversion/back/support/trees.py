"""Trees, walked by all rows at once."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import pick, take, xp

__all__ = ["reached_leaves"]


def reached_leaves(
    x: Any,
    roots: Any,
    feature: Any,
    threshold: Any,
    low: Any,
    missing: Any,
    ways: Any,
    depth: int,
    strict: bool,
) -> Any:
    """The node at which every row ends in every tree, (rows, trees).

    A node leads to its first child where low <= x[feature] <= threshold (strict: <), or where that feature is missing and
    `missing` says so; else to its second. A leaf leads to itself.
    """
    node = xp.where(x[:, :1] == x[:, :1], roots, roots)
    for _ in range(depth):
        value, limit = pick(x, take(feature, node, 0)), take(threshold, node, 0)
        first = value < limit if strict else value <= limit
        if low is not None:
            first = xp.logical_and(first, value >= take(low, node, 0))
        if missing is not None:
            first = xp.logical_or(first, xp.logical_and(xp.isnan(value), take(missing, node, 0)))
        node = xp.where(first, take(ways[0], node, 0), take(ways[1], node, 0))
    return node
