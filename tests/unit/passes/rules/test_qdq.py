"""Quantized values: pairs that undo each other, operators between them, and saturation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.passes.rules.table import answers, operators, optimized, refusals, same, text

from sardonyx.model.save import to_proto

GRID = "float s = {0.1}, uint8 z = {3}, float s2 = {0.2}, uint8 z0 = {0}, int8 zi = {0}, float h = {1e38}"
GRID += ", float[4] ss = {0.1, 0.2, 0.3, 0.4}, uint8[4] zz = {1, 2, 3, 4}, uint8 most = {255}"
GRID += ", int64[2] flat = {0, -1}, int64[1] n1 = {1}, int64[1] n2 = {2}, float one = {1.0}, float zero = {0.0}"
GRID += ", float ten = {10.0}, float hundred = {100.0}"

TABLE = {
    "again": ("f = DequantizeLinear (q, s, z) y = QuantizeLinear (f, s, z) ", ["Identity"]),
    "again, each channel": (
        "f = DequantizeLinear <axis = 1> (q, ss, zz) a = QuantizeLinear <axis = -3> (f, ss, zz) y = Neg8 (a)",
        ["Transpose"],
    ),
    "other scale": (
        "f = DequantizeLinear (q, s, z) y = QuantizeLinear (f, s2, z)",
        ["DequantizeLinear", "QuantizeLinear"],
    ),
    "a step overflows": (
        "f = DequantizeLinear (q, h, z) y = QuantizeLinear (f, h, z)",
        ["DequantizeLinear", "QuantizeLinear"],
    ),
    "transpose": (
        "f = DequantizeLinear (q, s, z) a = Transpose <perm = [0, 2, 3, 1]> (f) y = QuantizeLinear (a, s, z)",
        ["Transpose"],
    ),
    "max pool": (
        "f = DequantizeLinear (q, s, z) a = MaxPool <kernel_shape = [2, 2]> (f) y = QuantizeLinear (a, s, z)",
        ["MaxPool"],
    ),
    "slice": (
        "f = DequantizeLinear (q, s, z) a = Slice (f, n1, n2, n1) y = QuantizeLinear (a, s, z)",
        ["Slice"],
    ),
    "concat": (
        "f = DequantizeLinear (q, s, z) g = DequantizeLinear (r, s, z) a = Concat <axis = 1> (f, g) "
        "y = QuantizeLinear (a, s, z)",
        ["Concat"],
    ),
    "concat of others": (
        "f = DequantizeLinear (q, s, z) g = DequantizeLinear (r, s2, z) a = Concat <axis = 1> (f, g) "
        "y = QuantizeLinear (a, s, z)",
        ["DequantizeLinear", "DequantizeLinear", "Concat", "QuantizeLinear"],
    ),
    "relu": ("a = Relu (x) y = QuantizeLinear (a, s, z0)", ["QuantizeLinear"]),
    "relu that cuts more": (
        "a = Relu (x) y = QuantizeLinear (a, s, z)",
        ["Relu", "QuantizeLinear"],
    ),
    "clip": ("a = Clip (x, zero, hundred) y = QuantizeLinear (a, s, z0)", ["QuantizeLinear"]),
    "clip that cuts more": (
        "a = Clip (x, zero, ten) y = QuantizeLinear (a, s, z0)",
        ["Clip", "QuantizeLinear"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_quantized(name: str) -> None:
    nodes, expected = TABLE[name]
    nodes = nodes.replace("Neg8 (a)", "Transpose <perm = [0, 2, 3, 1]> (a)")
    source = text(
        "(uint8[2, 4, 3, 5] q, uint8[2, 4, 3, 5] r, float[2, 4, 3, 5] x) => (uint8[P, Q, R, S] y) "
        f"<{GRID}> {{ {nodes} }}"
    )
    result = optimized(source)
    assert operators(result) == expected
    if "Relu" not in nodes and "Clip" not in nodes:  # NaN has no step of its own
        same(source, result)


@pytest.mark.parametrize("op", ["Relu (x)", "Clip (x, zero, hundred)"])
def test_saturation_is_the_same(op: str) -> None:
    source = text(
        f"(float[N] x) => (uint8[N] y) <{GRID}> {{ a = {op} y = QuantizeLinear (a, s, z0) }}"
    )
    result = optimized(source)
    assert operators(result) == ["QuantizeLinear"]
    values = [-np.inf, -1e30, -0.1, -0.04, -0.0, 0.04, 0.06, 12.7, 25.4, 25.6, 99.0, 101.0, np.inf]
    feeds = {"x": np.array(values, dtype=np.float32)}
    np.testing.assert_array_equal(
        answers(source, feeds)[0], answers(to_proto(result.model), feeds)[0]
    )


@pytest.mark.parametrize("scale", [0.1, 1e-30, 3e-5, 7.3, 1e30])
def test_every_step_comes_back(scale: float) -> None:
    """What the rule relies on: 256 steps, dequantized and quantized, are the same 256 steps."""
    for zero in (0, 128, 255):
        source = text(
            f"(uint8[256] q) => (uint8[256] y) <float s = {{{scale}}}, uint8 z = {{{zero}}}> "
            "{ f = DequantizeLinear (q, s, z) y = QuantizeLinear (f, s, z) }"
        )
        steps = np.arange(256, dtype=np.uint8)
        np.testing.assert_array_equal(answers(source, {"q": steps})[0], steps)
        assert operators(optimized(source)) == ["Identity"]


def test_weights_stay_small() -> None:
    source = text(
        f"(float[N, 4] x) => (float[N, 2] y) <{GRID}, uint8[4, 2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> "
        "{ W = DequantizeLinear (w, s, z) y = MatMul (x, W) }"
    )
    assert operators(optimized(source)) == ["DequantizeLinear", "MatMul"]


def test_reasons() -> None:
    source = text(
        f"(uint8[N, 4] q) => (uint8[N, 4] y) <{GRID}> "
        "{ f = DequantizeLinear (q, s, z) y = QuantizeLinear (f, s2, z) }"
    )
    assert refusals(optimized(source), "quantized-again") == ["the parameters differ"]
