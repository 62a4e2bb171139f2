"""Every cut of a kernel, for every family of processors: the same bits as the usual one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.conv import PIECE as CONV_PIECE
from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa, isa_of, tile_of
from sardonyx.backends.c.kernels.packing import pack_b, pack_conv
from sardonyx.backends.c.kernels.tile import PIECE
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.variants import cut_of, target_of

FAMILIES = pytest.mark.parametrize("isa", [NEON, AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
ROWS, COLUMNS, INNER = 17, 50, 1601  # odd tiles, and more than two blocks of K

TYPES = {"f32": np.float32, "f16": np.float16}

Array = NDArray[np.float32]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def cuts(isa: Isa) -> list[str]:
    target = target_of(isa)
    return [*target.tiles("f32"), *target.depths("f32", INNER)]


@FAMILIES
def test_products(isa: Isa, tmp_path: Path) -> None:
    a, b = numbers(ROWS, INNER), numbers(INNER, COLUMNS)
    spec = GemmSpec(ROWS, COLUMNS, INNER, Operand(INNER), Packed())
    answers = {}
    every = [f"{kernel} {cut}" for kernel in ("gemm", "gemv") for cut in cuts(isa)]
    for name in ("gemm", "gemv", *every):
        cut = cut_of(name, isa, "f32")
        text = product("kernel", spec, "store_row", isa, cut.tile, cut.depth)
        answer = np.full((ROWS, COLUMNS), np.nan, np.float32)
        folder = tmp_path / name
        folder.mkdir()
        compile_kernel("kernel", text, folder).call(IN_ORDER, answer, a, pack_b(b, cut.tile))
        answers[name] = answer
    assert len(answers) >= 6
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers["gemm"])
    np.testing.assert_allclose(answers["gemm"], a.astype(np.float64) @ b, atol=1e-3)


def convolutions(
    isa: Isa, channels: int, kernel: int, dtype: str, folder: Path
) -> dict[str, Array]:
    """The answers of every variant."""
    size, pad = (9, 7), kernel // 2
    x = numbers(2, *size, channels).astype(TYPES[dtype])
    w = numbers(COLUMNS, channels, kernel, kernel).astype(TYPES[dtype])
    window = Window((kernel,) * 2, (1, 1), (1, 1), (pad, pad), size, size)
    answers = {}
    for name in ("direct", "direct narrow", "direct wide", *(f"direct {cut}" for cut in cuts(isa))):
        cut = cut_of(name, isa, "f32")
        spec = ConvSpec(2, channels, COLUMNS, window, 1, dtype, dtype, cut.copies)
        text = conv("kernel", spec, "store_row", isa, cut.tile, cut.depth)
        answer = np.full((2, 63, COLUMNS), np.nan, np.float32)
        (folder / name).mkdir()
        packed = pack_conv(w, 1, cut.tile)
        compile_kernel("kernel", text, folder / name).call(IN_ORDER, answer, x, packed)
        answers[name] = answer
    image = np.pad(x[0].astype(np.float64), ((pad, pad), (pad, pad), (0, 0)))
    pixel = np.einsum("hwc,fchw->f", image[2:, 3:][:kernel, :kernel], w.astype(np.float64))
    np.testing.assert_allclose(answers["direct"][0, 2 * 7 + 3], pixel, atol=1e-3)
    return answers


@FAMILIES
def test_convolutions(isa: Isa, tmp_path: Path) -> None:
    answers = convolutions(isa, 180, 3, "f32", tmp_path)
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers["direct"])


@pytest.mark.parametrize(
    ("channels", "kernel", "dtype"),
    [
        (3, 17, "f32"),  # blocks of whole rows of the kernel would not be whole pieces
        (16, 5, "f32"),
        (33, 7, "f32"),
        (CONV_PIECE + 1, 3, "f32"),
        (CONV_PIECE + 30, 3, "f16"),  # copied, however many channels there are
        (5, 9, "f16"),
    ],
)
@pytest.mark.parametrize("isa", [NEON, AVX2], ids=lambda isa: isa.name)
def test_convolutions_in_pieces(
    isa: Isa, channels: int, kernel: int, dtype: str, tmp_path: Path
) -> None:
    answers = convolutions(isa, channels, kernel, dtype, tmp_path)
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers["direct"])


@pytest.mark.skipif(not isa_of(host_cpu()).fma, reason="products are rounded by themselves")
@pytest.mark.parametrize("inner", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 1601])
def test_products_in_pieces(inner: int, tmp_path: Path) -> None:
    """What the contract says of the order of sums, to the bit."""
    a, b = numbers(ROWS, inner), numbers(inner, COLUMNS)
    total = np.zeros((ROWS, COLUMNS), np.float32)
    for first in range(0, inner, PIECE):
        piece = np.zeros_like(total)
        for k in range(first, min(first + PIECE, inner)):
            # Products are exact in float64. Their sum is rounded twice, which one in a thousand may show.
            piece = (piece + a[:, k, None].astype(np.float64) * b[k]).astype(np.float32)
        total += piece
    spec = GemmSpec(ROWS, COLUMNS, inner, Operand(inner), Packed())
    text = product("kernel", spec, "store_row", NEON, tile_of(NEON))
    answer = np.full((ROWS, COLUMNS), np.nan, np.float32)
    compile_kernel("kernel", text, tmp_path).call(IN_ORDER, answer, a, pack_b(b, tile_of(NEON)))
    assert np.mean(answer == total) > 0.99


def test_a_name_that_nobody_gave_is_refused() -> None:
    with pytest.raises(AssertionError, match="no kernel is called"):
        cut_of("gemm 6by12", NEON, "f32")
