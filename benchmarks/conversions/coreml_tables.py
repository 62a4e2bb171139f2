"""Trees, linear models, machines and pipelines in CoreML's files, held to scikit-learn, or numpy after the specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import ensemble, linear_model, preprocessing, svm

from benchmarks.conversions.mxnet_models import folder
from sardonyx.conversion.coreml.specification import message_class
from sardonyx.conversion.request import Example, Request

__all__ = [
    "boosted",
    "forest",
    "glm_classes",
    "glm_values",
    "machine_classes",
    "machine_values",
    "one_row",
    "prepared",
    "tests_of_nodes",
]

Array = np.ndarray[Any, np.dtype[Any]]
_DOUBLE = 65600  # of ArrayFeatureType.ArrayDataType


class Spec:
    """A model under construction: `Spec("scaler", x=3).give(y=3)`. Sizes are arrays', None is a number, other words are types."""

    def __init__(self, kind: str, /, **inputs: int | str | None) -> None:
        self.model: Any = message_class("Model_pb2", "Model")()
        self.model.specificationVersion = 1
        self.params = getattr(self.model, kind)
        self.params.SetInParent()
        for name, form in inputs.items():
            _declare(self.model.description.input.add(), name, form)

    def give(self, **outputs: int | str | None) -> Spec:
        for name, form in outputs.items():
            _declare(self.model.description.output.add(), name, form)
        return self

    def classes(self, labels: Sequence[Any]) -> Spec:
        """Label and probabilities, as coremltools names them."""
        texts = isinstance(labels[0], str)
        vector = self.params.stringClassLabels if texts else self.params.int64ClassLabels
        vector.vector.extend(labels)
        self.give(
            classLabel="stringType" if texts else "int64Type",
            classProbability="stringKeyType" if texts else "int64KeyType",
        )
        self.model.description.predictedFeatureName = "classLabel"
        self.model.description.predictedProbabilitiesName = "classProbability"
        return self

    def then(self, *parts: Spec) -> Spec:
        """The models of a pipeline."""
        holder = getattr(self.params, "pipeline", self.params)
        holder.models.extend(part.model for part in parts)
        return self

    def save(self) -> Path:
        path = folder() / "model.mlmodel"
        path.write_bytes(self.model.SerializeToString())
        return path


def _declare(feature: Any, name: str, form: int | str | None) -> None:
    feature.name = name
    if isinstance(form, int):
        feature.type.multiArrayType.shape.append(form)
        feature.type.multiArrayType.dataType = _DOUBLE
    elif form is not None and form.endswith("KeyType"):
        getattr(feature.type.dictionaryType, form).SetInParent()
    else:
        getattr(feature.type, form or "doubleType").SetInParent()


def held(
    spec: Spec,
    feeds: dict[str, Array],
    answers: Callable[[dict[str, Array]], Sequence[Any]],
) -> Request:
    return Request(spec.save(), (Example(kwargs=feeds),), options={"answers": answers})


def data(rows: int = 40, features: int = 4, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(rows, features))


def classes_of(x: Array) -> Array:
    return np.digitize(x[:, 0] * x[:, 1] + x[:, 2], [-0.5, 0.7])


def add_tree(
    params: Any, number: int, tree: Any, leaf: Callable[[Array], dict[int, float]]
) -> None:
    """A tree of scikit-learn (`tree_`) under this number."""
    for at in range(tree.node_count):
        node = params.nodes.add(treeId=number, nodeId=at)
        if tree.children_left[at] < 0:
            node.nodeBehavior = 6
            for index, value in leaf(tree.value[at][0]).items():
                node.evaluationInfo.add(evaluationIndex=index, evaluationValue=value)
            continue
        node.branchFeatureIndex = tree.feature[at]
        node.branchFeatureValue = tree.threshold[at]
        node.trueChildNodeId, node.falseChildNodeId = (
            tree.children_left[at],
            tree.children_right[at],
        )
        node.missingValueTracksTrueChild = bool(tree.missing_go_to_left[at])


def forest() -> Request:
    """Shares of classes in the leaves, and no transform."""
    x = data(300)
    model = ensemble.RandomForestClassifier(9, max_depth=5, random_state=0).fit(x, classes_of(x))
    spec = Spec("treeEnsembleClassifier", x=4).classes(["low", "mid", "high"])
    params = spec.params.treeEnsemble
    params.numPredictionDimensions = 3
    params.basePredictionValue.extend([0.0] * 3)
    for number, tree in enumerate(model.estimators_):
        add_tree(params, number, tree.tree_, lambda value: dict(enumerate(value / value.sum() / 9)))
    labels = np.array(["low", "mid", "high"], object)

    def answers(feeds: dict[str, Array]) -> list[Any]:
        found = model.predict_proba(feeds["x"])
        return [labels[found.argmax(1)], found.astype(np.float32)]

    return held(spec, {"x": data(seed=1).astype(np.float32)}, answers)


