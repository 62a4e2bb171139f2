from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from tests.differential.peer import EXACT_BYTES
from tests.unit.quantization.models import (
    attention_network,
    build,
    normal,
    residual_network,
    run_everywhere,
    word_network,
    words,
)

import sardonyx as sx
from sardonyx.errors import InputError, RunError

BATCHES = [{"x": normal(2, 3, 8, 8, seed=seed)} for seed in range(10, 16)]


@pytest.mark.parametrize(
    ("activations", "per_channel"),
    [("uint8", True), ("int8", False), ("uint16", True), ("int16", False)],
)
def test_answers_are_the_same_everywhere(activations: str, per_channel: bool) -> None:
    result = sx.quantize(
        residual_network(), BATCHES, activations=activations, per_channel=per_channel
    )
    ours, peer, truth = run_everywhere(result.model, BATCHES[0])
    # A value that lies between two steps may be rounded either way; a step is 1/255 of a range.
    tolerance = np.abs(truth[0]).max() * (0.02 if "8" in activations else 1e-3)
    assert np.abs(ours[0] - truth[0]).max() <= tolerance
    assert np.abs(peer[0] - truth[0]).max() <= tolerance
    (plain,) = sx.Session(residual_network()).run(None, BATCHES[0])
    assert np.abs(ours[0] - plain).max() <= np.abs(plain).max() * 0.06


def test_pairs_stand_where_kernels_take_them_up() -> None:
    result = sx.quantize(residual_network(), BATCHES)
    readers = {
        node.op_type: [v.producer().op_type for v in node.inputs if v and v.producer()]  # type: ignore[union-attr]
        for node in result.model.graph
    }
    assert readers["Conv"] == ["DequantizeLinear"] * 2  # the last one has no bias
    assert readers["Gemm"] == ["DequantizeLinear"] * 3
    assert readers["Add"] == ["DequantizeLinear"] * 2
    assert readers["MaxPool"] == readers["GlobalAveragePool"] == ["DequantizeLinear"]
    assert readers["Relu"] in (["Conv"], ["Add"])  # nothing between a Conv and its Relu


def test_pooling_and_views_share_the_grid_of_what_they_read() -> None:
    graph = sx.quantize(residual_network(), BATCHES).model.graph
    scale = {
        node.inputs[0].name: node.inputs[1].const_value.numpy()  # type: ignore[union-attr]
        for node in graph
        if node.op_type == "QuantizeLinear"
    }
    assert scale["r2"] == scale["m"]
    assert scale["g"] == scale["f"]


def test_a_quarter_of_the_bytes() -> None:
    weights = {"w": normal(512, 512), "b": normal(512)}
    model = build("g (float[n, 512] x) => (float[n, 512] y) { y = Gemm(x, w, b) }", weights)
    report = sx.quantize(model, {"x": normal(4, 512)}).report
    assert report.bytes_after <= 0.3 * report.bytes_before


def test_the_given_model_is_as_it_was() -> None:
    model = residual_network()
    before = Counter(node.op_type for node in model.graph)
    sx.quantize(model, BATCHES)
    assert Counter(node.op_type for node in model.graph) == before


def test_excluded_nodes_stay_and_are_listed() -> None:
    result = sx.quantize(residual_network(), BATCHES, exclude=["Gemm"])
    (kept,) = result.report.kept
    assert (kept.op, kept.reason, kept.scheme) == ("Gemm", "excluded", "float32")
    gemm = next(node for node in result.model.graph if node.op_type == "Gemm")
    assert [v.const_value is not None for v in gemm.inputs if v] == [False, True, True]


def test_a_large_bias_beside_tiny_weights_does_not_overflow() -> None:
    weights = {"w": normal(4, 3, 1, 1, scale=1e-9), "b": np.array([1e4, -1e4, 1, 0], np.float32)}
    model = build("g (float[1, 3, 4, 4] x) => (float[1, 4, 4, 4] y) { y = Conv(x, w, b) }", weights)
    ours, peer, _ = run_everywhere(
        sx.quantize(model, BATCHES[0]["x"][:1, :, :4, :4]).model, {"x": normal(1, 3, 4, 4)}
    )
    for answer in (ours, peer):
        np.testing.assert_allclose(answer[0][0, :, 0, 0], weights["b"], rtol=1e-3, atol=1e-3)


