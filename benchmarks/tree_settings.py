"""Settings of XGBoost, LightGBM and CatBoost that people use: one line trains a model and converts it.

The features are numbers (0 to 3, one of them often zero), and categories (4: five of them, 5: forty).
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.conversion.trees.catboost import convert_catboost
from sardonyx.conversion.trees.conversion import InputType, TreeConversion
from sardonyx.conversion.trees.lightgbm import convert_lightgbm
from sardonyx.conversion.trees.xgboost import convert_xgboost

__all__ = ["SETTINGS", "Setting", "data"]


READERS: Mapping[str, Callable[..., TreeConversion]] = {
    "xgboost": convert_xgboost,
    "lightgbm": convert_lightgbm,
    "catboost": convert_catboost,
}


@dataclass(frozen=True)
class Setting:
    """A model to train and convert.

    Attributes:
        name: begins with the library's.
        make: trains; gives a model, or the path of its file.
        input_type: of the converted model.
        options: of the library's reader.
    """

    name: str
    make: Callable[[], Any]
    input_type: InputType = "float32"
    options: Mapping[str, Any] = field(default_factory=dict)

    def convert(self) -> TreeConversion:
        reader = READERS[self.name.partition(" ")[0]]
        return reader(self.make(), input_type=self.input_type, **self.options)


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sardonyx-trees-")


def folder() -> Path:
    """Where files of models are; it goes with the process."""
    return Path(_kept().name)


# Data


@dataclass(frozen=True, eq=False)
class Data:
    """Rows to train on, and things to learn of them."""

    x: NDArray[np.float32]
    score: NDArray[np.float64]

    @property
    def positive(self) -> NDArray[np.float64]:
        return np.abs(self.score) + 0.1

    @property
    def binary(self) -> NDArray[np.int64]:
        return (self.score > 0).astype(np.int64)

    @property
    def noisy(self) -> NDArray[np.int64]:
        """With every fourth label wrong: learning it too well is noticed."""
        return np.where(np.arange(len(self.x)) % 4, self.binary, 1 - self.binary)

    @property
    def small(self) -> Any:
        """The frame with only six categories in column f."""
        frame = self.frame
        frame["f"] %= 6
        return frame

    @property
    def crossed(self) -> NDArray[np.int64]:
        """What only both columns of the small frame and a number together tell."""
        frame = self.small
        truth = frame["e"].isin([0, 2]) ^ (frame["f"] % 2 == 1) ^ (frame["a"] > 0)
        labels: NDArray[np.int64] = truth.to_numpy().astype(np.int64)
        return labels

    @property
    def three(self) -> NDArray[np.int64]:
        return np.digitize(self.score, [0, 1])

    @property
    def texts(self) -> NDArray[Any]:
        return np.where(self.score > 0, "yes", "no")

    @property
    def share(self) -> NDArray[np.float64]:
        return 0.1 + 0.8 * self.binary

    @property
    def flags(self) -> NDArray[np.int64]:
        return np.stack([self.score > 0, self.score > 1, self.score < -1], axis=1).astype(np.int64)

    @property
    def several(self) -> NDArray[np.float64]:
        return np.stack([self.score, -2 * self.score, self.score**2], axis=1)

    @property
    def frame(self) -> Any:
        """With integers in the columns of categories, none missing."""
        pandas: Any = importlib.import_module("pandas")
        frame = pandas.DataFrame(self.x, columns=list("abcdef"))
        for name in "ef":
            frame[name] = frame[name].fillna(0).astype(int)
        return frame

    def named(self, names: str = "rgbcm") -> Any:
        """The frame with texts in column e."""
        frame = self.frame
        frame["e"] = [names[code] for code in frame["e"]]
        return frame

    def typed(self) -> Any:
        """The frame with texts in column e, as pandas' own categories."""
        frame = self.named()
        frame["e"] = frame["e"].astype("category")
        return frame


@cache
def data() -> Data:
    rng = np.random.default_rng(0)
    rows = 1500
    x = rng.standard_normal((rows, 6)).astype(np.float32)
    x[:, 2] = np.where(rng.random(rows) < 0.3, 0, x[:, 2])
    x[:, 4], x[:, 5] = rng.integers(0, 5, rows), rng.integers(0, 40, rows)
    x[rng.random(x.shape) < 0.05] = np.nan
    a, b, c = (np.nan_to_num(x[:, column]) for column in (0, 1, 2))
    score = a * b + np.sin(3 * c) + 1.5 * np.isin(x[:, 5], [1, 5, 9, 20, 33, 38]) + (x[:, 4] == 2)
    score -= 1.2 * ((x[:, 4] == 3) & np.isin(x[:, 5], range(20)))
    return Data(x, score)


