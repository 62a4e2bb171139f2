"""Bytes through tiles in plain C: the integers of the definition, over odd sizes, blocks, partitions and padding."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import compile_kernel
from numpy.typing import NDArray
from tests.unit.backends.c.kernels.test_integers import convolved, integers
from tests.unit.backends.c.kernels.test_integers import results as same_results

from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.integer_conv import integer_conv
from sardonyx.backends.c.kernels.isa import AVX512
from sardonyx.backends.c.kernels.packing import pack_b, pack_conv_quads, quads
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.toolchain import SUPPORT, compile_object, find_toolchain
from sardonyx.backends.c.variants import cut_of
from sardonyx.options import read_environment

EMULATION = (Path(__file__).parent / "emulated_tiles.h").read_text(encoding="utf-8")
ISA = replace(AVX512, unsigned_bytes=True)
TILE = cut_of("gemm amx", ISA, "i32").tile
Array = NDArray[np.generic]


def results(
    text: str, shape: tuple[int, ...], a: Array, packed: Array, sizes: tuple[int, ...], folder: Path
) -> Array:
    """The answer, the same however it is computed; tiles are released."""
    kernel = compile_kernel("kernel", EMULATION + text, folder, "int32_t", host_cpu().flags)
    answer = same_results(kernel, shape, a, packed, *sizes)
    assert ctypes.c_int32.in_dll(kernel.library, "tile_faults").value == 0
    assert ctypes.c_int32.in_dll(kernel.library, "tiles_left_configured").value == 0
    return answer


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 4), (2, 32, 64), (33, 31, 60), (49, 70, 68), (64, 40, 3072), (35, 33, 3204)],
)
def test_products(m: int, n: int, k: int, dtype: type, tmp_path: Path) -> None:
    flipped = dtype is np.int8
    operand = Operand(k // 4, dtype="i32", flipped=flipped)
    a, b = integers(dtype, m, k), integers(np.int8, k, n)
    exact = (a.astype(np.int64) + 128 * flipped) @ b.astype(np.int64)
    for number, (rows, columns, sizes) in enumerate([(m, n, ()), ("n[0]", "n[1]", (m, n))]):
        spec = GemmSpec(rows, columns, k // 4, operand, Packed(dtype="i32"))
        text = product("kernel", spec, "store_row", ISA, TILE, in_tiles=True)
        folder = tmp_path / str(number)
        folder.mkdir()
        got = results(text, (m, n), a, pack_b(quads(b), TILE), sizes, folder)
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "kernel", "stride", "pad"),
    [(64, 40, 1, 3, 1, 1), (3, 32, 1, 7, 2, 3), (72, 66, 1, 1, 1, 0), (128, 80, 2, 3, 2, 1)],
)
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -3), (np.uint8, 130)])
def test_convolutions(
    channels: int,
    filters: int,
    groups: int,
    kernel: int,
    stride: int,
    pad: int,
    dtype: type,
    zero: int,
    tmp_path: Path,
) -> None:
    flipped, size = dtype is np.int8, 9
    out = (size + 2 * pad - kernel) // stride + 1
    pair = lambda number: (number, number)  # noqa: E731
    window = Window(pair(kernel), pair(stride), pair(1), pair(pad), pair(size), pair(out))
    spec = ConvSpec(2, channels, filters, window, groups, "i32", "i32")
    text = integer_conv(
        "kernel", spec, "store_row", ISA, TILE, padding=zero % 256, flipped=flipped, in_tiles=True
    )
    x = integers(dtype, 2, size, size, channels)
    w = integers(np.int8, filters, channels // groups, kernel, kernel)
    packed = pack_conv_quads(w, groups, TILE)
    got = results(text, (2, out * out, filters), x, packed, (), tmp_path)
    exact = convolved(x, w, window, groups, zero).reshape(2, out * out, filters)
    sums = w.astype(np.int64).reshape(filters, -1).sum(axis=1)
    np.testing.assert_array_equal(got - (zero + 128 * flipped) * sums, exact)


def test_sums_begin_with_numbers_of_their_columns(tmp_path: Path) -> None:
    m, n, k = 37, 45, 100
    a, b, start = integers(np.uint8, m, k), integers(np.int8, k, n), integers(np.int32, 64)
    spec = GemmSpec(m, n, k // 4, Operand(k // 4, dtype="i32"), Packed(dtype="i32"))
    values = ", ".join(str(int(value)) for value in start)
    text = f"static const int32_t starts[] = {{{values}}};\n"
    text += product("kernel", spec, "store_row", ISA, TILE, start="starts", in_tiles=True)
    got = results(text, (m, n), a, pack_b(quads(b), TILE), (), tmp_path)
    exact = a.astype(np.int64) @ b.astype(np.int64) + start[:n]
    np.testing.assert_array_equal(got, exact.astype(np.int32))


def test_they_are_compiled_to_the_instruction(tmp_path: Path) -> None:
    head = '#include "abi.h"\nstruct env { int32_t *c; };\n'
    epilogue = (
        "void store_row(const struct env *, int64_t, int64_t, int64_t, int64_t, const int32_t *);\n"
    )
    spec = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]", dtype="i32"), Packed(dtype="i32"))
    text = product("kernel", spec, "store_row", ISA, TILE, in_tiles=True)
    call = "void call(sx_run *r, struct env *e, void *a, const int64_t *n) { kernel(r, e, a, a, 0, n); }\n"
    words = ("-mavx512vnni", "-mamx-tile", "-mamx-bf16", "-mamx-int8")
    flags = ("--target=x86_64-linux-gnu", "-march=x86-64-v4", *words)
    out = tmp_path / "kernel.o"
    compile_object(
        find_toolchain(read_environment()), head + epilogue + text + call, out, flags, SUPPORT
    )
    # VEX.128.66.0F38.W0 5E: TDPBUSD tmm0, tmm4, tmm6
    assert bytes([0xC4, 0xE2, 0x49, 0x5E, 0xC4]) in out.read_bytes()
