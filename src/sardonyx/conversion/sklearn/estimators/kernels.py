"""Kernels between rows and stored points, as sklearn.metrics.pairwise names them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.conversion.sklearn.estimators.elementary import squared_distances
from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.writers import refuse

__all__ = ["kernel_matrix"]


def kernel_matrix(
    model: Any,
    kernel: Any,
    x: Tensor,
    points: NDArray[Any],
    *,
    gamma: float | None = None,
    degree: float | None = None,
    coef0: float | None = None,
) -> Tensor:
    """[batch, points].

    Raises:
        ConvertError: the kernel is Python code, or none that is known.
    """
    points = np.asarray(points.toarray() if hasattr(points, "toarray") else points, np.float64)
    scale = 1.0 / points.shape[1] if gamma is None else float(gamma)
    add = 1.0 if coef0 is None else float(coef0)
    if kernel == "linear":
        return x @ points.T
    if kernel == "rbf":
        return (squared_distances(x, points) * -scale).exp()
    if kernel in ("poly", "polynomial"):
        return _power((x @ points.T) * scale + add, 3 if degree is None else degree)
    if kernel == "sigmoid":
        return ((x @ points.T) * scale + add).unary("Tanh")
    if kernel == "cosine":
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        own = (x * x).sum(1, keep=True).sqrt()
        unit = x / own.equals(0.0).where(1.0, own)
        return unit @ (points / np.where(lengths == 0.0, 1.0, lengths)).T
    if kernel == "laplacian":
        away = (x.expand(1) - points[np.newaxis]).abs().sum(2)
        return (away * -scale).exp()
    name = getattr(kernel, "__name__", kernel)
    raise refuse(model, f"its kernel {name!r} is not known", "Use linear, rbf, poly or sigmoid.")


def _power(x: Tensor, degree: float) -> Tensor:
    """Small whole powers as products: exact for negative numbers on every runtime."""
    if float(degree).is_integer() and 1 <= degree <= 8:
        made = x
        for _ in range(int(degree) - 1):
            made = made * x
        return made
    return x ** float(degree)
