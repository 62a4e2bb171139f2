"""Projections: principal, independent and random components, and approximations of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import cluster, decomposition, kernel_approximation, neighbors, random_projection

from sardonyx.conversion.sklearn.estimators.kernels import kernel_matrix
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import refuse, writes

__all__: list[str] = []


@writes("transform", decomposition.PCA, decomposition.IncrementalPCA)
def principal(model: Any, table: Table) -> Tensor:
    """The product before the mean, as it is computed there."""
    axes = np.asarray(model.components_).T
    x = table.matrix
    made = x @ axes - np.asarray(model.mean_) @ axes if model.mean_ is not None else x @ axes
    if model.whiten:
        scale = np.sqrt(model.explained_variance_)
        least = np.finfo(scale.dtype).eps
        made = made / np.where(scale < least, least, scale)
    return made


@writes(
    "transform",
    decomposition.TruncatedSVD,
    neighbors.NeighborhoodComponentsAnalysis,
)
def projected(model: Any, table: Table) -> Tensor:
    return table.matrix @ model.components_.T


@writes(
    "transform",
    random_projection.GaussianRandomProjection,
    random_projection.SparseRandomProjection,
)
def random(model: Any, table: Table) -> Tensor:
    axes = model.components_
    return table.matrix @ np.asarray(axes.toarray() if hasattr(axes, "toarray") else axes).T


@writes("transform", decomposition.FastICA)
def independent(model: Any, table: Table) -> Tensor:
    x = table.matrix - model.mean_ if model.whiten else table.matrix
    return x @ model.components_.T


@writes("transform", decomposition.FactorAnalysis)
def factors(model: Any, table: Table) -> Tensor:
    axes = model.components_
    noise = axes / model.noise_variance_
    spread = np.linalg.inv(np.eye(len(axes)) + noise @ axes.T)
    return (table.matrix - model.mean_) @ (noise.T @ spread)


@writes("transform", decomposition.SparsePCA, decomposition.MiniBatchSparsePCA)
def sparse_principal(model: Any, table: Table) -> Tensor:
    axes = model.components_
    gram = axes @ axes.T + model.ridge_alpha * np.eye(len(axes))
    return (table.matrix - model.mean_) @ np.linalg.solve(gram, axes).T


@writes("transform", decomposition.KernelPCA)
def kernel_principal(model: Any, table: Table) -> Tensor:
    from sardonyx.conversion.sklearn.table import table_of
    from sardonyx.conversion.sklearn.writers import transform

    if model.kernel == "precomputed":
        raise refuse(model, "its kernel is precomputed")
    parameters = dict(model.kernel_params or {})
    gram = kernel_matrix(
        model,
        model.kernel,
        table.matrix,
        model.X_fit_,
        gamma=model.gamma_,
        degree=model.degree,
        coef0=model.coef0,
        **parameters,
    )
    centered = transform(model._centerer, table_of(gram)).matrix
    used = np.flatnonzero(model.eigenvalues_)
    scaled = np.zeros_like(model.eigenvectors_)
    scaled[:, used] = model.eigenvectors_[:, used] / np.sqrt(model.eigenvalues_[used])
    return centered @ scaled


@writes("transform", kernel_approximation.Nystroem)
def nystroem(model: Any, table: Table) -> Tensor:
    parameters = model._get_kernel_params()
    gram = kernel_matrix(model, model.kernel, table.matrix, model.components_, **parameters)
    return gram @ model.normalization_.T


@writes("transform", kernel_approximation.RBFSampler)
def fourier(model: Any, table: Table) -> Tensor:
    angles = table.matrix @ model.random_weights_ + model.random_offset_
    return angles.unary("Cos") * float(np.sqrt(2.0 / model.n_components))


@writes("transform", kernel_approximation.SkewedChi2Sampler)
def skewed(model: Any, table: Table) -> Tensor:
    angles = (table.matrix + float(model.skewedness)).log() @ model.random_weights_
    made = (angles + model.random_offset_).unary("Cos")
    return made * float(np.sqrt(2.0) / np.sqrt(model.n_components))


@writes("transform", kernel_approximation.AdditiveChi2Sampler)
def additive(model: Any, table: Table) -> Tensor:
    x = table.matrix
    interval = model.sample_interval
    if interval is None:
        interval = {1: 0.8, 2: 0.5, 3: 0.4}.get(model.sample_steps)
    if interval is None:
        raise refuse(model, f"its sample_steps={model.sample_steps} has no interval")
    used = ~x.equals(0.0)
    safe = used.where(x, 1.0)
    parts = [used.where((safe * float(interval)).sqrt(), 0.0)]
    logs = safe.log() * float(interval)
    for step in range(1, model.sample_steps):
        factor = (safe * float(2.0 * interval / np.cosh(np.pi * step * interval))).sqrt()
        parts += [
            used.where(factor * (logs * float(step)).unary(turn), 0.0) for turn in ("Cos", "Sin")
        ]
    return concat(parts)


@writes("transform", cluster.FeatureAgglomeration)
def pooled(model: Any, table: Table) -> Tensor:
    if model.pooling_func is not np.mean:
        raise refuse(model, "its pooling is no mean", "Use pooling_func=numpy.mean.")
    groups = np.unique(model.labels_)
    spread = np.stack(
        [(model.labels_ == group) / np.sum(model.labels_ == group) for group in groups]
    )
    return table.matrix @ spread.T
