"""Categories as numbers. What an encoder does with each category is asked of the encoder itself.

    text or number ─ its place among the categories (or the place behind them) ─ a row of a table

So whatever an encoder is told (drop, infrequent categories, unknown and missing ones), its table has it. A category
that is not known, where the encoder would raise an error, becomes NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import preprocessing

from sardonyx.conversion.sklearn.graph import ML, TEXT, Tensor, concat
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import refuse, title, writes
from sardonyx.errors import ConvertError

__all__ = ["is_missing", "place_of"]

_UNKNOWN = "\N{REPLACEMENT CHARACTER} no such category"


def is_missing(item: Any) -> bool:
    return item is None or item is pd.NA or (isinstance(item, float) and np.isnan(item))


def place_of(model: Any, column: Tensor, categories: Any) -> Tensor:
    """Where each element stands among the categories: [batch, 1] → [batch]; their number where nowhere."""
    items = list(categories)
    count = len(items)
    texts = [isinstance(item, str | np.str_) for item in items if not is_missing(item)]
    if any(texts) != all(texts):
        raise refuse(model, f"a column's categories mix texts and numbers: {items[:5]!r}")
    if column.dtype == TEXT:
        if texts and not all(texts):
            raise refuse(model, "a column of texts meets categories that are numbers")
        return _place_of_text(model, column, items, count)
    if any(texts):
        raise refuse(
            model,
            "a column of numbers meets categories that are texts",
            "Give the example as it was at fit.",
        )
    return _place_of_number(column, items, count)


def _place_of_text(model: Any, column: Tensor, items: list[Any], count: int) -> Tensor:
    keys = ["" if is_missing(item) else str(item) for item in items]
    if len(set(keys)) != len(keys):
        raise refuse(
            model, "the empty text and a missing one are categories, which are one in ONNX"
        )
    graph = column.graph
    found = graph.op(
        "LabelEncoder",
        column,
        dtype=np.int64,
        shape=column.shape,
        domain=ML,
        keys_strings=keys,
        values_int64s=list(range(count)),
        default_int64=count,
    )
    return found.reshape(None)


def _place_of_number(column: Tensor, items: list[Any], count: int) -> Tensor:
    column = column if len(column.shape) == 2 else column.expand(1)
    whole = column.dtype.kind in "biu" and all(float(item).is_integer() for item in items)
    kind = np.dtype(np.int64 if whole else np.float64)
    numbers = [0 if is_missing(item) else kind.type(item) for item in items]
    same = column.cast(kind).equals(np.array(numbers, kind).reshape(1, -1))
    gone = [at for at, item in enumerate(items) if is_missing(item)]
    if gone:
        known = np.array([not is_missing(item) for item in items]).reshape(1, -1)
        same = same & column.graph.constant(known)
        if column.dtype.kind == "f":
            here = column.graph.constant(np.arange(count).reshape(1, -1) == gone[0])
            same = same | (column.is_nan() & here)
    any_same = same.cast(np.int64).max(1)
    return any_same.equals(1).where(same.cast(np.int64).argmax(1), count)


def _asked(model: Any, categories: list[Any], unknown: bool) -> list[NDArray[np.float64]]:
    """Per column, the encoder's own answers for each category, and for an unknown one last."""
    width = len(categories)
    answers = []
    names = getattr(model, "feature_names_in_", None)
    for at, own in enumerate(categories):
        items = list(own) + ([_foreign(own)] if unknown else [])
        columns = [
            pd.Series(items if place == at else [categories[place][0]] * len(items))
            for place in range(width)
        ]
        frame = pd.DataFrame(
            {
                (names[place] if names is not None else place): _typed(column, categories[place])
                for place, column in enumerate(columns)
            }
        )
        found = model.transform(frame if names is not None else _array(frame))
        dense = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
        rows = np.asarray(dense, np.float64)
        answers.append(rows if unknown else np.vstack([rows, np.full((1, rows.shape[1]), np.nan)]))
    return answers


