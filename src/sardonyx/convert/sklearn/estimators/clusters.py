"""Clusters and neighbours: what lies nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster, neighbors

from sardonyx.convert.sklearn.estimators.elementary import squared_distances
from sardonyx.convert.sklearn.graph import Tensor, stack
from sardonyx.convert.sklearn.table import Table
from sardonyx.convert.sklearn.writers import labelled, refuse, writes

__all__: list[str] = []

_MEANS = (cluster.KMeans, cluster.MiniBatchKMeans)


@writes("predict", *_MEANS)
def nearest_center(model: Any, table: Table) -> Tensor:
    return _nearness(table.matrix, np.asarray(model.cluster_centers_, np.float64)).argmin(1)


def _nearness(x: Tensor, points: NDArray[np.float64]) -> Tensor:
    """Squared distances less what is the same for all points."""
    center = points.mean(axis=0)
    x, points = x - center, points - center
    return (points**2).sum(axis=1) - (x * 2.0) @ points.T


@writes("transform", *_MEANS, cluster.BisectingKMeans)
def center_distances(model: Any, table: Table) -> Tensor:
    return squared_distances(table.matrix, np.asarray(model.cluster_centers_, np.float64)).sqrt()


@writes("predict", cluster.BisectingKMeans)
def bisected(model: Any, table: Table) -> Tensor:
    """Down the tree of halves: at every fork the nearer of two centers."""
    graph = table.graph
    x = table.matrix

    def label(node: Any) -> Tensor:
        if node.left is None:
            return graph.constant([node.label], np.int64)
        ends = np.vstack([node.left.center, node.right.center])
        if hasattr(model, "_X_mean"):
            ends = ends + model._X_mean
        return _nearness(x, ends).argmin(1).equals(0).where(label(node.left), label(node.right))

    return label(model._bisecting_tree)


@writes("predict", cluster.MeanShift, cluster.AffinityPropagation)
def nearest_mode(model: Any, table: Table) -> Tensor:
    return _nearness(table.matrix, np.asarray(model.cluster_centers_, np.float64)).argmin(1)


@writes("predict", cluster.Birch)
def nearest_subcluster(model: Any, table: Table) -> Tensor:
    place = _nearness(table.matrix, np.asarray(model.subcluster_centers_, np.float64)).argmin(1)
    return table.graph.constant(model.subcluster_labels_, np.int64).take(place)


@writes("transform", cluster.Birch)
def subcluster_distances(model: Any, table: Table) -> Tensor:
    return squared_distances(table.matrix, np.asarray(model.subcluster_centers_, np.float64)).sqrt()


# Neighbours


def _metric(model: Any) -> tuple[str, float]:
    """euclidean, manhattan, chebyshev, cosine or minkowski, and its power."""
    name = model.effective_metric_
    power = float((model.effective_metric_params_ or {}).get("p", 2.0) or 2.0)
    if (model.effective_metric_params_ or {}).get("w") is not None:
        raise refuse(model, "its metric has weights")
    if name not in ("euclidean", "manhattan", "chebyshev", "cosine", "minkowski"):
        raise refuse(
            model, f"its metric {name!r} is not known", "Use euclidean, manhattan or cosine."
        )
    return name, power


def _gap(away: Tensor, name: str, power: float) -> Tensor:
    """Of differences along the last axis."""
    if name == "manhattan":
        return away.abs().sum(2)
    if name == "chebyshev":
        return away.abs().max(2)
    if name == "euclidean":
        return (away * away).sum(2).sqrt()
    return (away.abs() ** power).sum(2) ** (1.0 / power)


def _neighbours(model: Any, table: Table, count: int) -> tuple[Tensor, Tensor]:
    """Distances and places of the nearest training rows, nearest first: [batch, count] each.

    Candidates are found by one product; the distances of those chosen are computed anew from differences, so
    that a row that is itself in the training data is at distance zero, as weights by distance need it.
    """
    graph, x = table.graph, table.matrix
    points = np.asarray(
        model._fit_X.toarray() if hasattr(model._fit_X, "toarray") else model._fit_X
    )
    points = points.astype(np.float64)
    name, power = _metric(model)
    if name == "cosine":
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        own = (x * x).sum(1, keep=True).sqrt()
        unit = x / own.equals(0.0).where(1.0, own)
        every = (1.0 - unit @ (points / np.where(lengths == 0.0, 1.0, lengths)).T).clip(0.0, 2.0)
    elif name == "euclidean":
        every = squared_distances(x, points)
    else:
        every = _gap(x.expand(1) - points[np.newaxis], name, power)
    size = graph.constant([count], np.int64)
    names = graph.node("TopK", [every, size], outputs=2, axis=1, largest=0, sorted=1)
    nearest = Tensor(graph, names[0], every.dtype, (None, count))
    places = Tensor(graph, names[1], np.dtype(np.int64), (None, count))
    if name == "euclidean":
        chosen = graph.constant(points, x.dtype).take(places)
        nearest = _gap(x.expand(1) - chosen, name, power)
    return nearest, places


@writes("kneighbors", neighbors.NearestNeighbors)
def kneighbors(model: Any, table: Table) -> list[Tensor]:
    return list(_neighbours(model, table, model.n_neighbors))


def _weights(model: Any, distances: Tensor) -> Tensor | None:
    if model.weights in (None, "uniform"):
        return None
    if model.weights != "distance":
        raise refuse(model, "its weights are a function", "Use 'uniform' or 'distance'.")
    # Where a neighbour is at distance zero, it alone counts.
    same = distances.equals(0.0)
    some = same.cast(distances.dtype).max(1, keep=True).equals(1.0)
    return some.where(same.cast(distances.dtype), 1.0 / same.where(1.0, distances))


@writes("predict", neighbors.KNeighborsRegressor)
def neighbour_value(model: Any, table: Table) -> Tensor:
    distances, places = _neighbours(model, table, model.n_neighbors)
    targets = np.asarray(model._y, np.float64)
    flat = targets.ndim == 1
    values = table.graph.constant(targets.reshape(len(targets), -1), table.graph.number)
    found = values.take(places)
    weights = _weights(model, distances)
    if weights is None:
        made = found.sum(1) / float(model.n_neighbors)
    else:
        made = (found * weights.expand(2)).sum(1) / weights.sum(1, keep=True)
    return made.squeeze(1) if flat else made


def _votes(model: Any, table: Table) -> list[Tensor]:
    """For each output, what each class has of the neighbours' weights."""
    distances, places = _neighbours(model, table, model.n_neighbors)
    weights = _weights(model, distances)
    graph = table.graph
    codes = np.asarray(model._y).reshape(len(model._fit_X), -1) if model.outputs_2d_ else None
    columns = [np.asarray(model._y)] if codes is None else list(codes.T)
    classes = [model.classes_] if codes is None else list(model.classes_)
    found = []
    for own, column in zip(classes, columns, strict=True):
        bits = np.eye(len(own))[column]
        votes = graph.constant(bits, graph.number).take(places)
        found.append((votes if weights is None else votes * weights.expand(2)).sum(1))
    return found


