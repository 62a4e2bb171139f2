"""Rows that are hard to get right: features exactly at thresholds and one step beside them, missing ones, zeros,
tiny and infinite ones, and categories that training never saw."""

from __future__ import annotations

import numpy as np

from sardonyx.conversion.trees.conversion import InputType
from sardonyx.conversion.trees.forest import (
    LEAF,
    Above,
    Array,
    Category,
    Ensemble,
    Lookup,
    ZeroAsMissing,
)

__all__ = ["probe_rows", "score_rounding"]

_SPECIAL = (0.0, -0.0, 1e-35, -1e-35, 1.1e-35, 1e-36, 1e-30, 1.0, -1.0)
_HUGE = (1e30, -1e30)
_CODES = (-1.0, -0.5, 0.5, 1e9)


def probe_rows(
    ensemble: Ensemble,
    count: int,
    *,
    input_type: InputType = "float32",
    infinite: bool = True,
    missing: bool = True,
    unseen: bool = True,
    seed: int = 0,
) -> Array:
    """(count, features) of such rows; the same for the same seed.

    Args:
        infinite, missing, unseen: whether there are infinities, NaN, and categories that are none.
    """
    generator = np.random.default_rng(seed)
    thresholds, categories = _thresholds(ensemble), _categories(ensemble)
    dtype = np.dtype(input_type)
    # A product with a huge number is all rounding, and with an infinite one it is no number.
    linear = ensemble.linear is not None or bool(ensemble.sloped)
    rows = np.empty((count, ensemble.features), dtype)
    for feature in range(ensemble.features):
        if feature in categories:
            size = categories[feature]
            pool = np.arange(size + (3 if unseen else 0), dtype=np.float64)
            pool = np.append(pool, [*_CODES, size - 0.5] if unseen else [])
        else:
            known = thresholds.get(feature, np.zeros(0))
            pool = _numbers(known, dtype, infinite and not linear, linear, generator)
        if missing:
            # One in sixteen; a missing value is common in practice, and hides all the others.
            pool = np.append(
                np.resize(pool, max(15, len(pool))), np.full(len(pool) // 15 + 1, np.nan)
            )
        rows[:, feature] = generator.choice(pool.astype(dtype), count)
    return rows


def _numbers(
    thresholds: Array,
    dtype: np.dtype[np.floating],
    infinite: bool,
    linear: bool,
    generator: np.random.Generator,
) -> Array:
    with np.errstate(over="ignore"):
        at = np.unique(thresholds.astype(dtype))
    at = at[np.isfinite(at) & (np.abs(at) < np.finfo(np.float32).max)]
    beside = [np.nextafter(at, dtype.type(end)) for end in (-np.inf, np.inf)]
    spread = float(np.ptp(at)) if len(at) else 1.0
    middle = float(np.median(at)) if len(at) else 0.0
    between = generator.normal(middle, max(spread, 1e-3) / 2, max(3 * len(at), 64))
    special = np.array(_SPECIAL if linear else _SPECIAL + _HUGE, dtype)
    pool = np.concatenate([at, *beside, between.astype(dtype), special])
    pool = np.where(np.abs(pool) < np.finfo(dtype).tiny, dtype.type(0), pool)
    return np.append(pool, [np.inf, -np.inf]) if infinite else pool


def _thresholds(ensemble: Ensemble) -> dict[int, Array]:
    """Every number that a feature is compared with."""
    found: dict[int, list[Array]] = {}
    for tree in ensemble.trees:
        inner = tree.test != LEAF
        for number in np.unique(tree.column[inner]).tolist():
            feature = number
            if number >= ensemble.features:
                column = ensemble.columns[number - ensemble.features]
                if not isinstance(column, ZeroAsMissing):
                    for feature, border in _borders(column):
                        found.setdefault(feature, []).append(np.array([border]))
                    continue
                feature = column.feature
            found.setdefault(feature, []).append(tree.threshold[inner & (tree.column == number)])
    return {feature: np.concatenate(parts) for feature, parts in found.items()}


def _borders(lookup: Lookup) -> list[tuple[int, float]]:
    return [(digit.feature, digit.border) for digit in lookup.digits if isinstance(digit, Above)]


def _categories(ensemble: Ensemble) -> dict[int, int]:
    """How many categories each categorical feature has."""
    found: dict[int, int] = {}
    for column in ensemble.columns:
        if isinstance(column, Lookup):
            for digit in column.digits:
                if isinstance(digit, Category):
                    found[digit.feature] = max(found.get(digit.feature, 0), digit.size)
    return found


def score_rounding(ensemble: Ensemble, rows: Array) -> Array:
    """How far each row's scores may lie apart because float32 rounds, (rows, 1).

    A library that adds floats rounds after every tree, in its own order; one that adds doubles is rounded once.
    """
    half = float(np.finfo(np.float32).eps) / 2
    largest = float(np.abs(ensemble.base).max(initial=0.0))
    for tree in ensemble.trees:
        largest += float(np.abs(tree.weights[tree.targets < ensemble.scores]).max(initial=0.0))
    terms = np.full((len(rows), 1), largest)
    sizes = np.abs(np.nan_to_num(rows.astype(np.float64)))
    if ensemble.linear is not None:
        terms = terms + sizes @ np.abs(ensemble.linear.weights).max(axis=1, keepdims=True)
    if ensemble.sloped:
        steepest = np.zeros(len(ensemble.sloped))
        for tree in ensemble.trees:
            slopes = tree.targets >= ensemble.scores
            places = (tree.targets[slopes] - ensemble.scores) % len(ensemble.sloped)
            top = np.zeros(len(ensemble.sloped))
            np.maximum.at(top, places, np.abs(tree.weights[slopes]))
            steepest += top
        terms = terms + sizes[:, list(ensemble.sloped)] @ steepest[:, None]
    # Rounding errors of either sign add up like a random walk.
    added = len(ensemble.trees) + (ensemble.features if ensemble.linear is not None else 0)
    steps = np.sqrt(added + 1) if ensemble.real == "float32" else 1.0
    rounding: Array = half * terms * steps
    return rounding
