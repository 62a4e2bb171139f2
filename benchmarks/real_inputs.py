"""Plausible inputs for real models, drawn from a seed as their entries in `real_models.json` say.

    {"name": "input", "dtype": "float32", "shape": [1, 3, 640, 640], "gen": "image", "high": 255}

White noise drives detectors and readers into one degenerate state, so images are smooth fields or pages with
strokes like letters, and audio has a pitch and syllables. `RandomState` gives the same numbers in every version of
numpy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_case", "draw_input"]

Entry = Mapping[str, Any]  # one input of the manifest
Shape = Sequence[int]
Field = NDArray[np.float64]
Random = np.random.RandomState


def draw_case(case: Mapping[str, Any], seed: int = 0) -> dict[str, NDArray[Any]]:
    """The feeds of one case of the manifest."""
    return {entry["name"]: draw_input(entry, seed) for entry in case["inputs"]}


def draw_input(entry: Entry, seed: int = 0) -> NDArray[Any]:
    """One input; its numbers depend on its name, its entry and the seed."""
    shape = entry["shape"]
    if entry["dtype"] == "string":
        return np.array(entry["values"], object).reshape(shape)
    mixed = zlib.crc32(entry["name"].encode()) ^ (seed * 2654435761)
    random = np.random.RandomState(mixed & 0xFFFFFFFF)
    # np.array keeps the shape of scalars; np.ascontiguousarray would not
    return np.array(KINDS[entry["gen"]](random, shape, entry), entry["dtype"], order="C")


# ---------------------------------------------------------------- numbers


def constant(random: Random, shape: Shape, entry: Entry) -> Field:
    return np.full(shape, entry["value"])


def listed(random: Random, shape: Shape, entry: Entry) -> Field:
    return np.array(entry["values"]).reshape(shape)


def uniform(random: Random, shape: Shape, entry: Entry) -> Field:
    return in_range(random.random_sample(shape), entry)


def normal(random: Random, shape: Shape, entry: Entry) -> Field:
    mean, deviation = float(entry.get("mean", 0)), float(entry.get("std", 1))
    return mean + deviation * random.standard_normal(shape)


def integers(random: Random, shape: Shape, entry: Entry) -> NDArray[np.int_]:
    return random.randint(entry["low"], entry["high"], size=shape)


def coins(random: Random, shape: Shape, entry: Entry) -> NDArray[np.bool_]:
    return np.less(random.random_sample(shape), float(entry.get("p", 0.5)))


def one_hot(random: Random, shape: Shape, entry: Entry) -> Field:
    chosen = random.randint(0, shape[-1], size=shape[:-1])
    field = np.zeros(shape)
    np.put_along_axis(field, chosen[..., None], 1.0, -1)
    return field


def in_range(field: Field, entry: Entry) -> Field:
    low, high = float(entry.get("low", 0)), float(entry.get("high", 1))
    return low + (high - low) * field


# ---------------------------------------------------------------- pictures


def image(random: Random, shape: Shape, entry: Entry) -> Field:
    """A smooth field of its own for each channel."""
    return pictures(
        shape, entry, lambda c, h, w: np.stack([smooth(random, h, w) for _ in range(c)])
    )


def page(random: Random, shape: Shape, entry: Entry) -> Field:
    """Letters, grey: the same in every channel."""
    return pictures(shape, entry, lambda c, h, w: np.repeat(letters(random, h, w)[None], c, axis=0))


def pictures(shape: Shape, entry: Entry, make: Callable[[int, int, int], Field]) -> Field:
    if entry.get("layout") == "NHWC":
        count, height, width, channels = shape
        made = np.stack([make(channels, height, width) for _ in range(count)])
        return in_range(made, entry).transpose(0, 2, 3, 1)
    count, channels, height, width = shape
    return in_range(np.stack([make(channels, height, width) for _ in range(count)]), entry)


def smooth(random: Random, height: int, width: int) -> Field:
    """Three grids of noise, coarse to fine, interpolated, with a little noise a pixel; in 0 … 1."""
    field = np.zeros((height, width))
    for points, share in ((4, 1.0), (9, 0.7), (23, 0.4)):
        grid = random.rand(points, points)
        y, x = np.linspace(0, points - 1, height), np.linspace(0, points - 1, width)
        top = np.minimum(y.astype(int), points - 2)
        left = np.minimum(x.astype(int), points - 2)
        down, right = (y - top)[:, None], (x - left)[None]
        field += share * (
            (1 - down) * (1 - right) * grid[top][:, left]
            + (1 - down) * right * grid[top][:, left + 1]
            + down * (1 - right) * grid[top + 1][:, left]
            + down * right * grid[top + 1][:, left + 1]
        )
    return np.clip(field / 2.1 + 0.06 * random.randn(height, width), 0, 1)


def letters(random: Random, height: int, width: int) -> Field:
    """A light page with rows of dark strokes; in 0 … 1."""
    field = 0.92 + 0.03 * smooth(random, height, width)
    tall = max(8, min(height - 4, 48 if height > 200 else height * 2 // 3))
    y = 2 if height < 80 else tall // 2
    while y + tall <= height - 1:
        x = random.randint(2, max(3, width // 12))
        while x < width - tall // 2 - 2:
            if random.rand() < 0.13:  # a space
                x += tall // 2
                continue
            wide = int(tall * (0.35 + 0.3 * random.rand()))
            strokes(random, field[:, x:], y, tall, wide)
            x += wide + max(2, tall // 8)
        y += tall + tall // 2 + random.randint(0, tall // 2 + 1)
    return np.clip(field + 0.02 * random.randn(height, width), 0, 1)


def strokes(random: Random, field: Field, y: int, tall: int, wide: int) -> None:
    """One letter at the left edge of `field`: two to four bars, upright or level."""
    thick, ink = max(1, tall // 10), 0.05 + 0.1 * random.rand()
    for _ in range(random.randint(2, 5)):
        if random.rand() < 0.5:
            x = random.randint(0, max(1, wide - thick))
            top = y + random.randint(0, max(1, tall // 3))
            end = y + tall - random.randint(0, max(1, tall // 3))
            field[top:end, x : x + thick] = ink
        else:
            top = y + random.randint(0, max(1, tall - thick))
            field[top : top + thick, :wide] = ink


# ---------------------------------------------------------------- sound


def audio(random: Random, shape: Shape, entry: Entry) -> Field:
    """A voice: a gliding pitch with eleven overtones, three syllables a second, a little hiss."""
    count = int(np.prod(shape))
    t = np.arange(count) / float(entry.get("sr", 16_000))
    wave: Field = np.zeros(count)
    pitch = 110 + 60 * random.rand()
    phase = 2 * np.pi * pitch * t + 3 * np.sin(2 * np.pi * 2.3 * t)
    for harmonic in range(1, 12):
        wave += np.sin(harmonic * phase + 6.28 * random.rand()) / harmonic
    wave = wave * (0.55 + 0.45 * np.sin(2 * np.pi * 3.1 * t)) + 0.05 * random.randn(count)
    loudest = float(np.abs(wave).max())
    return np.reshape(wave / loudest * float(entry.get("amp", 0.5)), shape)


KINDS: Mapping[str, Callable[[Random, Shape, Entry], NDArray[Any]]] = {
    "const": constant,
    "values": listed,
    "uniform": uniform,
    "normal": normal,
    "randint": integers,
    "bernoulli": coins,
    "onehot": one_hot,
    "image": image,
    "glyphs": page,
    "audio": audio,
}