@writes("predict_proba", neighbors.KNeighborsClassifier)
def neighbour_proba(model: Any, table: Table) -> Any:
    shares = []
    for votes in _votes(model, table):
        total = votes.sum(1, keep=True)
        shares.append(votes / total.equals(0.0).where(1.0, total))
    return shares if model.outputs_2d_ else shares[0]


@writes("predict", neighbors.KNeighborsClassifier)
def neighbour_class(model: Any, table: Table) -> Tensor:
    votes = _votes(model, table)
    if not model.outputs_2d_:
        return labelled(model, model.classes_, votes[0].argmax(1))
    pairs = zip(model.classes_, votes, strict=True)
    return stack([labelled(model, classes, each.argmax(1)) for classes, each in pairs])


@writes("predict", neighbors.NearestCentroid)
def nearest_centroid(model: Any, table: Table) -> Tensor:
    if model.metric not in ("euclidean", "manhattan"):
        raise refuse(model, f"its metric {model.metric!r} is not known")
    centroids = np.asarray(model.centroids_, np.float64)
    if not np.allclose(model.class_prior_, 1.0 / len(model.classes_)) or model.shrink_threshold:
        return labelled(model, model.classes_, _discriminant(model, table).argmax(1))
    if model.metric == "euclidean":
        return labelled(model, model.classes_, _nearness(table.matrix, centroids).argmin(1))
    away = _gap(table.matrix.expand(1) - centroids[np.newaxis], "manhattan", 1.0)
    return labelled(model, model.classes_, away.argmin(1))


def _discriminant(model: Any, table: Table) -> Tensor:
    raise refuse(model, "its priors differ, or it shrinks centroids")


@writes("score_samples", neighbors.KernelDensity)
def density(model: Any, table: Table) -> Tensor:
    if model.kernel != "gaussian" or model.metric != "euclidean":
        raise refuse(model, "its kernel or metric is not known", "Use gaussian and euclidean.")
    points = np.asarray(model.tree_.data, np.float64)
    width, size = float(model.bandwidth_), points.shape[1]
    weights = model.tree_.sample_weight
    logs = np.zeros(len(points)) if weights is None else np.log(np.asarray(weights))
    total = float(len(points)) if weights is None else float(np.sum(weights))
    found = squared_distances(table.matrix, points) * (-0.5 / width**2) + logs
    constant = -0.5 * size * np.log(2.0 * np.pi) - size * np.log(width) - np.log(total)
    return found.logsumexp(1) + constant


@writes("transform", neighbors.KNeighborsTransformer)
def neighbour_graph(model: Any, table: Table) -> Tensor:
    distances, places = _neighbours(model, table, model.n_neighbors + (model.mode == "distance"))
    count = len(model._fit_X)
    bits = places.expand(2).equals(np.arange(count).reshape(1, 1, -1)).cast(table.graph.number)
    return (bits * distances.expand(2)).sum(1) if model.mode == "distance" else bits.sum(1)
