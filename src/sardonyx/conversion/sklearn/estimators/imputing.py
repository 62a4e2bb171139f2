"""Missing values filled in, and told of."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import impute

from sardonyx.conversion.sklearn.estimators.encoding import is_missing
from sardonyx.conversion.sklearn.graph import TEXT, Tensor, concat
from sardonyx.conversion.sklearn.table import Part, Table
from sardonyx.conversion.sklearn.writers import refuse, transform, writes

__all__: list[str] = []


def gaps(column: Tensor, missing: Any) -> Tensor:
    """Where a column has the value that stands for a missing one."""
    if column.dtype == TEXT:
        return column.equals(
            column.graph.constant("" if is_missing(missing) else str(missing), TEXT)
        )
    if is_missing(missing):
        if column.dtype.kind != "f":
            return column.equals(0) & ~column.equals(0)  # whole numbers are never missing
        return column.is_nan()
    return column.cast(np.float64).equals(float(missing))


@writes("transform", impute.SimpleImputer)
def fill(model: Any, table: Table) -> Table:
    parts: list[Part] = []
    for at, value in enumerate(model.statistics_):
        if is_missing(value) and not model.keep_empty_features:
            continue  # a column without any value is dropped
        column = table.column(at)
        if column.dtype == TEXT:
            filler = column.graph.constant(str(value), TEXT)
        else:
            column = column.cast(table.graph.number)
            filler = column.graph.constant(0.0 if is_missing(value) else value, column.dtype)
        parts.append(Part(gaps(column, model.missing_values).where(filler, column)))
    filled = Table(_merged(parts))
    if not model.add_indicator:
        return filled
    return Table((*filled.parts, *transform(model.indicator_, table).parts))


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    if len({part.tensor.dtype for part in parts}) > 1:
        return tuple(parts)
    return (Part(concat([part.tensor for part in parts])),)


@writes("transform", impute.MissingIndicator)
def tell(model: Any, table: Table) -> Table:
    """Of the columns that had missing values at fit, or of all."""
    found = [gaps(table.column(int(at)), model.missing_values) for at in model.features_]
    number = table.graph.number
    return Table(tuple(Part(gap.cast(number)) for gap in found)) if found else _nothing(model)


def _nothing(model: Any) -> Table:
    raise refuse(model, "no column had missing values at fit, so nothing is told")


@writes("transform", impute.KNNImputer)
def fill_by_neighbours(model: Any, table: Table) -> Tensor:
    """Each gap from the nearest training rows that have a value there; distances skip what is missing.

    sum over shared columns (a - b)² · columns / shared, from four products of values and of masks.
    """
    if not is_missing(model.missing_values) or model.metric != "nan_euclidean":
        raise refuse(model, "its missing values are no NaN, or its metric is not nan_euclidean")
    if model.weights not in ("uniform", "distance"):
        raise refuse(model, "its weights are a function", "Use 'uniform' or 'distance'.")
    x = table.matrix.cast(np.float64)
    fitted = np.asarray(model._fit_X, np.float64)
    known = ~np.isnan(fitted)
    points = np.where(known, fitted, 0.0)
    gone = x.is_nan()
    here, values = (~gone).cast(np.float64), gone.where(0.0, x)
    shared = here @ known.T.astype(np.float64)
    squares = (values * values) @ known.T.astype(np.float64) + here @ (points**2).T
    squares = (squares - (values * 2.0) @ points.T).maximum(0.0)
    none = shared.equals(0.0)
    away = none.where(np.inf, (squares * float(x.width) / none.where(1.0, shared)).sqrt())
    columns = []
    for at in range(x.width):
        if not known[:, at].any():
            if model.keep_empty_features:
                columns.append(x.columns([at]).is_nan().where(0.0, x.columns([at])) * 0.0)
            continue
        found = _from_donors(model, away, points[:, at], known[:, at])
        columns.append(gone.columns([at]).where(found, x.columns([at])))
    filled = concat(columns).cast(table.graph.number)
    if not model.add_indicator:
        return filled
    return concat([filled, transform(model.indicator_, table).matrix])


def _from_donors(model: Any, away: Tensor, values: Any, known: Any) -> Tensor:
    """The mean of the nearest rows that have a value; of all of them where none is comparable."""
    graph = away.graph
    donors = np.flatnonzero(known)
    count = min(model.n_neighbors, len(donors))
    near = away.columns(donors.tolist())
    size = graph.constant([count], np.int64)
    names = graph.node("TopK", [near, size], outputs=2, axis=1, largest=0, sorted=1)
    distances = Tensor(graph, names[0], near.dtype, (None, count))
    places = Tensor(graph, names[1], np.dtype(np.int64), (None, count))
    found = graph.constant(values[donors], np.float64).take(places)
    comparable = distances < np.inf
    if model.weights == "uniform":
        weights = comparable.cast(np.float64)
    else:
        same = distances.equals(0.0)
        some = same.cast(np.float64).max(1, keep=True).equals(1.0)
        inverse = comparable.where(1.0 / same.where(1.0, distances), 0.0)
        weights = some.where(same.cast(np.float64), inverse)
    total = weights.sum(1, keep=True)
    mean = float(values[donors].mean())
    empty = total.equals(0.0)
    return empty.where(mean, (found * weights).sum(1, keep=True) / empty.where(1.0, total))
