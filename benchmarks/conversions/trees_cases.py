"""The matrix's boosted trees: the settings of `benchmarks.tree_settings`, and what is refused."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.conversions.case import Case
from benchmarks.tree_settings import SETTINGS, Setting, cat, data
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]


def request(setting: Setting) -> Request:
    examples = ()
    if setting.input_type == "float64":  # the example's type becomes the model's
        examples = (Example((data().x[:50].astype(np.float64),)),)
    return Request(setting.make(), examples=examples, options=setting.options)


def untrained() -> Request:
    library: Any = importlib.import_module("xgboost")
    return Request(library.XGBClassifier())


def texts() -> Request:
    return Request(cat("Classifier", "binary", rows=data().named(), cat_features=["e"]))


def uneven() -> Request:
    params = {"cat_features": ["e", "f"], "grow_policy": "Depthwise"}
    return Request(cat("Regressor", "score", rows=data().frame, **params))


CASES = (
    *(Case(setting.name, lambda setting=setting: request(setting)) for setting in SETTINGS),
    Case("xgboost, untrained", untrained, refusal="not trained"),
    Case("catboost, texts as categories without their list", texts, refusal="categories="),
    Case("catboost, categories in uneven trees", uneven, refusal="not symmetric"),
)
