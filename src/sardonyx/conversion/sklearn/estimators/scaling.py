"""Scalers: every column moved and stretched by itself, or every row by its length."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import preprocessing

from sardonyx.conversion.sklearn.estimators.elementary import expm1, log1p
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import writes

__all__: list[str] = []


@writes("transform", preprocessing.StandardScaler)
def standardize(model: Any, table: Table) -> Tensor:
    x = table.matrix
    if model.with_mean:
        x = x - model.mean_
    return x / model.scale_ if model.with_std else x


@writes("inverse_transform", preprocessing.StandardScaler)
def unstandardize(model: Any, table: Table) -> Tensor:
    x = table.matrix * model.scale_ if model.with_std else table.matrix
    return x + model.mean_ if model.with_mean else x


@writes("transform", preprocessing.MinMaxScaler)
def to_range(model: Any, table: Table) -> Tensor:
    x = table.matrix * model.scale_ + model.min_
    return x.clip(*model.feature_range) if model.clip else x


@writes("inverse_transform", preprocessing.MinMaxScaler)
def from_range(model: Any, table: Table) -> Tensor:
    return (table.matrix - model.min_) / model.scale_


@writes("transform", preprocessing.MaxAbsScaler)
def to_unit(model: Any, table: Table) -> Tensor:
    x = table.matrix / model.scale_
    return x.clip(-1.0, 1.0) if getattr(model, "clip", False) else x


@writes("inverse_transform", preprocessing.MaxAbsScaler)
def from_unit(model: Any, table: Table) -> Tensor:
    return table.matrix * model.scale_


@writes("transform", preprocessing.RobustScaler)
def robust(model: Any, table: Table) -> Tensor:
    x = table.matrix
    if model.with_centering:
        x = x - model.center_
    return x / model.scale_ if model.with_scaling else x


@writes("inverse_transform", preprocessing.RobustScaler)
def unrobust(model: Any, table: Table) -> Tensor:
    x = table.matrix * model.scale_ if model.with_scaling else table.matrix
    return x + model.center_ if model.with_centering else x


@writes("transform", preprocessing.Normalizer)
def normalize(model: Any, table: Table) -> Tensor:
    x = table.matrix
    if model.norm == "l1":
        length = x.abs().sum(1, keep=True)
    elif model.norm == "l2":
        length = (x * x).sum(1, keep=True).sqrt()
    else:
        length = x.abs().max(1, keep=True)
    return x / length.equals(0.0).where(1.0, length)


@writes("transform", preprocessing.KernelCenterer)
def center_kernel(model: Any, table: Table) -> Tensor:
    x = table.matrix
    means = x.sum(1, keep=True) / float(model.K_fit_rows_.shape[0])
    return x - model.K_fit_rows_ - means + model.K_fit_all_


@writes("transform", preprocessing.PowerTransformer)
def power(model: Any, table: Table) -> Tensor:
    x = table.matrix
    one = _yeo_johnson if model.method == "yeo-johnson" else _box_cox
    columns = [one(x.columns([at]), float(value)) for at, value in enumerate(model.lambdas_)]
    made = concat(columns)
    return (made - model._scaler.mean_) / model._scaler.scale_ if model.standardize else made


def _yeo_johnson(x: Tensor, power: float) -> Tensor:
    up, down = x.maximum(0.0), (-x).maximum(0.0)
    tiny = np.spacing(1.0)
    if abs(power) < tiny:
        above = log1p(up)
    else:
        above = expm1(log1p(up) * power) / power
    if abs(power - 2.0) < tiny:
        below = -log1p(down)
    else:
        below = -expm1(log1p(down) * (2.0 - power)) / (2.0 - power)
    chosen = (x >= 0.0).where(above, below)
    return x.is_nan().where(x, chosen)


def _box_cox(x: Tensor, power: float) -> Tensor:
    if power == 0.0:
        return x.log()
    return expm1(x.log() * power) / power
