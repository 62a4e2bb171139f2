"""When contractions are computed in float16: what the precision and the CPU allow, and where a rule expects that to pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.kernels.isa import NEON, isa_of
from sardonyx.backends.c.packings import pack_constant
from sardonyx.backends.c.variants import target_of
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.choice import choose
from sardonyx.plan.halves import halves_pay, with_halves
from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan
from sardonyx.plan.traffic import accesses
from sardonyx.sizes import Size, symbol

HERE = replace(target_of(replace(NEON, half_arithmetic=True)), precision="bfloat16")


def test_a_cpu_says_whether_it_multiplies_halves() -> None:
    assert isa_of(Cpu("one", (), frozenset({"neon", "fp16"}), 4)).half_arithmetic
    assert not isa_of(Cpu("another", (), frozenset({"neon"}), 4)).half_arithmetic
    assert not isa_of(Cpu("a third", (), frozenset({"avx512f", "avx512_fp16"}), 16)).half_arithmetic


def test_only_bfloat16_allows_it_and_only_a_cpu_that_has_it() -> None:
    plain = ("gemm", "gemv")
    assert with_halves(HERE, plain, "gemm f16", pays=True) == ("gemm f16", *plain)
    for precision in ("strict", "float32", "fast"):
        there = replace(HERE, precision=precision)
        assert with_halves(there, plain, "gemm f16", pays=True) == plain
    without = replace(HERE, half_arithmetic=False)
    assert with_halves(without, plain, "gemm f16", pays=True) == plain
    assert halves_pay(128, 768, 768)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 768, 768), (128, 8, 768), (128, 768, 24), (128, symbol("k"), 768)])  # fmt: skip
def test_where_it_may_not_pay_only_a_measurement_takes_it(rows: Size, inner: Size, columns: Size) -> None:  # fmt: skip
    pays = halves_pay(rows, inner, columns)
    found = with_halves(HERE, ("gemm", "gemv"), "gemm f16", pays=pays)
    assert found == ("gemm", "gemv", "gemm f16")
    assert choose(HERE, "p", found).why == "by rule"


def plan_of(text: str, weights: tuple[int, ...]) -> Plan:
    model = ir.from_proto(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'))
    values = np.ones(weights, np.float32)
    model.graph.register_initializer(ir.Value(name="w", const_value=ir.tensor(values)))
    for node in model.graph:
        node.replace_input_with(1, model.graph.initializers["w"])
    planned = make_plan(model, infer_shapes(model), None, HERE)
    for constant, array in zip(planned.plan.constants, planned.constants, strict=True):
        if constant.packing is not None:
            packed = pack_constant(array, constant.packing)
            plan = planned.plan
            sizes = {a.bytes for step in plan.steps for a in accesses(plan, step)}
            assert packed.nbytes in sizes, "the plan counts the bytes that are there"
    return planned.plan


def test_plans_of_a_product_and_of_convolutions() -> None:
    product = plan_of("g (float[40, 70] x, float[70, 33] v) => (float[40, 33] y) { y = MatMul(x, v) }", (70, 33))  # fmt: skip
    kernel = product.kernels[0]
    assert isinstance(kernel, ProductKernel)
    assert kernel.choice.variant == "gemm f16"
    strided = plan_of(
        "g (float[1, 32, 9, 9] x, float[80, 16, 3, 3] v) => (float[1, 80, 5, 5] y)"
        "{ y = Conv<pads=[1, 1, 1, 1], strides=[2, 2], group=2>(x, v) }",
        (80, 16, 3, 3),
    )
    found = next(k for k in strided.kernels if isinstance(k, ConvolutionKernel))
    assert found.choice.variant == "direct f16"


@pytest.mark.parametrize(("size", "variant"), [(14, "winograd f16"), (2, "direct f16")])
def test_plans_of_winograds_algorithm(size: int, variant: str) -> None:
    """Where its tiles of outputs are used; in several blocks of channels."""
    square = f"{size}, {size}"
    planned = plan_of(
        f"g (float[1, 300, {square}] x, float[40, 300, 3, 3] v) => (float[1, 40, {square}] y)"
        "{ y = Conv<pads=[1, 1, 1, 1]>(x, v) }",
        (40, 300, 3, 3),
    )
    found = next(k for k in planned.kernels if isinstance(k, ConvolutionKernel))
    assert found.choice.variant == variant
