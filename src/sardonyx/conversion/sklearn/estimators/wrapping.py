"""Estimators around one other, or around one for each class or output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import calibration, compose, dummy, model_selection, multiclass, multioutput
from sklearn.base import is_regressor
from sklearn.feature_selection import RFE, RFECV
from sklearn.semi_supervised import SelfTrainingClassifier

from sardonyx.conversion.sklearn.estimators.elementary import both, sigmoid
from sardonyx.conversion.sklearn.graph import Tensor, concat, stack
from sardonyx.conversion.sklearn.table import Part, Table, table_of
from sardonyx.conversion.sklearn.writers import labelled, predict, refuse, scores, write, writes

__all__ = ["pair_votes"]

_METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
_SEARCHES = (model_selection.GridSearchCV, model_selection.RandomizedSearchCV)


def _pass_on(attribute: str, method: str) -> Any:
    return lambda model, table: write(method, getattr(model, attribute), table)


for _method in _METHODS:
    # Halving searches, which are experimental, are made from the same class.
    writes(_method, *_SEARCHES, model_selection._search.BaseSearchCV)(
        _pass_on("best_estimator_", _method)
    )
    writes(_method, SelfTrainingClassifier)(_pass_on("estimator_", _method))


for _method in ("predict", "predict_proba", "decision_function"):

    def _eliminated(model: Any, table: Table, method: str = _method) -> Any:
        kept = table.select([int(place) for place in model.get_support(indices=True)])
        return write(method, model.estimator_, kept)

    writes(_method, RFE, RFECV)(_eliminated)


# Dummies


@writes("predict", dummy.DummyRegressor)
def dummy_value(model: Any, table: Table) -> Tensor:
    graph = table.graph
    row = graph.constant(np.asarray(model.constant_).reshape(-1), graph.number)
    made = table.parts[0].tensor.repeated(row)
    return made.squeeze(1) if model.n_outputs_ == 1 else made


@writes("predict_proba", dummy.DummyClassifier)
def dummy_proba(model: Any, table: Table) -> Tensor:
    strategy = model._strategy if hasattr(model, "_strategy") else model.strategy
    if model.n_outputs_ != 1 or strategy in ("stratified",):
        raise refuse(model, f"strategy {strategy!r} answers by chance, or of several outputs")
    graph = table.graph
    if strategy == "prior":
        row = np.asarray(model.class_prior_)
    elif strategy == "uniform":
        row = np.full(int(model.n_classes_), 1.0 / int(model.n_classes_))
    elif strategy == "most_frequent":
        row = np.eye(int(model.n_classes_))[int(np.argmax(model.class_prior_))]
    else:
        row = np.asarray(model.classes_ == np.ravel(model.constant)[0], np.float64)
    return table.parts[0].tensor.repeated(graph.constant(row, graph.number))


@writes("predict", dummy.DummyClassifier)
def dummy_class(model: Any, table: Table) -> Tensor:
    strategy = model.strategy
    if strategy in ("stratified", "uniform"):
        raise refuse(model, f"strategy {strategy!r} answers by chance")
    return labelled(model, model.classes_, dummy_proba(model, table).argmax(1))


# Calibration


@writes("predict_proba", calibration.CalibratedClassifierCV)
def calibrated_proba(model: Any, table: Table) -> Tensor:
    members = model.calibrated_classifiers_
    total = _calibrated(members[0], table)
    for member in members[1:]:
        total = total + _calibrated(member, table)
    return total / float(len(members))


@writes("predict", calibration.CalibratedClassifierCV)
def calibrated_class(model: Any, table: Table) -> Tensor:
    return labelled(model, model.classes_, calibrated_proba(model, table).argmax(1))


def _calibrated(member: Any, table: Table) -> Tensor:
    inner = member.estimator
    method = "decision_function" if hasattr(inner, "decision_function") else "predict_proba"
    raw = scores(method, inner, table)
    count = len(member.classes)
    if len(raw.shape) == 1:
        raw = raw.expand(1)
    elif count == 2 and method == "predict_proba":
        raw = raw.columns([1])
    if member.method == "temperature":
        return _tempered(member, raw, method)
    found = [
        _calibrate(member, calibrator, raw.columns([at]))
        for at, calibrator in enumerate(member.calibrators)
    ]
    if count == 2:
        return both(found[0])
    places = np.searchsorted(member.classes, inner.classes_)
    each = stack(found)
    if len(places) != count or not np.array_equal(places, np.arange(count)):
        spread = np.zeros((len(places), count))
        spread[np.arange(len(places)), places] = 1.0
        each = each @ spread
    total = each.sum(1, keep=True)
    none = total.equals(0.0)
    return none.where(1.0 / count, each / none.where(1.0, total))


def _calibrate(member: Any, calibrator: Any, raw: Tensor) -> Tensor:
    if member.method == "sigmoid":
        return sigmoid(-(raw * float(calibrator.a_) + float(calibrator.b_))).squeeze(1)
    return predict(calibrator, table_of(raw))


def _tempered(member: Any, raw: Tensor, method: str) -> Tensor:
    if raw.width == 1 and method == "predict_proba":
        raw = concat([1.0 - raw, raw])
    if method == "predict_proba":
        logits = (raw + float(np.finfo(np.float64).eps)).log()
    else:
        logits = concat([-raw, raw]) if raw.width == 1 else raw
    return (logits * float(member.calibrators[0].beta_)).softmax()


# Thresholds


def _positive(model: Any, table: Table) -> tuple[Tensor, float, Any]:
    """The score of the positive class, the threshold, and the positive class."""
    inner = getattr(model, "estimator_", None) or model.estimator
    method = model._get_response_method()
    names = [method] if isinstance(method, str) else list(method)
    name = next(found for found in names if hasattr(inner, found))
    if isinstance(model, model_selection.TunedThresholdClassifierCV):
        threshold, positive = float(model.best_threshold_), model._curve_scorer._get_pos_label()
    else:
        automatic = 0.5 if name == "predict_proba" else 0.0
        threshold = automatic if model.threshold == "auto" else float(model.threshold)
        positive = model.pos_label
    classes = list(model.classes_)
    second = positive is None or positive == classes[1]
    answer = scores(name, inner, table)
    if name == "predict_proba":
        answer = answer.columns([1 if second else 0]).squeeze(1)
    elif not second:
        answer = -answer
    return answer, threshold, classes[1] if second else classes[0]


@writes(
    "predict",
    model_selection.TunedThresholdClassifierCV,
    model_selection.FixedThresholdClassifier,
)
def above_threshold(model: Any, table: Table) -> Tensor:
    answer, threshold, positive = _positive(model, table)
    yes = (answer >= threshold).cast(np.int64)
    order = [0, 1] if positive == model.classes_[1] else [1, 0]
    return labelled(model, np.asarray(model.classes_)[order], yes)


for _method in ("predict_proba", "decision_function"):

    def _inner(model: Any, table: Table, method: str = _method) -> Any:
        return write(method, getattr(model, "estimator_", None) or model.estimator, table)

    writes(
        _method,
        model_selection.TunedThresholdClassifierCV,
        model_selection.FixedThresholdClassifier,
    )(_inner)


# One for each class


def _binary(model: Any, table: Table) -> Tensor:
    """[batch]: how sure a binary estimator is."""
    if is_regressor(model):
        return predict(model, table)
    if hasattr(model, "decision_function"):
        found = scores("decision_function", model, table)
        return found if len(found.shape) == 1 else found.reshape(None)
    return scores("predict_proba", model, table).columns([1]).squeeze(1)


def _limit(model: Any) -> float:
    return 0.0 if hasattr(model, "decision_function") and not is_regressor(model) else 0.5


for _method, _value in (("predict", "y"), ("predict_proba", "p"), ("decision_function", "d")):

    def _constant(model: Any, table: Table, what: str = _value) -> Tensor:
        graph = table.graph
        one = float(np.ravel(model.y_)[0])
        rows = table.parts[0].tensor
        if what == "p":
            return rows.repeated(graph.constant([1.0 - one, one], graph.number))
        if what == "y":
            return rows.repeated(graph.constant([int(one)], np.int64)).squeeze(1)
        return rows.repeated(graph.constant([one], graph.number)).squeeze(1)

    writes(_method, multiclass._ConstantPredictor)(_constant)


@writes("predict", multiclass.OneVsRestClassifier)
def rest_class(model: Any, table: Table) -> Tensor:
    found = stack([_binary(member, table) for member in model.estimators_])
    if model.label_binarizer_.y_type_ == "multiclass":
        return labelled(model, model.classes_, found.argmax(1))
    above = (found > _limit(model.estimators_[0])).cast(np.int64)
    if model.multilabel_:
        return above
    return labelled(model, model.classes_, above.squeeze(1))


@writes("predict_proba", multiclass.OneVsRestClassifier)
def rest_proba(model: Any, table: Table) -> Tensor:
    members = model.estimators_
    found = concat([scores("predict_proba", m, table).columns([1]) for m in members])
    if len(members) == 1:
        found = concat([1.0 - found, found])
    if model.multilabel_:
        return found
    total = found.sum(1, keep=True)
    return found / total.equals(0.0).where(1.0, total)


@writes("decision_function", multiclass.OneVsRestClassifier)
def rest_decision(model: Any, table: Table) -> Tensor:
    members = model.estimators_
    if len(members) == 1:
        return scores("decision_function", members[0], table)
    return stack([_binary(member, table) for member in members])


def pair_votes(second_wins: Tensor, sureness: Tensor, count: int) -> Tensor:
    """From one-against-one to one score a class: its votes, and a tie-breaking part of how sure they were.

    Args:
        second_wins: [batch, pairs] 0 or 1, whether the pair's second class won.
        sureness: [batch, pairs], for the second class.
    """
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    for_second = np.zeros((len(pairs), count))
    for_first = np.zeros((len(pairs), count))
    for at, (i, j) in enumerate(pairs):
        for_first[at, i], for_second[at, j] = 1.0, 1.0
    votes = second_wins @ (for_second - for_first) + for_first.sum(axis=0)
    total = sureness @ (for_second - for_first)
    return votes + total / (3.0 * (total.abs() + 1.0))


@writes("decision_function", multiclass.OneVsOneClassifier)
def one_by_one(model: Any, table: Table) -> Tensor:
    members, count = model.estimators_, len(model.classes_)
    if model.pairwise_indices_ is not None:
        raise refuse(model, "its kernel is precomputed")
    won = stack([predict(member, table) for member in members]).cast(table.graph.number)
    sure = stack([_binary(member, table) for member in members])
    found = pair_votes(won, sure, count)
    return found.columns([1]).squeeze(1) if count == 2 else found


@writes("predict", multiclass.OneVsOneClassifier)
def one_by_one_class(model: Any, table: Table) -> Tensor:
    found = one_by_one(model, table)
    if len(found.shape) == 1:
        limit = _limit(model.estimators_[0])
        return labelled(model, model.classes_, (found > limit).cast(np.int64))
    return labelled(model, model.classes_, found.argmax(1))


@writes("predict", multiclass.OutputCodeClassifier)
def by_code(model: Any, table: Table) -> Tensor:
    found = stack([_binary(member, table) for member in model.estimators_])
    book = np.asarray(model.code_book_, np.float64)
    gaps = (book**2).sum(axis=1) - (found * 2.0) @ book.T
    return labelled(model, model.classes_, gaps.argmin(1))


# One for each output


@writes("predict", multioutput.MultiOutputClassifier)
@writes("predict", multioutput.MultiOutputRegressor)
def each_value(model: Any, table: Table) -> Tensor:
    return stack([predict(member, table) for member in model.estimators_])


@writes("predict_proba", multioutput.MultiOutputClassifier)
def each_proba(model: Any, table: Table) -> list[Tensor]:
    return [scores("predict_proba", member, table) for member in model.estimators_]


def _chain(model: Any, table: Table, method: str) -> Tensor:
    number = table.graph.number
    link = getattr(model, "chain_method_", "predict")
    features: list[Tensor] = []
    found: list[Tensor] = []
    for member in model.estimators_:
        grown = Table((Part(table.matrix), *(Part(feature) for feature in features)))
        features.append(_link(link, member, grown).cast(number).expand(1))
        found.append(_link(method, member, grown))
    order = np.argsort(np.asarray(model.order_))
    answers = [found[int(place)] for place in order]
    return stack([answer.cast(number) for answer in answers])


def _link(method: str, member: Any, table: Table) -> Tensor:
    if method == "predict_proba":
        return scores(method, member, table).columns([1]).squeeze(1)
    answer: Tensor = write(method, member, table)
    return answer


@writes("predict", multioutput.ClassifierChain)
@writes("predict", multioutput.RegressorChain)
def chained(model: Any, table: Table) -> Tensor:
    return _chain(model, table, "predict")


@writes("predict_proba", multioutput.ClassifierChain)
def chained_proba(model: Any, table: Table) -> Tensor:
    return _chain(model, table, "predict_proba")


@writes("decision_function", multioutput.ClassifierChain)
def chained_decision(model: Any, table: Table) -> Tensor:
    return _chain(model, table, "decision_function")


@writes("predict", compose.TransformedTargetRegressor)
def retransformed(model: Any, table: Table) -> Tensor:
    answer = predict(model.regressor_, table)
    given = table_of(answer.expand(1) if len(answer.shape) == 1 else answer)
    made = write("inverse_transform", model.transformer_, given)
    matrix: Tensor = made.matrix if isinstance(made, Table) else made
    return matrix.squeeze(1) if model._training_dim == 1 and matrix.width == 1 else matrix
