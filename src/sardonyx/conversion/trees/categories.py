"""CatBoost's categorical columns: the caller feeds numbers of categories, CatBoost hashes texts."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.trees.forest import Array
from sardonyx.conversion.trees.reading import library
from sardonyx.errors import ConvertError

__all__ = ["WHERE", "Categories", "categories_of"]

WHERE = "catboost"
UNSEEN = "\x00no category"  # stands for every category that training did not have
INTEGERS = 4096  # that are tried as categories of a column without a list
COMBINED = 256  # of them, where a column is only ever combined with others
MULTIPLIER = 0x4906BA494954CB65  # of CatBoost's hash of combinations
MOST_CHECKED = 1 << 20  # combinations that are looked for in a table
EMPTY = (1 << 64) - 1  # a place of CatBoost's hash tables that nobody has


@dataclass(frozen=True)
class Categories:
    """The columns that the caller feeds.

    Attributes:
        names: of all columns.
        known: by categorical column, the categories whose places are fed.
        hashes: what CatBoost makes of each.
        notes: what the numbers mean.
    """

    names: tuple[str, ...]
    known: Mapping[int, tuple[str, ...]]
    hashes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> int:
        return len(self.names)

    def table(self, rows: Array) -> Any:
        """The rows as CatBoost takes them: texts where it has categories."""
        if not self.known:
            return rows
        columns: dict[str, Any] = {}
        for column, name in enumerate(self.names):
            values = rows[:, column]
            if column in self.known:
                texts = np.array([*self.known[column], UNSEEN], object)
                whole = np.floor(np.nan_to_num(values.astype(np.float64), nan=-1.0))
                fits = (whole >= 0) & (whole < len(texts) - 1)
                values = texts[np.where(fits, whole, len(texts) - 1).astype(np.int64)]
            columns[name] = values
        frame = library("pandas").DataFrame(columns)
        return library("catboost").Pool(frame, cat_features=sorted(self.known))


def categories_of(
    model: Any, dump: Mapping[str, Any], given: Mapping[int | str, Sequence[int | str]]
) -> Categories:
    """The model's columns, with lists of categories for those that have them.

    Raises:
        ConvertError: the model has a category that is in no list.
    """
    info = dump["features_info"]
    found = info.get("categorical_features") or ()
    names = tuple(str(name) for name in model.feature_names_)
    flat = {feature["feature_index"]: int(feature["flat_feature_index"]) for feature in found}
    for key in given:
        if key not in flat.values() and key not in [names[column] for column in flat.values()]:
            raise ConvertError(
                f"categories are given for {key!r:.80}, which is no categorical column.",
                where=WHERE,
                value=key,
                hint=f"Those are: {', '.join(names[column] for column in flat.values()) or 'none'}.",
            )
    if not found:
        return Categories(names, {})
    listed = {
        column: tuple(str(value) for value in given.get(column, given.get(names[column], ())))
        for column in flat.values()
    }
    texts = {str(value) for value in range(INTEGERS)}.union(*listed.values())
    hashes = _hashes(model, names, sorted(listed), sorted(texts))
    tables = _tables(dump)
    for feature in found:
        column = int(feature["flat_feature_index"])
        if not listed[column]:
            count = _integers(feature, hashes, tables)
            listed[column] = tuple(str(value) for value in range(count))
        _check_values(feature, names[column], listed[column], hashes)
    for elements, keys in tables:
        _check_table(elements, keys, flat, listed, hashes, names)
    notes = tuple(
        f"column {names[column]} takes numbers of categories: {json.dumps(values)[:200]}"
        for column, values in sorted(listed.items())
    )
    return Categories(names, listed, hashes, notes)


def _hashes(
    model: Any, names: Sequence[str], columns: Sequence[int], texts: Sequence[str]
) -> dict[str, int]:
    """What CatBoost makes of texts: it says so of all that are in a pool."""
    frame = library("pandas").DataFrame(
        {
            name: list(texts) if column in columns else np.zeros(len(texts))
            for column, name in enumerate(names)
        }
    )
    pool = library("catboost").Pool(frame, cat_features=list(columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        info = json.loads(path.read_text("utf-8"))["features_info"]
    # A hash is an int32 wherever it is used.
    return {
        entry["value"]: (int(entry["hash"]) ^ (1 << 31)) - (1 << 31)
        for entry in info["cat_features_hash"]
    }


Elements = tuple[tuple[str, int, int], ...]  # kind, feature, value


def _tables(dump: Mapping[str, Any]) -> list[tuple[Elements, set[int]]]:
    """What each table of statistics is over, and the hashes that it knows."""
    tables = []
    for name, data in (dump.get("ctr_data") or {}).items():
        elements = tuple(
            (
                element["combination_element"],
                int(element.get("cat_feature_index", -1)),
                int(element.get("value", 0)),
            )
            for element in json.loads(name)["identifier"]
        )
        keys = {int(key) for key in data["hash_map"][:: data["hash_stride"]]}
        tables.append((elements, keys - {EMPTY}))
    return tables


def _combined(options: Sequence[Sequence[int]]) -> Array:
    """CatBoost's hashes of all combinations, modulo 2^64."""
    times = np.uint64(MULTIPLIER)
    result = np.zeros(1, np.uint64)
    for each in options:
        values = np.array(each, np.int64).astype(np.uint64)
        result = (times * (result[:, None] + times * values)).reshape(-1)
    return result


def _integers(
    feature: Mapping[str, Any],
    hashes: Mapping[str, int],
    tables: Sequence[tuple[Elements, set[int]]],
) -> int:
    """One more than the largest integer that is a category of the feature."""
    index = feature["feature_index"]
    values = set(feature.get("values") or ())
    alone = [keys for elements, keys in tables if elements == (("cat_feature_value", index, 0),)]
    keys: set[int] = set().union(*alone)
    hashed = [hashes[str(value)] for value in range(INTEGERS)]
    pairs = zip(hashed, _combined([hashed]).tolist(), strict=True)
    fits = [value for value, (own, key) in enumerate(pairs) if own in values or key in keys]
    largest = max(fits, default=-1)
    used = any(index == each for elements, _ in tables for _, each, _ in elements)
    return max(largest + 1, COMBINED if used and not keys and not values else 0)


def _check_values(
    feature: Mapping[str, Any], name: str, texts: Sequence[str], hashes: Mapping[str, int]
) -> None:
    if not set(feature.get("values") or ()) <= {hashes[text] for text in texts}:
        raise _unlisted(name)


def _check_table(
    elements: Elements,
    keys: set[int],
    flat: Mapping[int, int],
    listed: Mapping[int, Sequence[str]],
    hashes: Mapping[str, int],
    names: Sequence[str],
) -> None:
    """Every hash in the table must be one of the combinations of listed categories."""
    options = [
        [hashes[text] for text in listed[flat[index]]] if kind == "cat_feature_value" else [0, 1]
        for kind, index, _ in elements
    ]
    many = np.prod([float(len(each)) for each in options]) > MOST_CHECKED
    if many or not np.isin(np.array(sorted(keys), np.uint64), _combined(options)).all():
        columns = [names[flat[index]] for kind, index, _ in elements if index >= 0]
        raise _unlisted(", ".join(dict.fromkeys(columns)))


def _unlisted(names: str) -> ConvertError:
    return ConvertError(
        f"column {names} has categories that are not the integers 0, 1, 2, …",
        where=WHERE,
        hint="Pass categories={column: [all of its values], …}; the input is then a value's place in that list. "
        "Or train with max_ctr_complexity=1, where combinations of columns are too many.",
    )
