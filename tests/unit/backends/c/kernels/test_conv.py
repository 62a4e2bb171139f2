"""Convolutions against float64: every padding, stride, dilation and grouping, one to three dimensions."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec, depthwise
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, gemm
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa, Tile, tile_of
from sardonyx.backends.c.kernels.packing import pack_conv, pack_depthwise, pack_grouped
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.toolchain import SUPPORT, compile_object, find_toolchain
from sardonyx.options import read_environment

Array = NDArray[np.generic]
EPSILON = 2.0**-24
TARGETS = {
    NEON: ("--target=aarch64-linux-gnu",),
    AVX2: ("--target=x86_64-linux-gnu", "-march=x86-64-v3"),
    AVX512: ("--target=x86_64-linux-gnu", "-march=x86-64-v4"),
    PORTABLE: ("--target=x86_64-linux-gnu",),
}
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

# kernel, strides, dilations, pads_begin, pads_end, input
WINDOWS = {
    "1x1": ((1, 1), (1, 1), (1, 1), (0, 0), (0, 0), (5, 6)),
    "1x1 strided": ((1, 1), (2, 3), (1, 1), (0, 0), (0, 0), (7, 8)),
    "3x3 same": ((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (9, 7)),
    "strided": ((3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (9, 12)),
    "dilated": ((3, 2), (1, 2), (2, 3), (2, 1), (1, 3), (9, 10)),
    "uneven pads": ((2, 4), (1, 1), (1, 1), (0, 3), (1, 0), (6, 5)),
    "mostly padding": ((5, 5), (1, 1), (1, 1), (4, 4), (4, 4), (2, 1)),
    "far padding": ((3, 3), (1, 2), (1, 1), (5, 4), (4, 6), (2, 3)),
    "line": ((3,), (1,), (1,), (1,), (1,), (31,)),
    "line strided": ((10,), (5,), (1,), (0,), (0,), (103,)),
    "line dilated": ((9,), (1,), (4,), (16,), (16,), (40,)),
    "volume": ((3, 2, 3), (1, 2, 1), (1, 1, 2), (1, 0, 2), (1, 1, 2), (4, 5, 6)),
    "stem": ((7, 7), (2, 2), (1, 1), (3, 3), (3, 3), (23, 26)),
    "patches": ((4, 4), (4, 4), (1, 1), (0, 0), (0, 0), (16, 12)),
    "long lines": ((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (5, 45)),
    "long lines strided": ((3, 2), (2, 2), (1, 3), (1, 2), (1, 2), (7, 60)),
}  # fmt: skip


def window_of(name: str) -> tuple[Window, tuple[int, ...], tuple[int, ...]]:
    """The window, the input size and the padding at the end."""
    kernel, strides, dilations, begin, end, size = WINDOWS[name]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    output = tuple(
        (i + b + e - r) // s + 1
        for i, b, e, r, s in zip(size, begin, end, reach, strides, strict=True)
    )
    return Window(kernel, strides, dilations, begin, size, output), size, end


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def exact(x: Array, w: Array, window: Window, pads_end: tuple[int, ...], groups: int) -> NDArray[np.float64]:  # fmt: skip
    """Convolution by its definition, in float64: x [images, spatial…, channels], w [filters, channels/groups, kernel…]."""
    pads = [(0, 0), *zip(window.pads_begin, pads_end, strict=True), (0, 0)]
    padded = np.pad(x.astype(np.float64), pads)
    images, filters, inner = x.shape[0], w.shape[0], w.shape[1]
    output = tuple(int(size) for size in window.output)
    y = np.zeros((images, *output, filters))
    for tap in product(*map(range, window.kernel)):
        cuts = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, window.dilations, output, window.strides, strict=True)
        )
        pixels = padded[(slice(None), *cuts)]
        for group in range(groups):
            chosen = slice(group * filters // groups, (group + 1) * filters // groups)
            weights = w[(chosen, slice(None), *tap)].astype(np.float64)
            y[..., chosen] += pixels[..., group * inner : (group + 1) * inner] @ weights.T
    return y.reshape(images, prod(output), filters)


def check(
    text: str, x: Array, w: Array, packed: Array, window: Window, end: tuple[int, ...], groups: int,
    folder: Path, sizes: tuple[int, ...] = (),
) -> None:  # fmt: skip
    kernel = compile_kernel("window", text, folder)
    expected = exact(x, w, window, end, groups)
    terms = w.shape[1] * prod(window.kernel)
    bound = terms * EPSILON * exact(np.abs(x), np.abs(w), window, end, groups)
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        y = np.full(expected.shape, np.nan, np.float32)
        kernel.call(order, y, x, packed, sizes=sizes)
        assert np.all(np.abs(y - expected) <= bound)
        answers.append(y.tobytes())
    kernel.stop()
    assert len(set(answers)) == 1


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("channels", "filters", "groups"), [(3, 10, 1), (1, 5, 1), (20, 9, 1), (6, 4, 2), (40, 34, 2)]
)  # fmt: skip
@pytest.mark.parametrize("isa", [NEON, AVX2], ids=lambda isa: isa.name)
def test_windows(
    name: str, isa: Isa, channels: int, filters: int, groups: int, tmp_path: Path
) -> None:
    window, size, end = window_of(name)
    x, w = numbers(2, *size, channels), numbers(filters, channels // groups, *window.kernel)
    text = conv("window", ConvSpec(2, channels, filters, window, groups), "store_row", isa)
    check(text, x, w, pack_conv(w, groups, tile_of(isa)), window, end, groups, tmp_path)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(("tile", "groups"), [(Tile(12, 16), 2), (Tile(8, 48), 1)], ids=str)
def test_short_taps_of_tiles_that_lie_in_lines(
    name: str, tile: Tile, groups: int, tmp_path: Path
) -> None:
    window, size, end = window_of(name)
    channels, filters = 17 * groups, 16 * groups
    x, w = numbers(2, *size, channels), numbers(filters, 17, *window.kernel)
    spec = ConvSpec(2, channels, filters, window, groups)
    text = conv("window", spec, "store_row", AVX512, tile, in_registers=True, asks="store_row_soon")
    assert ("window_line_rows" in text) == (not spec.pointwise)
    check(text, x, w, pack_conv(w, groups, tile), window, end, groups, tmp_path)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("tile", [Tile(8, 48), Tile(6, 64)], ids=str)
def test_windows_by_the_tiles_of_avx512(name: str, tile: Tile, tmp_path: Path) -> None:
    """With sums that go to their epilogue out of registers, where they have a single piece."""
    window, size, end = window_of(name)
    channels, filters = 20, 2 * tile.columns + 5
    x, w = numbers(2, *size, channels), numbers(filters, channels, *window.kernel)
    spec = ConvSpec(2, channels, filters, window)
    text = conv("window", spec, "store_row", AVX512, tile, in_registers=True, asks="store_row_soon")
    check(text, x, w, pack_conv(w, 1, tile), window, end, 1, tmp_path)


@pytest.mark.parametrize(
    ("name", "channels", "multiplier"),
    [
        *[(name, 21, 1) for name in WINDOWS],
        *[(name, 3, 1) for name in ("strided", "line dilated")],  # fewer than a vector
        *[(name, 5, 3) for name in ("dilated", "volume", "line")],
    ],
)
def test_depthwise_windows(name: str, channels: int, multiplier: int, tmp_path: Path) -> None:
    window, size, end = window_of(name)
    x, w = numbers(2, *size, channels), numbers(channels * multiplier, 1, *window.kernel)
    text = depthwise("window", DepthwiseSpec(2, channels, window, multiplier), "store_row", NEON)
    check(text, x, w, pack_depthwise(w), window, end, channels, tmp_path)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("isa", "channels", "each"),
    [(NEON, 6, 2), (NEON, 12, 4), (AVX2, 20, 4), (AVX512, 22, 2), (AVX512, 36, 4), (AVX512, 24, 8)],
    ids=str,
)
def test_groups_of_a_few_channels(
    name: str, isa: Isa, channels: int, each: int, tmp_path: Path
) -> None:
    """The last vector overlaps the one before it by whole groups."""
    window, size, end = window_of(name)
    groups = channels // each
    x, w = numbers(2, *size, channels), numbers(channels, each, *window.kernel)
    text = depthwise("window", DepthwiseSpec(2, channels, window, each=each), "store_row", isa)
    check(text, x, w, pack_grouped(w), window, end, groups, tmp_path)


@pytest.mark.parametrize("isa", [AVX512, NEON], ids=lambda isa: isa.name)
@pytest.mark.parametrize(("channels", "each"), [(1025, 1), (7681, 1), (1036, 2)])
def test_the_last_block_of_channels_is_a_vector_at_least(
    isa: Isa, channels: int, each: int, tmp_path: Path
) -> None:
    window, size, end = window_of("3x3 same")
    x, w = numbers(1, *size, channels), numbers(channels, each, *window.kernel)
    text = depthwise("window", DepthwiseSpec(1, channels, window, each=each), "store_row", isa)
    check(text, x, w, pack_grouped(w), window, end, channels // each, tmp_path)


def test_padding_times_an_infinite_weight_is_no_number(tmp_path: Path) -> None:
    """As zeros around the image have it; in groups, whose kernel may take the place of tiles."""
    window, size, _ = window_of("3x3 same")
    x, w = numbers(1, *size, 16), numbers(16, 4, *window.kernel)
    w[0, 0, 0, 0] = np.inf
    text = depthwise("window", DepthwiseSpec(1, 16, window, each=4), "store_row", AVX512)
    y = np.zeros((1, *size, 16), np.float32)
    compile_kernel("window", text, tmp_path).call(
        IN_ORDER, y.reshape(1, -1, 16), x, pack_grouped(w)
    )
    assert np.isnan(y[0, 0, :, 0]).all()
    assert np.isnan(y[0, :, 0, 0]).all()
    assert np.isinf(y[0, 1:, 1:, 0]).all()
    assert np.isfinite(y[..., 1:]).all()


def test_groups_have_the_bits_of_tiles(tmp_path: Path) -> None:
    window, size, _ = window_of("3x3 same")
    x, w = numbers(2, *size, 32), numbers(32, 8, *window.kernel)
    spec = DepthwiseSpec(2, 32, window, each=8)
    found = []
    for name, text, packed in (
        ("tiles", conv("tiles", ConvSpec(2, 32, 32, window, 4), "store_row", AVX2), pack_conv(w, 4, tile_of(AVX2))),
        ("shuffles", depthwise("shuffles", spec, "store_row", AVX2), pack_grouped(w)),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        kernel = compile_kernel(name, text, tmp_path / name)
        y = np.full((2, prod(size), 32), np.nan, np.float32)
        kernel.call(IN_ORDER, y, x, packed)
        found.append(y)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("channels", [3, 24])
def test_image_sizes_that_only_a_run_knows(channels: int, tmp_path: Path) -> None:
    window, size, end = window_of("strided")
    dynamic = Window(
        window.kernel, window.strides, window.dilations, window.pads_begin, ("n[1]", "n[2]"), ("n[3]", "n[4]")
    )  # fmt: skip
    sizes = (2, *size, *(int(o) for o in window.output))
    x, w = numbers(2, *size, channels), numbers(9, channels, *window.kernel)
    text = conv("window", ConvSpec("n[0]", channels, 9, dynamic), "store_row", NEON)
    check(text, x, w, pack_conv(w, 1, tile_of(NEON)), window, end, 1, tmp_path, sizes)
    w = numbers(channels, 1, *window.kernel)
    text = depthwise("window", DepthwiseSpec("n[0]", channels, dynamic), "store_row", NEON)
    folder = tmp_path / "depthwise"
    folder.mkdir()
    check(text, x, w, pack_depthwise(w), window, end, channels, folder, sizes)


@pytest.mark.parametrize("channels", [5, 900])
def test_kernels_longer_than_a_block(channels: int, tmp_path: Path) -> None:
    """More of K than is summed at a time: many taps, or many channels."""
    taps = 401 if channels == 5 else 3
    window = Window((taps,), (3,), (1,), (7,), (500,), ((500 + 7 - taps) // 3 + 1,))
    x, w = numbers(1, 500, channels), numbers(11, channels, taps)
    text = conv("window", ConvSpec(1, channels, 11, window), "store_row", NEON)
    check(text, x, w, pack_conv(w, 1, tile_of(NEON)), window, (0,), 1, tmp_path)


def test_many_channels_each_by_itself(tmp_path: Path) -> None:
    """More channels than a block, in a number that no vector divides."""
    window, size, end = window_of("3x3 same")
    x, w = numbers(1, *size, 1031), numbers(1031, 1, *window.kernel)
    text = depthwise("window", DepthwiseSpec(1, 1031, window), "store_row", NEON)
    check(text, x, w, pack_depthwise(w), window, end, 1031, tmp_path)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("channels", [3, 24])
def test_half_precision_operands(dtype: str, channels: int, tmp_path: Path) -> None:
    window, size, end = window_of("strided")
    x, w = (
        numbers(2, *size, channels).astype(TYPES[dtype]),
        numbers(9, channels, *window.kernel).astype(TYPES[dtype]),
    )
    text = conv("window", ConvSpec(2, channels, 9, window, 1, dtype, dtype), "store_row", NEON)
    check(text, x, w, pack_conv(w, 1, tile_of(NEON)), window, end, 1, tmp_path)
    w = numbers(channels, 1, *window.kernel).astype(TYPES[dtype])
    spec = DepthwiseSpec(2, channels, window, 1, dtype, dtype)
    folder = tmp_path / "depthwise"
    folder.mkdir()
    check(depthwise("window", spec, "store_row", NEON), x, w, pack_depthwise(w), window, end, channels, folder)  # fmt: skip


@pytest.mark.parametrize("isa", [AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
def test_other_families_give_the_same_answers(isa: Isa, tmp_path: Path) -> None:
    """Wider vectors than the machine has are legal C: the compiler takes them apart."""
    window, size, end = window_of("3x3 same")
    x, w = numbers(2, *size, 40), numbers(70, 40, *window.kernel)
    text = conv("window", ConvSpec(2, 40, 70, window), "store_row", isa)
    check(text, x, w, pack_conv(w, 1, tile_of(isa)), window, end, 1, tmp_path)
    w = numbers(40, 1, *window.kernel)
    text = depthwise("window", DepthwiseSpec(2, 40, window), "store_row", isa)
    folder = tmp_path / "depthwise"
    folder.mkdir()
    check(text, x, w, pack_depthwise(w), window, end, 40, folder)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda isa: isa.name)
def test_the_text_compiles_for_every_family(isa: Isa, tmp_path: Path) -> None:
    window, _, _ = window_of("strided")
    kernels = {
        "product": gemm("product", GemmSpec("n[0]", 70, 30, Operand(1, "n[0]"), Operand(70)), "store_row", isa),
        "wide": conv("wide", ConvSpec(1, 32, 64, window), "store_row", isa),
        "narrow": conv("narrow", ConvSpec(1, 3, 64, window), "store_row", isa),
        "alone": depthwise("alone", DepthwiseSpec("n[0]", 64, window), "store_row", isa),
    }  # fmt: skip
    entries = "\n".join(
        f"void go_{name}(sx_run *r, struct env *e, void *const *p, const int64_t *n) {{ {name}(r, e, p[0], p[1], p[2], n); }}"
        for name in kernels
    )
    source = f"""\
#include "abi.h"
struct env {{ float *c; }};
static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const float *acc) {{
    for (int64_t i = 0; i < count; i++)
        env->c[(b + m) * 70 + n + i] = acc[i];
}}
{"".join(kernels.values())}
{entries}
"""
    made = tmp_path / "kernels.o"
    compile_object(find_toolchain(read_environment()), source, made, TARGETS[isa], SUPPORT)
    assert made.stat().st_size > 0
