"""Trees: no float32 changes its side, whatever the threshold."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.sklearn.forest import round_down
from sardonyx.conversion.sklearn.thresholds import thresholds_of
from sardonyx.runtime.session import Session


def test_round_down() -> None:
    numbers = np.array([0.1, -0.1, 1e-50, -1e-50, 1e300, -1e300, np.inf, 2.5])
    rounded = round_down(numbers)
    assert rounded.dtype == np.float32
    assert np.all(rounded.astype(np.float64) <= numbers)
    with np.errstate(over="ignore"):
        above = np.nextafter(rounded, np.float32(np.inf)).astype(np.float64)
    assert np.all((above > numbers) | (numbers == np.inf))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_of_many_rows_at_thresholds(dtype: type) -> None:
    """Equal trees vote for every class alike, often: ties must go as they go in scikit-learn."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 4)).astype(dtype)
    y = generator.integers(0, 3, 300)
    forest = RandomForestClassifier(10, random_state=0).fit(x, y)
    rows = generator.normal(size=(20_000, 4)).astype(dtype)
    for column, values in thresholds_of(forest, most=2000).items():
        exact = values.astype(dtype)
        rows[: len(exact), column] = exact
        rows[5000 : 5000 + len(exact), column] = np.nextafter(exact, dtype(np.inf))
        rows[10_000 : 10_000 + len(exact), column] = np.nextafter(exact, dtype(-np.inf))
    made = convert_model(Request(forest, (Example((x[:20],)),)), engine="sardonyx")
    label, shares = Session(made.model).run(None, {"X": rows})
    expected = forest.predict_proba(rows)
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    # Ten trees give a class tenths: the sums of float64 are not exact, so only exact counts are compared.
    counts = np.round(expected * 10)
    sure = np.sort(counts, axis=1)[:, -1] > np.sort(counts, axis=1)[:, -2]
    assert np.array_equal(label[sure], forest.predict(rows)[sure])
    assert np.array_equal(label, counts.argmax(axis=1))


def test_categories_unknown_missing_and_negative() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 3))
    x[:, 1] = generator.integers(0, 12, 400)
    x[::13, 1] = np.nan
    y = (np.nan_to_num(x[:, 1]) % 3 == 1) ^ (x[:, 0] > 0)
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features=[1]).fit(x, y)
    made = convert_model(Request(model, (Example((x[:30],)),)), engine="sardonyx")
    rows = generator.normal(size=(600, 3))
    rows[:, 1] = generator.choice([0, 1, 5, 11, 12, 99, -1, np.nan], 600)
    label, shares = Session(made.model).run(None, {"X": rows})
    np.testing.assert_allclose(shares, model.predict_proba(rows), rtol=1e-9)
    assert np.array_equal(label, model.predict(rows))
