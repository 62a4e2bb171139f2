"""Multi-layer perceptrons, and the restricted Boltzmann machine's hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import neural_network

from sardonyx.conversion.sklearn.estimators.elementary import both, sigmoid
from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, refuse, writes

__all__: list[str] = []


def _activated(model: Any, x: Tensor, name: str) -> Tensor:
    if name == "identity":
        return x
    if name == "relu":
        return x.unary("Relu")
    if name == "tanh":
        return x.unary("Tanh")
    if name == "logistic":
        return sigmoid(x)
    if name == "softmax":
        return x.softmax()
    if name == "exp":
        return x.exp()
    raise refuse(model, f"its activation {name!r} is not known")


def _forward(model: Any, table: Table) -> Tensor:
    x = table.matrix
    last = len(model.coefs_) - 1
    for at, (weights, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        name = model.out_activation_ if at == last else model.activation
        x = _activated(model, x @ weights + bias, name)
    return x


@writes("predict", neural_network.MLPRegressor)
def network_value(model: Any, table: Table) -> Tensor:
    answer = _forward(model, table)
    return answer.squeeze(1) if answer.width == 1 else answer


@writes("predict_proba", neural_network.MLPClassifier)
def network_proba(model: Any, table: Table) -> Tensor:
    answer = _forward(model, table)
    return both(answer.squeeze(1)) if answer.width == 1 else answer


@writes("predict", neural_network.MLPClassifier)
def network_class(model: Any, table: Table) -> Tensor:
    answer = _forward(model, table)
    binarizer = model._label_binarizer
    if binarizer.y_type_.startswith("multilabel"):
        return (answer > 0.5).cast(np.int64)
    if answer.width == 1:
        return labelled(model, model.classes_, (answer.squeeze(1) > 0.5).cast(np.int64))
    return labelled(model, model.classes_, answer.argmax(1))


@writes("transform", neural_network.BernoulliRBM)
def hidden(model: Any, table: Table) -> Tensor:
    return sigmoid(table.matrix @ model.components_.T + model.intercept_hidden_)
