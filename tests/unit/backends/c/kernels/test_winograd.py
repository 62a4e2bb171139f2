"""Winograd's convolution against float64, and against the plain kernel where values are not finite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, compile_kernel
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from tests.unit.backends.c.kernels.test_conv import EPSILON, TARGETS, exact, numbers

from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa, Tile, tile_of
from sardonyx.backends.c.kernels.packing import pack_conv
from sardonyx.backends.c.kernels.points import channel_blocks, pack_winograd
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.kernels.winograd import winograd
from sardonyx.backends.c.toolchain import SUPPORT, compile_object, find_toolchain
from sardonyx.options import read_environment

Array = NDArray[np.float32]
Pads = tuple[int, int]

# images, channels, filters, size, pads at the beginning, at the end
SHAPES: dict[str, tuple[int, int, int, Pads, Pads, Pads]] = {
    "even": (1, 16, 16, (8, 8), (1, 1), (1, 1)),
    "odd": (2, 20, 17, (7, 9), (1, 1), (1, 1)),
    "no padding": (1, 32, 24, (9, 6), (0, 0), (0, 0)),
    "uneven pads": (3, 33, 41, (5, 3), (0, 2), (1, 0)),
    "one output": (1, 16, 8, (3, 3), (0, 0), (0, 0)),
    "one pixel": (2, 40, 70, (1, 1), (1, 1), (1, 1)),
    "mostly padding": (1, 17, 5, (2, 1), (4, 4), (4, 4)),
    "a line": (1, 16, 9, (1, 30), (1, 1), (1, 1)),
    "blocks of channels": (1, 385, 20, (6, 5), (1, 1), (1, 1)),
    "blocks of filters": (1, 64, 300, (8, 10), (1, 1), (1, 1)),
    "blocks of tiles": (2, 24, 40, (33, 30), (1, 1), (1, 1)),
    "fewer channels than a segment": (1, 5, 6, (6, 6), (1, 1), (1, 1)),
}
_B = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_A = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


def spec_of(name: str) -> tuple[ConvSpec, Pads]:
    images, channels, filters, size, begin, end = SHAPES[name]
    output = tuple(s + b + e - 2 for s, b, e in zip(size, begin, end, strict=True))
    window = Window((3, 3), (1, 1), (1, 1), begin, size, output)
    return ConvSpec(images, channels, filters, window), end


def operands(spec: ConvSpec) -> tuple[Array, Array]:
    size = [int(s) for s in spec.window.input]
    return numbers(int(spec.images), *size, spec.channels), numbers(
        spec.filters, spec.channels, 3, 3
    )


def bound(x: Array, w: Array, window: Window) -> NDArray[np.float64]:
    """The roundings on the way to an output, times the sum of all that was added up, without signs."""
    height, width = (int(size) for size in window.output)
    tall, wide = height + height % 2, width + width % 2
    (top, left), (own, side) = window.pads_begin, x.shape[1:3]
    below, right = max(0, tall + 2 - top - own), max(0, wide + 2 - left - side)
    padded = np.pad(np.abs(x).astype(np.float64), [(0, 0), (top, below), (left, right), (0, 0)])
    patches = sliding_window_view(padded, (4, 4), axis=(1, 2))[:, : tall - 1 : 2, : wide - 1 : 2]
    inputs = np.abs(_B) @ patches @ np.abs(_B).T
    weights = np.abs(_G) @ np.abs(w).astype(np.float64) @ np.abs(_G).T
    points = np.einsum("byxcij,fcij->byxfij", inputs, weights, optimize=True)
    tiles = np.abs(_A) @ points @ np.abs(_A).T
    whole = tiles.transpose(0, 1, 4, 2, 5, 3).reshape(x.shape[0], tall, wide, -1)
    roundings = min(w.shape[1], 32) + w.shape[1] // 32 + 8
    cut = whole[:, :height, :width]
    return roundings * EPSILON * cut.reshape(x.shape[0], height * width, -1)


def answers(text: str, x: Array, packed: Array, shape: tuple[int, ...], folder: Path, sizes: tuple[int, ...] = ()) -> Array:  # fmt: skip
    """The answer, which is the same in every order of the tasks."""
    folder.mkdir(exist_ok=True)
    kernel = compile_kernel("kernel", text, folder)
    kernel.start()
    found = []
    for order in (IN_ORDER, REVERSED, THREADED):
        y = np.full(shape, 7, np.float32)
        kernel.call(order, y, x, packed, sizes=sizes)
        found.append(y)
    kernel.stop()
    assert len({y.tobytes() for y in found}) == 1
    return found[0]


def check(spec: ConvSpec, end: Pads, isa: Isa, folder: Path) -> None:
    x, w = operands(spec)
    expected = exact(x, w, spec.window, end, 1)
    text = winograd("kernel", spec, "store_row", isa)
    packed = pack_winograd(w, tile_of(isa)).astype(np.float32)
    y = answers(text, x, packed, expected.shape, folder)
    assert np.all(np.abs(y - expected) <= bound(x, w, spec.window))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path) -> None:
    check(*spec_of(name), NEON, tmp_path)


@pytest.mark.parametrize("isa", [AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", ["odd", "uneven pads", "blocks of channels"])
def test_other_families(name: str, isa: Isa, tmp_path: Path) -> None:
    """Wider vectors than the machine has are legal C: the compiler takes them apart."""
    check(*spec_of(name), isa, tmp_path)


def test_sizes_that_only_a_run_knows_and_images_alone(tmp_path: Path) -> None:
    """The same bits as for sizes known beforehand, for each image by itself, and nothing for no images."""
    spec, _ = spec_of("odd")
    x, w = operands(spec)
    packed = pack_winograd(w, tile_of(NEON)).astype(np.float32)
    pixels, (height, width) = 63, (7, 9)
    known = answers(winograd("kernel", spec, "store_row", NEON), x, packed, (2, pixels, 17), tmp_path / "known")  # fmt: skip
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), ("n[1]", "n[2]"), ("n[1]", "n[2]"))
    text = winograd("kernel", ConvSpec("n[0]", 20, 17, window), "store_row", NEON)
    assert np.array_equal(
        answers(text, x, packed, (2, pixels, 17), tmp_path, (2, height, width)), known
    )
    for image in range(2):
        alone = answers(text, x[image : image + 1], packed, (1, pixels, 17), tmp_path / str(image), (1, height, width))  # fmt: skip
        assert np.array_equal(alone[0], known[image])
    untouched = answers(text, x, packed, (2, pixels, 17), tmp_path / "none", (0, height, width))
    assert np.all(untouched == 7)


def compared(x: Array, w: Array, folder: Path) -> tuple[Array, Array]:
    """By Winograd, and by the plain kernel."""
    images, height, width, channels = x.shape
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (height, width), (height, width))
    spec = ConvSpec(images, channels, w.shape[0], window)
    shape, tile = (images, height * width, w.shape[0]), tile_of(NEON)
    text = winograd("kernel", spec, "store_row", NEON)
    quick = answers(text, x, pack_winograd(w, tile).astype(np.float32), shape, folder / "quick")
    text = conv("kernel", spec, "store_row", NEON)
    return quick, answers(text, x, pack_conv(w, 1, tile), shape, folder / "plain")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_stay_where_they_belong(value: float, tmp_path: Path) -> None:
    """An output is not finite if, and as, the plain sum is not; all others are as if nothing had happened."""
    x, w = numbers(2, 9, 10, 40), numbers(19, 40, 3, 3)
    w[3] = 0  # 0 · ∞ is NaN
    clean, _ = compared(x, w, tmp_path)
    for at in [(0, 0, 0, 3), (0, 5, 6, 39), (1, 8, 9, 0), (1, 3, 4, 7), (1, 3, 4, 8), (1, 6, 2, 5)]:
        x[at] = value
    x[1, 6, 3, 5] = -value
    quick, plain = compared(x, w, tmp_path)
    finite = np.isfinite(plain)
    assert not finite.all()
    assert np.array_equal(np.isfinite(quick), finite)
    assert np.array_equal(quick[~finite], plain[~finite], equal_nan=True)
    assert np.allclose(quick[finite], clean[finite], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [1e6, 1e9, 3e19, 3.4e38])
def test_large_values_do_not_spoil_their_neighbours(value: float, tmp_path: Path) -> None:
    """Inputs that are large, up to where sums of them overflow, with small weights."""
    x, w = numbers(1, 12, 12, 40), numbers(8, 40, 3, 3) * np.float32(1e-3)
    x[0, 2:6, 3:5], x[0, 9, 8, 1] = value, -value
    quick, plain = compared(x, w, tmp_path)
    assert np.isfinite(plain).all()
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (12, 12), (12, 12))
    expected = exact(x, w, window, (1, 1), 1)
    scale = exact(np.abs(x), np.abs(w), window, (1, 1), 1)
    assert np.all(np.abs(quick - expected) <= 1e-3 * np.abs(expected) + 1e-5 * scale)
    assert np.all(np.abs(plain - expected) <= 1e-5 * scale)


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    x, w = numbers(1, 6, 7, 16), numbers(20, 16, 3, 3)
    w[2, 3, 0, 0], w[9, 0, 1, 1], w[17, 15, 2, 1] = np.nan, np.inf, 3e38
    quick, plain = compared(x, w, tmp_path)
    assert np.array_equal(np.isfinite(quick), np.isfinite(plain))
    finite = np.isfinite(plain)
    assert np.allclose(quick[finite], plain[finite], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [4, 31, 32, 33, 128, 129, 160, 385, 513, 2048])
def test_blocks_of_channels(channels: int) -> None:
    blocks = channel_blocks(channels)
    assert sum(blocks) == channels
    assert min(blocks) >= min(32, channels)
    assert all(block % 32 == 0 for block in blocks[:-1])


def test_weights_are_rounded_once() -> None:
    w, tile = numbers(9, 5, 3, 3), Tile(8, 8)
    packed = pack_winograd(w, tile)
    points = packed[: 16 * 2 * 5 * 8].reshape(16, 2, 5, 8)
    u = (_G @ w.astype(np.float64) @ _G.T).astype(np.float32).reshape(9, 5, 16)
    assert np.array_equal(points.transpose(1, 3, 2, 0).reshape(16, 5, 16)[:9], u)
    assert np.all(points[:, 1, :, 1:] == 0)
    assert np.array_equal(packed[points.size :], pack_conv(w, 1, tile).reshape(-1))


@pytest.mark.parametrize("isa", TARGETS, ids=lambda isa: isa.name)
def test_the_text_compiles_for_every_family(isa: Isa, tmp_path: Path) -> None:
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), ("n[1]", 14), ("n[1]", 14))
    source = f"""\
#include "abi.h"
struct env {{ float *c; }};
static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const float *acc) {{
    for (int64_t i = 0; i < count; i++)
        env->c[(b + m) * 70 + n + i] = acc[i];
}}
{winograd("kernel", ConvSpec("n[0]", 96, 70, window), "store_row", isa)}
void go(sx_run *r, struct env *e, void *const *p, const int64_t *n) {{ kernel(r, e, p[0], p[1], p[2], n); }}
"""
    made = tmp_path / "kernel.o"
    compile_object(find_toolchain(read_environment()), source, made, TARGETS[isa], SUPPORT)
    assert made.stat().st_size > 0
