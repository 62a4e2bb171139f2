"""Missing values filled in, and told of."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import impute

from sardonyx.convert.sklearn.estimators.encoding import is_missing
from sardonyx.convert.sklearn.graph import TEXT, Tensor, concat
from sardonyx.convert.sklearn.table import Part, Table
from sardonyx.convert.sklearn.writers import refuse, transform, writes

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
