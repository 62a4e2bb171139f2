"""Attention in float16 arithmetic: the same function as in float32, to the bits that float16 keeps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, parser

import sardonyx as sx
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.plan.halves import half_attention_elements, halves_attention
from sardonyx.plan.target import Target

Array = NDArray[np.float32]
Feeds = Mapping[str, Array]

compiled = pytest.mark.skipif("fp16" not in host_cpu().features, reason="no float16 arithmetic")


def model(size: int, width: int, guarded: bool = True) -> ModelProto:
    """Of any batch, queries and keys, with a mask that is added."""
    guard = "bad = IsNaN(p) w = Where(bad, zero, p)" if guarded else "w = Identity(p)"
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> g (float[B, S, {size}] q, float[B, T, {size}] k, '
        f"float[B, T, {width}] v, float[S, T] m) => (float[B, S, {width}] y) "
        "<float quarter = {0.25}, float zero = {0.0}> { kt = Transpose<perm = [0, 2, 1]>(k) s = MatMul(q, kt) "
        f"t = Mul(s, quarter) u = Add(t, m) p = Softmax(u) {guard} y = MatMul(w, v) }}"
    )


def feeds_of(batch: int, queries: int, keys: int, size: int, width: int) -> dict[str, Array]:
    draw = np.random.default_rng((queries, keys, size))
    shapes = {"q": (batch, queries, size), "k": (batch, keys, size), "v": (batch, keys, width)}
    feeds = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {**feeds, "m": np.zeros((queries, keys), np.float32)}


def truth(feeds: Feeds) -> NDArray[np.float64]:
    q, k, v, m = (feeds[name].astype(np.float64) for name in "qkvm")
    scores = q @ k.swapaxes(1, 2) * 0.25 + m
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    product: NDArray[np.float64] = weights / weights.sum(axis=-1, keepdims=True) @ v
    return product


def answer(session: sx.Session, feeds: Feeds) -> Array:
    return np.asarray(session.run(None, feeds)[0])


@pytest.fixture(scope="module")
def sessions() -> list[sx.Session]:
    """On one thread, and on two."""
    return [sx.Session(model(24, 40), precision="bfloat16", threads=n) for n in (1, 2)]


def test_where_it_may_be_and_pays() -> None:
    here = Target("neon", (), (), 4, precision="bfloat16", half_arithmetic=True)
    assert halves_attention(here, 128, 128, 64, 64)
    assert not halves_attention(here, 1, 128, 64, 64)
    assert not halves_attention(here, 128, 128, 8, 64)
    assert not halves_attention(Target("neon", (), (), 4, half_arithmetic=True), 128, 128, 64, 64)
    assert half_attention_elements(17, 24, 40) == (2 * (16 * 24 + 32), 3 * (17 * 16 + 32) + 34)


@compiled
@pytest.mark.parametrize(("queries", "keys"), [(16, 16), (1, 5), (37, 700), (20, 1500)])
@pytest.mark.parametrize("scales", [(1, 1, 1), (200, 0.01, 1e6), (1e-3, 1e3, 1e-9), (1, 1, 1e35)])
def test_sizes_and_scales(sessions: list[sx.Session], queries: int, keys: int, scales: tuple[float, ...]) -> None:  # fmt: skip
    feeds = feeds_of(2, queries, keys, 24, 40)
    for name, scale in zip("qkv", scales, strict=True):
        feeds[name] = (feeds[name] / np.abs(feeds[name]).max() * 3 * scale).astype(np.float32)  # fmt: skip
    if queries > 1:
        feeds["v"][:, ::7] *= np.float32(1e-4)  # values of other sizes among the others
    one, two = (answer(session, feeds) for session in sessions)
    assert one.tobytes() == two.tobytes()
    exact = truth(feeds)
    assert np.sqrt(np.mean((one - exact) ** 2)) <= 4e-3 * np.sqrt(np.mean(exact**2))
    assert np.abs(one - exact).max() <= 1.6e-2 * np.abs(exact).max()


@compiled
def test_masks_over_several_blocks_of_keys(sessions: list[sx.Session]) -> None:
    feeds = feeds_of(1, 20, 1500, 24, 40)
    feeds["m"][0] = -np.inf
    feeds["m"][2, :1200] = feeds["m"][3, 100:] = -np.inf
    got = answer(sessions[1], feeds)
    assert not got[:, 0].any()
    exact = truth({**feeds, "q": feeds["q"][:, 1:], "m": feeds["m"][1:]})
    assert np.abs(got[:, 1:] - exact).max() <= 1.6e-2 * np.abs(exact).max()


@compiled
@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(("name", "where"), [("m", (5, 17)), ("q", (0, 3, 2)), ("k", (0, 40, 7)), ("v", (0, 590, 4))])  # fmt: skip
@pytest.mark.parametrize("value", [np.inf, -np.nan])
def test_what_is_not_finite_is_what_float32_gives(guarded: bool, name: str, where: tuple[int, ...], value: float) -> None:  # fmt: skip
    feeds = feeds_of(1, 16, 600, 24, 40)
    feeds[name][where] = value
    wide, half = (
        answer(sx.Session(model(24, 40, guarded), precision=precision), feeds)
        for precision in ("float32", "bfloat16")
    )
    assert np.array_equal(np.isnan(half), np.isnan(wide))
    assert np.array_equal(np.isinf(half), np.isinf(wide))
    finite = np.isfinite(wide)
    assert np.allclose(half[finite], wide[finite], rtol=4e-2, atol=1.6e-2)
