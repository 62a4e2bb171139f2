"""CatBoost: the JSON that `save_model(format="json")` writes, read into an ensemble.

    features_info   float and categorical features, and how each treats NaN
    oblivious_trees one split a level, the first one being the lowest bit of the leaf's number; or
    trees           nested splits, where trees grew by depth or by loss
    scale_and_bias

CatBoost compares in float32 (x > border is true) and adds in doubles. Which categories satisfy a split, the library is
asked itself (`categories`): it hashes them, and combines them with others.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.trees.categories import WHERE, Categories, categories_of
from sardonyx.conversion.trees.conversion import InputType, TreeConversion
from sardonyx.conversion.trees.forest import (
    AT_MOST,
    LEAF,
    Array,
    Ensemble,
    Head,
    Step,
    Tree,
    tree_of_rows,
)
from sardonyx.conversion.trees.reading import (
    ColumnBook,
    class_labels,
    file_of,
    library,
    quietly,
)
from sardonyx.conversion.trees.splits import Splits
from sardonyx.conversion.trees.writing import write
from sardonyx.errors import ConvertError

__all__ = ["convert_catboost"]

_BINARY = ("Logloss", "CrossEntropy", "Focal")
_FLAGS = ("MultiLogloss", "MultiCrossEntropy")
_MOST_DEPTH = 16


def convert_catboost(
    model: Any,
    *,
    categories: Mapping[int | str, Sequence[int | str]] | None = None,
    input_type: InputType = "float32",
) -> TreeConversion:
    """A CatBoost model of any class, or the path of a .cbm file.

    Args:
        categories: of categorical columns, by number or name. The input has a category's place in its list; without
            a list, a column's categories are the integers 0, 1, 2, … themselves.

    Raises:
        ConvertError: it is not trained, or cannot be expressed.
    """
    cb = library("catboost")
    path = file_of(model)
    if path is not None:
        model = _open(cb, path)
    if not isinstance(model, cb.CatBoost):
        raise ConvertError(
            f"a {type(model).__qualname__} is no model of CatBoost.", where=WHERE, value=model
        )
    if not model.is_fitted():
        raise ConvertError("the model is not trained.", where=WHERE, hint="Call fit first.")
    dump = _dump(model)
    known = categories_of(model, dump, categories or {})
    ensemble = _read(model, dump, known, cb)
    kind = ensemble.head.kind

    def answer(rows: Array) -> list[Array]:
        data = known.table(rows)
        if kind == "values":
            return [np.asarray(quietly(lambda: model.predict(data)))]
        # Of any class, a model can be asked as a CatBoost.
        label = np.asarray(quietly(lambda: cb.CatBoost.predict(model, data, "Class")))
        scores = np.asarray(quietly(lambda: cb.CatBoost.predict(model, data, "Probability")))
        label = label if label.dtype.kind in "OUT" else label.astype(np.int64)
        return [label if kind == "flags" else label.reshape(-1), scores]

    return TreeConversion(write(ensemble, input_type), answer, ensemble, known.notes)


def _open(cb: Any, path: Path) -> Any:
    try:
        plain = cb.CatBoost().load_model(str(path))
    except cb.CatBoostError as error:
        raise ConvertError(
            f"CatBoost cannot read it: {' '.join(str(error).split())[:200]}.",
            where=str(path),
            hint="The file must be one that save_model wrote.",
        ) from error
    loss = _loss(_dump(plain))
    owner = cb.CatBoostRegressor
    if loss in _BINARY + _FLAGS or loss.startswith("MultiClass"):
        owner = cb.CatBoostClassifier
    return owner().load_model(str(path))


def _dump(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as error:
            raise ConvertError(
                f"CatBoost cannot dump it as JSON: {' '.join(str(error).split())[:200]}.",
                where=WHERE,
                hint="Models with text or embedding features have no dump, and cannot be converted.",
            ) from error
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def _loss(dump: Mapping[str, Any]) -> str:
    params = dump["model_info"].get("params", {})
    if isinstance(params, str):
        params = json.loads(params)
    return str(params.get("loss_function", {}).get("type", "RMSE"))


def _read(model: Any, dump: Mapping[str, Any], known: Categories, cb: Any) -> Ensemble:
    info = dump["features_info"]
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise ConvertError(
                f"it has {kind.replace('_', ' ')}, which ONNX has no operators for.",
                where=WHERE,
                hint="Turn them into numbers before the model, and train it on those.",
            )
    scale, given = dump["scale_and_bias"]
    bias = np.atleast_1d(np.array(given, np.float64))
    trees = dump.get("oblivious_trees")
    book = ColumnBook(known.features)
    if trees is None:
        nested = dump["trees"]
        splits = Splits(known, book, info)
        grown = tuple(_nested(tree, splits, scale) for tree in nested)
        scores = max([len(bias), *(int(tree.targets.max()) + 1 for tree in grown)])
    else:
        splits = Splits(known, book, info, model)
        scores = len(bias)
        if trees:
            depth = len(trees[0].get("splits") or ())
            scores = max(scores, len(trees[0]["leaf_values"]) >> depth)
        grown = tuple(
            _oblivious(tree, index, splits, scores, scale) for index, tree in enumerate(trees)
        )
    return Ensemble(
        features=known.features,
        trees=grown,
        scores=scores,
        base=np.broadcast_to(bias, (scores,)).astype(np.float64),
        head=_head(model, dump, scores, cb),
        real="float64",
        columns=book.columns,
    )


# Objectives


def _head(model: Any, dump: Mapping[str, Any], scores: int, cb: Any) -> Head:
    loss = _loss(dump)
    if loss in _BINARY and scores == 1:
        threshold = float(dump["model_info"].get("binclass_probability_threshold", 0.5))
        boundary = float(np.log(threshold) - np.log1p(-threshold))
        labels = class_labels(model.classes_, 2, WHERE)
        return Head("binary", (Step("Sigmoid"),), labels, boundary=boundary)
    if loss in ("MultiClass", "MultiClassOneVsAll"):
        labels = class_labels(model.classes_, scores, WHERE)
        return Head("classes", (Step("Softmax" if loss == "MultiClass" else "Sigmoid"),), labels)
    if loss in _FLAGS:
        return Head("flags", (Step("Sigmoid"),))
    if isinstance(model, cb.CatBoostRegressor):
        if loss in ("Poisson", "Tweedie"):
            return Head("values", (Step("Exp"),))
        if loss == "RMSEWithUncertainty":
            return Head("values", (Step("Variance"),))
    return Head("values")


# Trees


def _oblivious(
    tree: Mapping[str, Any], index: int, splits: Splits, scores: int, scale: float
) -> Tree:
    """All 2^depth paths; the root asks for the highest bit, so that leaves lie in the order of their numbers."""
    asked = list(reversed(tree.get("splits") or ()))
    depth = len(asked)
    if depth > _MOST_DEPTH:
        raise ConvertError(
            f"tree {index} has {depth} levels, more than {_MOST_DEPTH}.",
            where=WHERE,
            value=depth,
            limit=_MOST_DEPTH,
            hint="Train it with a smaller depth.",
        )
    inner, leaves = (1 << depth) - 1, 1 << depth
    rows = np.arange(inner + leaves)
    column, threshold = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    missing_yes = np.zeros(len(rows), bool)
    for level, split in enumerate(asked):
        here = slice((1 << level) - 1, (2 << level) - 1)
        place = (index, depth - 1 - level)
        column[here], threshold[here], missing_yes[here] = splits.test(split, place)
    weights = np.array(tree["leaf_values"], np.float64) * scale
    return Tree(
        test=np.where(rows < inner, AT_MOST, LEAF),
        column=column,
        threshold=threshold,
        yes=np.where(rows < inner, 2 * rows + 1, 0),
        no=np.where(rows < inner, 2 * rows + 2, 0),
        missing_yes=missing_yes,
        voters=np.repeat(rows[inner:], scores),
        targets=np.tile(np.arange(scores), leaves),
        weights=weights,
    )


def _nested(root: Mapping[str, Any], splits: Splits, scale: float) -> Tree:
    """Splits inside splits, written row by row without recursion: trees may be deep."""
    nodes: list[tuple[int, int, float, int, int, bool]] = []
    votes: list[tuple[int, int, float]] = []
    waiting: list[tuple[Mapping[str, Any], int, bool]] = [(root, -1, False)]
    while waiting:
        node, parent, is_yes = waiting.pop()
        row = len(nodes)
        if parent >= 0:
            test, column, threshold, yes, no, missing = nodes[parent]
            yes, no = (row, no) if is_yes else (yes, row)
            nodes[parent] = (test, column, threshold, yes, no, missing)
        if "split" in node:
            column, threshold, missing = splits.test(node["split"], None)
            nodes.append((AT_MOST, column, threshold, 0, 0, missing))
            waiting += [(node["right"], row, False), (node["left"], row, True)]
        else:
            nodes.append((LEAF, 0, 0.0, 0, 0, False))
            values = np.atleast_1d(np.array(node["value"], np.float64)) * scale
            votes += [(row, target, value) for target, value in enumerate(values.tolist())]
    return tree_of_rows(nodes, votes)
