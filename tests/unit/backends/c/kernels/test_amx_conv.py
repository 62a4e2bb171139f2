"""Convolutions through tiles of bfloat16, on tiles in plain C, against the plain kernel."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.amx import VARIANTS, parts_of
from sardonyx.backends.c.kernels.amx_conv import amx_conv, pack_digit_filters, pack_tile_filters
from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.isa import PORTABLE, tile_of
from sardonyx.backends.c.kernels.packing import pack_conv
from sardonyx.backends.c.kernels.tiles import planes_of
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.plan.amx import depth_of, runs_of

Array = NDArray[np.float32]
EMULATION = (Path(__file__).parent / "emulated_tiles.h").read_text(encoding="utf-8")
# What splitting loses, and what the plain kernel does over some hundred products.
LOST = {"amx10": 2.0**-20, "amx6": 2.0**-20, "amx3": 2.0**-15 + 2.0**-20, "amx1": 2.0**-7}

# kernel, strides, dilations, pads_begin, input, output
WINDOWS = {
    "1x1": Window((1, 1), (1, 1), (1, 1), (0, 0), (5, 6), (5, 6)),
    "1x1 strided": Window((1, 1), (2, 3), (1, 1), (0, 0), (7, 8), (4, 3)),
    "3x3 same": Window((3, 3), (1, 1), (1, 1), (1, 1), (9, 7), (9, 7)),
    "3x3 strided": Window((3, 3), (2, 2), (1, 1), (1, 1), (9, 12), (5, 6)),
    "dilated": Window((3, 2), (1, 2), (2, 3), (2, 1), (9, 10), (8, 5)),
    "line": Window((3,), (1,), (1,), (1,), (31,), (31,)),
    "first": Window((7, 7), (2, 2), (1, 1), (3, 3), (17, 19), (9, 10)),
    "wider than the image": Window((3, 7), (1, 1), (1, 1), (1, 5), (4, 2), (4, 6)),
    "volume": Window((2, 1, 3), (1, 2, 1), (1, 1, 2), (1, 0, 2), (3, 5, 4), (4, 3, 4)),
}


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def runs(spec: ConvSpec, variant: str) -> int:
    return runs_of(spec.window.kernel, spec.window.dilations, spec.channels, depth_of(variant))


def pack(w: Array, spec: ConvSpec, variant: str) -> NDArray[np.generic]:
    if variant == "amx10":
        return pack_digit_filters(w, runs(spec, variant))
    return pack_tile_filters(w, planes_of(variant), runs(spec, variant))


def answers(text: str, spec: ConvSpec, x: Array, packed: NDArray[np.generic], folder: Path, sizes: tuple[int, ...] = (), window: Window | None = None, split: NDArray[np.uint16] | None = None) -> Array:  # fmt: skip
    """The same bits in every order of the tasks."""
    kernel = compile_kernel("window", text, folder)
    pixels = prod(int(size) for size in (window or spec.window).output)
    found = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        y = np.full((x.shape[0], pixels, spec.filters), np.nan, np.float32)
        kernel.call(order, y, x, packed, split, sizes)
        found.append(y)
    kernel.stop()
    assert len({y.tobytes() for y in found}) == 1
    if "tile_faults" in text:
        assert ctypes.c_int32.in_dll(kernel.library, "tile_faults").value == 0
        assert ctypes.c_int32.in_dll(kernel.library, "tiles_left_configured").value == 0
    return found[0]


def plain(spec: ConvSpec, x: Array, w: Array, folder: Path) -> Array:
    (folder / "plain").mkdir(exist_ok=True)
    packed = pack_conv(w, 1, tile_of(PORTABLE))
    return answers(conv("window", spec, "store_row", PORTABLE), spec, x, packed, folder / "plain")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("variant", "channels", "filters"),
    [("amx6", c, f) for c, f in [(32, 40), (24, 144), (3, 8), (65, 33)]]
    + [("amx10", c, f) for c, f in [(64, 17), (24, 40), (3, 8), (65, 33)]],
)
def test_windows(name: str, variant: str, channels: int, filters: int, tmp_path: Path) -> None:
    window = WINDOWS[name]
    spec = ConvSpec(2, channels, filters, window)
    x, w = numbers(2, *map(int, window.input), channels), numbers(filters, channels, *window.kernel)
    expected, scale = plain(spec, x, w, tmp_path), plain(spec, abs(x), abs(w), tmp_path)
    text = EMULATION + amx_conv("window", spec, "store_row", variant, runs(spec, variant))
    y = answers(text, spec, x, pack(w, spec, variant), tmp_path)
    assert np.all(np.abs(y - expected) <= LOST[variant] * scale)


@pytest.mark.parametrize("variant", ["amx10", "amx3"])
def test_images_that_are_split_beforehand_give_the_same_bits(variant: str, tmp_path: Path) -> None:
    spec = ConvSpec(2, 32, 40, WINDOWS["3x3 strided"])
    x, w = numbers(2, 9, 12, 32), numbers(40, 32, 3, 3)
    found = []
    for beforehand in (False, True):
        folder = tmp_path / str(beforehand)
        folder.mkdir()
        text = EMULATION + amx_conv(
            "window", spec, "store_row", variant, runs(spec, variant), beforehand=beforehand
        )
        parts = parts_of(variant)
        split = np.zeros(2 * (parts.strip_head + 9 * parts.step), np.uint16)
        found.append(answers(text, spec, x, pack(w, spec, variant), folder, split=split))
    assert np.array_equal(*found)


@pytest.mark.parametrize("variant", VARIANTS)
def test_image_sizes_that_only_a_run_knows(variant: str, tmp_path: Path) -> None:
    window = WINDOWS["3x3 same"]
    late = replace(window, input=("n[1]", "n[2]"), output=("n[1]", "n[2]"))
    spec, dynamic = ConvSpec(2, 96, 33, window), ConvSpec("n[0]", 96, 33, late)
    x, w = numbers(2, 9, 7, 96), numbers(33, 96, 3, 3)
    expected, scale = plain(spec, x, w, tmp_path), plain(spec, abs(x), abs(w), tmp_path)
    text = EMULATION + amx_conv("window", dynamic, "store_row", variant, runs(dynamic, variant))
    y = answers(text, dynamic, x, pack(w, spec, variant), tmp_path, (2, 9, 7), window)
    assert np.all(np.abs(y - expected) <= LOST[variant] * scale)


@pytest.mark.parametrize("variant", ["amx10", "amx6"])
def test_what_is_not_finite_is_what_float32_gives(variant: str, tmp_path: Path) -> None:
    window = WINDOWS["3x3 strided"]
    spec = ConvSpec(1, 32, 36, window)
    x, w = numbers(1, 9, 12, 32), numbers(36, 32, 3, 3)
    x[0, 3, 4, 5], x[0, 8, 11, 31], w[7, 3, 0, 0], w[35, 0, 2, 2] = np.inf, np.nan, -np.inf, np.nan
    expected = plain(spec, x, w, tmp_path)
    text = EMULATION + amx_conv("window", spec, "store_row", variant, runs(spec, variant))
    y = answers(text, spec, x, pack(w, spec, variant), tmp_path)
    finite = np.isfinite(expected)
    assert finite.any()
    assert not finite.all()
    assert np.array_equal(y[~finite], expected[~finite], equal_nan=True)
    np.testing.assert_allclose(y[finite], expected[finite], rtol=1e-4, atol=1e-4)