GROUPS = [100] * 15
QUERIES = np.repeat(np.arange(15), 100)


# XGBoost


def xgb(kind: str, target: Any, *, rows: Any = None, fit: Any = None, **params: Any) -> Any:
    library: Any = importlib.import_module("xgboost")
    settings = {"n_estimators": 20, "max_depth": 5, "n_jobs": 1} | params
    if settings.get("booster") == "gblinear":
        del settings["max_depth"]
    labels = getattr(data(), target) if isinstance(target, str) else target
    model = getattr(library, f"XGB{kind}")(**settings)
    return model.fit(data().x if rows is None else rows, labels, **(fit or {}))


def xgb_train(target: str, **params: Any) -> Any:
    library: Any = importlib.import_module("xgboost")
    table = library.DMatrix(data().x)
    labels = getattr(data(), target)
    if params["objective"] == "survival:aft":
        table.set_float_info("label_lower_bound", labels)
        table.set_float_info("label_upper_bound", labels + 1)
    else:
        table.set_label(labels)
    return library.train({"max_depth": 4, "nthread": 1} | params, table, 10)


def halves(target: str) -> dict[str, Any]:
    """Every second row to look at while training."""
    return {"eval_set": [(data().x[::2], getattr(data(), target)[::2])]}


def xgb_early() -> Any:
    fit = halves("binary") | {"verbose": False}
    params = {"n_estimators": 200, "learning_rate": 0.9, "early_stopping_rounds": 2}
    return xgb("Classifier", "noisy", fit=fit, **params)


