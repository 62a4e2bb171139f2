"""Every method: the answers of the result are the same by the specification, by us and by onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir
import onnxruntime
import pytest
from tests.differential.peer import EXACT_BYTES
from tests.unit.quantization.models import build, normal, residual_network, word_network, words

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.model.save import to_proto

IMAGES = [{"x": normal(2, 3, 8, 8, seed=seed)} for seed in range(10, 13)]
WORDS = [words(seed, length=8 + seed) for seed in range(3)]

# How far onnxruntime may be off: where weights alone are quantized it quantizes activations too, and of float16 it
# computes some operators in float32. It has no kernels for bfloat16, and breaks on float8.
METHODS: list[tuple[str, dict[str, Any], float | None]] = [
    ("words", {"method": "dynamic"}, 1e-5 if EXACT_BYTES else 0.05),
    ("words", {"method": "weight-only"}, 0.02),
    ("images", {"method": "weight-only", "bits": 4}, 0.02),
    ("words", {"method": "weight-only", "bits": 4, "symmetric": False, "algorithm": "gptq"}, 0.02),
    ("images", {"method": "float16"}, 4e-3),
    ("words", {"method": "bfloat16"}, None),
    ("images", {"method": "float8"}, None),
    ("words", {"method": "float8"}, None),
]


@pytest.mark.parametrize(("network", "options", "peer_is_off"), METHODS)
def test_answers_are_the_same_everywhere(
    network: str, options: dict[str, Any], peer_is_off: float | None
) -> None:
    make, data = (residual_network, IMAGES) if network == "images" else (word_network, WORDS)
    result = sx.quantize(make(), data, **options)
    proto = to_proto(result.model)
    onnx.checker.check_model(proto, full_check=True)
    (ours,) = sx.Session(result.model).run(None, data[0])
    (truth,) = onnx.reference.ReferenceEvaluator(proto).run(None, data[0])
    largest = np.abs(truth).max()
    own = {"float16": 4e-3, "bfloat16": 3e-2}.get(options["method"], 1e-5)
    assert np.abs(ours - truth).max() <= largest * own
    if peer_is_off is not None:
        peer = onnxruntime.InferenceSession(
            proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        assert np.abs(peer.run(None, data[0])[0] - truth).max() <= largest * peer_is_off
    assert result.report.accuracy is not None
    assert result.report.accuracy.cosine >= 0.995


def test_gptq_is_nearer_than_rounding_to_nearest() -> None:
    """Inputs that vary together let one weight make good for another."""
    mixing = normal(8, 64, seed=1)
    data = [{"x": normal(64, 8, seed=seed) @ mixing} for seed in range(2, 6)]
    model = build(
        "g (float[n, 64] x) => (float[n, 32] y) { y = MatMul(x, w) }", {"w": normal(64, 32)}
    )
    plain, by_data = (
        sx.quantize(model, data, method="weight-only", bits=4, algorithm=a).report.accuracy
        for a in ("rtn", "gptq")
    )
    assert plain is not None
    assert by_data is not None
    assert by_data.sqnr > plain.sqnr + 6


def test_float16_keeps_what_would_overflow_and_says_why() -> None:
    weights = {
        "w": normal(8, 8, seed=1),
        "large": np.array(3e4, np.float32),
        "tiny": np.array(1e-12, np.float32),
        "v": normal(8, 8, seed=2),
    }
    text = """g (float[n, 8] x) => (float[n, 8] y) {
        a = MatMul(x, w)
        b = Mul(a, large)
        c = Mul(b, b)
        d = Sqrt(c)
        e = Add(d, tiny)
        f = Div(b, e)
        y = MatMul(f, v)
    }"""
    data = [{"x": normal(4, 8, seed=seed)} for seed in range(3)]
    result = sx.quantize(build(text, weights), data, method="float16")
    (answer,) = sx.Session(result.model).run(None, data[0])
    assert np.isfinite(answer).all()
    reasons = {node.op: node.reason for node in result.report.kept}
    assert "numbers up to" in reasons["Mul"]
    assert "float16's 65504" in reasons["Sqrt"]
    assert [n.node for n in result.report.nodes if n.is_quantized] == ["MatMul '→ y'"]
    assert result.report.accuracy is not None
    assert result.report.accuracy.cosine > 0.9999


def test_few_casts_are_written() -> None:
    weights = {"w": normal(8, 8, seed=1), "v": normal(8, 8, seed=2)}
    text = "g (float[n, 8] x) => (float[n, 8] y) { a = MatMul(x, w)  b = Relu(a)  c = Tanh(b)  y = MatMul(c, v) }"
    result = sx.quantize(build(text, weights), method="float16")
    assert [node.op_type for node in result.model.graph].count("Cast") == 2
    assert result.model.graph.inputs[0].dtype == ir.DataType.FLOAT
    assert result.model.graph.outputs[0].dtype == ir.DataType.FLOAT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method"),
        ({"method": "static"}, "no calibration data"),
        ({"method": "weight-only", "bits": 3}, "bits"),
        ({"method": "weight-only", "block": 24}, "block"),
        ({"method": "weight-only", "algorithm": "gptq"}, "GPTQ needs calibration data"),
        ({"method": "dynamic", "max_drop": 0.1}, "no calibration data"),
    ],
)
def test_what_cannot_be_done_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.quantize(word_network(), **options)


def test_weights_that_are_left_alone_are_listed() -> None:
    weights = {"w": normal(1, 16, 4), "r": normal(1, 16, 4), "v": normal(4, 4)}
    text = """g (float[s, 1, 4] x) => (float[s, 1, 4] y) {
        z, last = LSTM<hidden_size=4>(x, w, r)
        axes = Constant<value_ints=[1]>()
        t = Squeeze(z, axes)
        y = MatMul(t, v)
    }"""
    report = sx.quantize(build(text, weights), method="weight-only").report
    (kept,) = report.kept
    assert kept.op == "LSTM"
    assert report.accuracy is None
    assert any("nothing was measured" in note for note in report.notes)
