"""Every cut of a kernel, for every family of processors: the same bits as the usual one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.conv import ConvSpec, Window, conv
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa
from sardonyx.backends.c.kernels.packing import pack_b, pack_conv
from sardonyx.backends.c.variants import cut_of, target_of

FAMILIES = pytest.mark.parametrize("isa", [NEON, AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
ROWS, COLUMNS, INNER = 17, 50, 1601  # odd tiles, and more than two blocks of K

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
    for name in ("gemm", "gemv", "gemv by 384", *(f"gemm {cut}" for cut in cuts(isa))):
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


@FAMILIES
def test_convolutions(isa: Isa, tmp_path: Path) -> None:
    x, w = numbers(2, 9, 7, 180), numbers(COLUMNS, 180, 3, 3)
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (9, 7), (9, 7))
    names = ("direct", "direct narrow", "direct wide", *(f"direct {cut}" for cut in cuts(isa)))
    answers = {}
    for name in names:
        cut = cut_of(name, isa, "f32")
        spec = ConvSpec(2, 180, COLUMNS, window, copies=cut.copies)
        text = conv("kernel", spec, "store_row", isa, cut.tile, cut.depth)
        answer = np.full((2, 63, COLUMNS), np.nan, np.float32)
        folder = tmp_path / name
        folder.mkdir()
        packed = pack_conv(w, 1, cut.tile)
        compile_kernel("kernel", text, folder).call(IN_ORDER, answer, x, packed)
        answers[name] = answer
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers["direct"])
    image = np.pad(x[0].astype(np.float64), ((1, 1), (1, 1), (0, 0)))[2:5, 3:6]
    pixel = np.einsum("hwc,fchw->f", image, w.astype(np.float64))
    np.testing.assert_allclose(answers["direct"][0, 2 * 7 + 3], pixel, atol=1e-3)


def test_a_name_that_nobody_gave_is_refused() -> None:
    with pytest.raises(AssertionError, match="no kernel is called"):
        cut_of("gemm 6by12", NEON, "f32")
