"""Rows, targets and parts of models for the scikit-learn rows of the matrix."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import compose, ensemble, impute, pipeline, preprocessing

Numbers = NDArray[Any]

ROWS = 240


def numbers(dtype: Any = np.float64, *, seed: int = 0, positive: bool = False) -> Numbers:
    """Five columns: three normal, one of tenths, one of whole numbers."""
    generator = np.random.default_rng(seed)
    made = generator.normal(size=(ROWS, 5))
    made[:, 3] = np.round(generator.normal(size=ROWS), 1)
    made[:, 4] = generator.integers(0, 4, ROWS)
    return (np.abs(made) + 0.05 if positive else made).astype(dtype)


def value(x: Numbers) -> Numbers:
    return x[:, 0] ** 2 + 2.0 * x[:, 1] - x[:, 3] + 0.1 * x[:, 4]


def binary(x: Numbers) -> Numbers:
    return (value(x) > 0.8).astype(int)


def animals(x: Numbers) -> Numbers:
    places = (x[:, 0] > 0).astype(int) + (x[:, 1] + 0.3 * x[:, 4] > 0.5)
    return np.array(["ant", "bee", "cat"])[places]


def pair(x: Numbers) -> Numbers:
    return np.stack([binary(x), (x[:, 2] > 0).astype(int)], axis=1)


def gaps(x: Numbers) -> Numbers:
    made = x.copy()
    made[np.random.default_rng(1).random(x.shape) < 0.12] = np.nan
    return made


def people(*, missing: bool = False, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": generator.integers(18, 80, ROWS),
            "income": generator.lognormal(10, 1, ROWS),
            "city": generator.choice(["Oslo", "Riga", "São Paulo", "New York"], ROWS),
            "plan": generator.choice(["free", "basic", "pro"], ROWS),
            "active": generator.random(ROWS) < 0.5,
        }
    )
    if missing:
        frame.loc[::7, "income"] = np.nan
        frame.loc[::11, "city"] = np.nan
    return frame


def bought(frame: pd.DataFrame) -> Numbers:
    odds = (frame["age"] > 40).astype(int) + (frame["plan"] == "pro") + (frame["city"] == "Oslo")
    return np.asarray(odds >= 2).astype(int)


def table(**columns: Any) -> compose.ColumnTransformer:
    """Numbers scaled, texts one-hot: the column transformer of every tutorial."""
    scaled = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore")
    return compose.ColumnTransformer(
        [("numbers", scaled, ["age", "income"]), ("texts", hot, ["city", "plan"])], **columns
    )


REVIEWS = [
    "The food was great, the service wasn't.",
    "Terrible! Never again...",
    "A lovely evening: good wine, good company",
    "not good, not bad",
    "Crème brûlée to die for; waiter (very) friendly",
    "Overpriced & over-cooked. Avoid",
    "good good good",
    "I'd come back to New York for this",
] * 4
LIKED = np.array([1, 0, 1, 0, 1, 0, 1, 1] * 4)


def single() -> Numbers:
    return numbers(np.float32)


def positive() -> Numbers:
    return numbers(positive=True)


def with_gaps() -> Numbers:
    return gaps(numbers())


def with_gaps_single() -> Numbers:
    return gaps(single())


def plans(frame: pd.DataFrame) -> Numbers:
    return np.asarray(frame["age"] * 0.1 + (frame["plan"] == "pro") * 3.0)


def liked(_: Any) -> Numbers:
    return LIKED


def reviews() -> list[str]:
    return REVIEWS


def categories() -> pd.DataFrame:
    frame = people()
    frame["city"] = frame["city"].astype("category")
    frame["plan"] = frame["plan"].astype("category")
    return frame


def codes() -> Numbers:
    generator = np.random.default_rng(3)
    made = generator.normal(size=(ROWS, 4))
    made[:, 1] = generator.integers(0, 9, ROWS)
    made[:, 3] = generator.integers(3, 30, ROWS)
    made[::9, 1] = np.nan
    return made


def by_code(x: Numbers) -> Numbers:
    return np.asarray(
        (np.nan_to_num(x[:, 1]) % 3 == 0) ^ (x[:, 3] % 2 == 0) ^ (x[:, 0] > 0)
    ).astype(int)


def library(name: str, cls: str, **settings: Any) -> Any:
    return getattr(importlib.import_module(name), cls)(**settings)


def scaled(last: Any) -> Any:
    return pipeline.make_pipeline(preprocessing.StandardScaler(), last)


def people_missing() -> pd.DataFrame:
    return people(missing=True)


def hist(**settings: Any) -> Any:
    return ensemble.HistGradientBoostingClassifier(max_iter=20, **settings)
