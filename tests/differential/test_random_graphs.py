"""Random graphs: our answers against onnxruntime's, and laws that hold without another engine.

The seeds are fixed, so every run sees the same graphs. The tests at the end are what a longer hunt
with the same generator found, one defect each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import tests.differential.families.indexing
import tests.differential.families.learned
import tests.differential.families.networks
import tests.differential.families.pointwise
import tests.differential.families.shaping
import tests.differential.families.sums
import tests.differential.families.windows  # noqa: F401
from onnx import helper, numpy_helper
from tests.differential.graphs import FAMILIES, Array, Graph, compose, draw
from tests.differential.peer import EXACT_BYTES

import sardonyx as sx
from sardonyx.comparison.difference import differences
from sardonyx.sizes import evaluate, symbols

SEEDS = range(5)
CHAINS = range(40)
# Families that read values of any shape, and so can stand behind one another.
CHAINED = [
    "unary",
    "binary",
    "choose",
    "clip",
    "reduce",
    "softmax",
    "cumulate",
    "gather",
    "gather_elements",
    "gather_nd",
    "slices",
    "pad",
    "scatter_elements",
    "scatter_nd",
    "arg_extreme",
    "top_k",
    "selection",
    "reshape",
    "squeeze",
    "rearrange",
    "repeat",
    "join",
    "conv",
    "matmul",
    "pool",
    "branch",
    "loop",
    "scan",
    "quantized_products",
]
SMALL = [
    "unary",
    "binary",
    "reduce",
    "softmax",
    "cumulate",
    "matmul",
    "gemm",
    "conv",
    "conv_transpose",
    "pool",
    "pool_all",
    "normalize",
    "normalize_layers",
    "recurrent",
    "attention",
    "rotate",
    "losses",
    "gather",
    "slices",
    "pad",
]

OPTIONS = ort.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1
OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def ask_onnxruntime(graph: Graph) -> list[Any] | str:
    """Its answers, or why it has none."""
    try:
        session = ort.InferenceSession(
            graph.model.SerializeToString(), OPTIONS, ["CPUExecutionProvider"]
        )
        answers: list[Any] = session.run(list(graph.outputs), dict(graph.feeds))
    except Exception as error:  # its errors share no base class
        return str(error)
    return answers


def mismatches(names: tuple[str, ...], ours: list[Any], others: list[Any]) -> Iterator[str]:
    for name, a, b in zip(names, ours, others, strict=True):
        for difference in differences(name, a, b):
            if not difference.ok:
                yield f"{difference.name}: {difference.reason}\n{a}\n{b}"


def printed(graph: Graph) -> str:
    return f"{onnx.printer.to_text(graph.model)}\n{dict(graph.feeds)}"


def check_shapes(session: sx.Session, graph: Graph, values: dict[str, Any]) -> None:
    """Whatever was inferred before the run is so."""
    sizes = graph.symbols
    for value in (v for node in session.model.graph for v in node.outputs):
        array = values.get(str(value.name))
        if not isinstance(array, np.ndarray):
            continue
        facts = session.shapes.of(value)
        text = array.dtype == object
        kind = ir.DataType.STRING if text else ir.DataType.from_numpy(array.dtype)
        assert facts.dtype == kind, (facts, printed(graph))
        if facts.shape is None:
            continue
        assert len(facts.shape) == array.ndim, (facts, array.shape, printed(graph))
        for size, length in zip(facts.shape, array.shape, strict=True):
            if symbols(size) <= sizes.keys():
                assert evaluate(size, sizes) == length, (facts, array.shape, printed(graph))


def check(graph: Graph) -> bool:
    """Hold a graph to everything; whether onnxruntime had an answer to compare."""
    theirs = ask_onnxruntime(graph)
    try:
        session = sx.Session(graph.model)
        values = session.run_all(graph.feeds)
    except sx.SardonyxError as error:
        if isinstance(theirs, str):
            return False
        raise AssertionError(f"only we refuse: {printed(graph)}") from error
    ours = [values[name] for name in graph.outputs]
    check_shapes(session, graph, values)
    symbolic = sx.Session(graph.symbolic)
    again = symbolic.run_all(graph.feeds)
    check_shapes(symbolic, graph, again)
    same = list(mismatches(graph.outputs, [again[name] for name in graph.outputs], ours))
    assert not same, (same, printed(graph))
    if isinstance(theirs, str):
        return False
    wrong = list(mismatches(graph.outputs, ours, theirs))
    assert not wrong, "\n".join([*wrong, printed(graph)])
    return True


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_node_agrees_with_onnxruntime(family: str) -> None:
    if family.startswith("quantized") and not EXACT_BYTES:
        pytest.skip("onnxruntime saturates products of bytes on this CPU")
    compared = sum(check(draw(family, seed)) for seed in SEEDS)
    assert compared >= len(SEEDS) // 2, "too few draws that onnxruntime can run"


@pytest.mark.parametrize("seed", CHAINS)
def test_a_graph_agrees_with_onnxruntime(seed: int) -> None:
    check(compose(seed, CHAINED))


def test_most_graphs_are_compared() -> None:
    answers = [ask_onnxruntime(compose(seed, CHAINED)) for seed in CHAINS[:10]]
    assert sum(isinstance(answer, list) for answer in answers) >= 5


def strange(array: Array, seed: int) -> Array:
    """The same numbers, in an order of bytes or with strides that no caller would choose."""
    if array.dtype == object or not array.ndim:
        return array
    if seed % 2 and array.dtype.kind in "iuf":
        return np.asfortranarray(array.astype(array.dtype.newbyteorder(">")))
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    view = wide[tuple(slice(None, None, -2) for _ in array.shape)]
    view[...] = array
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("seed", CHAINS[:20])
def test_strides_byte_order_and_a_round_trip_change_nothing(seed: int, tmp_path: Path) -> None:
    graph = compose(seed, CHAINED)
    session = sx.Session(graph.model)
    names = graph.outputs
    expected = session.run(names, graph.feeds)
    feeds = {name: strange(array, seed) for name, array in graph.feeds.items()}
    assert not list(mismatches(names, session.run(names, feeds), expected)), printed(graph)
    sx.save(session.model, tmp_path / "model.onnx")
    saved = sx.Session(tmp_path / "model.onnx").run(names, graph.feeds)
    assert not list(mismatches(names, saved, expected)), printed(graph)


def widened(model: onnx.ModelProto, small: int) -> onnx.ModelProto:
    """The same model in float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for info in (*wide.graph.input, *wide.graph.output):
        if info.type.tensor_type.elem_type == small:
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    constants = [a.t for node in wide.graph.node for a in node.attribute if a.HasField("t")]
    for tensor in (*wide.graph.initializer, *constants):
        if tensor.data_type == small:
            array = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return wide