def test_data_from_a_folder_an_iterator_and_a_function(tmp_path: Path) -> None:
    for number, batch in enumerate(BATCHES):
        np.savez(tmp_path / f"{number}.npz", **batch)
    (expected,) = sx.Session(sx.quantize(residual_network(), BATCHES).model).run(None, BATCHES[0])
    for data in (tmp_path, iter(BATCHES), lambda: [(b["x"],) for b in BATCHES]):
        result = sx.quantize(residual_network(), data)
        np.testing.assert_array_equal(sx.Session(result.model).run(None, BATCHES[0])[0], expected)
        assert result.report.accuracy is not None
        assert result.report.accuracy.samples == len(BATCHES)


def test_random_data_come_with_a_warning() -> None:
    report = sx.quantize(residual_network(), ranges={"x": (-1, 1)}).report
    assert any("random" in note for note in report.notes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "no calibration data"),
        ([], "no calibration data"),
        ([{"x": normal(2, 3, 8, 9)}], "batch 0, input x.*dimension 3 is 9"),
        ([BATCHES[0], {"x": normal(2, 3, 8, 8).astype(np.float64)}], "batch 1.*float32 was expected"),
        ([{"z": normal(2, 3, 8, 8)}], "no input 'z'"),
        ([(BATCHES[0]["x"], np.zeros(2))], "2 arrays, but the model has 1 input"),
        ([{"x": np.full((2, 3, 8, 8), np.nan, np.float32)}], "NaN"),
        (3, "cannot be int"),
    ],
)  # fmt: skip
def test_bad_data_are_named(data: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.quantize(residual_network(), data)


def test_numbers_that_are_none_inside_of_the_model_are_named() -> None:
    weights = {"w": normal(3, 3), "v": normal(3, 3)}
    model = build("g (float[n, 3] x) => (float[n, 3] y) { a = MatMul(x, w)  b = Log(a)  y = MatMul(b, v) }", weights)  # fmt: skip
    with pytest.raises(RunError, match=r"value 'b'.*NaN"):
        sx.quantize(model, {"x": normal(8, 3)})


def test_nothing_to_quantize_is_an_error() -> None:
    model = build("g (float[n] x) => (float[n] y) { y = Relu(x) }", {})
    with pytest.raises(InputError, match="no node to quantize"):
        sx.quantize(model, {"x": normal(3)})


@pytest.mark.parametrize(
    "option", [{"activations": "int7"}, {"calibration": "luck"}, {"percentile": 3.0}]
)
def test_unknown_options_are_named(option: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        sx.quantize(residual_network(), BATCHES, **option)  # type: ignore[arg-type]


def test_a_bias_behind_a_product_is_of_the_same_steps() -> None:
    data = [words(seed) for seed in range(3)]
    result = sx.quantize(word_network(), data)
    graph = result.model.graph
    (bias,) = (v for v in graph.initializers.values() if (v.name or "").startswith("b1.quantized"))
    assert bias.dtype == ir.DataType.INT32
    ours, peer, truth = run_everywhere(result.model, data[0])
    largest = np.abs(truth[0]).max()
    assert np.abs(ours[0] - truth[0]).max() <= largest * 1e-3
    assert np.abs(peer[0] - truth[0]).max() <= largest * (1e-3 if EXACT_BYTES else 0.05)


def test_tables_are_looked_up_as_bytes() -> None:
    graph = sx.quantize(word_network(), [words(0)]).model.graph
    (lookup,) = (node for node in graph if node.op_type == "Gather")
    assert lookup.inputs[0] is not None
    assert lookup.inputs[0].dtype == ir.DataType.INT8
    assert [use.node.op_type for use in lookup.outputs[0].uses()] == ["DequantizeLinear"]


@pytest.mark.parametrize("length", [5, 12])
def test_attention_is_quantized_where_it_is_asked_for(length: int) -> None:
    model = attention_network()
    data = [{"x": normal(2, length, 16, seed=seed)} for seed in range(4)]
    plain = sx.quantize(model, data)
    assert [node.reason for node in plain.report.kept].count(
        "both of its operands are computed"
    ) == 2
    result = sx.quantize(model, data, attention=True)
    assert not result.report.kept
    products = [node for node in result.model.graph if node.op_type == "MatMul"]
    made = [value.producer() for node in products for value in node.inputs if value is not None]
    assert {None if node is None else node.op_type for node in made} == {"DequantizeLinear"}
    ours, peer, truth = run_everywhere(result.model, data[0])
    (exact,) = sx.Session(model).run(None, data[0])
    for answer in (ours[0], truth[0], *([peer[0]] if EXACT_BYTES else [])):
        assert np.abs(answer - exact).max() <= np.abs(exact).max() * 0.1
    assert np.abs(ours[0] - truth[0]).max() <= np.abs(truth[0]).max() * 0.03
