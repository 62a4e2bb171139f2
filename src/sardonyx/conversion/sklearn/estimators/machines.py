"""Support vector machines of libsvm, and other models that are sums of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import kernel_ridge, svm

from sardonyx.conversion.sklearn.estimators.kernels import kernel_matrix
from sardonyx.conversion.sklearn.estimators.wrapping import pair_votes
from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, refuse, writes

__all__: list[str] = []

_CLASSIFIERS = (svm.SVC, svm.NuSVC)


def _gram(model: Any, table: Table) -> Tensor:
    if model.kernel == "precomputed" or callable(model.kernel):
        raise refuse(model, "its kernel is precomputed or Python code")
    return kernel_matrix(
        model,
        model.kernel,
        table.matrix,
        model.support_vectors_,
        gamma=model._gamma,
        degree=model.degree,
        coef0=model.coef0,
    )


def _dense(values: Any) -> Any:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _pairs(model: Any, table: Table) -> Tensor:
    """libsvm's decisions, [batch, pairs]: above zero is the pair's first class."""
    counts = np.asarray(model.n_support_)
    ends = np.cumsum([0, *counts])
    dual = _dense(model._dual_coef_)
    columns = []
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            column = np.zeros(dual.shape[1])
            column[ends[i] : ends[i + 1]] = dual[j - 1, ends[i] : ends[i + 1]]
            column[ends[j] : ends[j + 1]] = dual[i, ends[j] : ends[j + 1]]
            columns.append(column)
    return _gram(model, table) @ np.stack(columns, axis=1) + np.asarray(model._intercept_)


@writes("decision_function", *_CLASSIFIERS)
def machine_decision(model: Any, table: Table) -> Tensor:
    found = _pairs(model, table)
    count = len(model.classes_)
    if count == 2:
        return -found.squeeze(1)
    if model.decision_function_shape == "ovo":
        return found
    return pair_votes((found < 0.0).cast(table.graph.number), -found, count)


@writes("predict", *_CLASSIFIERS)
def machine_class(model: Any, table: Table) -> Tensor:
    count = len(model.classes_)
    found = _pairs(model, table)
    if count == 2:
        return labelled(model, model.classes_, (found.squeeze(1) <= 0.0).cast(np.int64))
    if model.break_ties and model.decision_function_shape == "ovr":
        return labelled(model, model.classes_, machine_decision(model, table).argmax(1))
    second = (found <= 0.0).cast(table.graph.number)
    return labelled(model, model.classes_, pair_votes(second, found * 0.0, count).argmax(1))


@writes("predict_proba", *_CLASSIFIERS)
def machine_proba(model: Any, table: Table) -> Tensor:
    raise refuse(
        model,
        "its probabilities come from an iteration of libsvm that stops early, at 0.5% of the answer",
        "Fit CalibratedClassifierCV(SVC()), as scikit-learn advises, or SVC() for scores.",
    )


@writes("predict", svm.SVR, svm.NuSVR)
def machine_value(model: Any, table: Table) -> Tensor:
    found = _gram(model, table) @ _dense(model._dual_coef_).T + np.asarray(model._intercept_)
    return found.squeeze(1)


@writes("decision_function", svm.OneClassSVM)
def machine_inside(model: Any, table: Table) -> Tensor:
    return machine_value(model, table)


@writes("score_samples", svm.OneClassSVM)
def machine_score(model: Any, table: Table) -> Tensor:
    return machine_value(model, table) + float(np.ravel(model.offset_)[0])


@writes("predict", svm.OneClassSVM)
def machine_inlier(model: Any, table: Table) -> Tensor:
    inside = (machine_value(model, table) > 0.0).cast(np.int64)
    return inside * 2 - 1


@writes("predict", kernel_ridge.KernelRidge)
def ridge_of_kernels(model: Any, table: Table) -> Tensor:
    if model.kernel == "precomputed" or callable(model.kernel):
        raise refuse(model, "its kernel is precomputed or Python code")
    gram = kernel_matrix(
        model,
        model.kernel,
        table.matrix,
        model.X_fit_,
        gamma=model.gamma,
        degree=model.degree,
        coef0=model.coef0,
    )
    return gram @ model.dual_coef_
