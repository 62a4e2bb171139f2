"""Features made from features: products, functions of one column, and a choice of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.feature_selection import SelectorMixin

from sardonyx.conversion.sklearn.estimators.elementary import expm1, log1p
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table, table_of
from sardonyx.conversion.sklearn.writers import refuse, writes

__all__ = ["apply_function"]


@writes("transform", preprocessing.PolynomialFeatures)
def products(model: Any, table: Table) -> Tensor:
    """Every result is a product of as many columns as the degree; a column of ones fills up."""
    x = table.matrix
    one = (x.columns([0]) * 0.0) + 1.0
    extended = concat([x, x.is_nan().columns([0]).where(1.0, one)])
    factors = [
        [at for at, power in enumerate(powers) for _ in range(int(power))]
        for powers in model.powers_
    ]
    degree = max(1, *(len(found) for found in factors))
    made = None
    for turn in range(degree):
        places = [found[turn] if turn < len(found) else x.width for found in factors]
        column = extended.columns(places)
        made = column if made is None else made * column
    assert made is not None
    return made


@writes("transform", SelectorMixin)
def select(model: Any, table: Table) -> Table:
    return table.select([int(place) for place in model.get_support(indices=True)])


_FUNCTIONS: Mapping[Any, Callable[[Tensor], Tensor]] = {
    np.abs: lambda x: x.abs(),
    np.fabs: lambda x: x.abs(),
    np.arctan: lambda x: x.unary("Atan"),
    np.ceil: lambda x: x.unary("Ceil"),
    np.cos: lambda x: x.unary("Cos"),
    np.exp: lambda x: x.exp(),
    np.exp2: lambda x: (x * float(np.log(2.0))).exp(),
    np.expm1: expm1,
    np.floor: lambda x: x.unary("Floor"),
    np.log: lambda x: x.log(),
    np.log10: lambda x: x.log() / float(np.log(10.0)),
    np.log1p: log1p,
    np.log2: lambda x: x.log() / float(np.log(2.0)),
    np.negative: lambda x: -x,
    np.reciprocal: lambda x: 1.0 / x,
    np.rint: lambda x: x.unary("Round"),
    np.round: lambda x: x.unary("Round"),
    np.sign: lambda x: x.unary("Sign"),
    np.sin: lambda x: x.unary("Sin"),
    np.sqrt: lambda x: x.sqrt(),
    np.square: lambda x: x * x,
    np.tanh: lambda x: x.unary("Tanh"),
    np.nan_to_num: lambda x: x.is_nan().where(0.0, x),
}


def apply_function(model: Any, function: Any, arguments: Any, table: Table) -> Table:
    """A function of numpy, column by column.

    Raises:
        ConvertError: it is Python code, of which nobody knows what it computes.
    """
    if function is None:
        return table
    known = _FUNCTIONS.get(function) if callable(function) else None
    if known is None or arguments:
        name = getattr(function, "__name__", repr(function))
        raise refuse(
            model,
            f"its function {name!r} is Python code, of which nothing is known",
            "Use a numpy function that is known (numpy.log1p, numpy.sqrt, …), "
            "or apply it before the model.",
        )
    return table_of(known(table.matrix), table.names)


@writes("transform", preprocessing.FunctionTransformer)
def function(model: Any, table: Table) -> Table:
    return apply_function(model, model.func, model.kw_args, table)


@writes("inverse_transform", preprocessing.FunctionTransformer)
def inverse_function(model: Any, table: Table) -> Table:
    return apply_function(model, model.inverse_func, model.inv_kw_args, table)
