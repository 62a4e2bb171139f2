"""Smoothing, equalisation and bias correction: the same function before rounding, and a nearer one after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from tests.unit.quantization.models import build, normal, word_network, words

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.passes.shapes import infer_shapes
from sardonyx.quantization.equalization import equalize
from sardonyx.quantization.targets import find_targets

WORDS = [words(seed) for seed in range(4)]


def uneven_words() -> ir.Model:
    """Some channels of the normalisation are fifty times larger than the others, as in large language models."""
    model = word_network()
    gain = model.graph.initializers["gain"].const_value.numpy().copy()  # type: ignore[union-attr]
    gain[:4] *= 50
    model.graph.initializers["gain"].const_value = ir.tensor(gain, name="gain")
    return model


def uneven_convolutions() -> ir.Model:
    sizes = np.logspace(-2, 1, 8).astype(np.float32)
    weights = {
        "w": normal(8, 3, 3, 3, seed=1) * sizes[:, None, None, None],
        "b": normal(8, seed=2) * sizes,
        "d": normal(8, 1, 3, 3, seed=3),
        "e": normal(8, seed=4),
        "v": normal(4, 8, 1, 1, seed=5) / sizes[:, None, None],
    }
    text = """net (float[batch, 3, 8, 8] x) => (float[batch, 4, 4, 4] y) {
        a = Conv(x, w, b)
        r = Relu(a)
        c = Conv<group=8>(r, d, e)
        s = Relu(c)
        y = Conv(s, v)
    }"""
    return build(text, weights)


def accuracy(model: ir.Model, data: Any, **options: Any) -> float:
    found = sx.quantize(model, data, **options).report.accuracy
    assert found is not None
    return found.sqnr


def test_smoothing_helps_where_channels_differ() -> None:
    plain = accuracy(uneven_words(), WORDS)
    result = sx.quantize(uneven_words(), WORDS, smooth=0.5)
    assert result.report.accuracy is not None
    assert result.report.accuracy.sqnr > plain + 3
    # What the normalisation makes it divides itself; nothing is added for it.
    ops = [node.op_type for node in result.model.graph]
    assert ops.count("Mul") == 2  # behind Relu, and before the last product


def test_equalisation_is_the_same_function_and_rounds_better() -> None:
    model = uneven_convolutions()
    data = [{"x": normal(2, 3, 8, 8, seed=seed)} for seed in range(6, 9)]
    even = equalize(model, find_targets(model, infer_shapes(model), lambda node: "").targets)
    (before,), (after,) = (sx.Session(one).run(None, data[0]) for one in (model, even))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4 * np.abs(before).max())
    plain = accuracy(model, data, per_channel=False)
    assert accuracy(model, data, per_channel=False, equalize=True) > plain + 10


def test_corrected_biases_take_back_the_mean_of_the_error() -> None:
    weights = {"w": normal(16, 12, 3, 3, seed=1), "b": normal(16, seed=2)}
    text = "g (float[n, 12, 8, 8] x) => (float[n, 16, 6, 6] y) { y = Conv(x, w, b) }"
    model = build(text, weights)
    data = [{"x": np.abs(normal(4, 12, 8, 8, seed=seed))} for seed in range(3, 6)]
    (truth,) = sx.Session(model).run(None, data[0])
    off = []
    for correct in (False, True):
        result = sx.quantize(model, data, per_channel=False, correct_bias=correct)
        (found,) = sx.Session(result.model).run(None, data[0])
        off.append(np.abs((found - truth).mean(axis=(0, 2, 3))).mean())
    assert off[1] < off[0] / 2


def test_awq_is_nearer_than_rounding_to_nearest() -> None:
    text = "g (float[n, 64] x) => (float[n, 32] y) { a = Relu(x)  y = MatMul(a, w) }"
    model = build(text, {"w": normal(64, 32, seed=1)})
    sizes = np.where(np.arange(64) % 16 == 0, 30.0, 1.0).astype(np.float32)
    data = [{"x": normal(32, 64, seed=seed) * sizes} for seed in range(2, 5)]
    options = {"method": "weight-only", "bits": 4}
    plain = accuracy(model, data, **options)
    assert accuracy(model, data, algorithm="awq", **options) > plain + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [({"smooth": 2.0}, "smooth"), ({"method": "weight-only", "algorithm": "awq"}, "AWQ needs")],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.quantize(word_network(), **options)
