"""Float32 as digits, on tiles in plain C: the digits themselves, and the sums that ten of sixteen products are no good for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, Kernel, compile_kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.amx import amx
from sardonyx.backends.c.kernels.digit_tiles import DIGITS, pack_digits
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed

Array = NDArray[np.float32]
EMULATION = (Path(__file__).parent / "emulated_tiles.h").read_text(encoding="utf-8")
SPEC = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]"), Packed())
SIZES = st.tuples(st.integers(1, 40), st.integers(1, 150), st.integers(1, 70))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    text = EMULATION + amx("digits", SPEC, "store_row", "amx10")
    return compile_kernel("digits", text, tmp_path_factory.mktemp("digits"))


def product(kernel: Kernel, a: Array, b: Array) -> Array:
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    c = np.full(sizes[:2], np.nan, np.float32)
    kernel.call(IN_ORDER, c, np.ascontiguousarray(a), pack_digits(b), None, sizes)
    return c


def unpacked(packed: NDArray[np.uint8], inner: int, columns: int) -> tuple[NDArray[np.float64], ...]:  # fmt: skip
    """The numbers as they are multiplied and with their factors, scales, and least sums."""
    steps, panels = -(-inner // 64), -(-columns // 32)
    factors = packed[: steps * 256].view(np.float32)
    rest = packed[steps * 256 :][: panels * (256 + steps * 8192)].reshape(panels, -1)
    heads = np.ascontiguousarray(rest[:, :256]).view(np.float32).reshape(panels, 2, 32)
    digits = rest[:, 256:].reshape(panels, steps, DIGITS, 2, 4, 4, 16, 4).view(np.int8)
    weights = 256.0 ** np.arange(DIGITS).reshape(1, 1, DIGITS, 1, 1, 1, 1, 1)
    numbers = (
        (digits * weights).sum(axis=2).transpose(1, 4, 3, 6, 0, 2, 5)
    )  # a step's quads are turned
    numbers = numbers.reshape(steps * 64, panels * 32)[:inner, :columns]
    scales, least = (heads[:, i].reshape(-1)[:columns].astype(np.float64) for i in (0, 1))
    return numbers, numbers * 2.0**-24 * scales * factors[:inner, None], scales, least


def drawn(seed: int, *shape: int, spread: float = 1.0) -> Array:
    """Numbers of many magnitudes, some of them 0."""
    random = np.random.default_rng(seed)
    found = random.standard_normal(shape) * np.exp(spread * random.standard_normal(shape))
    return (found * (random.random(shape) < 0.9)).astype(np.float32)


@given(st.integers(1, 150), st.integers(1, 70), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 8.0]))  # fmt: skip
def test_digits_are_the_number(inner: int, columns: int, seed: int, spread: float) -> None:
    w = drawn(seed, inner, columns, spread=spread)
    packed = pack_digits(w)
    integers, numbers, scales, least = unpacked(packed, inner, columns)
    wide = w.astype(np.float64)
    of_columns = 2.0 ** np.frexp(np.abs(wide).max(axis=0, initial=0))[1]
    factors = 2.0 ** np.frexp(np.abs(wide / of_columns).max(axis=1, initial=0))[1]
    evened = np.abs(wide / factors[:, None]).max(axis=0, initial=0)
    assert np.all(np.abs(numbers - wide) <= 2.0**-30 * evened * factors[:, None])
    assert np.array_equal(least > 0, np.any(w != 0, axis=0))
    plain = packed[-columns * -(-inner // 64) * 256 :].view(np.float32).reshape(columns, -1)
    assert np.array_equal(plain[:, :inner], w.T)
    assert not plain[:, inner:].any()
    assert np.all(np.abs(integers).max(axis=0, initial=0) <= 2.0**30)
    assert np.all(scales > 0)


def test_columns_with_special_numbers_are_marked() -> None:
    w = drawn(3, 70, 40)
    w[5, 7], w[69, 39], w[0, 0] = np.inf, np.nan, -np.inf
    _, _, scales, _ = unpacked(pack_digits(w), 70, 40)
    assert np.flatnonzero(np.isnan(scales)).tolist() == [0, 7, 39]


@settings(deadline=None)
@given(SIZES, st.integers(1, 4000), st.integers(0, 2**32 - 1))
def test_products_of_integers_are_exact(
    kernel: Kernel, sizes: tuple[int, int, int], most: int, seed: int
) -> None:
    """As long as float32 has room for the sums."""
    m, k, n = sizes
    random, least = np.random.default_rng(seed), max(1, (1 << 24) // (most * k))
    a = random.integers(-most, most + 1, (m, k)).astype(np.float32)
    b = random.integers(-min(least, 100), min(least, 100) + 1, (k, n)).astype(np.float32)
    assert np.array_equal(product(kernel, a, b), a @ b)


@settings(deadline=None)
@given(SIZES, st.integers(-60, 60), st.integers(-30, 30), st.integers(0, 2**32 - 1))
def test_powers_of_two_pass_through(
    kernel: Kernel, sizes: tuple[int, int, int], rows: int, columns: int, seed: int
) -> None:
    m, k, n = sizes
    a, b = drawn(seed, m, k), drawn(seed + 1, k, n)
    usual = product(kernel, a, b)
    moved = product(kernel, a * np.float32(2.0**rows), b * np.float32(2.0**columns))
    assert np.array_equal(moved, usual * np.float32(2.0 ** (rows + columns)))


def test_zeros_are_zeros(kernel: Kernel) -> None:
    a, b = drawn(1, 40, 100), drawn(2, 100, 50)
    a[3], a[:, 8], b[:, 5], b[9] = 0, 0, 0, 0
    c = product(kernel, a, b)
    assert not c[3].any()
    assert not c[:, 5].any()
    assert not np.signbit(c[[3]]).any()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("large", [1e6, 1e9, 1e15, 1e30])
def test_a_sum_is_not_lost_beside_a_product_that_it_has_no_part_in(
    large: float, kernel: Kernel
) -> None:
    """Features as people measure them: one in the billions, with a weight of its own size in some columns and none in others."""
    a, b = drawn(4, 20, 60), drawn(5, 60, 33)
    a[:, 7] *= large
    b[7, ::2] = 0  # of these columns it is nothing
    b[7, 1::2] /= large
    b[7, 1] *= large  # and all of this one
    c, exact = product(kernel, a, b), a.astype(np.float64) @ b.astype(np.float64)
    sizes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert np.all(np.abs(c - exact) <= 2e-4 * np.abs(exact) + 2.0**-22 * sizes)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("inner", "large"), [(8, 2.0**15), (64, 2.0**16), (1024, 2.0**18), (4096, 2.0**20), (4096, 2.0**12)])  # fmt: skip
def test_errors_of_one_sign_do_not_add_up_to_much(
    inner: int, large: float, constant: bool, kernel: Kernel
) -> None:
    """Sums of positive products that are just not lost beside another; at worst all digits that are left out have one sign."""
    random = np.random.default_rng(inner)
    a, b = (random.uniform(0.5, 1, shape).astype(np.float32) for shape in ((16, inner), (inner, 40)))  # fmt: skip
    if constant:
        a[:], b[:] = a[:, :1], b[:1]
    a[:, 0] = large
    b[0, 1:] = 0
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.all(np.abs(product(kernel, a, b) / exact - 1) <= (4e-3 if constant else 3e-4))


def test_small_weights_that_meet_large_numbers_are_not_lost(kernel: Kernel) -> None:
    for size in (1e-33, 1e-36):
        a, b = np.array([[1.2345 / size]]), np.array([[1, 1.2345 * size]])
        found = product(kernel, a.astype(np.float32), b.astype(np.float32))
        np.testing.assert_allclose(found, a @ b, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-45, 1e-38, 1e-30, 1e-20, 1e20, 1e30])
def test_rows_and_columns_of_any_size(size: float, kernel: Kernel) -> None:
    a, b = drawn(6, 20, 100), drawn(7, 100, 40)
    b[:, 5] *= np.float32(size)
    c, exact = product(kernel, a, b), a.astype(np.float64) @ b
    sizes = np.abs(a).astype(np.float64) @ np.abs(b)
    assert np.all(np.abs(c - exact) <= 2.0**-20 * sizes + 2.0**-118 * np.abs(a).sum(1)[:, None])
    a[4] *= np.float32(size)
    c, exact = product(kernel, a, b[:, 8:]), a.astype(np.float64) @ b[:, 8:]
    sizes = np.abs(a).astype(np.float64) @ np.abs(b[:, 8:])
    assert np.all(np.abs(c - exact) <= 2.0**-20 * sizes + 2.0**-120 * np.abs(b[:, 8:]).sum(0))
