"""Float32 through tiles of bfloat16, on tiles in plain C: sizes, layouts, partitions, errors, special values."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, Kernel, compile_kernel
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.amx import VARIANTS, amx, parts_of
from sardonyx.backends.c.kernels.amx_conv import amx_conv
from sardonyx.backends.c.kernels.digit_tiles import pack_digits
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, gemm
from sardonyx.backends.c.kernels.isa import PORTABLE, tile_of
from sardonyx.backends.c.kernels.packing import pack_b
from sardonyx.backends.c.kernels.planes import pack_tiles, split_planes
from sardonyx.backends.c.kernels.tiles import PAIRS, planes_of
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.toolchain import SUPPORT, compile_object, find_toolchain
from sardonyx.options import read_environment

Array = NDArray[np.float32]
EMULATION = (Path(__file__).parent / "emulated_tiles.h").read_text(encoding="utf-8")
DYNAMIC = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]"), Packed())
# The largest error, of the sum of the products' magnitudes: what splitting loses (nothing; 2^-16 for a1 b1 and 2^-17
# each for a2 and b2; 2^-8 each for a1 and b1) and, for every step of 32, as many roundings as there are products.
LOST = {"amx10": 2.0**-22, "amx6": 2.0**-22, "amx3": 2.0**-15, "amx1": 2.0**-7}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kernel]:
    """Every variant for sizes that only a run knows."""
    folder = tmp_path_factory.mktemp("amx")
    return {v: compile_kernel(v, EMULATION + amx(v, DYNAMIC, "store_row", v), folder) for v in VARIANTS}  # fmt: skip


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def results(
    kernel: Kernel, shape: tuple[int, ...], a: Array, packed: NDArray[np.generic], sizes: tuple[int, ...] = (),
    split: NDArray[np.uint16] | None = None,
) -> Array:  # fmt: skip
    """The answer, the same to the bit in order, in reverse and on two threads; tiles are released."""
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        c = np.full(shape, np.nan, np.float32)
        kernel.call(order, c, a, packed, split, sizes)
        answers.append(c)
    kernel.stop()
    assert all(np.array_equal(answers[0].view(np.uint32), other.view(np.uint32)) for other in answers)  # fmt: skip
    assert ctypes.c_int32.in_dll(kernel.library, "tile_faults").value == 0
    assert ctypes.c_int32.in_dll(kernel.library, "tiles_left_configured").value == 0
    return answers[0]


def packed(variant: str, b: Array) -> NDArray[np.generic]:
    return pack_digits(b) if variant == "amx10" else pack_tiles(b, planes_of(variant))


def errors(c: Array, a: Array, b: Array) -> NDArray[np.float64]:
    """Differences from the truth, as parts of the sum of the products' magnitudes."""
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    found: NDArray[np.float64] = np.abs(c - exact_a @ exact_b) / (np.abs(exact_a) @ np.abs(exact_b))
    return found


def allowed(variant: str, a: Array, b: Array) -> NDArray[np.float64]:
    """The largest error, as `errors` gives it. What digits lose is a part of the largest product that there could be."""
    if variant != "amx10":
        return np.full((len(a), b.shape[1]), LOST[variant])
    wide, factors = np.abs(a).astype(np.float64), 2.0 ** np.frexp(np.abs(b).max(1))[1]
    most = (wide * factors).max(1)[:, None] * (np.abs(b) / factors[:, None]).max(0)
    return LOST[variant] + a.shape[1] * 2.0**-25.8 * most / (wide @ np.abs(b))


def product(kernel: Kernel, variant: str, a: Array, b: Array) -> Array:
    sizes = (*a.shape[:1], b.shape[1], a.shape[1])
    return results(
        kernel, (a.shape[0], b.shape[1]), a, packed(variant, b), (sizes[0], sizes[1], sizes[2])
    )  # fmt: skip


def plain(a: Array, b: Array, folder: Path) -> Array:
    """By the usual kernel."""
    kernel = compile_kernel("plain", gemm("plain", DYNAMIC, "store_row", PORTABLE), folder)
    c = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    kernel.call(IN_ORDER, c, a, pack_b(b, tile_of(PORTABLE)), None, sizes)
    return c


