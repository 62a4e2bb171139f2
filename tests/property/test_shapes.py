"""Random nodes: the inferred shape is the shape that onnxruntime's answer has, whether the input's
dimensions are numbers or symbols."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sardonyx.ops import Facts, facts_of_array, infer_node
from sardonyx.sizes import evaluate, symbol, symbols

OPSET = 21
OPTIONS = ort.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1


@dataclass(frozen=True)
class Drawn:
    """A node and what to feed it; the elements of `known` inputs are there at inference time."""

    op: str
    inputs: tuple[np.ndarray[Any, Any], ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    known: frozenset[int] = frozenset()
    outputs: int = 1

    def __repr__(self) -> str:
        known = [x if i in self.known else x.shape for i, x in enumerate(self.inputs)]
        return f"{self.op}({known}, {self.attributes})"


def run(drawn: Drawn) -> list[np.ndarray[Any, Any]]:
    names = [f"x{i}" for i in range(len(drawn.inputs))]
    results = [f"y{i}" for i in range(drawn.outputs)]
    node = onnx.helper.make_node(drawn.op, names, results, **drawn.attributes)
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for name, x in zip(names, drawn.inputs, strict=True)
        ],
        [onnx.helper.make_empty_tensor_value_info(name) for name in results],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10
    )
    session = ort.InferenceSession(model.SerializeToString(), OPTIONS, ["CPUExecutionProvider"])
    found: list[np.ndarray[Any, Any]] = session.run(
        None, dict(zip(names, drawn.inputs, strict=True))
    )
    return found


def infer(drawn: Drawn, symbolic: bool) -> tuple[list[Facts], dict[str, int]]:
    bindings: dict[str, int] = {}
    facts = []
    for index, array in enumerate(drawn.inputs):
        one = facts_of_array(array)
        if index not in drawn.known:
            one = Facts("tensor", one.dtype, one.shape)
            if symbolic:
                names = [f"d{index}_{axis}" for axis in range(array.ndim)]
                bindings |= dict(zip(names, array.shape, strict=True))
                one = Facts("tensor", one.dtype, tuple(map(symbol, names)))
        facts.append(one)
    proto = onnx.helper.make_node(
        drawn.op,
        [f"x{i}" for i in range(len(facts))],
        [f"y{i}" for i in range(drawn.outputs)],
        **drawn.attributes,
    )
    return infer_node(ir.serde.deserialize_node(proto), facts, OPSET), bindings


def check(drawn: Drawn) -> None:
    actual = run(drawn)
    numbers, _ = infer(drawn, symbolic=False)
    expressions, bindings = infer(drawn, symbolic=True)
    for array, facts, over_symbols in zip(actual, numbers, expressions, strict=True):
        assert facts.dtype == over_symbols.dtype == ir.DataType.from_numpy(array.dtype)
        assert facts.shape == array.shape
        if over_symbols.shape is None:
            continue
        assert len(over_symbols.shape) == array.ndim
        for size, wanted in zip(over_symbols.shape, array.shape, strict=True):
            if symbols(size) <= set(bindings):
                assert evaluate(size, bindings) == wanted


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def integers(*elements: int) -> np.ndarray[Any, Any]:
    return np.array(elements, np.int64)


dims = st.integers(1, 6)
shapes = st.lists(dims, min_size=1, max_size=4)


@st.composite
def broadcasting(draw: st.DrawFn) -> Drawn:
    full = draw(shapes)
    parts = []
    for _ in range(2):
        kept = [draw(st.sampled_from([dim, 1])) for dim in full]
        parts.append(floats(*kept[draw(st.integers(0, len(kept) - 1)) :]))
    return Drawn(draw(st.sampled_from(["Add", "Mul", "Greater", "Max"])), tuple(parts))


@st.composite
def windows(draw: st.DrawFn) -> Drawn:
    rank = draw(st.integers(1, 2))
    spatial = [draw(st.integers(5, 12)) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
        "auto_pad": draw(
            st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
        ),
    }
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    if attributes["auto_pad"] == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
    op = draw(st.sampled_from(["Conv", "MaxPool", "AveragePool", "ConvTranspose"]))
    if attributes["auto_pad"].startswith("SAME"):
        # A window smaller than its stride would need negative padding. The specification gives
        # the size all the same; onnxruntime refuses, or gives another one.
        kernel = [max(k, s) for k, s in zip(kernel, attributes["strides"], strict=True)]
    if not attributes["auto_pad"].startswith("SAME"):
        attributes["dilations"] = [draw(st.integers(1, 2)) for _ in range(rank)]
    if op == "Conv":
        group = draw(st.sampled_from([1, 2]))
        weights = floats(4, 2, *kernel)
        return Drawn(op, (floats(2, 2 * group, *spatial), weights), {**attributes, "group": group})
    if op == "ConvTranspose":
        return Drawn(op, (floats(2, 3, *spatial), floats(3, 4, *kernel)), attributes)
    if attributes["auto_pad"] == "NOTSET":
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    return Drawn(op, (floats(2, 3, *spatial),), {**attributes, "kernel_shape": kernel})


@st.composite
def slices(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    # Going backwards, onnxruntime takes the largest integers for "to the front".
    far = [2**31 - 1, 2**63 - 1, -(2**63)] if step > 0 else [-(2**31), -(2**63)]
    bound = st.one_of(st.integers(-8, 8), st.sampled_from(far))
    parts = (draw(bound), draw(bound), axis, step)
    return Drawn("Slice", (floats(*shape), *map(integers, parts)), known=frozenset({1, 2, 3, 4}))


@st.composite
def reductions(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    attributes = {
        "keepdims": draw(st.integers(0, 1)),
        "noop_with_empty_axes": draw(st.integers(0, 1)),
    }
    op = draw(st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2"]))
    return Drawn(op, (floats(*shape), integers(*axes)), attributes, frozenset({1}))


@st.composite
def reshapes(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes)
    target = draw(st.permutations(shape))
    if draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    if draw(st.booleans()):
        target.insert(draw(st.integers(0, len(target))), 1)
    return Drawn("Reshape", (floats(*shape), integers(*target)), known=frozenset({1}))


@st.composite
def pieces(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    kind = draw(st.sampled_from(["Concat", "Split", "Pad", "Tile", "Flatten", "Transpose"]))
    if kind == "Concat":
        other = list(shape)
        other[axis] = draw(dims)
        return Drawn(kind, (floats(*shape), floats(*other)), {"axis": axis})
    if kind == "Split":
        parts = draw(st.integers(1, 3))
        if (parts - 1) * -(-shape[axis] // parts) >= shape[axis]:
            parts = 1
        return Drawn(kind, (floats(*shape),), {"axis": axis, "num_outputs": parts}, outputs=parts)
    if kind == "Pad":
        pads = [draw(st.integers(0, 3)) for _ in shape * 2]
        return Drawn(kind, (floats(*shape), integers(*pads)), known=frozenset({1}))
    if kind == "Tile":
        repeats = [draw(st.integers(0, 3)) for _ in shape]
        return Drawn(kind, (floats(*shape), integers(*repeats)), known=frozenset({1}))
    if kind == "Flatten":
        return Drawn(kind, (floats(*shape),), {"axis": axis})
    return Drawn(kind, (floats(*shape),), {"perm": draw(st.permutations(range(len(shape))))})


@st.composite
def products(draw: st.DrawFn) -> Drawn:
    inner, rows, columns = (draw(dims) for _ in range(3))
    batch = draw(st.lists(dims, max_size=2))
    left, right = (
        floats(*batch, rows, inner),
        floats(*batch[draw(st.integers(0, len(batch))) :], inner, columns),
    )
    if draw(st.booleans()):
        return Drawn("MatMul", (left, right))
    flags = {"transA": draw(st.integers(0, 1)), "transB": draw(st.integers(0, 1))}
    a = floats(inner, rows) if flags["transA"] else floats(rows, inner)
    b = floats(columns, inner) if flags["transB"] else floats(inner, columns)
    return Drawn("Gemm", (a, b, floats(columns)), flags)


@st.composite
def lookups(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    kind = draw(
        st.sampled_from(["Gather", "TopK", "OneHot", "ArgMax", "Softmax", "Expand", "Range"])
    )
    if kind == "Gather":
        return Drawn(kind, (floats(*shape), np.zeros(draw(shapes), np.int64)), {"axis": axis})
    if kind == "TopK":
        k = draw(st.integers(0, shape[axis]))
        return Drawn(kind, (floats(*shape), integers(k)), {"axis": axis}, frozenset({1}), 2)
    if kind == "OneHot":
        depth = integers(draw(st.integers(1, 5)))
        indices = np.zeros(shape, np.int64)
        return Drawn(kind, (indices, depth, floats(2)), {"axis": axis}, frozenset({1}))
    if kind == "ArgMax":
        return Drawn(kind, (floats(*shape),), {"axis": axis, "keepdims": draw(st.integers(0, 1))})
    if kind == "Softmax":
        return Drawn(kind, (floats(*shape),), {"axis": axis})
    if kind == "Expand":
        ones = [draw(st.sampled_from([dim, 1])) for dim in shape]
        target = [draw(dims), *shape]
        return Drawn(kind, (floats(*ones), integers(*target)), known=frozenset({1}))
    bounds = [np.array(draw(st.integers(-9, 9)), np.int64) for _ in range(2)]
    delta = np.array(draw(st.sampled_from([-3, -1, 1, 2])), np.int64)
    return Drawn(kind, (*bounds, delta), known=frozenset({0, 1, 2}))


SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(broadcasting())
def test_broadcasting(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(windows())
def test_windows(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(slices())
def test_slices(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(reductions())
def test_reductions(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(reshapes())
def test_reshapes(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(pieces())
def test_pieces(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(products())
def test_products(drawn: Drawn) -> None:
    check(drawn)


@SETTINGS
@given(lookups())
def test_lookups(drawn: Drawn) -> None:
    check(drawn)
