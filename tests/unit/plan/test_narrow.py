"""Which values are stored as float16: those that a Clip bounds, and that only convolutions in float16 read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper, parser

from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.backends.c.variants import target_of
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ConvolutionKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan
from sardonyx.plan.target import Target

HERE = replace(target_of(replace(NEON, half_arithmetic=True)), precision="bfloat16")
# A block of MobileNet: wider, each channel by itself, narrower again.
BLOCK = """
  a0 = Conv(x, w32x64x1) a = Clip(a0, zero, six)
  b0 = Conv<pads = [1, 1, 1, 1], group = 64>(a, d64x3) b = Clip(b0, zero, six)
  y = Conv(b, w64x32x1)
"""


def plan_of(
    body: str = BLOCK,
    target: Target = HERE,
    outputs: str = "float[1, 32, n, n] y",
    bound: float = 6,
    weight: float = 0.1,
    opset: int = 20,
) -> Plan:
    text = f"""<ir_version: 10, opset_import: ["": {opset}]> g (float[1, 32, n, n] x) => ({outputs})
<float zero = {{0}}, float six = {{{bound}}}> {{ {body} }}"""
    proto = parser.parse_model(text)
    shapes = {
        "w32x64x1": (64, 32, 1, 1),
        "w16x64x1": (64, 16, 1, 1),
        "w64x32x1": (32, 64, 1, 1),
        "w64x8x1": (8, 64, 1, 1),
        "w64x16x1": (16, 64, 1, 1),
        "w64x64x3": (64, 64, 3, 3),
        "d64x3": (64, 1, 3, 3),
    }
    for name, shape in shapes.items():
        if name in body:
            weights = np.full(shape, weight, np.float32)
            proto.graph.initializer.append(numpy_helper.from_array(weights, name))
    model = ir.from_proto(proto)
    return make_plan(model, infer_shapes(model), None, target).plan


def narrow(plan: Plan) -> set[str]:
    """Values of the model; offsets that kernels add in float16 have no name."""
    stored = {tensor.name for tensor in plan.tensors if tensor.dtype == "f16" and tensor.shape}
    return stored - {""}


def variants(plan: Plan) -> list[str]:
    return [k.choice.variant for k in plan.kernels if isinstance(k, ConvolutionKernel)]


def test_both_values_of_a_block() -> None:
    plan = plan_of()
    assert narrow(plan) == {"a", "b"}
    assert variants(plan) == ["direct f16", "depthwise f16", "direct f16"]


def test_bounds_that_are_attributes() -> None:
    body = BLOCK.replace("Clip(a0, zero, six)", "Clip<min = 0.0, max = 6.0>(a0)").replace(
        "Clip(b0, zero, six)", "Clip<max = 6.0>(b0)"
    )
    assert narrow(plan_of(body, opset=9)) == {"a"}


@pytest.mark.parametrize("precision", ["strict", "float32", "fast"])
def test_only_bfloat16_allows_it(precision: str) -> None:
    assert not narrow(plan_of(target=replace(HERE, precision=precision)))


def test_only_a_cpu_that_multiplies_halves_has_it() -> None:
    assert not narrow(plan_of(target=replace(HERE, half_arithmetic=False)))


def test_a_bound_past_what_need_not_be_scaled() -> None:
    assert narrow(plan_of(bound=64)) == {"a", "b"}
    assert narrow(plan_of(bound=0.125)) == {"a", "b"}
    assert not narrow(plan_of(bound=65))
    assert not narrow(plan_of(bound=0.12))  # what is far below would be 0
    assert not narrow(plan_of(bound=float("inf")))
    assert not narrow(plan_of(bound=float("nan")))


def test_weights_that_float16_does_not_hold_or_whose_sums() -> None:
    # Of depthwise ones: others are scaled.
    assert narrow(plan_of(weight=600)) == {"a", "b"}
    assert narrow(plan_of(weight=700)) == {"b"}
    assert narrow(plan_of(weight=1e-3)) == {"b"}
    assert narrow(plan_of(weight=0)) == {"a", "b"}
    assert narrow(plan_of(weight=float("nan"))) == {"b"}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (BLOCK.replace("a = Clip(a0, zero, six)", "a = Relu(a0)"), {"b"}),
        (BLOCK.replace("y = Conv(b, w64x32x1)", "z = Conv(b, w64x32x1) m = ReduceMax(b) y = Add(z, m)"), {"a"}),
        # Fewer filters than pay in float16.
        (BLOCK.replace("y = Conv(b, w64x32x1)", "z = Conv(b, w64x8x1) y = Concat<axis = 1>(z, z, z, z)"), {"a"}),
        # Winograd's algorithm reads float32.
        (BLOCK.replace("y = Conv(b, w64x32x1)", "c = Conv<pads = [1, 1, 1, 1]>(b, w64x64x3) y = Conv(c, w64x32x1)"), {"a"}),
    ],
)  # fmt: skip
def test_every_reader_must_multiply_halves(body: str, found: set[str]) -> None:
    assert narrow(plan_of(body)) == found


def test_a_result_of_the_model_is_what_the_model_says() -> None:
    assert narrow(plan_of(outputs="float[1, 32, n, n] y, float[1, 64, n, n] a")) == {"b"}


def test_few_products_are_multiplied_as_halves_too() -> None:
    text = BLOCK.replace("Conv(x, w32x64x1)", "Conv(s, w16x64x1)")
    plan = plan_of("s, t = Split<axis = 1, num_outputs = 2>(x)" + text)
    assert narrow(plan) == {"a", "b"}
    assert variants(plan)[0] == "direct f16"


def test_few_filters_are_enough_where_rows_are_halves() -> None:
    text = BLOCK.replace(
        "y = Conv(b, w64x32x1)", "z = Conv(b, w64x16x1) y = Concat<axis = 1>(z, z)"
    )
    plan = plan_of(text)
    assert narrow(plan) == {"a", "b"}
    assert variants(plan) == ["direct f16", "depthwise f16", "direct f16"]
