"""Sizes that a model computes as it runs, by arithmetic that could be fused with whatever reads them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest

import sardonyx as sx

# Of the first size of x, 4, a number that inference cannot follow: as a scalar, l, and as a vector, v.
NUMBERS = {
    "rounded up": "n = Neg (b) d = Div (n, two) v = Neg (d) l = Squeeze (v)",
    "chosen": "g = Greater (b, two) v = Where (g, two, b) l = Squeeze (v)",
    "by floats": "f = Cast <to = 1> (b) q = Sqrt (f) e = Ceil (q) v = Cast <to = 7> (e) l = Squeeze (v)",
}
READERS = {
    "Range": "r = Range (nought, l, unit) c = Cast <to = 1> (r) y = Mul (c, c)",
    "two readers": "r = Range (nought, l, unit) u = Unsqueeze (r, one) t = Less (r, u) y = Cast <to = 1> (t)",
    "GatherND": "r = Range (nought, l, unit) u = Unsqueeze (r, one) y = GatherND (x, u)",
    "OneHot": "k = Range (nought, unit, unit) y = OneHot (k, l, pair)",
    "ConstantOfShape": "z = ConstantOfShape (v) y = Cos (z)",
    "Expand": "w = Concat <axis = 0> (v, one) z = ReduceSum <keepdims = 1> (x) y = Expand (z, w)",
    "Tile": "w = Concat <axis = 0> (v, one) y = Tile (x, w)",
    "Slice": "s = Slice (x, zero, v) y = Neg (s)",
    "TopK": "p, i = TopK <axis = 0> (x, v) y = Neg (p)",
    "Pad": "w = Concat <axis = 0> (v, zero, zero, v) p = Pad (x, w) y = Neg (p)",
}
PAIRS = [*((number, "Range") for number in NUMBERS), *(("rounded up", one) for one in READERS)]


@pytest.mark.parametrize(("number", "reader"), sorted(set(PAIRS)))
def test_a_size_is_known_before_it_is_needed(number: str, reader: str) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 18]> g (float[B, C] x) => (float y)
        <int64 nought = {{0}}, int64 unit = {{1}}, int64[1] zero = {{0}}, int64[1] one = {{1}},
         int64[1] two = {{2}}, float[2] pair = {{-1, 3}}>
        {{ b = Shape <start = 0, end = 1> (x) {NUMBERS[number]} {READERS[reader]} }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (expected,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})
    (found,) = sx.Session(proto).run(None, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.shape == expected.shape
