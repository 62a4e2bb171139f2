"""Gaussian processes: a kernel between the rows and the training rows, written from its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor, kernels
from sklearn.gaussian_process import _gpc as laplace

from sardonyx.conversion.sklearn.estimators.elementary import both, exact_squares
from sardonyx.conversion.sklearn.estimators.kernels import kernel_matrix
from sardonyx.conversion.sklearn.estimators.normal import error_function
from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, predict, refuse, scores, writes

__all__: list[str] = []


def _between(model: Any, kernel: Any, x: Tensor, points: NDArray[np.float64]) -> Tensor:
    """kernel(x, points): [batch, points]."""
    if isinstance(kernel, kernels.Sum):
        return _between(model, kernel.k1, x, points) + _between(model, kernel.k2, x, points)
    if isinstance(kernel, kernels.Product):
        return _between(model, kernel.k1, x, points) * _between(model, kernel.k2, x, points)
    if isinstance(kernel, kernels.Exponentiation):
        return _between(model, kernel.kernel, x, points) ** float(kernel.exponent)
    if isinstance(kernel, kernels.ConstantKernel):
        row = x.graph.constant(np.full(len(points), kernel.constant_value), x.dtype)
        return x.repeated(row)
    if isinstance(kernel, kernels.WhiteKernel):  # noise is between a row and itself alone
        return x.repeated(x.graph.constant(np.zeros(len(points)), x.dtype))
    if isinstance(kernel, kernels.Matern):  # before RBF, which it is made from
        return _matern(model, kernel, x, points)
    if isinstance(kernel, kernels.RBF):
        scale = np.asarray(kernel.length_scale)
        return (exact_squares(x / scale, points / scale) * -0.5).exp()
    if isinstance(kernel, kernels.RationalQuadratic):
        factor = 1.0 / (2.0 * kernel.alpha * kernel.length_scale**2)
        return (exact_squares(x, points) * float(factor) + 1.0) ** -float(kernel.alpha)
    if isinstance(kernel, kernels.ExpSineSquared):
        turns = exact_squares(x, points).sqrt() * float(np.pi / kernel.periodicity)
        wave = turns.unary("Sin") / float(kernel.length_scale)
        return (wave * wave * -2.0).exp()
    if isinstance(kernel, kernels.DotProduct):
        return x @ points.T + float(kernel.sigma_0**2)
    if isinstance(kernel, kernels.PairwiseKernel):
        parameters = kernel.pairwise_kernels_kwargs or {}
        return kernel_matrix(model, kernel.metric, x, points, gamma=kernel.gamma, **parameters)
    raise refuse(model, f"its kernel {type(kernel).__name__} is not known")


def _matern(model: Any, kernel: Any, x: Tensor, points: NDArray[np.float64]) -> Tensor:
    scale = np.asarray(kernel.length_scale)
    squares = exact_squares(x / scale, points / scale)
    if kernel.nu == np.inf:
        return (squares * -0.5).exp()
    away = squares.sqrt()
    if kernel.nu == 0.5:
        return (-away).exp()
    if kernel.nu == 1.5:
        away = away * float(np.sqrt(3.0))
        return (away + 1.0) * (-away).exp()
    if kernel.nu == 2.5:
        away = away * float(np.sqrt(5.0))
        return (away + 1.0 + away * away / 3.0) * (-away).exp()
    raise refuse(
        model, f"its Matern kernel has nu={kernel.nu}", "Use nu 0.5, 1.5, 2.5 or infinity."
    )


def _diagonal(model: Any, kernel: Any, x: Tensor) -> Tensor:
    """kernel(x, x) of each row with itself, [batch, 1]: a constant but for dot products."""
    if isinstance(kernel, kernels.Sum):
        return _diagonal(model, kernel.k1, x) + _diagonal(model, kernel.k2, x)
    if isinstance(kernel, kernels.Product):
        return _diagonal(model, kernel.k1, x) * _diagonal(model, kernel.k2, x)
    if isinstance(kernel, kernels.Exponentiation):
        return _diagonal(model, kernel.kernel, x) ** float(kernel.exponent)
    if isinstance(kernel, kernels.DotProduct):
        return (x * x).sum(1, keep=True) + float(kernel.sigma_0**2)
    if isinstance(kernel, kernels.PairwiseKernel):
        raise refuse(model, "its kernel is of pairs")
    own = float(kernel.diag(np.zeros((1, x.width)))[0])
    return x.repeated(x.graph.constant([own], x.dtype))


def _points(model: Any) -> NDArray[np.float64]:
    return np.asarray(model.X_train_, np.float64)


@writes("predict", GaussianProcessRegressor)
def process_value(model: Any, table: Table) -> Tensor:
    weights = np.asarray(model.alpha_, np.float64).reshape(len(model.X_train_), -1)
    mean = _between(model, model.kernel_, table.matrix, _points(model)) @ weights
    mean = mean * np.asarray(model._y_train_std) + np.asarray(model._y_train_mean)
    return mean.squeeze(1) if mean.width == 1 else mean


def _latent(model: Any, table: Table) -> tuple[Tensor, Tensor]:
    """The binary process: its kernel with the training rows, and the latent mean, [batch, 1]."""
    inner = _between(model, model.kernel_, table.matrix, _points(model))
    return inner, inner @ np.asarray(model.y_train_ - model.pi_).reshape(-1, 1)


@writes("predict", laplace._BinaryGaussianProcessClassifierLaplace)
def process_binary(model: Any, table: Table) -> Tensor:
    _, mean = _latent(model, table)
    return labelled(model, model.classes_, (mean.squeeze(1) > 0.0).cast(np.int64))


@writes("predict_proba", laplace._BinaryGaussianProcessClassifierLaplace)
def process_binary_proba(model: Any, table: Table) -> Tensor:
    """The integral of a sigmoid over a Gaussian, as scikit-learn sums it from five error functions."""
    inner, mean = (part.cast(np.float64) for part in _latent(model, table))
    factor = np.linalg.solve(np.asarray(model.L_), np.diag(np.asarray(model.W_sr_)))
    turned = inner @ factor.T
    own = _diagonal(model, model.kernel_, table.matrix.cast(np.float64))
    spread = own - (turned * turned).sum(1, keep=True)
    steps = np.asarray(laplace.LAMBDAS).reshape(1, -1)
    weights = np.asarray(laplace.COEFS).reshape(1, -1)
    alpha = 1.0 / (spread * 2.0)
    reach = (mean * steps) * (alpha / (alpha + steps**2)).sqrt()
    scale = (np.pi / alpha).sqrt() / (2.0 * (spread * (2.0 * np.pi)).sqrt())
    share = (error_function(reach) * scale * weights).sum(1) + 0.5 * float(weights.sum())
    return both(share.cast(table.graph.number))


@writes("predict", GaussianProcessClassifier)
def process_class(model: Any, table: Table) -> Tensor:
    return predict(model.base_estimator_, table)


@writes("predict_proba", GaussianProcessClassifier)
def process_proba(model: Any, table: Table) -> Tensor:
    if model.n_classes_ > 2 and model.multi_class == "one_vs_one":
        raise refuse(model, "one against one has no probabilities")
    return scores("predict_proba", model.base_estimator_, table)
