"""Pipelines of scikit-learn as skl2onnx writes them: scalers, encoders, text, trees, neighbours, clusters.

    python -m benchmarks.sklearn_models                  all of them, into build/sklearn; what is there stays

`pip install 'sardonyx[forests]'` brings what it needs. The data are random, from a seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "build" / "sklearn"
OPSETS = {"": 17, "ai.onnx.ml": 3}  # the newest that every writer of skl2onnx knows
FEATURES = 12
WORDS = ("red", "green", "blue", "old", "new", "car", "house", "tree", "fast", "slow")


def _data() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, FEATURES)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64), x[:, 0] * 2 + x[:, 2]


def scaled_logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, label, _ = _data()
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, label), x


def scaled_svc() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC

    x, label, _ = _data()
    return make_pipeline(MinMaxScaler(), SVC()).fit(x, label), x


def random_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    x, label, _ = _data()
    return RandomForestClassifier(20, random_state=0).fit(x, label), x


def gradient_boosting() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import RobustScaler

    x, _, number = _data()
    model = make_pipeline(RobustScaler(), GradientBoostingRegressor(random_state=0))
    return model.fit(x, number), x


def text_logistic() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS, 6)) for _ in range(100)]
    labels = [int("red" in text) for text in texts]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return model.fit(texts, labels), np.array(texts)[:, None]


def kmeans() -> Any:
    from sklearn.cluster import KMeans
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, _, _ = _data()
    return make_pipeline(StandardScaler(), KMeans(4, n_init=1, random_state=0)).fit(x), x


def reduced_neighbours() -> Any:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    x, label, _ = _data()
    return make_pipeline(PCA(4), KNeighborsClassifier(3)).fit(x, label), x


def network() -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures

    x, label, _ = _data()
    scale = (MaxAbsScaler(), PolynomialFeatures(2))
    return make_pipeline(*scale, MLPClassifier((16, 8), max_iter=20, random_state=0)).fit(
        x, label
    ), x


def naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    x, label, _ = _data()
    return GaussianNB().fit(x, label), x


def isolation_forest() -> Any:
    from sklearn.ensemble import IsolationForest

    x, _, _ = _data()
    return IsolationForest(n_estimators=10, random_state=0).fit(x), x


def voting() -> Any:
    from sklearn.ensemble import VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    x, label, _ = _data()
    parts = [("line", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=4))]
    return VotingClassifier(parts, voting="soft", flatten_transform=False).fit(x, label), x


def columns() -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

    x, label, _ = _data()
    x = x.copy()
    x[:, 3] = np.arange(len(x)) % 4
    x[::7, 4] = np.nan
    parts = [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2, 4]),
        ("codes", OneHotEncoder(handle_unknown="ignore"), [3]),
        ("bins", KBinsDiscretizer(4, encode="onehot-dense", quantile_method="linear"), [5, 6]),
    ]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(x, label), x


def gaussian_process() -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor

    x, _, number = _data()
    return GaussianProcessRegressor().fit(x[:60], number[:60]), x


MODELS: tuple[Callable[[], Any], ...] = (
    *(scaled_logistic, scaled_svc, random_forest, gradient_boosting),
    *(text_logistic, kmeans, reduced_neighbours, network, naive_bayes, isolation_forest, voting),
    *(columns, gaussian_process),
)


def main() -> None:
    import onnx
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for make in MODELS:
        path = FOLDER / f"sklearn_{make.__name__}.onnx"
        if path.exists():
            continue
        model, data = make()
        kind = StringTensorType if data.dtype.kind == "U" else FloatTensorType
        made = to_onnx(
            model, initial_types=[("x", kind([None, data.shape[1]]))], target_opset=OPSETS
        )
        onnx.save(made, path)
        print(path, len(made.graph.node), flush=True)


if __name__ == "__main__":
    main()
