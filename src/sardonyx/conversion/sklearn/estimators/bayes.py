"""Naive Bayes and mixtures: a joint log-likelihood a class, and what it makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import mixture, naive_bayes

from sardonyx.conversion.sklearn.estimators.elementary import normalized
from sardonyx.conversion.sklearn.graph import Tensor, concat, stack
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, writes

__all__: list[str] = []

_NAIVE = (
    naive_bayes.BernoulliNB,
    naive_bayes.CategoricalNB,
    naive_bayes.ComplementNB,
    naive_bayes.GaussianNB,
    naive_bayes.MultinomialNB,
)
_MIXTURES = (mixture.GaussianMixture, mixture.BayesianGaussianMixture)


@writes("predict", *_NAIVE)
def most_likely(model: Any, table: Table) -> Tensor:
    return labelled(model, model.classes_, _joint(model, table).argmax(1))


@writes("predict_proba", *_NAIVE)
def likelihoods(model: Any, table: Table) -> Tensor:
    return normalized(_joint(model, table))


def _joint(model: Any, table: Table) -> Tensor:
    x = table.matrix
    if isinstance(model, naive_bayes.GaussianNB):
        return _gaussian(model, x)
    if isinstance(model, naive_bayes.MultinomialNB):
        return x @ model.feature_log_prob_.T + model.class_log_prior_
    if isinstance(model, naive_bayes.ComplementNB):
        joint = x @ model.feature_log_prob_.T
        return joint + model.class_log_prior_ if len(model.classes_) == 1 else joint
    if isinstance(model, naive_bayes.BernoulliNB):
        if model.binarize is not None:
            x = (x.cast(np.float64) > float(model.binarize)).cast(table.graph.number)
        against = np.log(1.0 - np.exp(model.feature_log_prob_))
        constant = model.class_log_prior_ + against.sum(axis=1)
        return x @ (model.feature_log_prob_ - against).T + constant
    graph = table.graph
    total = None
    for at, logs in enumerate(model.feature_log_prob_):
        place = x.columns([at]).cast(np.int64).squeeze(1)
        found = graph.constant(np.ascontiguousarray(logs.T), graph.number).take(place)
        total = found if total is None else total + found
    assert total is not None
    return total + model.class_log_prior_


def _gaussian(model: Any, x: Tensor) -> Tensor:
    priors = np.log(model.class_prior_)
    volumes = -0.5 * np.log(2.0 * np.pi * model.var_).sum(axis=1)
    found = []
    for mean, spread in zip(model.theta_, model.var_, strict=True):
        away = x - mean
        found.append((away * away / spread).sum(1) * -0.5)
    return stack(found) + (priors + volumes)


@writes("predict", *_MIXTURES)
def component(model: Any, table: Table) -> Tensor:
    return _weighted(model, table).argmax(1)


@writes("predict_proba", *_MIXTURES)
def components(model: Any, table: Table) -> Tensor:
    return normalized(_weighted(model, table))


@writes("score_samples", *_MIXTURES)
def log_density(model: Any, table: Table) -> Tensor:
    return _weighted(model, table).logsumexp(1)


def _weighted(model: Any, table: Table) -> Tensor:
    """The log of each component's density times its weight."""
    x = table.matrix
    found = [_distance(model, x, at) for at in range(model.n_components)]
    return concat(found) * -0.5 + _constants(model)


def _distance(model: Any, x: Tensor, at: int) -> Tensor:
    away = x - model.means_[at]
    factors = model.precisions_cholesky_
    kind = model.covariance_type
    if kind == "full":
        turned = away @ factors[at]
    elif kind == "tied":
        turned = away @ factors
    else:
        turned = away * factors[at]
    return (turned * turned).sum(1, keep=True)


def _constants(model: Any) -> Any:
    """What does not depend on the row: found from the estimator's own density at the means."""
    # At its own mean a component's distance is zero: what is left is the constant.
    return np.diag(model._estimate_weighted_log_prob(np.asarray(model.means_)))
