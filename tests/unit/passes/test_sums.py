"""Sums of dequantized bytes, counted in steps of the bytes that they are rounded to."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import sardonyx as sx
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import infer_shapes

S, A, B = np.float32(0.037), np.float32(0.0291), np.float32(0.0173)


def model(middle: str, outputs: str = "uint8[2, 64] y") -> ir.Model:
    """A quantized product and bytes are added; `middle` makes r of the sum t."""
    w = ", ".join(str(v) for v in weights().reshape(-1))
    return sx.load(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (uint8[2, 8] x, uint8[2, 64] z) => ({outputs})
        <float a = {{{A}}}, uint8 az = {{100}}, float b = {{{B}}}, uint8 bz = {{3}}, float s = {{{S}}}, uint8 sz = {{7}},
         int8[8, 64] w = {{{w}}}, float ws = {{0.0103}}, int8 wz = {{0}}, float low = {{-0.1}}, float high = {{2.0}}>
        {{
            xd = DequantizeLinear (x, a, az)
            wd = DequantizeLinear (w, ws, wz)
            p = MatMul (xd, wd)
            pq = QuantizeLinear (p, a, az)
            pd = DequantizeLinear (pq, a, az)
            zd = DequantizeLinear (z, b, bz)
            t = Add (pd, zd)
            {middle}
            y = QuantizeLinear (r, s, sz)
        }}
    """)


def weights() -> Any:
    return np.random.default_rng(1).integers(-127, 128, (8, 64)).astype(np.int8)


def scales(given: ir.Model, op: str) -> list[float]:
    nodes = prepare(given, infer_shapes(given)).model.graph
    found = [node.inputs[1] for node in nodes if node.op_type == op]
    return [one.const_value.numpy().item() for one in found if one is not None and one.const_value]


@pytest.mark.parametrize(
    ("middle", "low", "high"),
    [("r = Relu (t)", 0.0, np.inf), ("s1 = Relu (t) r = Clip (s1, low, high)", 0.0, 2.0)],
)
def test_the_bytes_of_a_sum(middle: str, low: float, high: float) -> None:
    given = model(middle)
    assert scales(given, "QuantizeLinear") == [1.0, 1.0]
    assert np.float32(A / S) in scales(given, "DequantizeLinear")
    rng = np.random.default_rng(2)
    x, z = (rng.integers(0, 256, (2, n)).astype(np.uint8) for n in (8, 64))
    sums = (x.astype(np.int64) - 100) @ weights().astype(np.int64)
    p = np.clip(np.rint(sums * 0.0103), -100, 155)
    exact = np.clip(p * np.float64(A) + (z.astype(np.float64) - 3) * np.float64(B), low, high)
    expected = np.clip(np.rint(exact / np.float64(S)) + 7, 0, 255).astype(np.uint8)
    (found,) = sx.Session(given, fallback="refuse").run(None, {"x": x, "z": z})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("middle", "outputs"),
    [("r = Sigmoid (t)", "uint8[2, 64] y"), ("r = Relu (t)", "uint8[2, 64] y, float[2, 64] t")],
)
def test_what_is_not_rounded_at_once_is_a_float(middle: str, outputs: str) -> None:
    assert S in np.float32(scales(model(middle, outputs), "QuantizeLinear"))


def test_a_value_that_others_read_keeps_its_scale() -> None:
    both = model("r = Relu (t)", "uint8[2, 64] y, float[2, 64] zd")
    assert {float(np.float32(B / S)), float(B)} <= set(scales(both, "DequantizeLinear"))
