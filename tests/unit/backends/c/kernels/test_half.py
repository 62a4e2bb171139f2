"""Float16 arithmetic: sizes, layouts, partitions, errors, scales, special values."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, Kernel, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec, depthwise
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed
from sardonyx.backends.c.kernels.half import half_convolution, half_product
from sardonyx.backends.c.kernels.half_tile import LONG, USUAL
from sardonyx.backends.c.kernels.half_winograd import half_winograd
from sardonyx.backends.c.kernels.halves import (
    COLUMNS,
    HEAD,
    pack_half_filters,
    pack_half_points,
    pack_halves,
)
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.backends.c.kernels.packing import pack_depthwise
from sardonyx.backends.c.kernels.windows import ConvSpec, Window

Array = NDArray[np.float32]
DYNAMIC = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]"), Packed())
# The largest error, of the sum of the products' magnitudes: 2^-11 for each operand, and as much for every rounding of
# a run and of its group.
LOST = (LONG.run + LONG.runs + 2) * 2.0**-11
RANDOM = 2.0**-9  # what errors at random come to, of the root of the sum of squares

compiled = pytest.mark.skipif("fp16" not in host_cpu().features, reason="no float16 arithmetic")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """For sizes that only a run knows."""
    text = half_product("half", DYNAMIC, "store_row", NEON)
    return compile_kernel("half", text, tmp_path_factory.mktemp("half"))


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def results(kernel: Kernel, shape: tuple[int, ...], a: Array | NDArray[np.float16], packed: NDArray[np.float16], sizes: tuple[int, ...] = ()) -> Array:  # fmt: skip
    """The answer, the same to the bit in order, in reverse and on two threads."""
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        c = np.full(shape, np.nan, np.float32)
        kernel.call(order, c, a, packed, None, sizes)
        answers.append(c)
    kernel.stop()
    assert all(np.array_equal(answers[0].view(np.uint32), c.view(np.uint32)) for c in answers)
    return answers[0]


def product(kernel: Kernel, a: Array, b: Array) -> Array:
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    return results(kernel, (a.shape[0], b.shape[1]), a, pack_halves(b), sizes)


def check(c: Array, a: Array, b: Array) -> None:
    """Within the bound everywhere, and as near as chance has it on the whole."""
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(c - exact_a @ exact_b)
    magnitudes = np.abs(exact_a) @ np.abs(exact_b)
    assert (difference <= LOST * magnitudes).all()
    usual = np.sqrt(np.square(exact_a) @ np.square(exact_b))
    assert c.size < 64 or np.sqrt(np.mean(np.square(difference / usual))) <= RANDOM


def test_every_column_is_scaled_by_a_power_of_two() -> None:
    columns = numbers(5, 18) * np.float32(10.0) ** np.linspace(-38, 36, 18, dtype=np.float32)
    columns[:, 3] = 0
    largest = np.abs(columns).max(axis=0)
    packed = pack_halves(columns)
    assert packed.shape == (2, HEAD + 5 * COLUMNS)
    scales = np.ascontiguousarray(packed[:, :HEAD]).view(np.float32).reshape(-1)[:18]
    values = packed[:, HEAD:].reshape(2, 5, COLUMNS).transpose(1, 0, 2).reshape(5, -1)[:, :18]
    assert (np.frexp(scales)[0] == 0.5).all()
    assert ((largest >= 1 / 32) & (largest < 1) <= (scales == 1)).all()
    assert (np.abs(values).max(axis=0) < 1).all()
    assert not packed[1, HEAD:].reshape(5, COLUMNS)[:, 2:].any()
    restored = values.astype(np.float64) * scales
    assert (np.abs(restored - columns) <= 2.0**-11 * np.abs(columns) + 2.0**-20 * largest).all()


def test_weights_that_are_not_finite_stay_so_and_scale_nothing() -> None:
    column = np.array([[3e30], [np.inf], [-1e30], [np.nan], [-np.inf]], np.float32)
    values = pack_halves(column)[0, HEAD:].reshape(5, COLUMNS)[:, 0].astype(np.float32)
    assert np.array_equal(np.isfinite(values), np.isfinite(column[:, 0]))
    assert 0.5 <= values[0] < 1
    near = pack_halves(np.array([[0.1], [np.inf]], np.float32))
    assert near[0, :HEAD].view(np.float32)[0] != 1  # which would say that all is well
    assert values[1] == np.inf
    assert values[4] == -np.inf


@compiled
def test_sizes_that_only_a_run_knows(kernel: Kernel) -> None:
    for m in (1, 2, 5, 7, 8, 9, 31, 97):
        for n in (1, 15, 16, 17, 33, 70):
            for k in (1, 3, 8, 63, 64, 65, 130):
                a, b = numbers(m, k), numbers(k, n)
                check(product(kernel, a, b), a, b)


@compiled
def test_long_sums_in_several_blocks(kernel: Kernel) -> None:
    a, b = numbers(37, 2500), numbers(2500, 200)
    check(product(kernel, a, b), a, b)


@compiled
def test_empty_sizes_and_empty_sums(kernel: Kernel) -> None:
    for m, n, k in ((0, 5, 3), (5, 0, 3), (0, 0, 0)):
        nothing = np.zeros((m, k), np.float32)
        assert results(kernel, (m, n), nothing, np.zeros(64, np.float16), (m, n, k)).size == 0
    assert not product(kernel, np.zeros((5, 0), np.float32), np.zeros((0, 9), np.float32)).any()


@compiled
@pytest.mark.parametrize(("m", "n", "k"), [(8, 16, 64), (49, 160, 96), (70, 600, 40), (33, 40, 2100)])  # fmt: skip
def test_static_sizes_give_the_bits_of_dynamic_ones(
    m: int, n: int, k: int, kernel: Kernel, tmp_path: Path
) -> None:
    spec = GemmSpec(m, n, k, Operand(k), Packed())
    static = compile_kernel("static_half", half_product("static_half", spec, "store_row", NEON), tmp_path)  # fmt: skip
    a, b = numbers(m, k), numbers(k, n)
    answer = results(static, (m, n), a, pack_halves(b))
    check(answer, a, b)
    if k <= 1024:  # longer sums are cut evenly, where they are known
        assert np.array_equal(answer, product(kernel, a, b))


@compiled
def test_a_batch_and_a_transposed_left_operand(tmp_path: Path) -> None:
    batch, m, n, k = 3, 21, 45, 70
    spec = GemmSpec(m, n, k, Operand(1, m, f"b * {m * k}"), Packed(), batch)
    turned = compile_kernel("turned", half_product("turned", spec, "store_row", NEON), tmp_path)
    a, b = numbers(batch, k, m), numbers(k, n)
    for one, rows in zip(results(turned, (batch, m, n), a, pack_halves(b)), a, strict=True):
        check(one, np.ascontiguousarray(rows.T), b)


@compiled
def test_a_row_has_the_same_bits_wherever_it_lies_and_whatever_lies_beside_it(
    kernel: Kernel,
) -> None:
    a, b = numbers(67, 520), numbers(520, 33)
    whole = product(kernel, a, b)
    for first in (1, 40, 66):
        some = product(kernel, np.ascontiguousarray(a[first:]), b)
        assert np.array_equal(some, whole[first:])
    wild = a.copy()
    wild[::3] *= 1e20
    wild[1] = np.inf
    kept = [row for row in range(67) if row % 3 and row != 1]
    assert np.array_equal(product(kernel, wild, b)[kept], whole[kept])


@compiled
@pytest.mark.parametrize(("large", "small"), [(1, 1e-30), (1e30, 1), (1e30, 1e-30), (1e-30, 1e30), (1e15, 1e15), (1e4, 1)])  # fmt: skip
def test_scales_far_from_one(large: float, small: float, kernel: Kernel) -> None:
    a, b = numbers(19, 300) * np.float32(large), numbers(300, 40) * np.float32(small)
    check(product(kernel, a, b), a, b)


@compiled
def test_rows_and_columns_of_every_size_beside_each_other(kernel: Kernel) -> None:
    rows = np.float32(10.0) ** np.arange(-17, 18, dtype=np.float32)
    a, b = numbers(35, 70) * rows[:, None], numbers(70, 35) * rows[::-1]
    check(product(kernel, a, b), a, b)


@compiled
def test_numbers_at_the_borders_of_what_is_not_scaled(kernel: Kernel) -> None:
    depth = 2 * USUAL.products
    b = np.full((depth, 16), 1 - 2.0**-11, np.float32)  # the largest that is not scaled
    for size in (2.0**-3, 2.0**6, 2.0**-4, 2.0**7, 65504.0, 1e5, 1e-8, 1e35):
        a = np.full((8, depth), size, np.float32)
        # Equal terms are rounded the same way, over and over: the worst that can happen to a run.
        assert np.allclose(product(kernel, a, b), size * depth, rtol=1e-2, atol=0)


@compiled
def test_rows_of_zeros_and_of_subnormal_numbers(kernel: Kernel) -> None:
    a, b = numbers(9, 40), numbers(40, 16)
    a[2] = 0
    a[5] = np.float32(1e-45) * np.arange(40)
    answer = product(kernel, a, b)
    assert not answer[2].any()
    expected = (a.astype(np.float64) @ b)[5]
    assert np.abs(answer[5] - expected).max() <= 2.0**-140
    assert answer[5].any()


@compiled
def test_what_is_not_finite_is_what_float32_gives(kernel: Kernel) -> None:
    a, b = numbers(24, 100), numbers(100, 40)
    a[3, 7], a[4, 99], a[9, 0], a[9, 50] = np.inf, np.nan, np.inf, -np.inf
    a[12, 5], b[5, 20] = 0, np.inf
    b[70, 33] = np.nan
    with np.errstate(invalid="ignore"):
        expected = a @ b
    answer = product(kernel, a, b)
    assert np.array_equal(np.isnan(answer), np.isnan(expected))
    assert np.array_equal(np.isinf(answer), np.isinf(expected))
    infinite = np.isinf(expected)
    assert np.array_equal(answer[infinite], expected[infinite])
    finite = np.isfinite(expected)
    assert np.allclose(answer[finite], expected[finite], rtol=4e-2, atol=1.6e-2 * 40)


@compiled
def test_sums_too_large_for_float32_are_infinite_and_others_are_not(kernel: Kernel) -> None:
    a, b = np.full((8, 4), 3e38, np.float32), np.full((4, 16), 0.25, np.float32)
    assert np.allclose(product(kernel, a, b), 3e38, rtol=1e-3)
    assert np.isposinf(product(kernel, a, np.ones((4, 16), np.float32))).all()


def window(size: int, kernel: int, stride: int, pad: int, dilation: int = 1) -> Window:
    out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return Window((kernel,) * 2, (stride,) * 2, (dilation,) * 2, (pad,) * 2, (size,) * 2, (out,) * 2)  # fmt: skip


def patches(x: Array, where: Window, groups: int) -> Array:
    """Rows of the product: [images, groups, pixels, taps · channels]."""
    images, channels = x.shape[0], x.shape[-1]
    (kernel, _), (stride, _), (dilation, _) = where.kernel, where.strides, where.dilations
    pad, out = where.pads_begin[0], where.output[0]
    assert isinstance(out, int)
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    each = channels // groups
    rows = np.empty((images, groups, out, out, kernel, kernel, each), np.float32)
    for i in range(kernel):
        for j in range(kernel):
            top, left = i * dilation, j * dilation
            some = padded[:, top : top + stride * out : stride, left : left + stride * out : stride][:, :out, :out]  # fmt: skip
            split = some.reshape(images, out, out, groups, each)
            rows[..., i, j, :] = np.moveaxis(split, 3, 1)
    return rows.reshape(images, groups, out * out, -1)


@compiled
@pytest.mark.parametrize(
    ("channels", "filters", "groups", "where"),
    [
        (64, 40, 1, window(9, 1, 1, 0)),
        (36, 24, 1, window(11, 3, 2, 1)),
        (3, 20, 1, window(23, 7, 2, 3)),
        (48, 32, 2, window(8, 3, 1, 1)),
        (20, 33, 1, window(10, 3, 1, 2, 2)),
        (200, 16, 1, window(6, 3, 1, 1)),
    ],
)
def test_convolutions(channels: int, filters: int, groups: int, where: Window, tmp_path: Path) -> None:  # fmt: skip
    x = numbers(2, *(size for size in where.input if isinstance(size, int)), channels)
    weights = numbers(filters, channels // groups, *where.kernel)
    spec = ConvSpec(2, channels, filters, where, groups)
    text = half_convolution("half_conv", spec, "store_row", NEON)
    made = compile_kernel("half_conv", text, tmp_path)
    rows = patches(x, where, groups)
    answer = results(made, (2, rows.shape[2], filters), x, pack_half_filters(weights, groups))
    columns = weights.reshape(groups, filters // groups, channels // groups, -1).transpose(0, 3, 2, 1)  # fmt: skip
    for image in range(2):
        for group in range(groups):
            some = answer[image][:, group * filters // groups : (group + 1) * filters // groups]
            b = columns[group].reshape(-1, filters // groups)
            check(np.ascontiguousarray(some), rows[image, group], b)


STORE_HALVES = """\
static inline void store_halves(
    const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const _Float16 *sums) {
    for (int64_t i = 0; i < count; i++)
        env->c[b * env->plane + m * env->pitch + n + i] = sums[i];
}
"""


@compiled
@pytest.mark.parametrize("in_halves", [False, True])
@pytest.mark.parametrize(
    ("channels", "filters", "where"),
    [
        (64, 40, window(9, 1, 1, 0)),
        (24, 33, window(7, 3, 2, 1)),
        (10, 20, window(13, 4, 2, 1)),
        (LONG.products, 16, window(5, 1, 1, 0)),
    ],
)
def test_short_sums_stay_float16_with_the_same_bits(
    channels: int, filters: int, where: Window, in_halves: bool, tmp_path: Path
) -> None:
    x = numbers(2, *(size for size in where.input if isinstance(size, int)), channels)
    if not in_halves:
        x[0, 1, 2] *= 1000  # rows that are scaled
        x[1, 3, 3, 0] = np.inf
    given = x.astype(np.float16) if in_halves else x
    dtype = "f16" if in_halves else "f32"
    spec = ConvSpec(2, channels, filters, where, a=dtype, b=dtype, in_halves=in_halves)
    kept = STORE_HALVES + half_convolution("kept", spec, "store_row", NEON, "store_halves")
    assert "store_halves(&env" in kept
    short = compile_kernel("kept", kept, tmp_path)
    usual = compile_kernel("usual", half_convolution("usual", spec, "store_row", NEON), tmp_path)
    shape = (2, math.prod(size for size in where.output if isinstance(size, int)), filters)
    straight = numbers(filters, channels, *where.kernel) / 8
    scaled = straight * np.where(np.arange(filters) == filters - 1, np.float32(9), np.float32(1))[:, None, None, None]  # fmt: skip
    for weights in (straight, scaled):
        packed = pack_half_filters(weights, 1)
        answers = [results(made, shape, given, packed) for made in (short, usual)]
        assert np.array_equal(*answers, equal_nan=True)


@compiled
def test_longer_sums_do_not_stay_float16() -> None:
    spec = ConvSpec(2, LONG.products + 1, 16, window(5, 1, 1, 0))
    assert "store_halves" not in half_convolution("long", spec, "store_row", NEON, "store_halves")


@compiled
@pytest.mark.parametrize("size", [2.0**-3, 2.0**6, 2.0**7, 65504.0])
def test_long_sums_of_a_convolution_do_not_overflow(size: float, tmp_path: Path) -> None:
    channels = 2 * LONG.products
    spec = ConvSpec(1, channels, 16, window(3, 1, 1, 0))
    made = compile_kernel("sums", half_convolution("sums", spec, "store_row", NEON), tmp_path)
    x = np.full((1, 3, 3, channels), size, np.float32)
    weights = np.full((16, channels, 1, 1), 1 - 2.0**-11, np.float32)
    answer = results(made, (1, 9, 16), x, pack_half_filters(weights, 1))
    assert np.allclose(answer, size * channels, rtol=2e-2, atol=0)


@compiled
@pytest.mark.parametrize(
    ("channels", "filters", "where"),
    [
        (64, 40, window(9, 1, 1, 0)),
        (33, 35, window(7, 1, 2, 0)),
        (36, 24, window(11, 3, 2, 1)),
        (20, 33, window(10, 3, 1, 2, 2)),
        (1100, 32, window(5, 1, 1, 0)),
    ],
)
def test_convolutions_of_halves(channels: int, filters: int, where: Window, tmp_path: Path) -> None:
    x = numbers(2, *(size for size in where.input if isinstance(size, int)), channels)
    halves = np.clip(x, -6, 6).astype(np.float16)
    weights = numbers(filters, channels, *where.kernel)
    spec = ConvSpec(2, channels, filters, where, a="f16", b="f16", in_halves=True)
    made = compile_kernel("halves", half_convolution("halves", spec, "store_row", NEON), tmp_path)
    rows = patches(halves.astype(np.float32), where, 1)
    packed = pack_half_filters(weights, 1)
    answer = results(made, (2, rows.shape[2], filters), halves, packed)
    matrix = weights.transpose(2, 3, 1, 0).reshape(-1, filters)
    for image in range(2):
        check(answer[image], rows[image, 0], matrix)
    # The same numbers as float32 are packed to the same halves.
    wide = half_convolution("wide", ConvSpec(2, channels, filters, where), "store_row", NEON)
    floats = compile_kernel("wide", wide, tmp_path)
    same = results(floats, answer.shape, halves.astype(np.float32), packed)
    assert np.array_equal(answer, same)


@compiled
def test_halves_that_are_not_finite_stay_so(tmp_path: Path) -> None:
    where = window(5, 1, 1, 0)
    x, weights = numbers(1, 5, 5, 40).astype(np.float16), numbers(48, 40, 1, 1)
    x[0, 2, 3, 7], x[0, 4, 4, 1] = np.nan, 0
    weights[9, 1], weights[20] = np.inf, weights[20] * 1e9
    spec = ConvSpec(1, 40, 48, where, a="f16", b="f16", in_halves=True)
    made = compile_kernel("wild", half_convolution("wild", spec, "store_row", NEON), tmp_path)
    answer = results(made, (1, 25, 48), x, pack_half_filters(weights, 1))[0]
    with np.errstate(invalid="ignore"):
        expected = x.reshape(25, 40).astype(np.float32) @ weights.reshape(48, 40).T
    assert np.array_equal(np.isnan(answer), np.isnan(expected))
    infinite = np.isinf(expected)
    assert np.array_equal(answer[infinite], expected[infinite])
    kept = np.isfinite(expected)
    expected[~kept] = answer[~kept] = 0
    limit = 1.6e-2 * np.abs(expected).max(axis=0)
    assert (np.abs(answer - expected) <= limit).all()


@compiled
@pytest.mark.parametrize("channels", [8, 16, 19, 33, 520])
@pytest.mark.parametrize(
    "where", [window(11, 3, 1, 1), window(12, 3, 2, 1), window(9, 5, 1, 2), window(3, 3, 1, 1)]
)
def test_depthwise_convolutions(channels: int, where: Window, tmp_path: Path) -> None:
    x = numbers(2, *(size for size in where.input if isinstance(size, int)), channels)
    halves, weights = x.astype(np.float16), numbers(channels, 1, *where.kernel).astype(np.float16)
    halves[1, 0, 1, 3] = np.nan
    spec = DepthwiseSpec(2, channels, where, a="f16", b="f16", in_halves=True)
    made = compile_kernel("alone", depthwise("alone", spec, "store_row", NEON), tmp_path)
    rows = patches(halves.astype(np.float32), where, channels).astype(np.float64)
    taps = weights.reshape(channels, -1).astype(np.float64)
    answer = results(made, (2, rows.shape[2], channels), halves, pack_depthwise(weights))
    expected = np.einsum("icpt,ct->ipc", rows, taps)
    magnitudes = np.einsum("icpt,ct->ipc", np.abs(rows), np.abs(taps))
    assert np.array_equal(np.isnan(answer), np.isnan(expected))
    known = np.isfinite(expected)
    lost = taps.shape[1] * 2.0**-11
    assert (np.abs(answer - expected) <= lost * magnitudes)[known].all()


def transformed(x: Array, weights: Array, pad: int, folder: Path) -> Array:
    """By Winograd's algorithm: [images, height, width, filters]."""
    where = window(x.shape[1], 3, 1, pad)
    spec = ConvSpec(len(x), x.shape[-1], len(weights), where)
    made = compile_kernel("points", half_winograd("points", spec, "store_row", NEON), folder)
    rows = where.output[0]
    assert isinstance(rows, int)
    answer = results(made, (len(x), rows * rows, len(weights)), x, pack_half_points(weights))
    return answer.reshape(len(x), rows, rows, -1)


