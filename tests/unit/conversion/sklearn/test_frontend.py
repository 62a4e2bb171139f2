"""What is refused before any work, files, and what the result looks like."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import joblib
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sardonyx.conversion.convert import Converted, convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, MissingExtraError
from sardonyx.runtime.session import Session

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def convert(source: Any, *rows: Any, **settings: Any) -> Converted:
    examples = tuple(Example((each,)) for each in rows)
    return convert_model(
        Request(source, examples, **settings), framework="sklearn", engine="sardonyx"
    )


def test_unfitted() -> None:
    with pytest.raises(InputError, match=r"LogisticRegression is not fitted\. Fit it first"):
        convert(LogisticRegression(), X)


def test_unfitted_pipeline() -> None:
    with pytest.raises(InputError, match="Fit it first"):
        convert(make_pipeline(StandardScaler(), LogisticRegression()), X)


def test_a_class_and_a_thing_that_is_no_estimator() -> None:
    with pytest.raises(InputError, match="is a class"):
        convert(LogisticRegression, X)
    with pytest.raises(InputError, match="no estimator"):
        convert({"coef": 1}, X)


def test_no_example_rows() -> None:
    with pytest.raises(InputError, match="no example rows"):
        convert(LinearRegression().fit(X, Y))


def test_pickles_need_trust(tmp_path: Path) -> None:
    path = tmp_path / "model.joblib"
    joblib.dump(LogisticRegression().fit(X, Y), path)
    with pytest.raises(InputError, match="--trust"):
        convert(path, X)
    made = convert(path, X, options={"trust": True})
    assert made.verification is not None
    assert made.verification.ok


def test_damaged_pickle(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x80\x04no")
    with pytest.raises(InputError, match="does not open"):
        convert(path, X, options={"trust": True})


def test_skops_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.skops"
    path.write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match="pip install skops"):
        convert(path, X)


def test_skops_with_types_that_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.skops"
    path.write_bytes(b"PK")
    fake: Any = types.ModuleType("skops.io")
    fake.get_untrusted_types = lambda file: ["mine.Thing"]
    fake.load = lambda file, trusted: LogisticRegression().fit(X, Y)
    monkeypatch.setitem(sys.modules, "skops", types.ModuleType("skops"))
    monkeypatch.setitem(sys.modules, "skops.io", fake)
    with pytest.raises(ConvertError, match=r"mine\.Thing.*--trust"):
        convert(path, X)
    assert convert(path, X, options={"trust": True}).route == "float64"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_keep_their_type(dtype: type) -> None:
    model = LogisticRegression().fit(X, Y)
    made = convert(model, X.astype(dtype))
    session = Session(made.model)
    label, shares = session.run(None, {"X": X.astype(dtype)})
    assert shares.dtype == dtype
    assert np.array_equal(label, model.predict(X.astype(dtype)))


def test_a_reason_is_told_once() -> None:
    model = FunctionTransformer(lambda x: x * 2).fit(X)
    with pytest.raises(ConvertError) as caught:
        convert(model, X)
    assert str(caught.value).count("Python code") == 1
    assert "<lambda>" in str(caught.value)


def test_factors_of_seen_rows_alone() -> None:
    with pytest.raises(ConvertError, match="novelty=True"):
        convert(LocalOutlierFactor().fit(X), X)


def test_unknown_category_where_the_encoder_would_raise_is_nan() -> None:
    frame = pd.DataFrame({"t": ["a", "b", "a", "b"], "x": [1.0, 2.0, 3.0, 4.0]})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["t"]), remainder="passthrough"),
        LinearRegression(),
    ).fit(frame, [1.0, 2.0, 1.5, 2.5])
    made = convert(model, frame)
    texts = np.array([["a"], ["z"]], dtype=object)
    (prediction,) = Session(made.model).run(None, {"t": texts, "x": np.array([[1.0], [1.0]])})
    assert np.isfinite(prediction[0])
    assert np.isnan(prediction[1])


def test_a_column_that_is_not_there() -> None:
    frame = pd.DataFrame({"t": ["a", "b"], "x": [1.0, 2.0]})
    model = make_column_transformer((OneHotEncoder(), ["t"])).fit(frame)
    with pytest.raises((ConvertError, InputError, ValueError), match="t"):
        convert(model, frame[["x"]])


@pytest.mark.parametrize("names", [("only",), ("same", "same")])
def test_wrong_number_of_names(names: tuple[str, ...]) -> None:
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ConvertError, match=f"{len(names)} names for 2 outputs"):
        convert(model, X, output_names=names)


def test_texts_that_cannot_be_cut_are_nan() -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    docs = ["good wine", "bad wine, good food"]
    made = convert(CountVectorizer().fit(docs), docs)
    given = np.array(["good wine", "good\N{SLIGHTLY SMILING FACE} wine"], dtype=object)
    (counts,) = Session(made.model).run(None, {"X": given})
    assert counts[0].sum() == 2
    assert np.isnan(counts[1]).all()


def test_what_only_skl2onnx_knows_is_borrowed() -> None:
    skl2onnx = pytest.importorskip("skl2onnx.sklapi")
    model = make_pipeline(StandardScaler(), skl2onnx.CastTransformer(dtype=np.float32))
    made = convert(model.fit(X), X.astype(np.float32))
    (answer,) = Session(made.model).run(None, {"X": X[:5].astype(np.float32)})
    np.testing.assert_allclose(answer, model.transform(X[:5].astype(np.float32)), rtol=1e-6)


def test_what_nobody_knows_is_refused() -> None:
    class Own(TransformerMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, x: Any, y: Any = None) -> Any:
            self.fitted_ = True
            return self

        def transform(self, x: Any) -> Any:
            return x

    with pytest.raises(ConvertError, match="no ONNX form"):
        convert(make_pipeline(StandardScaler(), Own(), LinearRegression()).fit(X, Y), X)
