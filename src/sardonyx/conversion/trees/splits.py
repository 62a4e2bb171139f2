"""CatBoost's splits: a border of a number, or what the library says of categories.

CatBoost splits by statistics of categories, and of their combinations with other features. What such a split says
depends on a handful of things alone: which category each of its features has, and which side of a border each of its
numbers is on. So all their combinations are put to the library, and the leaves that they reach tell what it said.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.conversion.trees.categories import WHERE, Categories
from sardonyx.conversion.trees.forest import Above, Array, Category, Digit, Lookup
from sardonyx.conversion.trees.reading import ColumnBook, quietly
from sardonyx.errors import ConvertError

__all__ = ["Splits"]

MOST_COMBINATIONS = 1 << 18

Place: TypeAlias = tuple[int, int]  # tree, bit of its leaves' numbers


class Splits:
    """Splits as tests of one column against one threshold."""

    def __init__(
        self,
        known: Categories,
        book: ColumnBook,
        info: Mapping[str, Any],
        oracle: Any = None,
    ) -> None:
        self.known, self.book, self.oracle = known, book, oracle
        self.floats = {
            feature["feature_index"]: feature for feature in info.get("float_features") or ()
        }
        self.flat = {
            feature["feature_index"]: int(feature["flat_feature_index"])
            for feature in info.get("categorical_features") or ()
        }
        self.statistics = info.get("ctrs") or ()
        self.before = sum(len(feature["borders"]) for feature in self.floats.values())
        self.before += sum(
            len(feature.get("values") or ()) for feature in info.get("categorical_features") or ()
        )
        self._leaves: dict[tuple[Digit, ...], Array] = {}
        self._columns: dict[int, int] = {}

    def test(self, split: Mapping[str, Any], place: Place | None) -> tuple[int, float, bool]:
        """Column, threshold, and whether NaN is at most the threshold; `place` is where the split stands."""
        if split["split_type"] == "FloatFeature":
            feature = self.floats[split["float_feature_index"]]
            below = feature["nan_value_treatment"] != "AsTrue"
            return int(feature["flat_feature_index"]), float(split["border"]), below
        if split["split_type"] == "OneHotFeature":
            column = self.flat[split["cat_feature_index"]]
            texts, hashes = self.known.known[column], self.known.hashes
            codes = [code for code, text in enumerate(texts) if hashes[text] == split["value"]]
            return self.book.member(column, codes), 0.5, True
        number = int(split["split_index"])
        if number not in self._columns:
            self._columns[number] = self._asked(split, place)
        return self._columns[number], 0.5, True

    def _asked(self, split: Mapping[str, Any], place: Place | None) -> int:
        if split["split_type"] != "OnlineCtr":
            raise ConvertError(
                f"splits of type {split['split_type']!r:.80} are not known.",
                where=WHERE,
                value=split["split_type"],
                hint="This version reads the splits of CatBoost 1.2.",
            )
        if place is None:
            raise ConvertError(
                "its trees are not symmetric and split by statistics of categories.",
                where=WHERE,
                hint='Train it with grow_policy="SymmetricTree", or with a one_hot_max_size that takes all categories.',
            )
        digits = self._digits(split)
        tree, bit = place
        said = (self._ask(digits)[:, tree] >> bit) & 1
        return self.book.number(Lookup(digits, tuple(said.astype(float).tolist())))

    def _digits(self, split: Mapping[str, Any]) -> tuple[Digit, ...]:
        """Everything that the split depends on."""
        found: dict[Digit, None] = {}
        for element in self._elements(split):
            if element["combination_element"] == "float_feature":
                feature = self.floats[element["float_feature_index"]]
                treatment = feature["nan_value_treatment"] == "AsTrue"
                column = int(feature["flat_feature_index"])
                found[Above(column, float(element["border"]), treatment)] = None
            else:
                found[self._category(element["cat_feature_index"])] = None
        digits = tuple(sorted(found, key=str))
        count = int(np.prod([float(digit.options) for digit in digits]))
        if count > MOST_COMBINATIONS:
            raise ConvertError(
                f"a split combines categories in {count} ways, more than {MOST_COMBINATIONS}.",
                where=WHERE,
                value=count,
                limit=MOST_COMBINATIONS,
                hint="List the columns' categories with categories={…}, or train with max_ctr_complexity=1.",
            )
        return digits

    def _elements(self, split: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """What the statistic of a split is over: splits are numbered float, one-hot, statistic by statistic."""
        first = self.before
        for statistic in self.statistics:
            first += len(statistic["borders"])
            if split["split_index"] < first:
                elements: Sequence[Mapping[str, Any]] = statistic["elements"]
                return elements
        raise ConvertError(
            f"split {split['split_index']} is of no statistic of categories.",
            where=WHERE,
            value=split["split_index"],
            hint="This version reads the models of CatBoost 1.2.",
        )

    def _category(self, index: int) -> Category:
        column = self.flat[index]
        return Category(column, len(self.known.known[column]))

    def _ask(self, digits: tuple[Digit, ...]) -> Array:
        """The leaf in every tree for all values of the digits, (combinations, trees)."""
        if digits not in self._leaves:
            data = self.known.table(_every_row(digits, self.known))
            self._leaves[digits] = np.asarray(quietly(lambda: self.oracle.calc_leaf_indexes(data)))
        return self._leaves[digits]


def _every_row(digits: tuple[Digit, ...], known: Categories) -> Array:
    """A row for each number that the digits can make; features that they do not ask for are 0, or no category."""
    options = itertools.product(*(range(digit.options) for digit in digits))
    numbers = np.array(list(options), np.int64)
    rows = np.zeros((len(numbers), known.features), np.float32)
    rows[:, list(known.known)] = np.nan
    borders: dict[int, list[tuple[float, int]]] = {}
    for place, digit in enumerate(digits):
        if isinstance(digit, Above):
            borders.setdefault(digit.feature, []).append((digit.border, place))
            continue
        values = np.array([*range(digit.size), -1, np.nan], np.float32)
        rows[:, digit.feature] = values[numbers[:, place]]
    for feature, asked in borders.items():
        asked.sort()
        steps = np.array([border for border, _ in asked], np.float32)
        values = np.append(steps, np.nextafter(steps[-1], np.float32(np.inf)))
        # Above the first borders, and at the next one. Above a later one alone nothing can be.
        above = numbers[:, [place for _, place in asked]]
        rows[:, feature] = values[np.cumprod(above, axis=1).sum(axis=1)]
    return rows