def plainly(x: Array, weights: Array, pad: int) -> NDArray[np.float64]:
    where = window(x.shape[1], 3, 1, pad)
    matrix = weights.transpose(2, 3, 1, 0).reshape(-1, len(weights)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = patches(x, where, 1)[:, 0].astype(np.float64) @ matrix
    rows = where.output[0]
    assert isinstance(rows, int)
    return found.reshape(len(x), rows, rows, -1)


@compiled
@pytest.mark.parametrize(
    ("size", "channels", "filters", "pad"),
    [
        (8, 64, 64, 1),
        (7, 20, 17, 1),
        (5, 200, 300, 0),
        (13, 16, 40, 1),
        (3, 70, 16, 0),
        (4, 511, 16, 1),  # of which 319 are a block, the most there are
        (6, 600, 20, 1),
    ],
)
def test_winograds_algorithm(
    size: int, channels: int, filters: int, pad: int, tmp_path: Path
) -> None:
    x, weights = numbers(2, size, size, channels), numbers(filters, channels, 3, 3)
    exact = plainly(x, weights, pad)
    difference = np.abs(transformed(x, weights, pad, tmp_path) - exact)
    assert difference.max() <= 1.6e-2 * np.abs(exact).max()
    # A run of 64 products and a transform, both in float16, lose 2.1e-3 to 4.5e-3 here (`docs/numerics.md`).
    assert np.sqrt(np.mean(difference**2)) <= 4.6e-3 * np.sqrt(np.mean(exact**2))


@compiled
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_gcc_compiles_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_CC", "gcc")
    x, weights = numbers(1, 6, 6, 300), numbers(20, 300, 3, 3)
    exact = plainly(x, weights, 1)
    difference = np.abs(transformed(x, weights, 1, tmp_path) - exact)
    assert difference.max() <= 1.6e-2 * np.abs(exact).max()
    spec = ConvSpec(1, 64, 33, window(5, 1, 1, 0))
    text = half_convolution("kept", spec, "store_row", NEON, "store_halves")
    compile_kernel("kept", STORE_HALVES + text, tmp_path)


@compiled
def test_small_products_beside_a_large_number(tmp_path: Path) -> None:
    """Rows and columns that are not scaled, and products that are denormal numbers of float16."""
    x, weights = numbers(1, 5, 5, 128) * np.float32(1e-3), numbers(16, 128, 1, 1)
    weights *= np.float32(0.03) / np.abs(weights).max()
    x[..., 0], weights[:, 0] = 0.125, 0
    spec = ConvSpec(1, 128, 16, window(5, 1, 1, 0))
    made = compile_kernel("small", half_convolution("small", spec, "store_row", NEON), tmp_path)
    answer = results(made, (1, 25, 16), x, pack_half_filters(weights, 1))[0]
    check(answer, x.reshape(25, 128), weights.reshape(16, 128).T)


@compiled
def test_winograds_outputs_that_float16_does_not_hold(tmp_path: Path) -> None:
    x = np.full((1, 6, 6, 256), 30, np.float32)
    weights = np.full((16, 256, 3, 3), 0.98, np.float32)
    exact = plainly(x, weights, 1)
    answer = transformed(x, weights, 1, tmp_path)
    assert exact.max() > 65504 > exact.min()
    assert np.abs(answer - exact).max() <= 1.6e-2 * exact.max()


@compiled
def test_what_is_scaled_changes_no_other_tile(tmp_path: Path) -> None:
    x, weights = numbers(1, 8, 16, 32)[:, :, :8], numbers(32, 32, 3, 3)
    before = transformed(np.ascontiguousarray(x), weights, 1, tmp_path)
    far = x.copy()
    far[0, 7, 7] *= 1e6
    after = transformed(far, weights, 1, tmp_path)
    assert np.array_equal(before[:, :6, :4], after[:, :6, :4])
    exact = plainly(far, weights, 1)
    assert np.abs(after - exact).max() <= 1.6e-2 * np.abs(exact).max()


@compiled
@pytest.mark.parametrize("channels", [32, 300])
@pytest.mark.parametrize(("large", "small"), [(1e-30, 1), (1e20, 1e-30), (1e4, 1e4)])
def test_winograds_algorithm_far_from_one(large: float, small: float, channels: int, tmp_path: Path) -> None:  # fmt: skip
    x = numbers(1, 6, 6, channels) * np.float32(large)
    weights = numbers(32, channels, 3, 3) * np.float32(small)
    exact = plainly(x, weights, 1)
    difference = np.abs(transformed(x, weights, 1, tmp_path) - exact)
    assert difference.max() <= 1.6e-2 * np.abs(exact).max()


@compiled
def test_winograds_algorithm_keeps_what_is_not_finite_where_it_is(tmp_path: Path) -> None:
    x, weights = numbers(1, 10, 10, 32), numbers(33, 32, 3, 3)
    x[0, 2, 3, 5], x[0, 8, 8, 31] = np.inf, np.nan
    weights[20, 3, 1, 1] = -np.inf
    expected, answer = plainly(x, weights, 1), transformed(x, weights, 1, tmp_path)
    assert np.array_equal(np.isnan(answer), np.isnan(expected))
    infinite, finite = np.isinf(expected), np.isfinite(expected)
    assert np.array_equal(answer[infinite], expected[infinite])
    assert (
        np.abs(answer[finite] - expected[finite]).max() <= 1.6e-2 * np.abs(expected[finite]).max()
    )


@compiled
@pytest.mark.parametrize("function", ["erf", "sigmoid"])
def test_functions_behind_such_sums(function: str, tmp_path: Path) -> None:
    text = f"""\
static void each(sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    for (int64_t i = 0; i < n[0]; i++)
        env->c[i] = sx_{function}_f32(((const float *)a)[i]);
}}
"""
    made = compile_kernel("each", f'#define SX_COARSE\n#include "scalar.h"\n{text}', tmp_path)
    x = np.concatenate(
        [
            np.linspace(-6, 6, 4001),
            np.linspace(-86, 200, 999),
            [0.0, -0.0, 1e30, -np.inf, np.inf, np.nan],
        ]
    )
    x = x.astype(np.float32)[None]
    found = np.empty_like(x)
    made.call(IN_ORDER, found, x, x, None, (x.size,))
    assert np.isnan(found[0, -1])
    if function == "erf":
        exact = np.array([math.erf(value) for value in x[0, :-1]])
        assert np.abs(found[0, :-1] - exact).max() <= 2e-6
        assert np.array_equal(np.signbit(found), np.signbit(x))
    else:
        with np.errstate(over="ignore"):
            exact = 1 / (1 + np.exp(-x[0, :-1].astype(np.float64)))
        assert (np.abs(found[0, :-1] - exact) <= 2.0**-13 * exact).all()


def test_whether_scales_are_taken_off_is_asked_by_no_other_name() -> None:
    """What finds pixels in line stands in the same loop."""
    spec = ConvSpec(1, 16, 16, window(18, 3, 1, 0))
    text = half_convolution("kept", spec, "store_row", NEON, "store_halves")
    assert "in_line = " in text
    assert set(re.findall(r"\bstraight = (\w+)", text)) == {"1", "kept_is_straight"}
