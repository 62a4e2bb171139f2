"""Linear models: a product, an intercept, and what a class or a link makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import cross_decomposition, discriminant_analysis, linear_model, svm

from sardonyx.conversion.sklearn.estimators.elementary import both, sigmoid
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, predict, refuse, scores, writes

__all__: list[str] = []

REGRESSORS = (
    linear_model.ARDRegression,
    linear_model.BayesianRidge,
    linear_model.ElasticNet,
    linear_model.ElasticNetCV,
    linear_model.HuberRegressor,
    linear_model.Lars,
    linear_model.LarsCV,
    linear_model.Lasso,
    linear_model.LassoCV,
    linear_model.LassoLars,
    linear_model.LassoLarsCV,
    linear_model.LassoLarsIC,
    linear_model.LinearRegression,
    linear_model.MultiTaskElasticNet,
    linear_model.MultiTaskElasticNetCV,
    linear_model.MultiTaskLasso,
    linear_model.MultiTaskLassoCV,
    linear_model.OrthogonalMatchingPursuit,
    linear_model.OrthogonalMatchingPursuitCV,
    linear_model.QuantileRegressor,
    linear_model.Ridge,
    linear_model.RidgeCV,
    linear_model.SGDRegressor,
    linear_model.TheilSenRegressor,
    svm.LinearSVR,
)

CLASSIFIERS = (
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.Perceptron,
    linear_model.RidgeClassifier,
    linear_model.RidgeClassifierCV,
    linear_model.SGDClassifier,
    svm.LinearSVC,
    discriminant_analysis.LinearDiscriminantAnalysis,
)

# What disappears from scikit-learn one day must not take the frontend with it.
REGRESSORS += tuple(filter(None, [getattr(linear_model, "PassiveAggressiveRegressor", None)]))
CLASSIFIERS += tuple(filter(None, [getattr(linear_model, "PassiveAggressiveClassifier", None)]))


def dense(coefficients: Any) -> np.ndarray:
    """`sparsify()` leaves a scipy matrix."""
    return np.asarray(coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients)


def line(model: Any, table: Table) -> Tensor:
    """[batch] for one target, [batch, targets] for more."""
    coefficients = dense(model.coef_)
    product = table.matrix @ coefficients.T
    return product + np.asarray(model.intercept_)


@writes("predict", *REGRESSORS)
def regress(model: Any, table: Table) -> Tensor:
    answer = line(model, table)
    if isinstance(model, linear_model.SGDRegressor | svm.LinearSVR) and len(answer.shape) == 2:
        return answer.reshape(None)
    return answer


@writes(
    "predict",
    linear_model.GammaRegressor,
    linear_model.PoissonRegressor,
    linear_model.TweedieRegressor,
)
def regress_by_link(model: Any, table: Table) -> Tensor:
    link = type(model._base_loss.link).__name__
    if link == "IdentityLink":
        return line(model, table)
    if link == "LogLink":
        return line(model, table).exp()
    raise refuse(model, f"its link {link} is not known")


@writes("decision_function", *CLASSIFIERS)
def decide(model: Any, table: Table) -> Tensor:
    answer = line(model, table)
    return answer.reshape(None) if answer.shape[1:] == (1,) else answer


@writes("predict", *CLASSIFIERS)
def classify(model: Any, table: Table) -> Tensor:
    if isinstance(model, linear_model.RidgeClassifier | linear_model.RidgeClassifierCV) and (
        getattr(model, "_label_binarizer", None) is not None
        and model._label_binarizer.y_type_.startswith("multilabel")
    ):
        return (scores("decision_function", model, table) > 0.0).cast(np.int64)
    return chosen(model, model.classes_, scores("decision_function", model, table))


def chosen(model: Any, classes: Any, answer: Tensor) -> Tensor:
    """The class by its score: the sign of one, the largest of several."""
    index = (answer > 0.0).cast(np.int64) if len(answer.shape) == 1 else answer.argmax(1)
    return labelled(model, classes, index)


@writes("predict_proba", linear_model.LogisticRegression, linear_model.LogisticRegressionCV)
def logistic(model: Any, table: Table) -> Tensor:
    decision = scores("decision_function", model, table)
    if len(decision.shape) == 1:
        return both(sigmoid(decision))
    return decision.softmax()


@writes("predict_proba", discriminant_analysis.LinearDiscriminantAnalysis)
def discriminate(model: Any, table: Table) -> Tensor:
    decision = scores("decision_function", model, table)
    return both(sigmoid(decision)) if len(decision.shape) == 1 else decision.softmax()


@writes("transform", discriminant_analysis.LinearDiscriminantAnalysis)
def project(model: Any, table: Table) -> Tensor:
    x = table.matrix - model.xbar_ if model.solver == "svd" else table.matrix
    return x @ model.scalings_[:, : model._max_components]


@writes("predict_proba", linear_model.SGDClassifier)
def stochastic(model: Any, table: Table) -> Tensor:
    decision = scores("decision_function", model, table)
    if model.loss == "log_loss":
        if len(decision.shape) == 1:
            return both(sigmoid(decision))
        each = sigmoid(decision)
    else:  # modified_huber
        each = (decision.clip(-1.0, 1.0) + 1.0) / 2.0
        if len(decision.shape) == 1:
            return both(each)
    total = each.sum(1, keep=True)
    none = total.equals(0.0)
    return none.where(1.0 / each.width, each / none.where(1.0, total))


@writes("decision_function", linear_model.SGDOneClassSVM)
def one_class(model: Any, table: Table) -> Tensor:
    return (table.matrix @ dense(model.coef_).T).reshape(None) - np.asarray(model.offset_)


@writes("predict", linear_model.SGDOneClassSVM)
def inlier(model: Any, table: Table) -> Tensor:
    inside = (scores("decision_function", model, table) >= 0.0).cast(np.int64)
    return inside * 2 - 1


@writes("predict", linear_model.RANSACRegressor)
def consensus(model: Any, table: Table) -> Tensor:
    return predict(model.estimator_, table)


@writes(
    "predict",
    cross_decomposition.PLSRegression,
    cross_decomposition.PLSCanonical,
    cross_decomposition.CCA,
)
def partial_least_squares(model: Any, table: Table) -> Tensor:
    answer = (table.matrix - model._x_mean) @ model.coef_.T + model.intercept_
    return answer.reshape(None) if model._predict_1d else answer


@writes(
    "transform",
    cross_decomposition.PLSRegression,
    cross_decomposition.PLSCanonical,
    cross_decomposition.CCA,
)
def latent(model: Any, table: Table) -> Tensor:
    return ((table.matrix - model._x_mean) / model._x_std) @ model.x_rotations_


@writes("transform", cross_decomposition.PLSSVD)
def latent_svd(model: Any, table: Table) -> Tensor:
    return ((table.matrix - model._x_mean) / model._x_std) @ model.x_weights_


@writes("decision_function", discriminant_analysis.QuadraticDiscriminantAnalysis)
def quadratic(model: Any, table: Table) -> Tensor:
    posterior = _log_posterior(model, table)
    if len(model.classes_) == 2:
        return (posterior.columns([1]) - posterior.columns([0])).squeeze(1)
    return posterior


@writes("predict_proba", discriminant_analysis.QuadraticDiscriminantAnalysis)
def quadratic_proba(model: Any, table: Table) -> Tensor:
    return _log_posterior(model, table).softmax()


@writes("predict", discriminant_analysis.QuadraticDiscriminantAnalysis)
def quadratic_class(model: Any, table: Table) -> Tensor:
    return labelled(model, model.classes_, _log_posterior(model, table).argmax(1))


def _log_posterior(model: Any, table: Table) -> Tensor:
    x = table.matrix
    norms = []
    for rotation, scaling, mean in zip(
        model.rotations_, model.scalings_, model.means_, strict=True
    ):
        turned = (x - mean) @ (rotation * scaling**-0.5)
        norms.append((turned * turned).sum(1, keep=True))
    volumes = np.array([np.log(scaling).sum() for scaling in model.scalings_])
    return (concat(norms) + volumes) * -0.5 + np.log(model.priors_)
