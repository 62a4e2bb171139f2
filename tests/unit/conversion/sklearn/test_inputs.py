"""Rows as inputs of a model, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd

from sardonyx.conversion.request import Example
from sardonyx.conversion.sklearn.inputs import read_rows
from sardonyx.errors import InputError


def there_and_back(rows: Any) -> tuple[dict[str, Any], Any]:
    how, given = read_rows(Example((rows,)))
    feeds = how.feeds(given)
    return feeds, how.restore(feeds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.bool_, np.uint8])
def test_arrays_keep_their_type(dtype: type) -> None:
    rows = np.arange(6).reshape(3, 2).astype(dtype)
    feeds, back = there_and_back(rows)
    assert feeds["X"].dtype == dtype
    assert np.array_equal(back, rows)
    assert back.dtype == dtype


def test_columns_of_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, np.nan],
            "t": ["a", None],
            "c": pd.Categorical(["u", "v"], categories=["v", "u", "w"]),
            "k": pd.array([1, None], dtype="Int64"),
        }
    )
    feeds, back = there_and_back(frame)
    assert {name: value.shape for name, value in feeds.items()} == dict.fromkeys("nxtck", (2, 1))
    assert feeds["t"].tolist() == [["a"], [""]]
    assert feeds["k"].dtype == np.float64
    assert list(back.columns) == list(frame.columns)
    assert (back.dtypes == frame.dtypes).all()
    assert back.isna().equals(frame.isna())
    assert back["c"].cat.categories.tolist() == ["v", "u", "w"]


def test_arrays_of_mixed_types() -> None:
    rows = np.array([["a", 1.5], ["b", 2.5]], dtype=object)
    feeds, back = there_and_back(rows)
    assert feeds["x0"].dtype == object
    assert feeds["x1"].dtype == np.float64
    assert back.tolist() == rows.tolist()


def test_documents() -> None:
    feeds, back = there_and_back(["one text", ""])
    assert feeds["X"].shape == (2,)
    assert back.tolist() == ["one text", ""]


def test_keywords_are_columns() -> None:
    how, given = read_rows(Example(kwargs={"a": [1.0, 2.0], "b": ["x", "y"]}))
    assert [port.name for port in how.ports] == ["a", "b"]
    assert len(given) == 2


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((0, 3)), "no rows"),
        (np.zeros((2, 3, 4)), "shape"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}), "datetime64"),
        (pd.DataFrame({"t": ["a", "", None]}), "missing texts and empty ones"),
        (pd.DataFrame({"t": ["a", 1, 2.0]}), "elements of type"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
    ],
)
def test_refused(rows: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_rows(Example((rows,)))


def test_sparse_rows_are_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match=r"X\.toarray"):
        read_rows(Example((sparse.eye(3).tocsr(),)))
