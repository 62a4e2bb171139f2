"""When products go through AMX tiles: what the precision allows, and where a rule expects that to pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sardonyx.backends.c.kernels.amx import VARIANTS, parts_of
from sardonyx.backends.c.kernels.digit_tiles import pack_digits
from sardonyx.backends.c.kernels.planes import pack_tiles
from sardonyx.backends.c.kernels.tiles import PAIRS, planes_of
from sardonyx.plan.amx import (
    amx_attention,
    amx_attention_elements,
    amx_pays,
    amx_variants,
    amx_weights,
    depth_of,
    parts_beforehand,
    runs_of,
    whole_steps,
    with_byte_tiles,
)
from sardonyx.plan.choice import choose, product_variants, with_amx, with_half_weights
from sardonyx.plan.target import Target
from sardonyx.sizes import Size, symbol

PANELS = (("f32", 32), ("f64", 16))


def target(precision: str, *, amx: bool = True) -> Target:
    return Target("avx512", PANELS, PANELS, 4, precision=precision, amx=amx)


def variants(precision: str, rows: Size = 128, columns: Size = 768, inner: Size = 768, *, amx: bool = True) -> tuple[str, ...]:  # fmt: skip
    here = target(precision, amx=amx)
    return with_amx(here, product_variants(here, "f32", rows, inner, {}), rows, inner, columns)


@pytest.mark.parametrize(
    ("precision", "by_rule", "by_measurement"),
    [
        ("strict", (), ()),
        ("float32", (), ("amx10", "amx6")),
        ("fast", ("amx3",), ("amx10", "amx6")),
        ("bfloat16", ("amx1", "amx3"), ("amx10", "amx6")),
    ],
)
def test_a_precision_allows_what_keeps_it(
    precision: str, by_rule: tuple[str, ...], by_measurement: tuple[str, ...]
) -> None:
    assert amx_variants(target(precision)) == (*by_rule, *by_measurement)
    assert amx_variants(target(precision, amx=False)) == ()
    assert variants(precision) == (*by_rule, "gemm", "gemv", *by_measurement)
    assert variants(precision, amx=False) == ("gemm", "gemv")


@pytest.mark.parametrize(
    ("rows", "columns", "inner"), [(8, 768, 768), (128, 32, 768), (128, 768, 8), (symbol("n"), 768, 768)]
)  # fmt: skip
def test_where_it_may_not_pay_only_a_measurement_takes_it(
    rows: Size, columns: Size, inner: Size
) -> None:
    found = variants("fast", rows, columns, inner)
    assert found == ("gemm", "gemv", "amx3", "amx10", "amx6")
    problem = "product"
    assert choose(target("fast"), problem, found).variant == "gemm"
    measured = Target(
        "avx512", PANELS, PANELS, 4, amx=True, timings=((problem, (("gemm", 2.0), ("amx6", 1.0))),)
    )  # fmt: skip
    assert choose(measured, problem, found).variant == "amx6"


def test_few_rows_are_split_beforehand_where_that_is_worth_waiting_for() -> None:
    assert parts_beforehand("amx3", 1, 100, 768, 768) == 128 * 768 * 2
    assert parts_beforehand("amx1", 2, 49, 520, 2048) == 2 * 64 * 544
    assert parts_beforehand("amx10", 1, 49, 520, 2048) == 2 * (64 + 9 * 4096)
    assert parts_beforehand("gemm", 1, 128, 768, 768) is None
    assert parts_beforehand("amx3", 1, 128, 64, 64) is None
    assert parts_beforehand("amx3", 1, 1500, 768, 768) is None
    assert parts_beforehand("amx6", 1, 512, 30000, 768) is None
    unknown: list[tuple[Size, Size, Size, Size]] = [(symbol("n"), 128, 768, 768), (1, symbol("n"), 768, 768), (1, 128, symbol("n"), 768)]  # fmt: skip
    for sizes in unknown:
        assert parts_beforehand("amx3", *sizes) is None


def test_a_run_of_k_is_a_line_where_channels_fill_no_steps() -> None:
    assert runs_of((3, 3), (1, 1), 64, 32) == 9
    assert runs_of((3, 3), (1, 1), 24, 32) == 3
    assert runs_of((3, 3), (1, 2), 24, 32) == 9
    assert runs_of((3,), (1,), 80, 32) == 1
    assert runs_of((3, 3), (1, 1), 96, depth_of("amx6")) == 9
    assert runs_of((3, 3), (1, 1), 96, depth_of("amx10")) == 3
    assert whole_steps(7 * 7 * 3, 7, 32) == 7 * 32
    assert whole_steps(9 * 24, 3, 32) == 3 * 96
    assert whole_steps(9 * 96, 3, 64) == 3 * 320


@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (64, 32), (65, 33), (600, 40)])
def test_packed_weights_take_what_the_plan_counts(inner: int, columns: int) -> None:
    w = np.ones((inner, columns), np.float32)
    assert pack_digits(w).nbytes == 2 * amx_weights("amx10", inner, columns)  # type: ignore[operator]
    for variant in PAIRS:
        assert pack_tiles(w, planes_of(variant)).nbytes == 2 * amx_weights(variant, inner, columns)  # type: ignore[operator]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_plan_knows_the_sizes_of_the_kernels_parts(variant: str) -> None:
    parts = parts_of(variant)
    assert depth_of(variant) == parts.depth
    elements = 2 * (parts.strip_head + 12 * parts.step)
    assert parts_beforehand(variant, 1, 49, 12 * parts.depth, 2048) == elements


def test_what_winograds_way_saves_tiles_must_save_too() -> None:
    assert amx_pays("amx3", "direct", 3136, 576, 64)
    assert not amx_pays("amx3", "winograd", 3136, 576, 64)
    assert amx_pays("amx3", "winograd", 196, 2304, 256)


def test_sizes_of_the_weights_that_only_a_run_knows_rule_it_out() -> None:
    assert variants("float32", columns=symbol("n")) == ("gemm", "gemv")
    assert variants("float32", inner=symbol("n")) == ("gemm", "gemv")


def test_few_rows_stay_with_the_kernel_that_reads_each_weight_once() -> None:
    assert variants("float32", rows=1) == ("gemv", "gemm")


def test_few_rows_read_weights_in_bfloat16_where_that_is_allowed() -> None:
    for precision in ("strict", "float32", "fast"):
        assert with_half_weights(target(precision), ("gemv", "gemm"), 1) == ("gemv", "gemm")
    here = target("bfloat16", amx=False)
    assert with_half_weights(here, ("gemv", "gemm"), 1) == ("gemv bf16", "gemv", "gemm")
    assert with_half_weights(here, ("gemm", "gemv"), 128) == ("gemm", "gemv", "gemm bf16")
    assert choose(here, "p", ("gemm", "gemm bf16")).why == "by rule"


def test_fewer_products_pay_for_fewer_columns() -> None:
    least = {
        name: min(n for n in range(16, 1024, 16) if amx_pays(name, "gemm", 128, 768, n))
        for name in ("amx3", "amx1")
    }
    assert 16 < least["amx1"] <= least["amx3"] < 128


def test_a_plan_says_where_a_lower_precision_has_no_kernel() -> None:
    for precision in ("fast", "bfloat16"):
        choice = choose(target(precision, amx=False), "p", variants(precision, amx=False))
        assert choice.why == f"by rule, as float32: no kernel for {precision} here"
        assert choose(target(precision), "p", variants(precision)).why == "by rule"
    for precision in ("strict", "float32"):
        assert choose(target(precision, amx=False), "p", ("gemm", "gemv")).why == "by rule"


@pytest.mark.parametrize(
    ("rows", "run", "columns", "first"),
    [(128, 768, 64, True), (8, 768, 64, False), (128, 32, 64, False), (128, 768, 16, False)],
)
def test_bytes_go_through_tiles_where_they_fill_them(
    rows: int, run: int, columns: int, first: bool
) -> None:
    here = replace(target("strict"), unsigned_bytes=True)
    found = with_byte_tiles(here, ("direct", "direct by 384"), rows, run, columns)
    assert sorted(found) == ["direct", "direct amx", "direct by 384"]
    assert (found[0] == "direct amx") == first
    for other in (replace(here, amx=False), replace(here, unsigned_bytes=False)):
        assert with_byte_tiles(other, ("direct",), rows, run, columns) == ("direct",)
    assert with_byte_tiles(here, ("depthwise",), rows, run, columns) == ("depthwise",)
    assert with_byte_tiles(here, ("gemv", "gemm"), rows, run, columns) == ("gemv", "gemm")


@pytest.mark.parametrize(
    ("precision", "variant"),
    [("strict", None), ("float32", None), ("fast", "amx3"), ("bfloat16", "amx1")],
)
def test_an_attention_goes_through_tiles_where_less_than_float32_is_allowed(
    precision: str, variant: str | None
) -> None:
    assert amx_attention(target(precision), 197, 197, 64, 64) == variant
    assert amx_attention(target(precision), 197, symbol("n"), 64, 64) == variant
    assert amx_attention(target(precision, amx=False), 197, 197, 64, 64) is None


@pytest.mark.parametrize(
    ("rows", "keys", "size", "width"),
    [(symbol("n"), 197, 64, 64), (31, 197, 64, 64), (197, 31, 64, 64), (197, 197, 15, 64), (197, 197, 64, 15)],
)  # fmt: skip
def test_few_queries_keys_or_columns_do_not(rows: Size, keys: Size, size: int, width: int) -> None:
    assert amx_attention(target("bfloat16"), rows, keys, size, width) is None


def test_packed_keys_and_values_fill_whole_tiles_with_a_mark_for_every_panel() -> None:
    assert amx_attention_elements("amx1", 33, 64, 20) == (2 * 2 * 1024, 2 * (1024 + 1))
    assert amx_attention_elements("amx3", 32, 33, 64) == (2 * 2048, 2 * 2048 + 1)