def boosted() -> Request:
    """Four features by name, missing values, one sum of the second class."""
    x = data(300)
    x[::7, 1] = np.nan
    model = ensemble.GradientBoostingRegressor(n_estimators=12, max_depth=3, random_state=0)
    filled = np.nan_to_num(x, nan=-9.0)
    model.fit(filled, (filled[:, 0] + filled[:, 1] > 0) - 0.5)
    spec = Spec("treeEnsembleClassifier", a=None, b=None, c=None, d=None).classes([7, 3])
    spec.params.postEvaluationTransform = 2
    params = spec.params.treeEnsemble
    params.numPredictionDimensions = 1
    params.basePredictionValue.append(0.25)
    rate = model.learning_rate
    for number, tree in enumerate(model.estimators_[:, 0]):
        add_tree(params, number, tree.tree_, lambda value: {0: rate * float(value[0])})
    for node in params.nodes:  # where -9 goes
        node.missingValueTracksTrueChild = node.branchFeatureIndex == 1

    def answers(feeds: dict[str, Array]) -> list[Any]:
        rows = np.stack([feeds[name] for name in "abcd"], 1)
        rows = np.where(np.isnan(rows), -9.0, rows).astype(np.float64)
        scores = 0.25 + sum(rate * tree.predict(rows) for tree in model.estimators_[:, 0])
        second = (1 / (1 + np.exp(-scores))).astype(np.float32)
        return [np.where(scores >= 0, 3, 7), np.stack([1 - second, second], 1)]

    rows = data(seed=1).astype(np.float32)
    rows[::5, 1] = np.nan
    return held(spec, dict(zip("abcd", rows.T.copy(), strict=True)), answers)


_COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)


def tests_of_nodes() -> Request:
    """Every kind of branch on both sides of missing values, sparse leaves, a base, softmax against a first class."""
    spec = Spec("treeEnsembleClassifier", x=2, y=None).classes(["a", "b", "c"])
    spec.params.postEvaluationTransform = 3
    params = spec.params.treeEnsemble
    params.numPredictionDimensions = 2
    params.basePredictionValue.extend([0.1, -0.2])
    trees = [
        (behavior, missing, feature, 10 * behavior + feature)
        for behavior in range(6)
        for missing in (False, True)
        for feature in range(3)
    ]
    for number, (behavior, missing, feature, weight) in enumerate(trees):
        node = params.nodes.add(treeId=number, nodeId=5, nodeBehavior=behavior)
        node.branchFeatureIndex, node.branchFeatureValue = feature, 0.5
        node.trueChildNodeId, node.falseChildNodeId = 2, 9
        node.missingValueTracksTrueChild = missing
        for leaf, sign in ((2, 1), (9, -1)):
            node = params.nodes.add(treeId=number, nodeId=leaf, nodeBehavior=6)
            node.evaluationInfo.add(evaluationIndex=number % 2, evaluationValue=sign * weight / 99)

    def answers(feeds: dict[str, Array]) -> list[Any]:
        rows = np.column_stack([feeds["x"], feeds["y"]]).astype(np.float64)
        scores = np.tile([0.0, 0.1, -0.2], (len(rows), 1))
        for number, (behavior, missing, feature, weight) in enumerate(trees):
            value = rows[:, feature]
            true = np.where(np.isnan(value), missing, _COMPARISONS[behavior](value, 0.5))
            scores[:, 1 + number % 2] += np.where(true, weight, -weight) / 99
        powers = np.exp(scores)
        label = np.array(["a", "b", "c"], object)[scores.argmax(1)]
        return [label, (powers / powers.sum(1, keepdims=True)).astype(np.float32)]

    values = np.array(
        [0.0, 0.5, 1.0, np.nan, -np.inf, np.nextafter(np.float32(0.5), np.float32(1))]
    )
    x = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2).astype(np.float32)
    return held(spec, {"x": x, "y": np.resize(values, len(x)).astype(np.float32)}, answers)


def glm_classes() -> Request:
    """One against the rest, normalized, as scikit-learn has it."""
    from sklearn.multiclass import OneVsRestClassifier

    x = data(200)
    model = OneVsRestClassifier(linear_model.LogisticRegression()).fit(x, classes_of(x))
    spec = Spec("glmClassifier", x=4).classes([0, 1, 2])
    spec.params.classEncoding = 1
    for one in model.estimators_:
        spec.params.weights.add().value.extend(one.coef_[0])
        spec.params.offset.append(one.intercept_[0])

    def answers(feeds: dict[str, Array]) -> list[Any]:
        return [model.predict(feeds["x"]), model.predict_proba(feeds["x"])]

    return held(spec, {"x": data(seed=1)}, answers)


def glm_values() -> Request:
    """Two values by probit."""
    from scipy.stats import norm

    weights, offset = data(2, 3, seed=3), data(1, 2, seed=4)[0]
    spec = Spec("glmRegressor", x=3).give(y=2)
    for row in weights:
        spec.params.weights.add().value.extend(row)
    spec.params.offset.extend(offset)
    spec.params.postEvaluationTransform = 2
    return held(
        spec,
        {"x": data(6, 3).astype(np.float32)},
        lambda feeds: [norm.cdf(feeds["x"] @ weights.T + offset).astype(np.float32)],
    )


