"""The table of primitives, one family a file; importing this package fills it."""

from __future__ import annotations

from sardonyx.conversion.jax.primitives import (
    arithmetic,
    calls,
    control_flow,
    convolutions,
    cumulative,
    elementwise,
    fourier,
    gathers,
    linear_algebra,
    orders,
    products,
    random,
    reductions,
    scatters,
    special,
    views,
    windows,
)

__all__ = [
    "arithmetic",
    "calls",
    "control_flow",
    "convolutions",
    "cumulative",
    "elementwise",
    "fourier",
    "gathers",
    "linear_algebra",
    "orders",
    "products",
    "random",
    "reductions",
    "scatters",
    "special",
    "views",
    "windows",
]
