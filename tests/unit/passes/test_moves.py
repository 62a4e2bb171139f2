"""What is quantized behind a Transpose or a MaxPool is quantized before it: the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.passes.preparing.expand import expand
from sardonyx.passes.preparing.moves import move_bytes
from sardonyx.passes.shapes import infer_shapes

PARTS = {
    "a Transpose": "m = Transpose <perm = [0, 2, 1]> (x)",
    "a Transpose and a factor": "t = Transpose <perm = [0, 2, 1]> (x)\n m = Mul (t, c)",
    "views": "t = Reshape (x, s)\n u = Add (t, c)\n m = Transpose <perm = [0, 2, 1]> (u)",
    "a pool": "m = MaxPool <kernel_shape = [2], strides = [1], pads = [1, 0]> (x)",
    "another grid in between": """
        q = QuantizeLinear (x, c, z)
        d = DequantizeLinear (q, c, z)
        m = Transpose <perm = [0, 2, 1]> (d)""",
}


def model(middle: str, scale: float = 0.05, outputs: str = "float[2, 6, 3] y") -> ir.Model:
    return sx.load(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (float[2, 4, 6] x) => ({outputs})
        <float c = {{0.37}}, int64[3] s = {{2, 4, 6}}, float qs = {{{scale}}}, uint8 z = {{120}},
         float ws = {{0.01}}, int8 wz = {{0}}, int8[4, 3] w = {{{", ".join(map(str, range(-6, 6)))}}}, int8[6, 3] v = {{{", ".join(map(str, range(-9, 9)))}}}>
        {{
            {middle}
            b = QuantizeLinear (m, qs, z)
            f = DequantizeLinear (b, qs, z)
            e = DequantizeLinear ({"v" if "MaxPool" in middle else "w"}, ws, wz)
            y = MatMul (f, e)
        }}
    """)


def moved(given: ir.Model) -> ir.Model:
    return move_bytes(expand(given, infer_shapes(given))).model


def bytes_into_product(given: ir.Model) -> ir.Node:
    """What makes the bytes that are dequantized for the product."""
    (product,) = (node for node in given.graph if node.op_type == "MatMul")
    source = product.inputs[0]
    assert source is not None
    dequantize = source.producer()
    assert dequantize is not None
    value = dequantize.inputs[0]
    assert value is not None
    maker = value.producer()
    assert maker is not None
    return maker


def answer(given: ir.Model, x: Any) -> Any:
    return compile_model(given).run({"x": x}, [given.graph.outputs[0].name], Guard())[0]


@pytest.mark.parametrize("part", PARTS)
def test_bytes_are_moved_and_stay_what_they_are(part: str) -> None:
    outputs = "float[2, 4, 3] y" if part == "a pool" else "float[2, 6, 3] y"
    given = model(PARTS[part], outputs=outputs)
    after = moved(given)
    last = "MaxPool" if part == "a pool" else "Transpose"
    assert bytes_into_product(given).op_type == "QuantizeLinear"
    assert bytes_into_product(after).op_type == last
    x = np.random.default_rng(0).normal(0, 3, (2, 4, 6)).astype(np.float32)
    np.testing.assert_array_equal(answer(after, x), answer(given, x))
    np.testing.assert_allclose(sx.Session(given).run(None, {"x": x})[0], answer(given, x), 1e-5)


def test_what_one_grid_undoes_is_gone() -> None:
    middle = """
        q = QuantizeLinear (x, qs, z)
        d = DequantizeLinear (q, qs, z)
        m = Transpose <perm = [0, 2, 1]> (d)"""
    operators = [node.op_type for node in moved(model(middle)).graph]
    assert operators.count("QuantizeLinear") == 1
    assert operators.count("DequantizeLinear") == 2


@pytest.mark.parametrize(
    ("middle", "outputs"),
    [
        ("m = Transpose <perm = [0, 2, 1]> (x)", "float[2, 6, 3] y, float[2, 6, 4] m"),
        (
            "m = Transpose <perm = [0, 2, 1]> (x)\n r = Relu (m)",
            "float[2, 6, 3] y, float[2, 6, 4] r",
        ),
        ("t = Transpose <perm = [0, 2, 1]> (x)\n m = Relu (t)", "float[2, 6, 3] y"),
    ],
    ids=["an output", "read by another", "behind another operator"],
)
def test_what_others_read_stays(middle: str, outputs: str) -> None:
    given = model(middle, outputs=outputs)
    assert moved(given) is given


def test_a_pool_stays_before_a_factor_that_may_turn_the_order() -> None:
    middle = "t = MaxPool <kernel_shape = [2], strides = [1], pads = [1, 0]> (x)\n n = Neg (c)\n m = Mul (t, n)"
    given = model(middle, outputs="float[2, 4, 3] y")
    assert moved(given) is given
    x = np.random.default_rng(0).normal(0, 3, (2, 4, 6)).astype(np.float32)
    np.testing.assert_allclose(sx.Session(given).run(None, {"x": x})[0], answer(given, x), 1e-5)
