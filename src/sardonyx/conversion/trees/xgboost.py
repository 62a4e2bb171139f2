"""XGBoost: the JSON that `Booster.save_raw("json")` gives, read into an ensemble.

    learner ─ learner_model_param   base_score, num_class, num_target, num_feature
            ─ objective             name
            ─ gradient_booster      gbtree, dart (trees with weights) or gblinear

XGBoost compares and adds in float32: inputs of doubles are rounded first. A node sends x < split_condition left; a
node of categories sends its set right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.trees.conversion import InputType, TreeConversion
from sardonyx.conversion.trees.forest import (
    BELOW,
    LEAF,
    Array,
    Ensemble,
    Head,
    Linear,
    Step,
    Tree,
    reachable,
)
from sardonyx.conversion.trees.reading import ColumnBook, file_of, library, quietly, two_axes
from sardonyx.conversion.trees.writing import write
from sardonyx.errors import ConvertError

__all__ = ["convert_xgboost", "read_json"]

WHERE = "xgboost"

_LOGISTIC = ("binary:logistic", "reg:logistic")
_EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_RAW = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"),
    *("reg:quantileerror", "reg:expectileerror", "binary:logitraw"),
    *("rank:pairwise", "rank:ndcg", "rank:map"),
)


def convert_xgboost(model: Any, *, input_type: InputType = "float32") -> TreeConversion:
    """A Booster, a model of the scikit-learn interface, or the path of a .json or .ubj file.

    Iterations are those that `predict` uses: of the scikit-learn interface up to the best one, where training
    stopped early; of a Booster all.

    Raises:
        ConvertError: it is not trained, or cannot be expressed.
    """
    xgb = library("xgboost")
    path = file_of(model)
    if path is not None:
        model = _open(xgb, path)
    wrapper = model if isinstance(model, xgb.XGBModel) else None
    if wrapper is not None and not wrapper.__sklearn_is_fitted__():
        raise ConvertError("the model is not trained.", where=WHERE, hint="Call fit first.")
    booster = model if wrapper is None else wrapper.get_booster()
    if not isinstance(booster, xgb.Booster):
        raise ConvertError(
            f"a {type(model).__qualname__} is no model of XGBoost.", where=WHERE, value=model
        )
    best = _best_iteration(wrapper)
    dump = json.loads(bytes(booster.save_raw("json")))
    plain = wrapper is not None and not isinstance(wrapper, xgb.XGBClassifier)
    missing = np.nan if wrapper is None else float(wrapper.missing)
    ensemble = read_json(
        dump,
        iterations=best,
        values=plain or callable(getattr(wrapper, "objective", None)),
        missing=None if np.isnan(missing) else missing,
    )
    kind, until = ensemble.head.kind, best or 0

    def predict(rows: Array, margin: bool = False) -> Array:
        if ensemble.linear is None:
            found = booster.inplace_predict(
                rows,
                iteration_range=(0, until),
                predict_type="margin" if margin else "value",
                missing=missing,
                validate_features=False,
            )
        else:
            table = xgb.DMatrix(rows, missing=missing, feature_types=booster.feature_types)
            found = booster.predict(table, output_margin=margin, validate_features=False)
        return np.asarray(found)

    def answer(rows: Array) -> list[Array]:
        if kind == "values":
            return [quietly(lambda: predict(rows))]
        if wrapper is not None:
            label = quietly(lambda: wrapper.predict(rows, validate_features=False))
            scores = quietly(lambda: wrapper.predict_proba(rows, validate_features=False))
            return [np.asarray(label).astype(np.int64), np.asarray(scores)]
        values = two_axes(quietly(lambda: predict(rows)))
        if kind == "classes" and values.shape[1] == 1:  # multi:softmax answers labels alone
            margin = quietly(lambda: predict(rows, margin=True))
            powers = np.exp(margin - margin.max(axis=1, keepdims=True))
            return [values[:, 0].astype(np.int64), powers / powers.sum(axis=1, keepdims=True)]
        return _classified(values, kind)

    notes = _category_notes(dump)
    stopped = booster.attributes().get("best_iteration")
    if stopped is not None and best is None:
        notes += (
            f"training stopped early, best at iteration {stopped}; a Booster's predict uses all iterations, and "
            "so does this. Convert booster[: booster.best_iteration + 1] for the best ones.",
        )
    return TreeConversion(write(ensemble, input_type), answer, ensemble, notes)


def _open(xgb: Any, path: Path) -> Any:
    """The Booster of a file, or the scikit-learn model where one wrote it."""
    try:
        booster = xgb.Booster(model_file=str(path))
    except xgb.core.XGBoostError as error:
        said = str(error).partition("\n")[0]
        reason = re.sub(
            r"^\[[\d:]+\] \S+: ", "", said
        )  # without the time and XGBoost's own source line
        raise ConvertError(
            f"XGBoost cannot read it: {reason.rstrip('.')}.",
            where=str(path),
            hint="The file must be one that save_model wrote.",
        ) from error
    wrote = json.loads(booster.attributes().get("scikit_learn", "{}"))
    classes = {
        "classifier": xgb.XGBClassifier,
        "regressor": xgb.XGBRegressor,
        "ranker": xgb.XGBRanker,
    }
    owner = classes.get(wrote.get("_estimator_type", ""))
    if owner is None:
        return booster
    model = owner()
    model.load_model(path)
    return model


def _best_iteration(wrapper: Any) -> int | None:
    """How many iterations the scikit-learn interface uses; None for all."""
    if wrapper is None or wrapper.booster == "gblinear":
        return None
    try:
        return int(wrapper.best_iteration) + 1
    except AttributeError:
        return None


def _classified(values: Array, kind: str) -> list[Array]:
    """What the scikit-learn interface would make of a Booster's answer."""
    if kind == "classes":
        return [np.argmax(values, axis=1), values]
    label = (values > 0.5).astype(np.int64)
    if kind == "flags":
        return [label, values]
    return [label[:, 0], np.hstack([1 - values, values])]