@pytest.mark.parametrize("small", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", SMALL)
def test_small_floats_are_float32_rounded(family: str, small: str) -> None:
    for seed in range(2):
        graph = draw(family, seed, small)
        kind = onnx.TensorProto.DataType.Value(small.upper())
        feeds = {
            name: x.astype(np.float32) if x.dtype.name == small else x
            for name, x in graph.feeds.items()
        }
        try:
            wide = sx.Session(widened(graph.model, kind)).run(graph.outputs, feeds)
        except sx.SardonyxError:
            continue
        narrow = sx.Session(graph.model).run(graph.outputs, graph.feeds)
        with np.errstate(over="ignore"):
            rounded = [w.astype(n.dtype) for w, n in zip(wide, narrow, strict=True)]
        wrong = list(mismatches(graph.outputs, narrow, rounded))
        assert not wrong, "\n".join([*wrong, printed(graph)])


def run_node(
    op: str, opset: int, *arrays: Array, domain: str = "", outputs: int = 1, **attributes: Any
) -> Any:
    """The last of a node's outputs."""
    names = [f"x{index}" for index in range(len(arrays))]
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "g", infos, [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)])
    values = sx.Session(model).run_all(dict(zip(names, arrays, strict=True)))
    return values[results[-1]]


@pytest.mark.parametrize("start", [-9, -4, 0])
def test_a_slice_backwards_starts_no_earlier_than_the_first_element(start: int) -> None:
    x = np.arange(3, dtype=np.float32)
    bounds = [np.array([value]) for value in (start, -(2**63), 0, -1)]
    assert run_node("Slice", 13, x, *bounds).tolist() == [0]


def test_one_gathered_element_is_a_scalar() -> None:
    y = run_node("GatherND", 13, np.arange(6).reshape(2, 3), np.array([1, -1]))
    assert y.shape == ()
    assert y == 5


def test_an_expanded_scalar_stays_a_scalar() -> None:
    y = run_node("Expand", 13, np.array(2.5, np.float32), np.array([], np.int64))
    assert y.shape == ()


def test_resize_of_opset_10_rounds_up_where_it_shrinks() -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    scales = np.array([1, 1, 0.6, 0.6], np.float32)
    assert run_node("Resize", 10, x, scales).tolist() == [[[[1, 3]]]]


def test_softsign_of_a_scalar() -> None:
    y = run_node("Softsign", 22, np.array(-1.5, np.float32))
    assert y.shape == ()
    assert y == np.float32(-0.6)


@pytest.mark.parametrize(("end", "sizes"), [(-5, []), (-4, []), (-1, [2, 3, 4]), (9, [2, 3, 4, 5])])
def test_the_end_of_shape_is_clamped(end: int, sizes: list[int]) -> None:
    assert run_node("Shape", 15, np.zeros((2, 3, 4, 5), np.int8), end=end).tolist() == sizes


@pytest.mark.parametrize("to", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
def test_casts_to_four_bits_round(to: int) -> None:
    x = np.array([0.4, 0.5, 1.5, 3.7], np.float32)
    assert run_node("Cast", 21, x, to=to).astype(np.int8).tolist() == [0, 0, 2, 4]


@pytest.mark.parametrize("flat", [False, True])
def test_the_product_of_attention_is_not_capped(flat: bool) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, heads, 3, 4)).astype(np.float32) for heads in (4, 2, 2))
    expected = 0.7 * q @ np.repeat(k, 2, axis=1).swapaxes(2, 3)
    heads = {}
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, 3, -1) for x in (q, k, v))
        heads = {"q_num_heads": 4, "kv_num_heads": 2}
    product = run_node("Attention", 24, q, k, v, outputs=4, softcap=0.5, scale=0.7, **heads)
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-6)


def test_two_base_values_are_two_scores() -> None:
    scores = run_node(
        "TreeEnsembleClassifier",
        3,
        np.zeros((1, 1), np.float32),
        domain="ai.onnx.ml",
        outputs=2,
        base_values=[3.5, 0.25],
        classlabels_strings=["d", "b"],
        class_treeids=[0],
        class_nodeids=[0],
        class_ids=[0],
        class_weights=[0.5],
        nodes_treeids=[0],
        nodes_nodeids=[0],
        nodes_featureids=[0],
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
    )
    assert scores.tolist() == [[4.0, 0.25]]
