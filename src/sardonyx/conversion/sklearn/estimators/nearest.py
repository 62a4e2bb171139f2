"""Nearest neighbours: the training rows, by their distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import neighbors

from sardonyx.conversion.sklearn.estimators.elementary import squared_distances
from sardonyx.conversion.sklearn.graph import Tensor, stack
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, refuse, writes

__all__: list[str] = []


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
    graph = table.graph
    x = table.matrix.cast(np.float64)  # rounding to float32 would change who is the nearer of two
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
    return nearest.cast(graph.number), places


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


@writes("score_samples", neighbors.LocalOutlierFactor)
def local_density(model: Any, table: Table) -> Tensor:
    """How dense the neighbours lie, beside how dense the row lies among them."""
    graph = table.graph
    distances, places = _neighbours(model, table, model.n_neighbors_)
    reach = np.asarray(model._distances_fit_X_)[:, model.n_neighbors_ - 1]
    reached = distances.maximum(graph.constant(reach, graph.number).take(places))
    mean = reached.sum(1) / float(model.n_neighbors_) + 1e-10
    around = graph.constant(model._lrd, graph.number).take(places).sum(1)
    return -(around * mean / float(model.n_neighbors_))


@writes("decision_function", neighbors.LocalOutlierFactor)
def local_decision(model: Any, table: Table) -> Tensor:
    return local_density(model, table) - float(model.offset_)


@writes("predict", neighbors.LocalOutlierFactor)
def locally_inside(model: Any, table: Table) -> Tensor:
    inside = (local_decision(model, table) >= 0.0).cast(np.int64)
    return inside * 2 - 1


def _within(model: Any, table: Table) -> Tensor:
    """[batch, training rows]: the weight of each that lies within the radius."""
    points = np.asarray(model._fit_X, np.float64)
    name, power = _metric(model)
    if name == "cosine":
        raise refuse(model, "its metric 'cosine' is not known", "Use euclidean or manhattan.")
    x = table.matrix
    every = (
        squared_distances(x, points).sqrt()
        if name == "euclidean"
        else _gap(x.expand(1) - points[np.newaxis], name, power)
    )
    inside = (every <= float(model.radius)).cast(x.dtype)
    if model.weights in (None, "uniform"):
        return inside
    if model.weights != "distance":
        raise refuse(model, "its weights are a function", "Use 'uniform' or 'distance'.")
    same = every.equals(0.0).cast(x.dtype)
    some = same.max(1, keep=True).equals(1.0)
    return some.where(same, inside / every.equals(0.0).where(1.0, every))


@writes("predict", neighbors.RadiusNeighborsRegressor)
def radius_value(model: Any, table: Table) -> Tensor:
    weights = _within(model, table)
    targets = np.asarray(model._y, np.float64)
    made = weights @ targets.reshape(len(targets), -1) / weights.sum(1, keep=True)
    return made.squeeze(1) if targets.ndim == 1 else made


@writes("predict_proba", neighbors.RadiusNeighborsClassifier)
def radius_proba(model: Any, table: Table) -> Tensor:
    """Rows without a neighbour are refused by scikit-learn; here they have no probabilities (NaN)."""
    if model.outputs_2d_ or (model.outlier_label_ != [None] and model.outlier_label is not None):
        raise refuse(model, "it has several outputs or a label for outliers")
    votes = _within(model, table) @ np.eye(len(model.classes_))[np.asarray(model._y)]
    return votes / votes.sum(1, keep=True)


@writes("predict", neighbors.RadiusNeighborsClassifier)
def radius_class(model: Any, table: Table) -> Tensor:
    return labelled(model, model.classes_, radius_proba(model, table).argmax(1))


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
