"""What a converted estimator gives, and the estimator's own answers to hold it to.

| estimator | outputs |
|---|---|
| classifier | `label`; `probabilities` [batch, classes], or `scores` where it has no predict_proba |
| of several outputs | `label` [batch, outputs]; `probabilities_0`, `probabilities_1`, … |
| regressor | `prediction` |
| transformer | `transformed` |
| outlier detector | `label` (1 inside, -1 outside), `scores` (decision_function) |
| clusterer | `label`, and `distances` where it has transform |
| mixture | `label`, `probabilities` |
| density | `scores` (score_samples) |
| neighbours | `distances`, `indices` |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sardonyx.conversion.sklearn.graph import TEXT
from sardonyx.conversion.sklearn.writers import title
from sardonyx.errors import ConvertError, InputError

__all__ = ["Output", "check_fitted", "expected", "outputs_of"]


@dataclass(frozen=True)
class Output:
    """One output: its name, and the estimator's method that gives it (with others, as one of a list)."""

    name: str
    method: str
    place: int | None = None


def check_fitted(model: Any) -> None:
    """Refuse what was never trained, and what is no estimator.

    Raises:
        InputError: fit it first.
    """
    if isinstance(model, type):
        raise InputError(f"{model.__name__} is a class.", hint="Give a fitted object of it.")
    if not hasattr(model, "fit"):
        raise InputError(f"a {title(model)} is no estimator: it has no fit.", value=model)
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InputError(
            f"this {title(model)} is not fitted.",
            where=title(model),
            hint="Fit it first: model.fit(X, y).",
        ) from None


def outputs_of(model: Any, rows: Any) -> tuple[Output, ...]:
    """The outputs of an estimator.

    Raises:
        ConvertError: it has none for rows that it has not seen.
    """

    def has(method: str) -> bool:
        return hasattr(model, method)

    if is_classifier(model):
        return (Output("label", "predict"), *_probabilities(model, rows))
    if is_outlier_detector(model) and has("predict"):
        return (Output("label", "predict"), Output("scores", "decision_function"))
    if is_outlier_detector(model):
        raise ConvertError(
            "it judges only the rows it was fitted on.",
            where=title(model),
            hint="Fit it with novelty=True." if has("novelty") else None,
        )
    if is_regressor(model):
        return (Output("prediction", "predict"),)
    if has("predict") and has("predict_proba"):
        return (Output("label", "predict"), Output("probabilities", "predict_proba"))
    if has("predict") and is_clusterer(model):
        found = (Output("label", "predict"),)
        return (*found, Output("distances", "transform")) if has("transform") else found
    if has("transform"):
        return (Output("transformed", "transform"),)
    if has("predict"):
        return (Output("prediction", "predict"),)
    if has("kneighbors"):
        return (Output("distances", "kneighbors", 0), Output("indices", "kneighbors", 1))
    if has("score_samples"):
        return (Output("scores", "score_samples"),)
    raise ConvertError(
        "it has neither predict nor transform: it answers only for the rows it was fitted on.",
        where=title(model),
        hint="Train a classifier on its labels and convert that, as KNeighborsClassifier.",
    )


def _probabilities(model: Any, rows: Any) -> tuple[Output, ...]:
    for name, method in (("probabilities", "predict_proba"), ("scores", "decision_function")):
        if not hasattr(model, method):
            continue
        try:
            answer = getattr(model, method)(rows)
        except NotImplementedError:
            continue
        if isinstance(answer, list):
            return tuple(Output(f"{name}_{place}", method, place) for place in range(len(answer)))
        return (Output(name, method),)
    return ()


def expected(
    model: Any, outputs: Sequence[Output], dtypes: Sequence[np.dtype[Any]]
) -> Callable[[Any], list[Any]]:
    """The estimator's own answers for rows, in the element types that the converted model gives."""

    def answer(rows: Any) -> list[Any]:
        called: dict[str, Any] = {}
        found = []
        for output, dtype in zip(outputs, dtypes, strict=True):
            if output.method not in called:
                called[output.method] = getattr(model, output.method)(rows)
            value = called[output.method]
            found.append(_as_array(value if output.place is None else value[output.place], dtype))
        return found

    return answer


def _as_array(value: Any, dtype: np.dtype[Any]) -> Any:
    dense = value.toarray() if hasattr(value, "toarray") else value
    array = dense.to_numpy() if hasattr(dense, "to_numpy") else np.asarray(dense)
    if dtype == TEXT:
        made = np.empty(array.shape, dtype=object)
        made.reshape(-1)[:] = [_text(item) for item in array.reshape(-1)]
        return made
    if array.dtype == TEXT:  # a table of mixed types, all of which are numbers
        array = array.astype(dtype)
    if array.dtype.kind in "biu" and dtype.kind in "biu":
        return array.astype(dtype) if np.array_equal(array, array.astype(dtype)) else array
    return array.astype(dtype) if dtype.kind == "f" else array


def _text(item: Any) -> str:
    return "" if item is None or item != item else str(item)  # NaN is not itself
