"""Products and convolutions of bytes: exact, over odd sizes, signs, zero points and partitions of the work."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, Kernel, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.integer_conv import integer_conv
from sardonyx.backends.c.kernels.integer_depthwise import integer_depthwise
from sardonyx.backends.c.kernels.integer_winograd import integer_winograd
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa, tile_of
from sardonyx.backends.c.kernels.packing import (
    pack_b,
    pack_conv_quads,
    pack_depthwise_quads,
    quads,
    raised_quads,
)
from sardonyx.backends.c.kernels.points import pack_integer_winograd
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.toolchain import host_cpu
from sardonyx.backends.c.variants import cut_of
from sardonyx.plan.kernels import Begin

Array = NDArray[np.generic]
WIDENED = [
    pytest.param(
        isa,
        id=isa.name,
        marks=pytest.mark.skipif(word not in host_cpu().features, reason=f"needs {word}"),
    )
    for isa, word in ((AVX2, "avx2"), (AVX512, "avx512bw"))
]
NARROW = [pytest.param(isa, id=isa.name) for isa in (NEON, PORTABLE)]
WAYS = pytest.mark.parametrize(
    ("isa", "split"),
    [
        *(
            pytest.param(*one.values, False, id=one.id, marks=one.marks)
            for one in (*NARROW, *WIDENED)
        ),
        *(
            pytest.param(*one.values, True, id=f"{one.id}, split", marks=one.marks)
            for one in WIDENED
        ),
    ],
)
# Without VNNI, which takes bytes without a sign.
FLAGS = [flag for flag in host_cpu().flags if "vnni" not in flag]


def compiled(name: str, text: str, folder: Path) -> Kernel:
    return compile_kernel(name, text, folder, "int32_t", FLAGS)


def integers(dtype: type, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(sum(shape)).integers(limits.min, limits.max + 1, shape)
    return drawn.astype(dtype)


def results(kernel: Kernel, shape: tuple[int, ...], a: Array, b: Array, *sizes: int) -> Array:
    """The answer, the same in order, in reverse and on two threads."""
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        c = np.full(shape, -7, np.int32)
        kernel.call(order, c, a, b, np.zeros(1, np.int32), sizes)
        answers.append(c)
    kernel.stop()
    assert all(np.array_equal(answers[0], other) for other in answers)
    return answers[0]


@pytest.mark.parametrize(
    ("isa", "cut"),
    [(NEON, "gemm"), (NEON, "gemm 8x8"), (PORTABLE, "gemm")],
    ids=str,
)
@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("k", [4, 64, 100, 3072, 4100])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_rows_of_whole_quads(
    isa: Isa, cut: str, in_registers: bool, dtype: type, k: int, tmp_path: Path
) -> None:
    tile, flipped = cut_of(cut, isa, "i32").tile, dtype is np.uint8
    spec = GemmSpec(
        "n[0]", "n[1]", k // 4, Operand(k // 4, dtype="i32", flipped=flipped), Packed(dtype="i32")
    )
    text = product("product", spec, "store_row", isa, tile, in_registers=in_registers)
    assert ("(&own," in text) == (in_registers and cut == "gemm" and isa is NEON and k <= 3072)
    kernel = compiled("product", text, tmp_path)
    for m, n in [(1, 1), (3, 17), (9, tile.columns), (40, 70)]:
        a, b = integers(dtype, m, k), integers(np.int8, k, n)
        exact = (a.astype(np.int64) - 128 * flipped) @ b.astype(np.int64)
        got = results(kernel, (m, n), a, pack_b(quads(b), tile), m, n)
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("isa", WIDENED)
@pytest.mark.parametrize(
    ("dtype", "origin"), [(np.int8, 0), (np.int8, -128), (np.uint8, 0), (np.uint8, 131)]
)
@pytest.mark.parametrize("spread", [4, 40, 400])
def test_rows_are_split_or_widened(
    isa: Isa, dtype: type, origin: int, spread: int, tmp_path: Path
) -> None:
    """Few bytes are far from the one that counts as 0, or all of them: then nothing is split."""
    tile, flipped = tile_of(isa, "i32"), dtype is np.int8
    less = origin + 128 * flipped
    a_spec = Operand("n[0]", dtype="i32", flipped=flipped, less=less)
    m, n, limits = 7, 3 * tile.columns + 1, np.iinfo(dtype)
    spec = GemmSpec(m, n, "n[0]", a_spec, Packed(dtype="i32"))
    text = product("product", spec, "store_row", isa, tile, split=True)
    kernel = compiled("product", text, tmp_path)
    rng = np.random.default_rng(spread)
    for depth in (*range(1, 18), 384, 385, 1000):
        drawn = rng.normal(origin, spread, (m, 4 * depth)).round()
        a, b = drawn.clip(limits.min, limits.max).astype(dtype), integers(np.int8, 4 * depth, n)
        a[:, ::37], b[::2] = rng.choice([limits.min, limits.max]), rng.choice([-128, 127])
        exact = (a.astype(np.int64) - origin) @ b.astype(np.int64)
        got = results(kernel, (m, n), a, pack_b(raised_quads(b), tile), depth)
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("isa", WIDENED)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_rows_are_widened_whatever_their_length(isa: Isa, dtype: type, tmp_path: Path) -> None:
    tile, flipped = tile_of(isa, "i32"), dtype is np.uint8
    a_spec = Operand("n[0]", dtype="i32", flipped=flipped)
    m, n = 7, 3 * tile.columns + 1
    spec = GemmSpec(m, n, "n[0]", a_spec, Packed(dtype="i32"))
    kernel = compiled("product", product("product", spec, "store_row", isa, tile), tmp_path)
    for depth in (*range(1, 18), 384, 385, 1000):
        a, b = integers(dtype, m, 4 * depth), integers(np.int8, 4 * depth, n)
        a[:, ::3], b[::2] = np.iinfo(dtype).min, -128  # the products that are the largest
        exact = (a.astype(np.int64) - 128 * flipped) @ b.astype(np.int64)
        got = results(kernel, (m, n), a, pack_b(quads(b), tile), depth)
        np.testing.assert_array_equal(got, exact)


@WAYS
@pytest.mark.parametrize(("by_row", "by_column"), [("n[2]", "1"), ("1", "n[0]")])
def test_rows_of_any_bytes(
    isa: Isa, split: bool, by_row: str, by_column: str, tmp_path: Path
) -> None:
    tile = tile_of(isa, "i32")
    a_spec = Operand(by_row, by_column, dtype="u8", flipped=split, less=128 * split)
    spec = GemmSpec("n[0]", "n[1]", "((n[2] + 3) / 4)", a_spec, Packed(dtype="i32"), 1, "n[2]")
    text = product("product", spec, "store_row", isa, tile, split=split)
    kernel = compiled("product", text, tmp_path)
    for m, n, k in [(1, 1, 1), (5, 9, 3), (9, 33, 21), (17, 8, 3077)]:
        a, b = integers(np.int8, m, k), integers(np.int8, k, n)
        laid = a if by_column == "1" else np.ascontiguousarray(a.T)
        packed = pack_b((raised_quads if split else quads)(b), tile)
        got = results(kernel, (m, n), laid, packed, m, n, k)
        np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64))


def convolved(x: Array, w: Array, window: Window, groups: int, zero: int) -> Array:
    """By definition: x[n, h, w, c] with its padding, less the zero point."""
    (sy, sx), (dy, dx), (py, px) = window.strides, window.dilations, window.pads_begin
    high, wide = (int(size) for size in window.output)
    (ky, kx), (n, _, _, channels), outputs = window.kernel, x.shape, w.shape[0]
    room = ((0, 0), (py, high * sy + ky * dy), (px, wide * sx + kx * dx), (0, 0))
    padded = np.pad(x.astype(np.int64) - zero, room)
    out = np.zeros((n, high, wide, outputs), np.int64)
    each, per = outputs // groups, channels // groups
    for oy in range(high):
        for ox in range(wide):
            for g in range(groups):
                ys, xs = oy * sy + np.arange(ky) * dy, ox * sx + np.arange(kx) * dx
                part = padded[:, ys][:, :, xs][..., g * per : (g + 1) * per]
                filters = w[g * each : (g + 1) * each].astype(np.int64)
                out[:, oy, ox, g * each : (g + 1) * each] = np.einsum(
                    "nyxc,ocyx->no", part, filters
                )
    return out


@pytest.mark.parametrize(
    ("isa", "split", "in_registers"),
    [
        *(pytest.param(*way.values, False, id=way.id, marks=way.marks) for way in WAYS.args[1]),
        pytest.param(NEON, False, True, id="neon, in registers"),
    ],
)
@pytest.mark.parametrize(
    ("channels", "filters", "groups", "kernel", "stride", "dilation", "pad"),
    [
        (3, 16, 1, 7, 2, 1, 3),
        (8, 24, 1, 3, 1, 1, 1),
        (20, 32, 1, 1, 1, 1, 0),
        (64, 40, 1, 1, 1, 1, 0),
        (12, 10, 2, 3, 1, 2, 2),
        (16, 12, 4, 3, 2, 1, 1),
        (400, 9, 1, 3, 1, 1, 1),
        (350, 9, 1, 3, 1, 1, 1),
    ],
)
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -3), (np.uint8, 130)])
def test_convolutions(
    isa: Isa,
    split: bool,
    in_registers: bool,
    channels: int,
    filters: int,
    groups: int,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    dtype: type,
    zero: int,
    tmp_path: Path,
) -> None:
    tile, flipped = tile_of(isa, "i32"), (dtype is np.uint8) != split
    size = 9
    out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    pair = lambda number: (number, number)  # noqa: E731
    window = Window(pair(kernel), pair(stride), pair(dilation), pair(pad), pair(size), pair(out))
    spec = ConvSpec(2, channels, filters, window, groups, "i32", "i32")
    less = 100 if split else 0
    text = integer_conv(
        "convolve",
        spec,
        "store_row",
        isa,
        tile,
        padding=zero % 256,
        flipped=flipped,
        less=less,
        split=split,
        in_registers=in_registers,
    )
    made = compiled("convolve", text, tmp_path)
    x, w = (
        integers(dtype, 2, size, size, channels),
        integers(np.int8, filters, channels // groups, kernel, kernel),
    )
    packed = pack_conv_quads(w, groups, tile, raised=split)
    got = results(made, (2, out * out, filters), x, packed)
    # What is summed is x as the kernel sees it; the zero point is taken off by the sums of the weights.
    seen = zero + 128 * flipped - less if split else zero - 128 * flipped
    exact = convolved(x, w, window, groups, zero).reshape(2, out * out, filters)
    sums = w.astype(np.int64).reshape(filters, -1).sum(axis=1)
    assert prod(got.shape)
    np.testing.assert_array_equal(got - seen * sums, exact)


@pytest.mark.parametrize(("channels", "in_registers"), [(16, True), (20, True), (48, True), (48, False)])  # fmt: skip
@pytest.mark.parametrize(("rows", "across"), [(3, 3), (2, 5), (4, 1)])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -3), (np.uint8, 130)])
def test_every_channel_by_itself(
    channels: int,
    in_registers: bool,
    rows: int,
    across: int,
    stride: int,
    dilation: int,
    dtype: type,
    zero: int,
    tmp_path: Path,
) -> None:
    """By dot products down the columns of the kernel; sums are handed over in registers where channels are whole ones."""
    high, wide, flipped = 9, 11, dtype is np.uint8
    out = tuple(
        (size + 2 - dilation * (taps - 1) - 1) // stride + 1
        for size, taps in ((high, rows), (wide, across))
    )
    pair = lambda number: (number, number)  # noqa: E731
    window = Window((rows, across), pair(stride), pair(dilation), pair(1), (high, wide), out)
    spec = DepthwiseSpec(2, channels, window, 1, "u8", "i8", zero % 256)
    text = integer_depthwise(
        "convolve", spec, "store_row", flipped=flipped, in_registers=in_registers
    )
    assert ("int32_t acc[" in text) == (channels % 16 != 0 or not in_registers)
    made = compiled("convolve", text, tmp_path)
    x, w = integers(dtype, 2, high, wide, channels), integers(np.int8, channels, 1, rows, across)
    got = results(made, (2, prod(out), channels), x, pack_depthwise_quads(w))
    exact = convolved(x, w, window, channels, zero).reshape(2, prod(out), channels)
    sums = w.astype(np.int64).reshape(channels, -1).sum(axis=1)
    np.testing.assert_array_equal(got - (zero - 128 * flipped) * sums, exact)


@pytest.mark.parametrize("isa", WIDENED)
@pytest.mark.parametrize(
    ("channels", "filters", "size", "pad"),
    [(32, 16, 9, 1), (34, 40, 7, 0), (300, 33, 5, 1), (520, 70, 8, 2)],
)
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -3), (np.uint8, 130)])
def test_fewer_products(
    isa: Isa,
    channels: int,
    filters: int,
    size: int,
    pad: int,
    dtype: type,
    zero: int,
    tmp_path: Path,
) -> None:
    """Winograd's way: the same integers, where all are as large as they can be too."""
    tile, flipped, out = tile_of(isa, "i32"), dtype is np.uint8, size + 2 * pad - 2
    window = Window((3, 3), (1, 1), (1, 1), (pad, pad), (size, size), (out, out))
    spec = ConvSpec(2, channels, filters, window, 1, "i32", "i32")
    text = integer_winograd("convolve", spec, "store_row", isa, padding=zero % 256, flipped=flipped)
    made = compiled("convolve", text, tmp_path)
    x, w = integers(dtype, 2, size, size, channels), integers(np.int8, filters, channels, 3, 3)
    x[0], w[0], w[1] = np.iinfo(dtype).min, -128, 127
    got = results(made, (2, out * out, filters), x, pack_integer_winograd(w, tile))
    exact = convolved(x, w, window, 1, zero).reshape(2, out * out, filters)
    sums = w.astype(np.int64).reshape(filters, -1).sum(axis=1)
    np.testing.assert_array_equal(got - (zero - 128 * flipped) * sums, exact)


