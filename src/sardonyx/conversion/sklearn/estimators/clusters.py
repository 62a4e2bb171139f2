"""Clusters and centroids: what lies nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster, covariance, neighbors

from sardonyx.conversion.sklearn.estimators.elementary import squared_distances
from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, refuse, writes

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


@writes("predict", neighbors.NearestCentroid)
def nearest_centroid(model: Any, table: Table) -> Tensor:
    centroids = np.asarray(model.centroids_, np.float64)
    if not np.isclose(model.class_prior_, 1.0 / len(model.classes_)).all():
        return labelled(model, model.classes_, _discriminant(model, table).argmax(1))
    if model.metric == "euclidean":
        return labelled(model, model.classes_, _nearness(table.matrix, centroids).argmin(1))
    if model.metric != "manhattan":
        raise refuse(model, f"its metric {model.metric!r} is not known")
    away = (table.matrix.expand(1) - centroids[np.newaxis]).abs().sum(2)
    return labelled(model, model.classes_, away.argmin(1))


@writes("predict_proba", neighbors.NearestCentroid)
def centroid_proba(model: Any, table: Table) -> Tensor:
    return _discriminant(model, table).softmax()


def _discriminant(model: Any, table: Table) -> Tensor:
    spread = np.where(model.within_class_std_dev_ != 0, model.within_class_std_dev_, 1.0)
    spread = np.ravel(spread)
    x, centroids = table.matrix / spread, np.asarray(model.centroids_) / spread
    if model.metric == "euclidean":
        away = squared_distances(x, centroids)
    else:
        away = (x.expand(1) - centroids[np.newaxis]).abs().sum(2)
        away = away * away
    return 2.0 * np.log(np.asarray(model.class_prior_)) - away


@writes("score_samples", covariance.EllipticEnvelope)
def mahalanobis(model: Any, table: Table) -> Tensor:
    away = table.matrix - model.location_
    return -((away @ np.asarray(model.get_precision())) * away).sum(1)


@writes("decision_function", covariance.EllipticEnvelope)
def elliptic(model: Any, table: Table) -> Tensor:
    return mahalanobis(model, table) - float(model.offset_)


@writes("predict", covariance.EllipticEnvelope)
def within_ellipse(model: Any, table: Table) -> Tensor:
    return (elliptic(model, table) >= 0.0).cast(np.int64) * 2 - 1
