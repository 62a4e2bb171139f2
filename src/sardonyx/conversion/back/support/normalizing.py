"""Normalizations."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import xp

__all__ = ["inverse_deviation", "local_response_norm", "mean_variance_normalize", "normalize"]


def normalize(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """Mean 0 and variance 1 over some axes."""
    centred = x - xp.mean(x, axes, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axes, keepdims=True) + epsilon)


def inverse_deviation(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """One by the root of the variance over some axes."""
    centred = x - xp.mean(x, axes, keepdims=True)
    return 1 / xp.sqrt(xp.mean(centred * centred, axes, keepdims=True) + epsilon)


def mean_variance_normalize(x: Any, axes: tuple[int, ...]) -> Any:
    """Mean 0 and variance 1; what does not vary is 0."""
    centred = x - xp.mean(x, axes, keepdims=True)
    return centred / (xp.sqrt(xp.mean(centred * centred, axes, keepdims=True)) + 1e-9)


def local_response_norm(
    x: Any, squares: Any, size: int, alpha: float, beta: float, bias: float
) -> Any:
    """Every element by the squares of its neighbours among the channels; `squares` has zeros around them."""
    channels = x.shape[1]
    total = squares[:, :channels]
    for shift in range(1, size):
        total = total + squares[:, shift : shift + channels]
    return x / (bias + alpha / size * total) ** beta