def _array(frame: pd.DataFrame) -> Any:
    kinds = {column.dtype for _, column in frame.items()}
    return frame.to_numpy() if len(kinds) == 1 else frame.astype(object).to_numpy()


def _typed(column: pd.Series, own: Any) -> pd.Series:
    return column.astype(object) if own.dtype.kind in "OUS" else column


def _foreign(own: Any) -> Any:
    known = [item for item in own if not is_missing(item)]
    if not known or isinstance(known[0], str):
        return _UNKNOWN
    return max(known) + 1 if own.dtype.kind != "b" else 2


def _widths(model: Any, per_column: list[int], total: int) -> list[slice]:
    if sum(per_column) != total:
        raise ConvertError("its columns cannot be told apart.", where=title(model))
    ends = np.cumsum([0, *per_column])
    return [slice(int(ends[at]), int(ends[at + 1])) for at in range(len(per_column))]


@writes("transform", preprocessing.OneHotEncoder)
def one_hot(model: Any, table: Table) -> Tensor:
    """Each category has one column or none, so a category's column is all that the table says."""
    categories = list(model.categories_)
    lenient = model.handle_unknown != "error"
    answers = _asked(model, categories, lenient)
    number = table.graph.number
    parts = []
    slices = _widths(model, list(model._n_features_outs), answers[0].shape[1])
    for at, own in enumerate(categories):
        rows = answers[at][:, slices[at]]
        width = rows.shape[1]
        if not width:
            continue
        lit = np.where(np.nan_to_num(rows).any(axis=1), np.nan_to_num(rows).argmax(axis=1), -1)
        place = place_of(model, table.column(at), own)
        column = table.graph.constant(lit, np.int64).take(place).expand(1)
        made = column.equals(np.arange(width).reshape(1, -1)).cast(number)
        if not lenient:
            made = place.equals(len(own)).expand(1).where(np.nan, made)
        parts.append(made)
    return concat(parts)


@writes("transform", preprocessing.OrdinalEncoder)
def ordinal(model: Any, table: Table) -> Tensor:
    categories = list(model.categories_)
    answers = _asked(model, categories, model.handle_unknown == "use_encoded_value")
    columns = [rows[:, [at]] for at, rows in enumerate(answers)]
    return _looked_up(model, table, columns)


@writes("transform", preprocessing.TargetEncoder)
def target(model: Any, table: Table) -> Tensor:
    answers = _asked(model, list(model.categories_), True)
    each = len(model.classes_) if model.target_type_ == "multiclass" else 1
    columns = [rows[:, at * each : (at + 1) * each] for at, rows in enumerate(answers)]
    return _looked_up(model, table, columns)


def _looked_up(model: Any, table: Table, columns: list[NDArray[np.float64]]) -> Tensor:
    graph = table.graph
    parts = []
    for at, rows in enumerate(columns):
        place = place_of(model, table.column(at), model.categories_[at])
        parts.append(graph.constant(rows, graph.number).take(place))
    return concat(parts)


@writes("transform", preprocessing.LabelEncoder)
def label_places(model: Any, table: Table) -> Tensor:
    place = place_of(model, _labels(table), model.classes_)
    return place.equals(len(model.classes_)).where(-1, place)


@writes("transform", preprocessing.LabelBinarizer)
def label_bits(model: Any, table: Table) -> Tensor:
    if model.y_type_.startswith("multilabel"):
        raise refuse(model, "its labels are bits already")
    place = place_of(model, _labels(table), model.classes_).expand(1)
    low, high = int(model.neg_label), int(model.pos_label)
    if len(model.classes_) == 2:
        return place.equals(1).where(table.graph.constant(high, np.int64), low)
    count = len(model.classes_)
    if count == 1:
        return place.equals(-1).where(table.graph.constant(high, np.int64), low)
    bits = place.equals(np.arange(count).reshape(1, -1))
    return bits.where(table.graph.constant(high, np.int64), low)


def _labels(table: Table) -> Tensor:
    return table.parts[0].tensor