def _category_notes(dump: Mapping[str, Any]) -> tuple[str, ...]:
    """What the numbers of categories mean, where the model was trained on a DataFrame with categories."""
    learner = dump["learner"]
    names = learner.get("feature_names") or []
    booster = learner["gradient_booster"]
    known = booster.get("gbtree", booster).get("model", {}).get("cats", {}).get("enc", [])
    notes = []
    for index, encoded in enumerate(known):
        values, ends = encoded.get("values") or [], encoded.get("offsets") or []
        if not values:
            continue
        if ends:
            text = bytes(value % 256 for value in values)
            values = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(ends)]
        name = names[index] if index < len(names) else index
        notes.append(f"column {name} takes numbers of categories: {json.dumps(values)[:200]}")
    return tuple(notes)


def read_json(
    dump: Mapping[str, Any],
    *,
    iterations: int | None = None,
    values: bool = False,
    missing: float | None = None,
) -> Ensemble:
    """The model of XGBoost's own JSON.

    Args:
        iterations: how many of them count; None for all.
        values: give what the objective predicts, without labels.
        missing: a number that stands for NaN.
    """
    learner = dump["learner"]
    sizes = learner["learner_model_param"]
    features = int(sizes["num_feature"])
    scores = max(int(sizes["num_class"]), int(sizes.get("num_target", 1)), 1)
    objective = learner["objective"]["name"]
    head = _head(objective, scores, values)
    given = np.atleast_1d(np.array(json.loads(sizes["base_score"]), np.float32))
    base = _margin(np.broadcast_to(given, (scores,)), objective).astype(np.float64)
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        weights = np.array(booster["model"]["weights"], np.float32).astype(np.float64)
        weights = weights.reshape(features + 1, scores)
        return Ensemble(
            features=features,
            trees=(),
            scores=scores,
            base=base[0] + weights[-1],  # gblinear takes the first base score for all
            head=head,
            real="float32",
            linear=Linear(weights[:-1]),
            missing=missing,
        )
    if booster["name"] not in ("gbtree", "dart"):
        raise ConvertError(
            f"the booster {booster['name']!r:.80} is not known.",
            where=WHERE,
            value=booster["name"],
            hint="This version reads gbtree, dart and gblinear of XGBoost 3.2.",
        )
    model = booster.get("gbtree", booster)["model"]
    count = len(model["trees"])
    if iterations is not None and iterations < len(model["iteration_indptr"]):
        count = model["iteration_indptr"][iterations]
    drops = booster.get("weight_drop") or [1.0] * count
    book = ColumnBook(features)
    trees = tuple(
        _tree(model["trees"][index], model["tree_info"][index], drops[index], book)
        for index in range(count)
    )
    return Ensemble(
        features=features,
        trees=trees,
        scores=scores,
        base=base,
        head=head,
        real="float32",
        columns=book.columns,
        missing=missing,
    )


