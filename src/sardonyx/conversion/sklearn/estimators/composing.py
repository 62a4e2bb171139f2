"""Pipelines, column transformers and feature unions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.table import Part, Table, table_of
from sardonyx.conversion.sklearn.writers import refuse, transform, write, writes

__all__: list[str] = []

_METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def _run_pipeline(method: str) -> Any:
    def run(model: Any, table: Table) -> Any:
        *before, (_, last) = model.steps
        for _, step in before:
            if _is_passed(step) or hasattr(step, "fit_resample"):  # samplers act in fit alone
                continue
            table = transform(step, table)
        return table if _is_passed(last) else write(method, last, table)

    return run


def _run_frozen(method: str) -> Any:
    return lambda model, table: write(method, model.estimator, table)


for _method in _METHODS:
    writes(_method, Pipeline)(_run_pipeline(_method))
    writes(_method, FrozenEstimator)(_run_frozen(_method))


def _is_passed(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


@writes("transform", FeatureUnion)
def unite(model: Any, table: Table) -> Table:
    parts: list[Part] = []
    weights = model.transformer_weights or {}
    for name, step in model.transformer_list:
        if isinstance(step, str) and step == "drop":
            continue
        made = table if _is_passed(step) else transform(step, table)
        parts.extend(_weighted(made, weights.get(name)).parts)
    return _joined(model, parts)


@writes("transform", ColumnTransformer)
def transform_columns(model: Any, table: Table) -> Table:
    weights = model.transformer_weights or {}
    parts: list[Part] = []
    for name, step, columns in model.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        places = places_of(model, columns, table)
        if not places:
            continue
        given = table.select(places)
        if np.isscalar(columns) and not _is_passed(step):
            given = table_of(
                given.column(0).reshape(None), given.names
            )  # a text step takes [batch]
        made = given if _is_passed(step) else transform(step, given)
        parts.extend(_weighted(made, weights.get(name)).parts)
    return _joined(model, parts)


def places_of(model: Any, columns: Any, table: Table) -> list[int]:
    """Where the columns stand: by name, place, slice or mask."""
    if callable(columns):
        raise refuse(model, "its columns are chosen by a function that was never resolved")
    names = list(table.names)
    width = table.width
    if isinstance(columns, slice):
        start, stop = columns.start, columns.stop
        if isinstance(start, str) or isinstance(stop, str):
            first = names.index(start) if start is not None else 0
            last = names.index(stop) if stop is not None else width - 1
            return list(range(first, last + 1))
        return list(range(width))[columns]
    wanted: list[Any] = [columns] if np.isscalar(columns) else list(columns)
    if wanted and all(isinstance(item, bool | np.bool_) for item in wanted):
        return [place for place, chosen in enumerate(wanted) if chosen]
    places = []
    for item in wanted:
        if isinstance(item, str):
            if item not in names:
                raise refuse(
                    model,
                    f"it takes the column {item!r}, which the example does not have",
                    "Give a DataFrame with the columns that it was fitted on.",
                )
            places.append(names.index(item))
        else:
            places.append(range(width)[int(item)])
    return places


def _weighted(table: Table, weight: float | None) -> Table:
    if weight is None:
        return table
    scaled: Tensor = table.matrix * float(weight)
    return table_of(scaled, table.names)


def _joined(model: Any, parts: list[Part]) -> Table:
    if not parts:
        raise refuse(model, "no columns are left")
    made = Table(tuple(parts))
    names = _output_names(model, made.width)
    if not names:
        return Table(tuple(Part(part.tensor) for part in parts))
    named, at = [], 0
    for part in parts:
        width = part.tensor.width
        named.append(Part(part.tensor, names[at : at + width]))
        at += width
    return Table(tuple(named))


def _output_names(model: Any, width: int) -> tuple[str, ...]:
    """What a DataFrame behind it would call its columns."""
    try:
        names = tuple(str(name) for name in model.get_feature_names_out())
    except (AttributeError, ValueError):
        return ()
    return names if len(names) == width else ()
