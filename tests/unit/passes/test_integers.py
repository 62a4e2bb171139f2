"""Products between QuantizeLinear and DequantizeLinear as they are planned: signs of bytes, and steps that sums are counted in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest

import sardonyx as sx
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import infer_shapes

Array = npt.NDArray[Any]
XS, WS, YS = np.float32(0.031), np.float32(0.0173), np.float32(0.0719)


def model(
    middle: str, *, outputs: str = "uint8[2, 4] y", kind: str = "uint8", zero: int = 121
) -> ir.Model:
    """MatMul of x by constant weights, all quantized; `middle` is what comes between the product t and r."""
    w = ", ".join(str(v) for v in weights().reshape(-1))
    b = ", ".join(str(v) for v in bias())
    return sx.load(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (float[2, 3] x) => ({outputs})
        <float xs = {{{XS}}}, {kind} xz = {{{zero}}}, int8[3, 4] w = {{{w}}}, float ws = {{{WS}}}, int8 wz = {{0}},
         float[4] b = {{{b}}}, float ys = {{{YS}}}, uint8 yz = {{7}}, float low = {{-0.5}}, float high = {{2.7}}>
        {{
            xq = QuantizeLinear (x, xs, xz)
            xd = DequantizeLinear (xq, xs, xz)
            wd = DequantizeLinear (w, ws, wz)
            p = MatMul (xd, wd)
            t = Add (p, b)
            {middle}
            y = QuantizeLinear (r, ys, yz)
        }}
    """)


def weights() -> Array:
    return np.random.default_rng(1).integers(-127, 128, (3, 4)).astype(np.int8)


def bias() -> Array:
    return np.random.default_rng(2).standard_normal(4).astype(np.float32)


def prepared(given: ir.Model, unsigned: bool = False) -> list[ir.Node]:
    return list(prepare(given, infer_shapes(given), unsigned_bytes=unsigned).model.graph)


def of(nodes: list[ir.Node], op: str) -> list[ir.Node]:
    return [node for node in nodes if node.op_type == op]


def number(node: ir.Node, index: int) -> Any:
    value = node.inputs[index]
    assert value is not None
    assert value.const_value is not None
    return value.const_value.numpy().item()


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("unsigned", [False, True])
def test_bytes_have_the_sign_that_is_multiplied(kind: str, unsigned: bool) -> None:
    zero = 121 if kind == "uint8" else -7
    nodes = prepared(model("r = Relu (t)", kind=kind, zero=zero), unsigned)
    (product,) = of(nodes, "MatMulInteger")
    quantize = of(nodes, "QuantizeLinear")[0]
    wanted = zero + (0 if unsigned == (kind == "uint8") else 128 if unsigned else -128)
    assert product.inputs[0] is quantize.outputs[0]
    assert [number(one, 2) for one in (quantize, product)] == [wanted, wanted]
    held = quantize.inputs[2]
    assert held is not None
    assert held.dtype == (ir.DataType.UINT8 if unsigned else ir.DataType.INT8)


def test_bytes_that_a_caller_sees_keep_their_sign() -> None:
    nodes = prepared(model("r = Relu (t)", outputs="uint8[2, 4] y, uint8[2, 3] xq"))
    assert number(of(nodes, "QuantizeLinear")[0], 2) == 121


@pytest.mark.parametrize("middle", ["r = Relu (t)", "r = Clip (t, low, high)"])
def test_only_a_bias_of_the_product_itself_is_counted_in_steps(middle: str) -> None:
    """An Add of its own is elementwise, and rounded as the specification has it."""
    quantize = of(prepared(model(middle)), "QuantizeLinear")[1]
    assert number(quantize, 1) == YS


def gemm(middle: str, outputs: str = "uint8[2, 4] y") -> ir.Model:
    text = model(middle, outputs=outputs)
    nodes = {node.op_type: node for node in text.graph}
    product, add = nodes["MatMul"], nodes["Add"]
    twin = ir.Node("", "Gemm", [*product.inputs, add.inputs[1]])
    twin.outputs[0].name = "g"
    text.graph.insert_before(product, [twin])
    ir.convenience.replace_all_uses_with(add.outputs[0], twin.outputs[0])
    text.graph.remove([add, product], safe=True)
    return text


@pytest.mark.parametrize(
    ("middle", "low", "high"),
    [
        ("r = Relu (t)", 0.0, np.inf),
        ("r = Clip (t, low, high)", -0.5, 2.7),
        ("s = Relu (t) r = Clip (s, low, high)", 0.0, 2.7),
    ],
)
def test_what_is_rounded_at_once_is_counted_in_steps(middle: str, low: float, high: float) -> None:
    given = gemm(middle)
    assert number(of(prepared(given), "QuantizeLinear")[1], 1) == 1.0
    x = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32) * 2
    q = np.clip(np.rint(x / XS) + 121, 0, 255).astype(np.int32) - 121
    scale = np.float32(np.float64(XS) * np.float64(WS) / np.float64(YS))
    counted = (q @ weights().astype(np.int32)).astype(np.float32) * scale + bias() / YS
    kept = np.clip(counted, np.float32(low / YS), np.float32(high / YS))
    expected = np.clip(np.rint(kept) + 7, 0, 255).astype(np.uint8)
    (found,) = sx.Session(given, fallback="refuse").run(None, {"x": x})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("middle", ["r = Sigmoid (t)", "r = Mul (t, t)", "r = Clip (t, low, x0)"])
def test_what_is_more_than_a_limit_is_not(middle: str) -> None:
    before = "z = ReduceMax <keepdims = 0> (x) x0 = Identity (z) " if "x0" in middle else ""
    assert number(of(prepared(gemm(before + middle)), "QuantizeLinear")[1], 1) == YS


def test_a_float_that_a_caller_sees_is_not() -> None:
    nodes = prepared(gemm("r = Relu (t)", outputs="uint8[2, 4] y, float[2, 4] r"))
    assert number(of(nodes, "QuantizeLinear")[1], 1) == YS


@pytest.mark.parametrize(
    ("shapes", "middle", "multiplied"),
    [
        (("9, 64", "64, 5"), "w = Identity (x)", True),
        (("9, 40000", "40000, 5"), "w = Identity (x)", False),
        (("9, k", "k, 5"), "w = Identity (x)", False),
        (("9, k", "k, 5"), "w = Softmax (x)", True),
        (("4, 64", "64, 5"), "w = Identity (x)", False),
    ],
    ids=["short", "long", "of any length", "weights of any number", "few rows"],
)
def test_products_of_two_computed_values_fit_32_bits(
    shapes: tuple[str, str], middle: str, multiplied: bool
) -> None:
    given = sx.load(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (float[{shapes[0]}] x, float[{shapes[1]}] v) => (float[m, n] y)
        <float s = {{0.01}}, uint8 z = {{0}}>
        {{
            {middle}
            wq = QuantizeLinear (w, s, z)
            wd = DequantizeLinear (wq, s, z)
            vq = QuantizeLinear (v, s, z)
            vd = DequantizeLinear (vq, s, z)
            y = MatMul (wd, vd)
        }}
    """)
    assert bool(of(prepared(given), "MatMulInteger")) == multiplied