def _set_machine(params: Any, model: Any) -> None:
    for vector in model.support_vectors_:
        params.denseSupportVectors.vectors.add().values.extend(vector)


def machine_classes() -> Request:
    """Votes of pairs; scikit-learn's own."""
    x = data(200)
    model = svm.SVC(kernel="poly", degree=3, gamma=0.4, coef0=0.3).fit(x, classes_of(x))
    spec = Spec("supportVectorClassifier", x=4).give(classLabel="int64Type")
    spec.model.description.predictedFeatureName = "classLabel"
    spec.params.int64ClassLabels.vector.extend([0, 1, 2])
    _set_machine(spec.params, model)
    spec.params.numberOfSupportVectorsPerClass.extend(model.n_support_)
    for row in model.dual_coef_:
        spec.params.coefficients.add().alpha.extend(row)
    spec.params.rho.extend(-model.intercept_)
    form = spec.params.kernel.polyKernel
    form.degree, form.gamma, form.c = 3, 0.4, 0.3
    return held(spec, {"x": data(seed=1)}, lambda feeds: [model.predict(feeds["x"])])


def machine_values() -> Request:
    """Sparse vectors, a radial kernel."""
    x = data(120)
    model = svm.SVR(gamma=0.3).fit(x, x[:, 0] * x[:, 1])
    spec = Spec("supportVectorRegressor", x=4).give(y=None)
    for vector in model.support_vectors_:
        nodes = spec.params.sparseSupportVectors.vectors.add().nodes
        for index, value in enumerate(vector, 1):
            nodes.add(index=index, value=value)
    spec.params.coefficients.alpha.extend(model.dual_coef_[0])
    spec.params.rho = -model.intercept_[0]
    spec.params.kernel.rbfKernel.gamma = 0.3
    return held(spec, {"x": data(seed=1)}, lambda feeds: [model.predict(feeds["x"])])


def prepared() -> Request:
    """Imputed, scaled, normalized and encoded features into a linear model, as a pipeline of pipelines."""
    x = np.column_stack([data(150, 3), np.random.default_rng(5).integers(0, 3, 150)])
    means, scaler = np.array([0.5, -0.25, 0.1]), preprocessing.StandardScaler().fit(x[:, :3])
    impute = Spec("imputer", numbers=3).give(full=3)
    impute.params.imputedDoubleArray.vector.extend(means)
    impute.params.replaceDoubleValue = np.nan
    scale = Spec("scaler", full=3).give(scaled=3)
    scale.params.shiftValue.extend(-scaler.mean_)
    scale.params.scaleValue.extend(1 / scaler.scale_)
    norm = Spec("normalizer", scaled=3).give(unit=3)
    norm.params.normType = 2
    first = Spec("pipeline", numbers=3).give(unit=3).then(impute, scale, norm)
    encode = Spec("oneHotEncoder", kind="stringType").give(code="int64KeyType")
    encode.params.stringCategories.vector.extend(["red", "green", "blue"])
    encode.params.outputSparse = True
    encode.params.handleUnknown = 1
    join = Spec("featureVectorizer", unit=3, code="int64KeyType").give(all=6)
    join.params.inputList.add(inputColumn="code", inputDimensions=3)
    join.params.inputList.add(inputColumn="unit", inputDimensions=3)
    pick = Spec("arrayFeatureExtractor", all=6).give(some=4)
    pick.params.extractIndex.extend([5, 0, 1, 3])
    weights = data(1, 4, seed=8)[0]
    linear = Spec("glmRegressor", some=4).give(y=None)
    linear.params.weights.add().value.extend(weights)
    linear.params.offset.append(0.5)
    spec = Spec("pipelineRegressor", numbers=3, kind="stringType").give(y=None)
    spec.then(first, encode, join, pick, linear)

    def answers(feeds: dict[str, Array]) -> list[Any]:
        full = np.where(np.isnan(feeds["numbers"]), means, feeds["numbers"])
        unit = preprocessing.normalize(scaler.transform(full))
        code = feeds["kind"][:, None] == np.array(["red", "green", "blue"], object)
        every = np.column_stack([code, unit])
        return [every[:, [5, 0, 1, 3]] @ weights + 0.5]

    rows = data(7, 3, seed=1)
    rows[2, 1] = np.nan
    kinds = np.array(["red", "blue", "pink", "green", "blue", "red", "green"], object)
    return held(spec, {"numbers": rows, "kind": kinds}, answers)


def one_row() -> Request:
    """A row as CoreML takes it: a number and an array, without an axis of rows."""
    spec = Spec("glmRegressor", a=None, b=2).give(y=None)
    spec.params.weights.add().value.extend([1.0, 2.0, -3.0])
    spec.params.offset.append(0.5)

    def answers(feeds: dict[str, Array]) -> list[Any]:
        return [np.float32(feeds["a"] + 2 * feeds["b"][0] - 3 * feeds["b"][1] + 0.5)]

    feeds = {"a": np.float32(0.25), "b": np.array([0.5, 0.125], np.float32)}
    return held(spec, feeds, answers)