def squares(truth: NDArray[Any], score: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """An objective of the user's own."""
    return score - truth, np.ones_like(score)


def xgb_file(ending: str) -> Path:
    path = folder() / f"model{ending}"
    xgb("Classifier", "three").save_model(path)
    return path


CODES = {"enable_categorical": True, "feature_types": ["q", "q", "q", "q", "c", "c"]}


def x_(name: str, kind: str, target: str, **params: Any) -> Setting:
    return Setting(f"xgboost {name}", lambda: xgb(kind, target, **params))


def xb(target: str, **params: Any) -> Setting:
    name = f"xgboost Booster {params['objective']}"
    return Setting(name, lambda: xgb_train(target, **params))


XGBOOST = (
    x_("regression", "Regressor", "score"),
    Setting(
        "xgboost regression, float64",
        lambda: xgb("Regressor", "score"),
        "float64",
    ),
    x_("squaredlogerror", "Regressor", "positive", objective="reg:squaredlogerror"),
    x_("pseudohubererror", "Regressor", "score", objective="reg:pseudohubererror"),
    x_("absoluteerror", "Regressor", "score", objective="reg:absoluteerror"),
    x_(
        "quantileerror, three",
        "Regressor",
        "score",
        objective="reg:quantileerror",
        quantile_alpha=[0.1, 0.5, 0.9],
    ),
    x_("poisson", "Regressor", "positive", objective="count:poisson"),
    x_("gamma", "Regressor", "positive", objective="reg:gamma"),
    x_("tweedie", "Regressor", "positive", objective="reg:tweedie"),
    x_("cox", "Regressor", "positive", objective="survival:cox"),
    xb("positive", objective="survival:aft"),
    x_("reg:logistic", "Regressor", "binary", objective="reg:logistic"),
    x_("own objective", "Regressor", "score", objective=squares),
    x_("binary", "Classifier", "binary"),
    x_("binary, 0 is missing", "Classifier", "binary", missing=0.0),
    x_("binary, base_score", "Classifier", "binary", base_score=0.2),
    x_("binary hinge", "Classifier", "binary", objective="binary:hinge"),
    xb("binary", objective="binary:logistic"),
    xb("binary", objective="binary:logitraw"),
    Setting("xgboost early stopping", xgb_early),
    x_("three classes", "Classifier", "three"),
    x_("softmax", "Classifier", "three", objective="multi:softmax"),
    xb("three", objective="multi:softmax", num_class=3),
    x_("several labels", "Classifier", "flags"),
    x_("several targets", "Regressor", "several"),
    x_("vector leaves", "Regressor", "several", multi_strategy="multi_output_tree"),
    x_("vector leaves, classes", "Classifier", "three", multi_strategy="multi_output_tree"),
    x_("ranker", "Ranker", "three", fit={"qid": QUERIES}),
    x_("ranker pairwise", "Ranker", "three", objective="rank:pairwise", fit={"qid": QUERIES}),
    x_("dart", "Regressor", "score", booster="dart", rate_drop=0.3),
    x_("gblinear", "Regressor", "score", booster="gblinear"),
    x_("gblinear, classes", "Classifier", "three", booster="gblinear"),
    x_("random forest", "RFClassifier", "binary"),
    x_("parallel trees", "Regressor", "score", num_parallel_tree=3, subsample=0.5),
    x_("exact, pruned", "Regressor", "score", tree_method="exact", gamma=5.0),
    x_("categories one-hot", "Regressor", "score", max_cat_to_onehot=100, **CODES),
    x_("categories in sets", "Classifier", "three", max_cat_to_onehot=1, **CODES),
    Setting(
        "xgboost categories of a DataFrame",
        lambda: xgb("Classifier", "binary", rows=data().typed(), enable_categorical=True),
    ),
    Setting("xgboost .json", lambda: xgb_file(".json")),
    Setting("xgboost .ubj", lambda: xgb_file(".ubj")),
)


# LightGBM


def lgb(kind: str, target: Any, *, rows: Any = None, fit: Any = None, **params: Any) -> Any:
    library: Any = importlib.import_module("lightgbm")
    settings = {"n_estimators": 20, "min_child_samples": 5, "n_jobs": 1, "verbose": -1} | params
    labels = getattr(data(), target) if isinstance(target, str) else target
    model = getattr(library, f"LGBM{kind}")(**settings)
    return model.fit(data().x if rows is None else rows, labels, **(fit or {}))


def lgb_early() -> Any:
    library: Any = importlib.import_module("lightgbm")
    stop = library.early_stopping(2, verbose=False)
    params = {"n_estimators": 200, "learning_rate": 0.8}
    fit = {"eval_X": data().x[::2], "eval_y": data().binary[::2], "callbacks": [stop]}
    return lgb("Classifier", "noisy", fit=fit, **params)


def lgb_file() -> Path:
    path = folder() / "model.txt"
    lgb("Classifier", "three").booster_.save_model(path)
    return path


SETS = {"fit": {"categorical_feature": [4, 5]}, "min_data_per_group": 5, "cat_smooth": 1.0}


def l_(name: str, kind: str, target: Any, **params: Any) -> Setting:
    return Setting(f"lightgbm {name}", lambda: lgb(kind, target, **params))


LIGHTGBM = (
    l_("regression", "Regressor", "score"),
    Setting(
        "lightgbm regression, float64",
        lambda: lgb("Regressor", "score"),
        "float64",
    ),
    *(
        l_(name, "Regressor", "score", objective=name)
        for name in ("l1", "huber", "fair", "quantile")
    ),
    l_("mape", "Regressor", "positive", objective="mape"),
    l_("regression of square roots", "Regressor", "score", reg_sqrt=True),
    *(
        l_(name, "Regressor", "positive", objective=name)
        for name in ("poisson", "gamma", "tweedie")
    ),
    l_("cross_entropy", "Regressor", "share", objective="cross_entropy"),
    l_("cross_entropy_lambda", "Regressor", "share", objective="cross_entropy_lambda"),
    l_("own objective", "Regressor", "score", objective=squares),
    l_("binary, texts", "Classifier", "texts"),
    l_("binary, sigmoid 0.5", "Classifier", "binary", sigmoid=0.5),
    l_("without missing values", "Classifier", "binary", use_missing=False),
    l_("zero_as_missing", "Classifier", "binary", zero_as_missing=True),
    l_("zero_as_missing, categories", "Regressor", "score", zero_as_missing=True, **SETS),
    Setting("lightgbm early stopping", lgb_early),
    l_("three classes", "Classifier", "three"),
    l_("multiclassova", "Classifier", "three", objective="multiclassova", sigmoid=0.7),
    l_("lambdarank", "Ranker", "three", fit={"group": GROUPS}),
    l_("rank_xendcg", "Ranker", "three", objective="rank_xendcg", fit={"group": GROUPS}),
    l_("dart", "Regressor", "score", boosting_type="dart"),
    l_("goss", "Regressor", "score", data_sample_strategy="goss"),
    l_("rf", "Classifier", "three", boosting_type="rf", bagging_fraction=0.5, bagging_freq=1),
    l_("linear_tree", "Regressor", "score", linear_tree=True),
    l_("linear_tree, classes", "Classifier", "three", linear_tree=True),
    l_("categories one-hot", "Regressor", "score", max_cat_to_onehot=50, **SETS),
    l_("categories in sets", "Classifier", "three", **SETS),
    Setting(
        "lightgbm categories of a DataFrame",
        lambda: lgb("Classifier", "binary", rows=data().typed()),
    ),
    Setting("lightgbm .txt", lgb_file),
)


# CatBoost


def cat(kind: str, target: Any, *, rows: Any = None, fit: Any = None, **params: Any) -> Any:
    library: Any = importlib.import_module("catboost")
    settings = {"iterations": 20, "depth": 4, "thread_count": 1, "verbose": 0}
    settings |= {"allow_writing_files": False} | params
    labels = getattr(data(), target) if isinstance(target, str) else target
    model = getattr(library, f"CatBoost{kind}")(**settings)
    return model.fit(data().x if rows is None else rows, labels, **(fit or {}))


def cat_threshold() -> Any:
    model = cat("Classifier", "binary")
    model.set_probability_threshold(0.3)
    return model


def cat_early() -> Any:
    fit = halves("binary") | {"early_stopping_rounds": 2}
    return cat("Classifier", "noisy", fit=fit, iterations=200, learning_rate=0.9)


def cat_file() -> Path:
    path = folder() / "model.cbm"
    cat("Classifier", "three").save_model(str(path))
    return path


def c_(name: str, kind: str, target: Any, **params: Any) -> Setting:
    return Setting(f"catboost {name}", lambda: cat(kind, target, **params))


def cf(name: str, kind: str, target: Any, *, rows: str = "frame", **params: Any) -> Setting:
    """Of a frame with categories."""

    def make() -> Any:
        params_ = {"cat_features": ["e", "f"]} | params
        return cat(kind, target, rows=getattr(data(), rows), **params_)

    return Setting(f"catboost {name}", make)


CROSS = {"depth": 6, "iterations": 40, "max_ctr_complexity": 4, "model_size_reg": 0}

CATBOOST = (
    c_("RMSE", "Regressor", "score"),
    Setting(
        "catboost RMSE, float64",
        lambda: cat("Regressor", "score"),
        "float64",
    ),
    c_("MAE", "Regressor", "score", loss_function="MAE"),
    c_("Quantile", "Regressor", "score", loss_function="Quantile:alpha=0.3"),
    c_("MultiQuantile", "Regressor", "score", loss_function="MultiQuantile:alpha=0.1,0.5,0.9"),
    c_("Poisson", "Regressor", "positive", loss_function="Poisson"),
    c_("Tweedie", "Regressor", "positive", loss_function="Tweedie:variance_power=1.5"),
    c_("uncertainty", "Regressor", "score", loss_function="RMSEWithUncertainty"),
    c_("MultiRMSE", "Regressor", "several", loss_function="MultiRMSE"),
    c_("NaN is largest", "Regressor", "score", nan_mode="Max"),
    c_("Logloss, texts", "Classifier", "texts"),
    Setting("catboost Logloss, threshold 0.3", cat_threshold),
    c_("CrossEntropy", "Classifier", "share", loss_function="CrossEntropy"),
    Setting("catboost early stopping", cat_early),
    c_("MultiClass", "Classifier", "three"),
    c_("MultiClassOneVsAll", "Classifier", "three", loss_function="MultiClassOneVsAll"),
    c_("MultiLogloss", "Classifier", "flags", loss_function="MultiLogloss"),
    c_("Lossguide", "Regressor", "score", grow_policy="Lossguide", max_leaves=9),
    c_("Depthwise, classes", "Classifier", "three", grow_policy="Depthwise"),
    c_("YetiRank", "Ranker", "three", fit={"group_id": QUERIES}),
    cf("categories one-hot", "Regressor", "score", one_hot_max_size=100),
    cf(
        "categories one-hot, Lossguide",
        "Classifier",
        "three",
        one_hot_max_size=100,
        grow_policy="Lossguide",
    ),
    cf("categories by statistics", "Regressor", "score", max_ctr_complexity=1),
    cf("categories, texts as labels", "Classifier", "texts"),
    cf("categories combined", "Classifier", "crossed", rows="small", **CROSS, one_hot_max_size=2),
    cf(
        "categories and one-hot", "Classifier", "crossed", rows="small", **CROSS, one_hot_max_size=5
    ),
    Setting(
        "catboost categories of texts",
        lambda: cat("Classifier", "binary", rows=data().named(), cat_features=["e", "f"]),
        options={"categories": {"e": list("rgbcm")}},
    ),
    Setting("catboost .cbm", cat_file),
)

SETTINGS = XGBOOST + LIGHTGBM + CATBOOST