@pytest.mark.parametrize("isa", [*NARROW, *WIDENED])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("turned", [False, True])
def test_a_second_factor_that_only_a_run_knows(
    isa: Isa, dtype: type, turned: bool, tmp_path: Path
) -> None:
    """Quads of either order of its axes, and sums that begin with those of its columns."""
    tile, flipped, batch = tile_of(isa, "i32"), dtype is np.uint8, 2
    begin = Begin(factor=-5, zero=3, offset=11)
    strides = ("1", "n[2]") if turned else ("n[1]", "1")
    spec = GemmSpec(
        m="n[0]",
        n="n[1]",
        k="((n[2] + 3) / 4)",
        a=Operand("n[2]", offset="b * n[0] * n[2]", dtype="u8"),
        b=Operand(*strides, offset="b * n[1] * n[2]", dtype="u8", flipped=flipped),
        batch=batch,
        count="n[2]",
        begin=begin,
    )
    kernel = compiled("product", product("product", spec, "store_row", isa, tile), tmp_path)
    kernel.start()
    for m, n, k in [(1, 1, 1), (9, tile.columns, 64), (12, 2 * tile.columns + 3, 70), (5, 7, 9)]:
        a, b = integers(np.int8, batch, m, k), integers(dtype, batch, k, n)
        held = np.ascontiguousarray(b.swapaxes(1, 2)) if turned else b
        signed = b.astype(np.int64) - 128 * flipped
        exact = a.astype(np.int64) @ signed
        exact += begin.factor * (signed.sum(axis=1, keepdims=True) - k * begin.zero) + begin.offset
        wide = -(-n // tile.columns) * tile.columns
        for order in (IN_ORDER, REVERSED, THREADED):
            c, scratch = (
                np.zeros(size, np.int32) for size in (exact.shape, batch * wide * (k + 1))
            )
            kernel.call(order, c, a, held, scratch, (m, n, k))
            np.testing.assert_array_equal(c, exact)
    kernel.stop()