# Objectives


def _margin(base: Array, objective: str) -> Array:
    """The base score as the score that it stands for."""
    one = np.float32(1)
    with np.errstate(divide="ignore"):
        if objective in _LOGISTIC:
            margin: Array = -np.log(one / base - one)
        elif objective in _EXPONENTIAL:
            margin = np.log(base)
        else:
            margin = base
    if not np.isfinite(margin).all():
        raise ConvertError(
            f"base_score {base.tolist()} has no finite score under {objective}.",
            where=WHERE,
            value=base.tolist(),
            hint="Train it with base_score inside the objective's range.",
        )
    return margin


def _head(objective: str, scores: int, values: bool) -> Head:
    classes = tuple(range(max(scores, 2)))
    if objective in ("multi:softmax", "multi:softprob"):
        return Head("values" if values else "classes", (Step("Softmax"),), classes)
    if objective == "binary:hinge":
        steps: tuple[Step, ...] = (Step("Positive"),)
    elif objective in _LOGISTIC:
        steps = (Step("Sigmoid"),)
    elif objective in _EXPONENTIAL:
        return Head("values", (Step("Exp"),))
    elif objective in _RAW:
        return Head("values")
    else:
        raise ConvertError(
            f"the objective {objective[:80]!r} is not known.",
            where=WHERE,
            value=objective,
            hint="This version reads the objectives of XGBoost 3.2.",
        )
    if values or objective == "reg:logistic":
        return Head("values", steps)
    return Head("binary" if scores == 1 else "flags", steps, (0, 1), by_score=False, boundary=0.5)


# Trees


def _tree(node: Mapping[str, Any], target: int, weight: float, book: ColumnBook) -> Tree:
    left, right = (np.array(node[f"{side}_children"], np.int64) for side in ("left", "right"))
    leaf = left < 0
    condition = np.array(node["split_conditions"], np.float32)
    column = np.where(leaf, 0, np.array(node["split_indices"], np.int64))
    default_left = np.array(node["default_left"]).astype(bool)
    threshold = np.where(leaf, 0, condition).astype(np.float64)
    for row, start, size in zip(
        *(node[f"categories_{part}"] for part in ("nodes", "segments", "sizes")), strict=True
    ):
        codes = node["categories"][start : start + size]
        # The column is 1 in the set, which goes right.
        column[row] = book.member(int(column[row]), codes, missing=not default_left[row])
        threshold[row] = 0.5
    width = int(node["tree_param"].get("size_leaf_vector") or 1)
    rows = np.flatnonzero(leaf)
    if width > 1:
        table = np.array(node["leaf_weights"], np.float32).reshape(-1, width)
        weights = table[right[rows]].reshape(-1)
        voters, targets = np.repeat(rows, width), np.tile(np.arange(width), len(rows))
    else:
        weights, voters, targets = condition[rows], rows, np.full(len(rows), target)
    tree = Tree(
        test=np.where(leaf, LEAF, BELOW),
        column=column,
        threshold=threshold,
        yes=np.where(leaf, 0, left),
        no=np.where(leaf, 0, right),
        missing_yes=default_left & ~leaf,
        voters=voters,
        targets=targets,
        weights=weights.astype(np.float64) * np.float32(weight),
    )
    return reachable(tree) if int(node["tree_param"].get("num_deleted") or 0) else tree
