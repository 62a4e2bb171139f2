"""Single operators as CoreML's layers, held to the model twice: read back, and evaluated by the specification's text."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime")
if importlib.util.find_spec("coremltools") is None:  # importing it takes seconds
    pytest.skip("coremltools is not installed", allow_module_level=True)

from tests.unit.conversion.coreml.layers_by_definition import evaluate

from sardonyx.comparison.engines import open_engine
from sardonyx.comparison.inputs import example_inputs
from sardonyx.conversion.back.coreml.model import Written, write_coreml
from sardonyx.model.load import load

F, N, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ENGINE = "onnxruntime"
_RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return _RANDOM.normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """One node over inputs `x`, `z`, … and constants by name."""

    op: str
    x: Any = ("n", 3, 4)
    constants: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    names: str = ""  # of all inputs, in order; "x" and the constants where empty
    dtype: int = F
    results: tuple[int, ...] = (F,)
    others: Mapping[str, Any] = field(default_factory=dict)
    kinds: str = ""  # the layers, without constants
    version: int = 4

    @property
    def title(self) -> str:
        told = ", ".join(f"{k}={v}" for k, v in self.attributes.items())
        return f"{self.op}({told}) {list(self.x)}"

    def model(self) -> Any:
        names = self.names.split(" ") if self.names else ["x", *self.constants]
        outputs = [f"y{index}" for index in range(len(self.results))]
        names = ["" if name == "-" else name for name in names]
        node = helper.make_node(self.op, names, outputs, **self.attributes)
        inputs = {"x": (self.dtype, self.x), **{n: (F, s) for n, s in self.others.items()}}
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
            [
                helper.make_tensor_value_info(n, t, None)
                for n, t in zip(outputs, self.results, strict=True)
            ],
            [numpy_helper.from_array(np.asarray(v), k) for k, v in self.constants.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        made.ir_version = 10
        return load(made)


IMAGE = ("n", 4, 6, 5)
INDEX = np.array([[0, 1], [2, -1]])
H = 3


def _lstm(op: str, gates: int, direction: str, results: int, **attributes: Any) -> Case:
    ways = 2 if direction == "bidirectional" else 1
    return Case(
        op,
        (5, "n", 2),
        {
            "w": floats(ways, gates * H, 2),
            "r": floats(ways, gates * H, H),
            "b": floats(ways, 2 * gates * H),
        },
        {"hidden_size": H, "direction": direction, **attributes},
        results=(F,) * results,
    )


CASES = [
    *(
        Case(op, kinds="activation")
        for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "HardSigmoid")
    ),
    *(
        Case(op, kinds=op.lower())
        for op in ("Floor", "Ceil", "Sign", "Sin", "Cos", "Atan", "Sinh", "Asinh", "Erf", "Gelu")
    ),
    *(Case(op, kinds="unary") for op in ("Exp", "Abs")),
    *(Case(op) for op in ("Selu", "Celu", "HardSwish", "ThresholdedRelu", "Mish", "Neg", "Round")),
    Case("LeakyRelu", attributes={"alpha": 0.3}, kinds="activation"),
    Case("Gelu", attributes={"approximate": "tanh"}, kinds="gelu"),
    Case("Reciprocal", kinds="divideBroadcastable"),
    Case("PRelu", IMAGE, {"s": floats(4, 1, 1)}, kinds="activation"),
    Case("PRelu", constants={"s": floats(4)}),
    Case("Clip", constants={"a": np.float32(-0.4), "b": np.float32(0.3)}, kinds="clip"),
    Case("Clip", constants={"b": np.float32(0.3)}, names="x - b", kinds="minBroadcastable"),
    *(
        Case(op, names="x z", others={"z": (3, 1)}, kinds=f"{name}Broadcastable")
        for op, name in (
            ("Add", "add"),
            ("Sub", "subtract"),
            ("Mul", "multiply"),
            ("Div", "divide"),
            ("Max", "max"),
            ("Min", "min"),
        )
    ),
    Case("Add", constants={"c": np.float32(2)}, kinds="add"),
    Case("Sub", constants={"c": np.float32(2)}, kinds="add"),
    Case("Mul", constants={"c": np.float32(-2)}, kinds="multiply"),
    Case("Pow", constants={"c": np.float32(3)}, kinds="unary"),
    Case("Div", (2, 5), {"c": np.int64(3)}, dtype=N, results=(N,)),
    Case("Mod", (2, 5), {"c": np.int64(-3)}, dtype=N, results=(N,)),
    Case("Mod", names="x z", others={"z": (4,)}, attributes={"fmod": 1}),
    Case("Cast", attributes={"to": N}, results=(N,)),
    Case("Cast", (2, 5), attributes={"to": B}, dtype=N, results=(B,), kinds="notEqual"),
    Case("IsNaN", results=(B,), kinds="notEqual"),
    *(
        Case(op, names="x z", others={"z": (4,)}, results=(B,), kinds=kind)
        for op, kind in (
            ("Greater", "greaterThan"),
            ("GreaterOrEqual", "greaterEqual"),
            ("Less", "lessThan"),
            ("LessOrEqual", "lessEqual"),
            ("Equal", "equal"),
        )
    ),
    Case(
        "Where",
        constants={"c": np.array([True, False, True, True])},
        names="c x z",
        others={"z": (1,)},
    ),
    *(
        Case(
            f"Reduce{name}", constants={"a": np.array([-1, 1])}, attributes={"keepdims": place % 2}
        )
        for place, name in enumerate(
            ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
        )
    ),
    Case("ReduceLogSum", (2, 3), attributes={"keepdims": 0}),
    Case("ReduceMean", (2, 3), attributes={"keepdims": 0}, kinds="reduceMean reshapeStatic"),
    Case("Softmax", attributes={"axis": 1}, kinds="softmaxND"),
    Case("LogSoftmax", attributes={"axis": 1}),
    Case("ArgMax", attributes={"axis": 1, "keepdims": 0}, results=(N,), kinds="argMax"),
    Case("ArgMin", (7,), attributes={"axis": 0, "keepdims": 0}, results=(N,), kinds="argMin"),
    Case(
        "TopK", constants={"k": np.array([2])}, attributes={"axis": 1}, results=(F, N), kinds="topK"
    ),
    Case(
        "TopK",
        constants={"k": np.array([2])},
        attributes={"axis": -1, "largest": 0},
        results=(F, N),
        kinds="topK",
    ),
    Case("Reshape", constants={"s": np.array([0, 2, -1])}, kinds="reshapeStatic"),
    Case("Reshape", ("n", 6, "m"), {"s": np.array([0, 3, -1])}, kinds="rankPreservingReshape"),
    Case("Flatten", kinds="flattenTo2D"),
    Case("Flatten", (2, 3, 4, 5), attributes={"axis": -2}, kinds="flattenTo2D"),
    Case("Flatten", (2, 3, 4), attributes={"axis": -3}, kinds="reshapeStatic"),
    Case(
        "ConvTranspose",
        (1, 1, 3, 3),
        {"w": floats(1, 2, 3, 3)},
        {"strides": [3, 2], "output_shape": [10, 8]},
    ),
    Case("Transpose", attributes={"perm": [2, 0, 1]}, kinds="transpose"),
    Case("Squeeze", ("n", 1, 4, 1), {"a": np.array([1, -1])}, kinds="squeeze"),
    Case("Unsqueeze", constants={"a": np.array([0, -1])}, kinds="expandDims"),
    Case("Expand", (3, 1), {"s": np.array([2, 1, 4])}, kinds="reshapeStatic broadcastToStatic"),
    Case("Tile", constants={"r": np.array([1, 2, 3])}, kinds="tile"),
    Case("DepthToSpace", ("n", 8, 3, 2), attributes={"blocksize": 2}, kinds="reorganizeData"),
    Case(
        "DepthToSpace",
        ("n", 8, 3, 2),
        attributes={"blocksize": 2, "mode": "CRD"},
        kinds="reorganizeData",
        version=5,
    ),
    Case("SpaceToDepth", ("n", 2, 4, 6), attributes={"blocksize": 2}, kinds="reorganizeData"),
    Case(
        "Slice",
        (4, 5, 7),
        {"s": [1, -1], "e": [4, -100], "a": [1, 2], "t": [2, -2]},
        kinds="sliceStatic",
    ),
    Case("Slice", constants={"s": [1], "e": [1 << 62], "a": [0]}, kinds="sliceStatic"),
    Case("Split", ("n", 5, 2), {"s": [2, 3]}, {"axis": 1}, results=(F, F), kinds="splitND"),
    Case(
        "Concat", names="x z", others={"z": ("n", 2, 4)}, attributes={"axis": 1}, kinds="concatND"
    ),
    Case("Pad", constants={"p": [0, 1, 2, 0, 0, 3], "v": np.float32(7)}, kinds="constantPad"),
    Case(
        "Pad", constants={"p": [0, 1, 2, 0, 0, 3]}, attributes={"mode": "reflect"}, kinds="padding"
    ),
    Case("Pad", (3, 4), {"p": [0, 1, 2, 0]}, {"mode": "edge"}),
    Case("Trilu", attributes={"upper": 0}, kinds="lowerTriangular"),
    Case("Trilu", constants={"k": np.int64(-1)}, kinds="upperTriangular"),
    Case("Gather", constants={"i": INDEX}, attributes={"axis": 2}, kinds="gather"),
    Case("Gather", constants={"i": np.int64(-1)}, attributes={"axis": 1}, kinds="gather squeeze"),
    Case("Gather", ("n", 4), {"t": floats(10, 6)}, names="t x", dtype=N, kinds="gather"),
    Case("GatherElements", (2, 3), {"i": INDEX}, {"axis": 1}, kinds="gatherAlongAxis"),
    Case("GatherND", (3, 4, 2), {"i": INDEX}, kinds="gatherND"),
    Case(
        "ScatterND",
        (3, 4),
        {"i": np.array([[0], [2]])},
        names="x i z",
        others={"z": (2, 4)},
        kinds="scatterND",
    ),
    Case(
        "ScatterElements",
        (3, 4),
        {"i": np.array([[0], [2], [1]])},
        {"axis": 1, "reduction": "add"},
        names="x i z",
        others={"z": (3, 1)},
        kinds="scatterAlongAxis",
    ),
    *(
        Case(
            "CumSum",
            (3, 4),
            {"a": np.int64(1)},
            {"exclusive": e, "reverse": r},
            kinds="cumSum",
            version=5,
        )
        for e, r in ((0, 0), (1, 0), (0, 1), (1, 1))
    ),
    Case(
        "OneHot",
        (3, 4),
        {"d": np.int64(7), "v": np.array([-1.0, 5.0], np.float32)},
        {"axis": 1},
        dtype=N,
        version=5,
    ),
    Case("MatMul", (2, 3, 4), {"w": floats(4, 5)}, kinds="innerProduct"),
    Case("MatMul", (2, 1, 3, 4), {"w": floats(4, 5)}, kinds="batchedMatmul"),
    Case("MatMul", names="x z", others={"z": (4, 5)}, kinds="batchedMatmul"),
    Case("MatMul", names="x z", others={"z": (4,)}),
    Case(
        "Gemm",
        (4, 2),
        {"w": floats(3, 4), "b": floats(3)},
        {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1},
    ),
    Case(
        "Gemm",
        (2, 4),
        {"b": floats(2, 1)},
        {"alpha": 0.5, "transB": 1},
        names="x z b",
        others={"z": (3, 4)},
    ),
    Case(
        "Einsum",
        ("n", 3),
        {"w": floats(3, 4, 5)},
        {"equation": "bi,ijk,bj->bk"},
        names="x w z",
        others={"z": ("n", 4)},
    ),
    Case(
        "Einsum",
        (2, 3, 4),
        attributes={"equation": "aij,akj->aik"},
        names="x z",
        others={"z": (2, 5, 4)},
    ),
    Case(
        "Conv",
        IMAGE,
        {"w": floats(6, 2, 3, 2), "b": floats(6)},
        {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2], "group": 2},
        kinds="convolution",
    ),
    *(
        Case("Conv", ("n", 4, 9), {"w": floats(3, 4, 4)}, {"auto_pad": rule, "strides": [2]})
        for rule in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    Case(
        "ConvTranspose",
        IMAGE,
        {"w": floats(4, 3, 3, 3), "b": floats(6)},
        {"pads": [1, 0, 1, 1], "strides": [2, 3], "output_padding": [1, 2], "group": 2},
    ),
    Case(
        "ConvTranspose",
        IMAGE,
        {"w": floats(4, 3, 3, 3)},
        {"pads": [1, 1, 1, 1]},
        kinds="convolution",
    ),
    Case(
        "ConvTranspose",
        (1, 4, 5),
        {"w": floats(4, 3, 3)},
        {"auto_pad": "SAME_UPPER", "strides": [2]},
    ),
    Case(
        "MaxPool",
        (1, 2, 8, 9),
        attributes={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": 1},
    ),
    Case(
        "MaxPool",
        IMAGE,
        attributes={"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
        kinds="pooling",
    ),
    Case(
        "AveragePool",
        IMAGE,
        attributes={"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    Case("AveragePool", ("n", 2, 8), attributes={"kernel_shape": [3], "pads": [1, 1]}),
    Case("GlobalAveragePool", IMAGE, kinds="reduceMean"),
    Case(
        "BatchNormalization",
        IMAGE,
        {"s": floats(4), "b": floats(4), "m": floats(4), "v": np.abs(floats(4))},
        kinds="batchnorm",
    ),
    Case(
        "BatchNormalization",
        ("n", 4, 6),
        {"s": floats(4), "b": floats(4), "m": floats(4), "v": np.abs(floats(4))},
    ),
    Case("InstanceNormalization", IMAGE, {"s": floats(4), "b": floats(4)}, kinds="batchnorm"),
    Case("InstanceNormalization", ("n", 4, 6), {"s": floats(4), "b": floats(4)}),
    Case("GroupNormalization", IMAGE, {"s": floats(4), "b": floats(4)}, {"num_groups": 2}),
    Case(
        "LayerNormalization", constants={"s": floats(4), "b": floats(4)}, kinds="layerNormalization"
    ),
    Case("LayerNormalization", names="x z", others={"z": (3, 4)}, attributes={"axis": 1}),
    Case("LRN", IMAGE, attributes={"size": 3, "alpha": 0.5, "bias": 2.0}, kinds="lrn"),
    *(
        Case(
            "Resize",
            (1, 2, 6, 5),
            {"s": np.array([1, 1, scale, scale], np.float32)},
            {"mode": mode, "coordinate_transformation_mode": how, "nearest_mode": "floor"},
            names="x - s",
            version=version,
        )
        for mode, how, scale, version in (
            ("nearest", "asymmetric", 2, 4),
            ("linear", "half_pixel", 2, 5),
            ("linear", "align_corners", 3, 5),
            ("linear", "half_pixel", 1.5, 4),
            ("linear", "asymmetric", 2, 4),
            ("cubic", "half_pixel", 0.6, 4),
            ("nearest", "half_pixel", 0.7, 4),
        )
    ),
    Case(
        "QuantizeLinear",
        constants={"s": np.float32(0.1), "z": np.int8(20)},
        results=(TensorProto.INT8,),
    ),
    *(_lstm("LSTM", 4, way, 3) for way in ("forward", "reverse", "bidirectional")),
    *(_lstm("GRU", 3, way, 2) for way in ("forward", "bidirectional")),
    *(_lstm("GRU", 3, way, 2, linear_before_reset=1) for way in ("reverse", "bidirectional")),
    _lstm("RNN", 1, "bidirectional", 2),
    Case(
        "LSTM",
        (5, 2, 2),
        {
            "w": floats(1, 4 * H, 2),
            "r": floats(1, 4 * H, H),
            "b": floats(1, 8 * H),
            "h": floats(1, 2, H),
            "c": floats(1, 2, H),
            "p": floats(1, 3 * H),
        },
        {"hidden_size": H},
        names="x w r b - h c p",
    ),
]


def _kinds(written: Written) -> str:
    kinds = [layer.WhichOneof("layer") for layer in written.specification.neuralNetwork.layers]
    return " ".join(kind for kind in kinds if kind != "loadConstantND")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_operator(case: Case) -> None:
    model = case.model()
    written = write_coreml(model, engine=ENGINE)
    assert written.verification is not None
    assert len(written.verification.trials) >= 2
    assert written.version == case.version
    if case.kinds:
        assert _kinds(written) == case.kinds
    feeds: dict[str, Any] = {
        name: np.asarray(value) for name, value in example_inputs(model, seed=3).items()
    }
    found = evaluate(written.specification, feeds)
    expected = open_engine(ENGINE, model)(feeds)
    for name, value in expected.items():
        wanted = np.asarray(value, np.float32)
        assert found[name].shape == (wanted.shape or (1,))
        np.testing.assert_allclose(found[name].reshape(wanted.shape), wanted, rtol=1e-4, atol=2e-5)


def test_the_definitions_are_those_of_the_examples_of_the_specification() -> None:
    """What the text shows with numbers: reorganizeData, cumSum, batchedMatmul's order."""
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 8, 1, 2)
    case = Case("DepthToSpace", (1, 8, 1, 2), attributes={"blocksize": 2})
    found = evaluate(write_coreml(case.model(), check=False).specification, {"x": x})["y0"]
    assert found[0].tolist() == [[[1, 5, 2, 6], [9, 13, 10, 14]], [[3, 7, 4, 8], [11, 15, 12, 16]]]
    case = Case("DepthToSpace", (1, 8, 1, 2), attributes={"blocksize": 2, "mode": "CRD"})
    found = evaluate(write_coreml(case.model(), check=False).specification, {"x": x})["y0"]
    assert found[0].tolist() == [[[1, 3, 2, 4], [5, 7, 6, 8]], [[9, 11, 10, 12], [13, 15, 14, 16]]]
    case = Case("CumSum", (3,), {"a": np.int64(0)}, {"exclusive": 1, "reverse": 1})
    found = evaluate(
        write_coreml(case.model(), check=False).specification, {"x": np.array([4, 6, 7])}
    )["y0"]
    assert found.tolist() == [13, 7, 0]
    case = Case("MatMul", (1, 1, 1, 2), {"w": np.array([[1, 2, 3], [4, 5, 6]], np.float32)})
    layer = write_coreml(case.model(), check=False).specification.neuralNetwork.layers[0]
    assert list(layer.batchedMatmul.weights.floatValue) == [1, 4, 2, 5, 3, 6]
