"""CoreML's models other than networks: what they answer, and what is refused."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
if importlib.util.find_spec("coremltools") is None:  # importing it takes seconds
    pytest.skip("coremltools is not installed", allow_module_level=True)

from benchmarks.conversions.coreml_tables import Spec, forest, prepared

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, SardonyxError

X = np.linspace(-2, 2, 3, dtype=np.float32)


def answers(spec: Spec, *args: Any, **feeds: Any) -> list[Any]:
    """What the converted model says, unproved."""
    made = convert_model(Request(spec.save(), (Example(args, feeds),)), check=False)
    graph = made.model.graph
    names, outputs = (
        [value.name or "" for value in ports] for ports in (graph.inputs, graph.outputs)
    )
    given = {**dict(zip(names, args, strict=False)), **feeds}
    return compile_model(made.model).run(given, outputs, Guard())


def tree(count: int = 1) -> Spec:
    """x[1] <= 0.5 says 1, else 2."""
    spec = Spec("treeEnsembleRegressor", x=3).give(y=count if count > 1 else None)
    params = spec.params.treeEnsemble
    params.numPredictionDimensions = count
    params.basePredictionValue.extend([0.25] * count)
    params.nodes.add(
        branchFeatureIndex=1, branchFeatureValue=0.5, trueChildNodeId=1, falseChildNodeId=2
    )
    for leaf in (1, 2):
        params.nodes.add(nodeId=leaf, nodeBehavior=6).evaluationInfo.add(evaluationValue=leaf)
    return spec


def test_the_rows_stay_open_and_the_labels_are_told() -> None:
    converted = convert_model(forest(), check=False)
    assert converted.model.graph.inputs[0].shape == ["batch", 4]
    assert "one a key: low, mid, high" in converted.notes[0]
    assert [value.name for value in converted.model.graph.outputs] == [
        "classLabel",
        "classProbability",
    ]


def test_a_row_has_no_axis_of_rows() -> None:
    assert answers(tree(), X)[0].shape == ()
    assert answers(tree(), X[None])[0].tolist() == [1.25]
    assert answers(tree(2), X)[0].tolist() == [1.25, 0.25]


def test_a_tree_of_one_leaf_and_a_leaf_that_says_nothing() -> None:
    spec = tree()
    del spec.params.treeEnsemble.nodes[2].evaluationInfo[:]
    spec.params.treeEnsemble.nodes.add(treeId=7, nodeBehavior=6).evaluationInfo.add(
        evaluationValue=3
    )
    rows = np.array([[0, 1, 0], [0, 0, 0]], np.float32)
    assert answers(spec, rows)[0].tolist() == [3.25, 4.25]


def test_dictionaries_are_fed_by_their_keys() -> None:
    spec = Spec("dictVectorizer", words="stringKeyType").give(y=3)
    spec.params.stringToIndex.vector.extend(["a", "b", "c"])
    made = convert_model(Request(spec.save(), (Example((X,)),)), check=False)
    assert made.notes == ("words is an array of 3 columns, one a key: a, b, c",)
    assert answers(spec, X)[0].tolist() == X.tolist()


def test_an_unknown_category_is_an_error_where_it_was_one() -> None:
    spec = Spec("oneHotEncoder", x="int64Type").give(y=2)
    spec.params.int64Categories.vector.extend([4, 9])
    assert answers(spec, np.array([9, 4]))[0].tolist() == [[0, 1], [1, 0]]
    with pytest.raises(SardonyxError, match="7"):
        answers(spec, np.array([9, 7]))
    spec.params.handleUnknown = 1
    assert answers(spec, np.array([9, 7]))[0].tolist() == [[0, 1], [0, 0]]


def test_names_for_numbers() -> None:
    spec = Spec("categoricalMapping", x="int64Type").give(y="stringType")
    spec.params.int64ToStringMap.map.update({1: "one", 5: "five"})
    spec.params.strValue = "many"
    assert answers(spec, np.array([5, 2, 1]))[0].tolist() == ["five", "many", "one"]


def test_two_classes_of_a_machine_by_probability() -> None:
    spec = Spec("supportVectorClassifier", x=1).classes([3, 8])
    params = spec.params
    params.kernel.linearKernel.SetInParent()
    params.numberOfSupportVectorsPerClass.extend([1, 1])
    params.coefficients.add().alpha.extend([1.0, -1.0])
    for value in (1.0, -1.0):
        params.denseSupportVectors.vectors.add().values.append(value)
    params.rho.append(0.5)
    params.probA.append(-1.5)
    params.probB.append(0.25)
    x = np.array([[2.0], [-1.0], [0.2]])
    label, shares = answers(spec, x)
    decision = 2 * x[:, 0] - 0.5
    first = 1 / (1 + np.exp(-1.5 * decision + 0.25))
    np.testing.assert_allclose(shares, np.stack([first, 1 - first], 1), rtol=1e-12)
    assert label.tolist() == [3, 8, 8]


def test_a_network_inside_of_a_pipeline() -> None:
    scale = Spec("scaler", x=3).give(s=3)
    scale.params.scaleValue.append(2.0)
    net = Spec("neuralNetworkClassifier", s=3).classes(["no", "yes"])
    layer = net.params.layers.add(name="i", input=["s"], output=["i"])
    layer.innerProduct.inputChannels, layer.innerProduct.outputChannels = 3, 2
    layer.innerProduct.weights.floatValue.extend([1, 2, 3, 0, -1, 1])
    soft = net.params.layers.add(name="p", input=["i"], output=["p"])
    soft.softmax.SetInParent()
    spec = Spec("pipelineClassifier", x=3)
    spec.model.description.output.extend(net.model.description.output)
    spec.then(scale, net)
    scores = np.array([[1, 2, 3], [0, -1, 1]]) @ (2 * X)
    label, shares = answers(spec, X)
    assert label == ["no", "yes"][int(scores.argmax())]
    np.testing.assert_allclose(shares, np.exp(scores) / np.exp(scores).sum(), rtol=1e-5)
    with pytest.raises(ConvertError, match="takes one row"):
        answers(spec, np.stack([X, X]))


def _broken(change: Callable[[Any], object]) -> Spec:
    spec = tree()
    change(spec.params.treeEnsemble)
    return spec


def _glm(kind: str, rows: int, **settings: Any) -> Spec:
    spec = Spec(kind, x=3)
    spec.classes(["a", "b", "c"]) if kind == "glmClassifier" else spec.give(y=None)
    for _ in range(rows):
        spec.params.weights.add().value.extend([1.0] * 3)
        spec.params.offset.append(0.0)
    for name, value in settings.items():
        setattr(spec.params, name, value)
    return spec


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (_broken(lambda p: p.nodes.add(nodeId=2, nodeBehavior=6)), "two nodes 2"),
        (_broken(lambda p: p.nodes.add(nodeId=3, nodeBehavior=6)), "2 roots"),
        (_broken(lambda p: setattr(p.nodes[0], "trueChildNodeId", 2)), "two parents"),
        (_broken(lambda p: setattr(p.nodes[0], "trueChildNodeId", 8)), "does not exist"),
        (_broken(lambda p: setattr(p.nodes[0], "trueChildNodeId", 0)), "0 roots|not lead"),
        (_broken(lambda p: setattr(p.nodes[0], "branchFeatureIndex", 3)), "feature 3 of 3"),
        (_broken(lambda p: setattr(p.nodes[0], "branchFeatureValue", np.nan)), "with nan"),
        (
            _broken(lambda p: setattr(p.nodes[1].evaluationInfo[0], "evaluationIndex", 1)),
            "sum 1 of 1",
        ),
        (_broken(lambda p: p.basePredictionValue.append(1.0)), "2 base values for 1 sums"),
        (_broken(lambda p: setattr(p, "numPredictionDimensions", 1 << 60)), "1 base values"),
        (_glm("glmRegressor", 2), "2 numbers in place of one"),
        (_glm("glmRegressor", 0), "0 offsets and 0 rows"),
        (_glm("glmClassifier", 3), "3 rows of weights for 3 labels"),
        (_glm("glmClassifier", 2, classEncoding=1), "2 rows of weights for 3 labels"),
        (_glm("glmClassifier", 3, classEncoding=1, postEvaluationTransform=1), "probit"),
        (Spec("imputer", x=3).give(y=3), "numbers in place of a number"),
        (Spec("itemSimilarityRecommender", x=3).give(y=3), "itemSimilarityRecommender"),
        (Spec("scaler", x="imageType").give(y=3), "is a imageType"),
        (Spec("scaler", x="int64KeyType").give(y=3), "keys of the dictionary"),
        (Spec("pipeline", x=3).give(y=3), "nothing writes its outputs y"),
    ],
)
def test_refusals_say_what(spec: Spec, why: str) -> None:
    given = X[0] if spec.model.description.input[0].type.WhichOneof("Type") == "doubleType" else X
    with pytest.raises(ConvertError, match=why):
        answers(spec, given)


def test_examples_must_fit() -> None:
    with pytest.raises(InputError, match="other axes than the file declares"):
        answers(tree(), X[None, None])
    with pytest.raises(InputError, match="where \\[3\\] are declared"):
        answers(tree(), X[:2])
    texts = np.array(["a", "b", "c"], object)
    with pytest.raises(InputError, match="is not of numbers"):
        answers(tree(), texts)


def test_damaged_bytes_are_refused() -> None:
    """Some bytes changed, and some cut: a model or an error of ours."""
    request = prepared()
    path: Path = request.source
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 12):
        for data in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
            path.write_bytes(data)
            try:
                convert_model(Request(path, request.examples), check=False)
            except SardonyxError:
                refused += 1
    assert refused > len(whole) / 12