def chain(a: Array, b: Array) -> Array:
    """One product after the other, each rounded once: float64 has room for a product and most of a sum."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = (total + a[:, k, None].astype(np.float64) * b[k].astype(np.float64)).astype(
            np.float32
        )
    return total


@pytest.mark.parametrize("variant", VARIANTS)
def test_sizes_that_only_a_run_knows(variant: str, kernels: dict[str, Kernel]) -> None:
    for m in (1, 2, 3, 16, 17, 32, 33, 97):
        for n in (1, 16, 17, 32, 33, 70):
            for k in (1, 2, 31, 32, 33, 70):
                a, b = numbers(m, k), numbers(k, n)
                found = errors(product(kernels[variant], variant, a, b), a, b)
                assert np.all(found <= allowed(variant, a, b))


@pytest.mark.parametrize("variant", VARIANTS)
def test_empty_sizes_and_empty_sums(variant: str, kernels: dict[str, Kernel]) -> None:
    for m, n, k in ((0, 5, 3), (5, 0, 3), (0, 0, 0)):
        a, b = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
        assert product(kernels[variant], variant, a, b).size == 0
    a, b = np.zeros((5, 0), np.float32), np.zeros((0, 9), np.float32)
    assert not product(kernels[variant], variant, a, b).any()


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (32, 32, 32), (49, 160, 96), (70, 600, 40), (33, 40, 1100), (197, 64, 64)]
)  # fmt: skip
@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_static_sizes_give_the_bits_of_dynamic_ones(
    variant: str, m: int, n: int, k: int, kernels: dict[str, Kernel], tmp_path: Path
) -> None:
    spec = GemmSpec(m, n, k, Operand(k), Packed())
    static = compile_kernel("static_product", EMULATION + amx("static_product", spec, "store_row", variant), tmp_path)  # fmt: skip
    a, b = numbers(m, k), numbers(k, n)
    answer = results(static, (m, n), a, packed(variant, b))
    assert np.all(errors(answer, a, b) <= allowed(variant, a, b))
    assert np.array_equal(answer, product(kernels[variant], variant, a, b))


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_that_are_split_beforehand_give_the_same_bits(
    variant: str, kernels: dict[str, Kernel], tmp_path: Path
) -> None:
    for m, n, k in ((1, 1, 1), (2, 33, 70), (49, 160, 96), (128, 300, 70), (65, 70, 1100), (400, 40, 1600)):  # fmt: skip
        a, b = numbers(m, k), numbers(k, n)
        parts = parts_of(variant)
        size = -(-m // 32) * (parts.strip_head + -(-k // parts.depth) * parts.step)
        for spec, sizes in (
            (DYNAMIC, (m, n, k)),
            (GemmSpec(m, n, k, Operand(k), Packed()), ()),
        ):
            text = EMULATION + amx("beforehand", spec, "store_row", variant, beforehand=True)
            folder = tmp_path / f"{m}-{n}-{k}-{len(sizes)}"
            folder.mkdir()
            kernel = compile_kernel("beforehand", text, folder)
            split, weights = np.zeros(size + 8, np.uint16), packed(variant, b)
            split[size:] = 7
            answer = results(kernel, (m, n), a, weights, sizes, split)
            assert np.array_equal(answer, product(kernels[variant], variant, a, b))
            assert np.all(split[size:] == 7)


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_a_batch_that_is_split_beforehand(variant: str, tmp_path: Path) -> None:
    batch, m, n, k = 3, 40, 45, 70
    spec = GemmSpec(m, n, k, Operand(k, 1, f"b * {m * k}"), Packed(), batch)
    kernel = compile_kernel("product", EMULATION + amx("product", spec, "store_row", variant, beforehand=True), tmp_path)  # fmt: skip
    a, b = numbers(batch, m, k), numbers(k, n)
    parts = parts_of(variant)
    split = np.zeros(batch * 2 * (parts.strip_head + -(-k // parts.depth) * parts.step), np.uint16)
    answer = results(kernel, (batch, m, n), a, packed(variant, b), (), split)
    for one, rows in zip(answer, a, strict=True):
        assert np.all(errors(one, rows, b) <= allowed(variant, rows, b))


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_a_batch_and_a_transposed_left_operand(variant: str, tmp_path: Path) -> None:
    batch, m, n, k = 3, 21, 45, 70
    spec = GemmSpec(m, n, k, Operand(1, m, f"b * {m * k}"), Packed(), batch)
    kernel = compile_kernel("product", EMULATION + amx("product", spec, "store_row", variant), tmp_path)  # fmt: skip
    a, b = numbers(batch, k, m), numbers(k, n)
    answer = results(kernel, (batch, m, n), a, packed(variant, b))
    for one, rows in zip(answer, a, strict=True):
        turned = np.ascontiguousarray(rows.T)
        assert np.all(errors(one, turned, b) <= allowed(variant, turned, b))


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_a_row_has_the_same_bits_wherever_it_lies(variant: str, kernels: dict[str, Kernel]) -> None:
    a, b = numbers(67, 520), numbers(520, 33)
    whole = product(kernels[variant], variant, a, b)
    for first in (1, 40, 66):
        some = product(kernels[variant], variant, np.ascontiguousarray(a[first:]), b)
        assert np.array_equal(some, whole[first:])


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
@pytest.mark.parametrize("k", [64, 768, 3000])
def test_six_and_ten_products_are_nearer_to_the_truth_than_float32(
    k: int, variant: str, kernels: dict[str, Kernel]
) -> None:
    """Of sums near zero, and of sums that grow."""
    for a, b in ((numbers(9, k), numbers(k, 32)), (abs(numbers(9, k)), abs(numbers(k, 32)))):
        ours = errors(product(kernels[variant], variant, a, b), a, b)
        usual = errors(chain(a, b), a, b)
        assert np.sqrt(np.mean(ours**2)) <= np.sqrt(np.mean(usual**2))
        assert ours.max() <= usual.max()


@pytest.mark.parametrize("k", [64, 768, 4096])
def test_three_products_lose_less_than_a_hundred_thousandth(
    k: int, kernels: dict[str, Kernel]
) -> None:
    a, b = numbers(33, k), numbers(k, 40)
    assert errors(product(kernels["amx3"], "amx3", a, b), a, b).max() <= 1e-5
    # Where magnitudes go from 1e-6 to 1e6, a few products are the sum, and their errors do not even out.
    wide = (a * np.exp(4 * numbers(33, k + 1)[:, 1:])).astype(np.float32)
    found = errors(product(kernels["amx3"], "amx3", wide, b), wide, b)
    assert np.sqrt(np.mean(found**2)) <= 5e-6
    assert found.max() <= LOST["amx3"]


SPECIAL = np.array(
    [np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, 3e38, 1e36, 2.0**-126, 1.5e-38, 0.0, -0.0], np.float32
)  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("operand", ["a", "b", "both"])
def test_what_is_not_finite_is_what_float32_gives(
    variant: str, operand: str, kernels: dict[str, Kernel], tmp_path: Path
) -> None:
    random = np.random.default_rng(7)
    a, b = numbers(67, 70), numbers(70, 45)
    for matrix, name in ((a, "a"), (b, "b")):
        if operand in (name, "both"):
            places = random.choice(matrix.size, 12, replace=False)
            matrix.reshape(-1)[places] = random.choice(SPECIAL[:3], 12)
    ours, usual = product(kernels[variant], variant, a, b), plain(a, b, tmp_path)
    assert np.array_equal(np.isfinite(ours), np.isfinite(usual))
    assert not np.isfinite(usual).all()
    assert np.array_equal(ours[~np.isfinite(ours)], usual[~np.isfinite(usual)], equal_nan=True)
    good = np.isfinite(usual)
    exact = a.astype(np.float64)[good.any(1)] @ b.astype(np.float64)[:, good.any(0)]
    scale = np.abs(a)[good.any(1)].astype(np.float64) @ np.abs(b)[:, good.any(0)].astype(np.float64)
    kept = good[good.any(1)][:, good.any(0)]
    found = np.abs(ours[good.any(1)][:, good.any(0)] - exact)[kept]
    lost = LOST[variant] * scale + (variant == "amx10") * 70 * 2.0**-25.8 * scale.max()
    assert np.all(found <= lost[kept])


def test_a_nan_of_any_bits_stays_one(kernels: dict[str, Kernel]) -> None:
    for bits in (0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001, 0x7FC00000):
        nan = np.array([bits], np.uint32).view(np.float32)[0]
        for variant, kernel in kernels.items():
            a, b = numbers(3, 40), numbers(40, 5)
            a[1, 7] = nan
            assert np.isnan(product(kernel, variant, a, b)).sum(axis=1).tolist() == [0, 5, 0]
            a, b = numbers(3, 40), numbers(40, 5)
            b[7, 1] = nan
            assert np.isnan(product(kernel, variant, a, b)).sum(axis=0).tolist() == [0, 3, 0, 0, 0]


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_sums_near_the_largest_float_are_finite(
    variant: str, kernels: dict[str, Kernel], tmp_path: Path
) -> None:
    a, b = np.zeros((4, 40), np.float32), np.zeros((40, 4), np.float32)
    a[0, 0], b[0, 0] = 3.4028235e38, 1  # splitting overflows
    a[1, 1], b[1, 1] = 1.9990e19, 1.7e19  # as does the product of the first parts alone
    a[2, 2], b[2, 2] = 1, 3.4028235e38
    a[3, 3], b[3, 3] = 3e38, 2  # and this in float32 too
    ours = product(kernels[variant], variant, a, b)
    assert np.isfinite(plain(a, b, tmp_path)).sum() == 15
    np.testing.assert_allclose(ours, plain(a, b, tmp_path), rtol=2.0**-22)


def test_numbers_below_the_smallest_normal_float_count_as_zero(kernels: dict[str, Kernel]) -> None:
    a, b = np.full((2, 32), 1e-39, np.float32), np.full((32, 2), 1e30, np.float32)
    assert not product(kernels["amx6"], "amx6", a, b).any()
    assert not product(kernels["amx6"], "amx6", b.T.copy(), a.T.copy()).any()


finite = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)


def value(bits: NDArray[np.uint16]) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@given(arrays(np.float32, st.integers(0, 40), elements=finite))
def test_three_parts_are_the_number(x: Array) -> None:
    parts = value(split_planes(x, 3)).astype(np.float64)
    lost = np.where(np.abs(x) < 2.0**-102, 2.0**-125, 0)  # parts that would be no normal floats
    assert np.all(np.abs(parts.sum(axis=0) - x) <= lost)
    assert np.isfinite(parts).all()


@given(arrays(np.float32, st.integers(0, 40), elements=finite))
def test_every_part_is_at_most_a_128th_of_the_one_before(x: Array) -> None:
    parts = np.abs(value(split_planes(x, 3)).astype(np.float64))
    assert np.all(parts[1:] <= parts[:-1] / 128)


def test_special_numbers_are_their_first_part() -> None:
    parts = value(split_planes(SPECIAL[:3], 3))
    assert np.array_equal(parts[0], SPECIAL[:3], equal_nan=True)
    assert not parts[1:].any()


@given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.integers(0, 2**32 - 1), st.booleans())  # fmt: skip
def test_every_weight_is_packed_where_it_is_read(planes: int, k: int, n: int, seed: int, turned: bool) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    w = random.standard_normal((n, k) if turned else (k, n)).astype(np.float32)
    w = w.T if turned else w
    packed, parts = pack_tiles(w, planes), split_planes(w, planes)
    assert packed.flags.c_contiguous
    at, column = int(random.integers(k)), int(random.integers(n))
    place = (column // 32, at // 32, slice(None), column // 16 % 2, at // 2 % 16, column % 16, at % 2)  # fmt: skip
    assert np.array_equal(packed[place], parts[:, at, column])
    assert np.count_nonzero(packed) == np.count_nonzero(parts)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_text_compiles_for_tiles(variant: str, tmp_path: Path) -> None:
    """With the compiler's own tiles; a file of machine code has one instruction for every dot product at least."""
    head = '#include "abi.h"\nstruct env { int64_t unused; };\n'
    epilogue = (
        "void store_row(const struct env *, int64_t, int64_t, int64_t, int64_t, const float *);\n"
    )
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (14, 14), (14, 14))
    texts = [
        amx("product", DYNAMIC, "store_row", variant),
        amx_conv("product", ConvSpec("n[0]", 64, 128, window), "store_row", variant, 9),
    ]
    call = "void call(sx_run *r, struct env *e, void *a, const int64_t *n) { product(r, e, a, a, 0, n); }\n"
    flags = ("--target=x86_64-linux-gnu", "-march=x86-64-v4", "-mamx-tile", "-mamx-bf16", "-mamx-int8")  # fmt: skip
    for number, text in enumerate(texts):
        out = tmp_path / f"{number}.o"
        source = head + epilogue + text + call
        compile_object(find_toolchain(read_environment()), source, out, flags, SUPPORT)
        # VEX.128.F3.0F38.W0 5C: TDPBF16PS tmm0, tmm4, tmm6; VEX.128.F2.0F38.W0 5E: TDPBSSD tmm0, tmm5, tmm7
        found = bytes(
            [0xC4, 0xE2, 0x43, 0x5E, 0xC5] if variant == "amx10" else [0xC4, 0xE2, 0x4A, 0x5C, 0xC4]
        )
        least = 1 if variant == "amx10" else len(PAIRS[variant])
        assert out.read_bytes().count(found) >= least
