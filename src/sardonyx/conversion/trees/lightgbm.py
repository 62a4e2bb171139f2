"""LightGBM: the text that `Booster.save_model` writes, read into an ensemble.

    tree              header: objective=…, num_tree_per_iteration=…, average_output
    Tree=0            one block a tree: arrays over inner nodes and over leaves
    split_feature=…   children below 0 are leaves: -1 is leaf 0
    decision_type=…   bit 0: a set of categories; bit 1: missing goes left; bits 2 and 3: what counts as missing
    end of trees

LightGBM compares and adds in doubles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.trees.conversion import InputType, TreeConversion
from sardonyx.conversion.trees.forest import (
    AT_MOST,
    LEAF,
    Array,
    Ensemble,
    Head,
    Label,
    Step,
    Tree,
    ZeroAsMissing,
    tree_of_rows,
)
from sardonyx.conversion.trees.reading import (
    ColumnBook,
    class_labels,
    file_of,
    library,
    quietly,
    two_axes,
)
from sardonyx.conversion.trees.writing import write
from sardonyx.errors import ConvertError

__all__ = ["convert_lightgbm", "read_text"]

WHERE = "lightgbm"
ZERO = float(np.float32(1e-35))  # LightGBM's own bound of what is zero
CATEGORICAL, DEFAULT_LEFT, MISSING_TYPE = 1, 2, 3
MISSING_NONE, MISSING_ZERO, MISSING_NAN = range(3)

_RAW = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("lambdarank", "rank_xendcg", "custom", "none"),
)
_EXPONENTIAL = ("poisson", "gamma", "tweedie")


def convert_lightgbm(model: Any, *, input_type: InputType = "float32") -> TreeConversion:
    """A Booster, a model of the scikit-learn interface, or the path of a model text.

    Iterations are those that `predict` uses: up to the best one, where training stopped early.

    Raises:
        ConvertError: it is not trained, or cannot be expressed.
    """
    lgb = library("lightgbm")
    path = file_of(model)
    if path is not None:
        model = _open(lgb, path)
    wrapper = model if isinstance(model, lgb.LGBMModel) else None
    if wrapper is not None and not wrapper.__sklearn_is_fitted__():
        raise ConvertError("the model is not trained.", where=WHERE, hint="Call fit first.")
    booster = model if wrapper is None else wrapper.booster_
    if not isinstance(booster, lgb.Booster):
        raise ConvertError(
            f"a {type(model).__qualname__} is no model of LightGBM.", where=WHERE, value=model
        )
    classes = (
        getattr(wrapper, "classes_", None) if isinstance(wrapper, lgb.LGBMClassifier) else None
    )
    ensemble = read_text(booster.model_to_string(), classes=classes)
    kind = ensemble.head.kind

    def answer(rows: Array) -> list[Array]:
        found = np.asarray(quietly(lambda: booster.predict(rows)))
        if kind == "values":
            return [found]
        values = two_axes(found)
        if kind == "binary":
            values = np.hstack([1 - values, values])
        if wrapper is not None:
            label = np.asarray(quietly(lambda: wrapper.predict(rows)))
            label = label if label.dtype.kind in "OUT" else label.astype(np.int64)
            return [label, np.asarray(quietly(lambda: wrapper.predict_proba(rows)))]
        return [np.argmax(values, axis=1), values]

    notes = _notes(booster)
    if ensemble.sloped:
        notes += (
            "linear leaves: where an infinite feature makes LightGBM say NaN, this may say infinity",
        )
    return TreeConversion(write(ensemble, input_type), answer, ensemble, notes)


def _open(lgb: Any, path: Path) -> Any:
    try:
        return lgb.Booster(model_file=str(path))
    except lgb.basic.LightGBMError as error:
        raise ConvertError(
            f"LightGBM cannot read it: {error}.",
            where=str(path),
            hint="The file must be one that Booster.save_model wrote.",
        ) from error


def _notes(booster: Any) -> tuple[str, ...]:
    """What the numbers of categories mean, where the model was trained on a DataFrame with categories."""
    known = booster.pandas_categorical or []
    infos = _header(booster.model_to_string(num_iteration=1)).get("feature_infos", "").split()
    names = booster.feature_name()
    columns = [
        name for name, info in zip(names, infos, strict=False) if ":" in info and info[0] != "["
    ]
    if len(columns) != len(known):
        return ()
    return tuple(
        f"column {name} takes numbers of categories: {json.dumps(list(values), default=str)[:200]}"
        for name, values in zip(columns, known, strict=True)
    )


def read_text(text: str, *, classes: Any = None) -> Ensemble:
    """The model of LightGBM's own text.

    Args:
        classes: the labels that the scikit-learn interface keeps beside it.
    """
    header = _header(text)
    features = int(header["max_feature_idx"]) + 1
    scores = int(header["num_tree_per_iteration"])
    blocks = [_fields(block) for block in text.split("\nend of trees")[0].split("\nTree=")[1:]]
    book = ColumnBook(features)
    sloped = _sloped(blocks)
    share = 1.0
    if "average_output" in header:
        share = scores / max(len(blocks), 1)
    trees = tuple(
        _tree(block, index % scores, scores, book, sloped, share)
        for index, block in enumerate(blocks)
    )
    return Ensemble(
        features=features,
        trees=trees,
        scores=scores,
        base=np.zeros(scores),
        head=_head(header.get("objective", "custom"), scores, classes),
        real="float64",
        columns=book.columns,
        sloped=sloped,
        rounds_inputs=False,
    )


def _header(text: str) -> dict[str, str]:
    return _fields(text.split("\nTree=")[0])


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines())
    return {name: value for name, _, value in pairs if name}


def _numbers(block: Mapping[str, str], name: str, dtype: Any) -> Array:
    return np.array(block.get(name, "").split(), dtype)


# Objectives


def _head(objective: str, scores: int, classes: Any) -> Head:
    name, *settings = objective.split() or ["custom"]
    options = dict(setting.partition(":")[::2] for setting in settings)
    slope = float(options.get("sigmoid") or 1.0)
    sigmoid = ((Step("Mul", slope),) if slope != 1 else ()) + (Step("Sigmoid"),)
    if name == "binary":
        return Head("binary", sigmoid, _labels(classes, 2))
    if name == "multiclass":
        return Head("classes", (Step("Softmax"),), _labels(classes, scores))
    if name == "multiclassova":
        return Head("classes", sigmoid, _labels(classes, scores))
    if name == "cross_entropy":
        return Head("values", (Step("Sigmoid"),))
    if name == "cross_entropy_lambda":
        return Head("values", (Step("Softplus"),))
    if name in _EXPONENTIAL:
        return Head("values", (Step("Exp"),))
    if name in _RAW:
        return Head("values", (Step("SignedSquare"),) if "sqrt" in options else ())
    raise ConvertError(
        f"the objective {name[:80]!r} is not known.",
        where=WHERE,
        value=objective,
        hint="This version reads the objectives of LightGBM 4.7.",
    )


def _labels(classes: Any, count: int) -> tuple[Label, ...]:
    return tuple(range(count)) if classes is None else class_labels(classes, count, WHERE)


# Trees


def _sloped(blocks: list[dict[str, str]]) -> tuple[int, ...]:
    """The features that leaves of linear trees multiply."""
    found = {
        int(feature)
        for block in blocks
        if block.get("is_linear") == "1"
        for feature in block.get("leaf_features", "").split()
    }
    return tuple(sorted(found))


def _tree(
    block: Mapping[str, str],
    score: int,
    scores: int,
    book: ColumnBook,
    sloped: tuple[int, ...],
    share: float,
) -> Tree:
    leaves = int(block["num_leaves"])
    values = _numbers(block, "leaf_value", np.float64) * share
    inner = leaves - 1
    feature = _numbers(block, "split_feature", np.int64)[:inner]
    threshold = _numbers(block, "threshold", np.float64)[:inner]
    decision = _numbers(block, "decision_type", np.int64)[:inner]
    left, right = (_numbers(block, f"{side}_child", np.int64)[:inner] for side in ("left", "right"))
    yes, no = (np.where(side < 0, inner + ~side, side) for side in (left, right))
    categorical = (decision & CATEGORICAL) != 0
    set_number = np.where(categorical, threshold, 0).astype(np.int64)
    missing = (decision >> 2) & MISSING_TYPE
    default_left = (decision & DEFAULT_LEFT) != 0
    # Without missing values in training, NaN counts as 0.
    missing_yes = np.where(missing == MISSING_NONE, threshold >= 0, default_left)
    # LightGBM takes what is zero to it for 0 before it compares.
    snapped = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, -np.inf))
    threshold = np.where(np.abs(threshold) <= ZERO, snapped, threshold)
    column = feature.copy()
    for row in np.flatnonzero((missing == MISSING_ZERO) & ~categorical):
        column[row] = book.number(ZeroAsMissing(int(feature[row]), ZERO))
    if categorical.any():
        starts, words = (
            _numbers(block, f"cat_{part}", np.int64) for part in ("boundaries", "threshold")
        )
        for row in np.flatnonzero(categorical):
            index = set_number[row]
            codes = _codes(words[starts[index] : starts[index + 1]])
            column[row] = book.member(int(feature[row]), codes, toward_zero=True)
        # The column is 1 in the set, which goes left.
        yes, no = np.where(categorical, no, yes), np.where(categorical, yes, no)
        threshold = np.where(categorical, 0.5, threshold)
        missing_yes = missing_yes & ~categorical
    tail = np.zeros(leaves, np.int64)
    tree = Tree(
        test=np.append(np.full(inner, AT_MOST), np.full(leaves, LEAF)),
        column=np.append(column, tail),
        threshold=np.append(threshold, tail.astype(np.float64)),
        yes=np.append(yes, tail),
        no=np.append(no, tail),
        missing_yes=np.append(missing_yes, tail != 0),
        voters=np.arange(inner, inner + leaves),
        targets=np.full(leaves, score),
        weights=values,
    )
    if block.get("is_linear") != "1":
        return tree
    return _with_slopes(tree, block, score, scores, sloped, share)


def _codes(words: Array) -> list[int]:
    """The members of a set, 32 in a word."""
    bits = (words[:, None] >> np.arange(32)) & 1
    codes: list[int] = np.flatnonzero(bits.reshape(-1)).tolist()
    return codes


def _with_slopes(
    tree: Tree,
    block: Mapping[str, str],
    score: int,
    scores: int,
    sloped: tuple[int, ...],
    share: float,
) -> Tree:
    """Leaves that are linear in some features, unless one of those is missing: then they are constant.

    leaf  ⇒  is a there? ─► is b there? ─► constant + slopes
                  └► value        └► value
    """
    counts = _numbers(block, "num_features", np.int64)
    ends = np.cumsum(counts)
    used = _numbers(block, "leaf_features", np.int64)
    slopes = _numbers(block, "leaf_coeff", np.float64) * share
    constants = _numbers(block, "leaf_const", np.float64) * share
    nodes = [
        list(row)
        for row in zip(
            *(array.tolist() for array in (tree.test, tree.column, tree.threshold)),
            *(array.tolist() for array in (tree.yes, tree.no, tree.missing_yes)),
            strict=True,
        )
    ]
    votes: list[tuple[int, int, float]] = []
    for leaf, value in enumerate(tree.weights.tolist()):
        row = int(tree.voters[leaf])
        chosen = slice(ends[leaf] - counts[leaf], ends[leaf])
        for feature in used[chosen].tolist():
            there, absent = len(nodes), len(nodes) + 1
            nodes[row] = [AT_MOST, feature, np.inf, there, absent, False]
            nodes += [[LEAF, 0, 0.0, 0, 0, False], [LEAF, 0, 0.0, 0, 0, False]]
            votes.append((absent, score, value))
            row = there
        votes.append((row, score, float(constants[leaf])))
        first = scores + score * len(sloped)
        gained: dict[int, float] = {}
        for feature, slope in zip(used[chosen].tolist(), slopes[chosen].tolist(), strict=True):
            place = first + sloped.index(feature)
            gained[place] = gained.get(place, 0.0) + slope
        votes += [(row, place, slope) for place, slope in gained.items()]
    return tree_of_rows(nodes, votes)
