"""Functions of one tensor that several estimators need, accurate where the plain formula is not."""

from __future__ import annotations

import numpy as np

from sardonyx.conversion.sklearn.graph import Tensor, stack

__all__ = [
    "both",
    "exact_squares",
    "expm1",
    "log1p",
    "normalized",
    "sigmoid",
    "squared_distances",
]


def sigmoid(x: Tensor) -> Tensor:
    return x.unary("Sigmoid")


def both(positive: Tensor) -> Tensor:
    """The probabilities of two classes from that of the second: [batch] → [batch, 2]."""
    return stack([1.0 - positive, positive])


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) near zero too: the rounding of 1 + x is divided out again."""
    grown = x + 1.0
    step = grown - 1.0
    still = step.equals(0.0) | grown.unary("Abs").equals(np.inf)
    safe = still.where(1.0, step)
    whole = grown.equals(np.inf).where(np.inf, x)
    return still.where(whole, grown.log() * (x / safe))


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1 near zero too: by tanh(x/2), which has no difference of large numbers."""
    half = (x * 0.5).unary("Tanh")
    near = 2.0 * half / (1.0 - half)
    return (x.abs() < 0.5).where(near, x.exp() - 1.0)


def normalized(x: Tensor) -> Tensor:
    """Rows that sum to one, in exponentials: softmax of what are logarithms."""
    return (x - x.logsumexp(1, keep=True)).exp()


def squared_distances(x: Tensor, points: np.ndarray) -> Tensor:
    """From every row to every point, by one product.

    Differences are taken from the points' mean: what cancels is then as small as the data are spread.
    """
    center = points.mean(axis=0)
    x, points = x - center, points - center
    squares = (x * x).sum(1, keep=True) + (points**2).sum(axis=1)
    return (squares - (x * 2.0) @ points.T).maximum(0.0)


def exact_squares(x: Tensor, points: np.ndarray) -> Tensor:
    """Squared distances from differences, for what magnifies their rounding; by one product for wide rows."""
    if points.shape[1] > 32:
        return squared_distances(x, points)
    total = None
    for at in range(points.shape[1]):
        away = x.columns([at]) - points[:, at].reshape(1, -1)
        total = away * away if total is None else total + away * away
    assert total is not None
    return total
