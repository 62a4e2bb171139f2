"""What contractions are called, which kernels could compute them, and which one is taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa
from sardonyx.backends.c.variants import cut_of
from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.choice import (
    choose,
    convolution_problem,
    convolution_variants,
    expected_sizes,
    product_problem,
    product_variants,
    with_suitable_tile,
)
from sardonyx.plan.kernels import BATCH, Choice, Matrix
from sardonyx.plan.target import Target
from sardonyx.sizes import Size, symbol

TARGET = target_of(NEON)
A, B = Matrix(0, 0, 768, 1, "f32"), Matrix(1, 0, 3072, 1, "f32")
WINDOW = Window((3, 3), (2, 2), (1, 1), (1, 1), 1)


def measured(**seconds: float) -> Choice:
    """What is chosen among gemm, gemv and wide after these times."""
    timings = (("p", tuple(seconds.items())),)
    return choose(replace(TARGET, timings=timings), "p", ("gemm", "gemv", "wide"))


def test_the_fastest_is_taken_and_the_favourite_named() -> None:
    choice = measured(gemm=0.002, gemv=0.0019, wide=0.0011)
    assert (choice.variant, choice.measured) == ("wide", True)
    assert choice.why == "measured: 1.1 ms, gemm 2 ms"


def test_what_gains_less_than_three_percent_is_not_taken() -> None:
    choice = measured(gemm=1.0, gemv=0.98, wide=0.99)
    assert (choice.variant, choice.measured) == ("gemm", True)
    assert choice.why == "measured: 1e+03 ms, gemv 980 ms"
    assert measured(gemm=1.0, gemv=0.96).variant == "gemv"


@pytest.mark.parametrize(
    "seconds", [{}, {"gemm": 1.0}, {"gemv": 1.0, "wide": 0.1}, {"gemm": 1.0, "gone": 0.1}]
)
def test_a_rule_decides_where_too_little_was_measured(seconds: dict[str, float]) -> None:
    choice = measured(**seconds)
    assert (choice.variant, choice.why, choice.measured) == ("gemm", "by rule", False)


def test_problems_of_unknown_sizes_are_decided_by_rule() -> None:
    choice = choose(TARGET, None, ("gemm", "gemv"))
    assert (choice.variant, choice.measured) == ("gemm", False)
    assert "sizes" in choice.why
    assert choose(TARGET, None, ("depthwise",)).why == "the only one"


def product(rows: Size, a: Matrix = A, b: Matrix = B, **expected: int) -> str | None:
    return product_problem(1, rows, 3072, 768, a, b, packed=b is B, dtype="f32", expected=expected)


def test_a_product_says_its_sizes_and_how_its_operands_lie() -> None:
    assert product(128) == "product f32 1 of 128×768×3072, A by 768×1, B packed"
    each = Matrix(1, symbol(BATCH) * 9, 1, 768, "f32")
    assert product(128, b=each) == "product f32 1 of 128×768×3072, A by 768×1, each B by 1×768"
    half = replace(A, dtype="f16")
    assert product(128, a=half) == "product f16 in f32 1 of 128×768×3072, A by 768×1, B packed"


def test_sizes_that_only_a_run_knows_are_marked() -> None:
    rows = symbol("batch") * 64
    assert product(rows) is None
    assert product(rows, batch=2) == "product f32 1 of 128?×768×3072, A by 768×1, B packed"


def test_a_convolution_says_its_images_and_its_window() -> None:
    shape, out = (1, 64, 56, symbol("w")), (28, 28)
    assert convolution_problem(shape, 32, out, WINDOW, "f32", {}) is None
    assert convolution_problem(shape, 32, out, WINDOW, "f32", {"w": 56}) == (
        "convolution f32 1×64×56×56? → 32×28×28, kernel 3×3, strides 2×2, dilations 1×1, groups 1"
    )


def test_names_of_long_sizes_are_expected_too() -> None:
    target = replace(TARGET, sizes=(("n", 6),))
    definitions = (("size.0", symbol("n") // 2), ("size.1", symbol("size.0") + symbol("m")))
    assert expected_sizes(target, definitions) == {"n": 6, "size.0": 3}


def test_candidates_differ_from_each_other() -> None:
    assert product_variants(TARGET, "f32", 1, 64, {}) == ("gemv", "gemm")
    many = product_variants(TARGET, "f32", 128, 1024, {})
    assert many[0] == "gemm"
    assert {"gemv", "gemm by 384", "gemm by 1536"} <= set(many)
    assert not {"gemm by 384", "gemm by 1536"} & set(product_variants(TARGET, "f32", 128, 384, {}))
    assert "direct narrow" in convolution_variants(TARGET, WINDOW, 32, "f32", "f32")
    assert "direct wide" in convolution_variants(TARGET, WINDOW, 8, "f32", "f32")
    assert "direct wide" not in convolution_variants(TARGET, WINDOW, 8, "f16", "f32")
    far = convolution_variants(TARGET, WINDOW, 256, "f32", "f32")
    assert not {"direct wide", "direct narrow"} & set(far)


@pytest.mark.parametrize("isa", [NEON, AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
def test_plan_and_backend_mean_the_same_by_a_name(isa: Isa) -> None:
    target: Target = target_of(isa)
    for dtype in ("f32", "f64"):
        names = {
            *product_variants(target, dtype, 1, 9999, {}),
            *product_variants(target, dtype, 99, 9999, {}),
            *convolution_variants(target, WINDOW, 1024, dtype, dtype),
        }
        for name in names:
            tile = cut_of(name, isa, dtype).tile
            assert tile.columns == target.panel_of(name, dtype)
            vectors = tile.columns // isa.lanes_of(dtype)
            assert tile.columns % isa.lanes_of(dtype) == 0
            beside = tile.rows if isa.by_lane else 1
            assert tile.rows * vectors + vectors + beside <= isa.registers


@pytest.mark.parametrize(
    ("isa", "kernel", "columns", "cut"),
    [
        (AVX512, "gemm", 8, " 12x16"),
        (AVX512, "gemm", 32, ""),
        (AVX512, "gemm", 64, " 6x64"),
        (AVX512, "direct", 96, " 8x48"),
        (AVX512, "gemm", 768, " 8x48"),
        (AVX512, "winograd", 48, " 8x48"),
        (AVX512, "winograd", 64, ""),
        (NEON, "gemm", 8, " 8x8"),
        (NEON, "direct", 24, " 8x8"),
        (NEON, "gemm", 160, ""),
        (AVX2, "gemm", 8, ""),
        (AVX512, "gemv", 64, ""),
        (AVX512, "gemv", 10, " 12x16"),
        (AVX512, "gemv", 20, " 14x32"),
        (AVX512, "gemv", 80, ""),
    ],
)
def test_a_tile_suits_its_columns(isa: Isa, kernel: str, columns: int, cut: str) -> None:
    """The one whose panels cost least, counting what is empty of the last one."""
    others = (kernel, "gemm by 384", "other")
    chosen = with_suitable_tile(target_of(isa), others, "f32", columns)
    assert chosen[0] == kernel + cut
    assert set(others) <= set(chosen)


def test_tiles_of_columns_that_only_a_run_knows_are_the_usual_ones() -> None:
    assert with_suitable_tile(target_of(AVX512), ("gemm",), "f32", symbol("n")) == ("gemm",)


@pytest.mark.parametrize("dtype", ["i32", "f64"])
def test_types_keep_their_tile_where_no_other_was_faster(dtype: Dtype) -> None:
    assert with_suitable_tile(target_of(AVX512), ("gemm",), dtype, 768) == ("gemm",)
