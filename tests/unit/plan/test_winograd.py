"""Where Winograd's algorithm may be taken, and where the rule takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import AVX512, NEON
from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.winograd import FLOATS, HALVES, winograd_is_possible, winograd_pays
from sardonyx.sizes import Size, symbol

TARGET = target_of(NEON)
PLAIN = Window((3, 3), (1, 1), (1, 1), (1, 1), 1)


def test_what_the_kernel_computes() -> None:
    assert winograd_is_possible(TARGET, PLAIN, 16, 16, "f32")


@pytest.mark.parametrize(
    ("window", "channels", "filters", "stored"),
    [
        (replace(PLAIN, kernel=(3, 5)), 64, 64, "f32"),
        (replace(PLAIN, kernel=(3,), strides=(1,), dilations=(1,)), 64, 64, "f32"),
        (replace(PLAIN, strides=(1, 2)), 64, 64, "f32"),
        (replace(PLAIN, dilations=(2, 1)), 64, 64, "f32"),
        (replace(PLAIN, groups=2), 64, 64, "f32"),
        (PLAIN, 15, 64, "f32"),
        (PLAIN, 64, 15, "f32"),
        (PLAIN, 64, 64, "f16"),
        (PLAIN, 64, 64, "f64"),
    ],
)
def test_what_it_does_not(window: Window, channels: int, filters: int, stored: Dtype) -> None:
    assert not winograd_is_possible(TARGET, window, channels, filters, stored)


def test_strict_rules_it_out() -> None:
    strict = replace(TARGET, precision="strict")
    assert not winograd_is_possible(strict, PLAIN, 64, 64, "f32")


@pytest.mark.parametrize(
    ("channels", "images", "output", "pays"),
    [
        (64, 1, (56, 56), True),
        (512, 1, (7, 7), True),
        (16, 1, (56, 56), True),
        (16, 1, (7, 7), False),  # the transforms cost as much as the products
        (64, 1, (2, 2), False),  # reading U
        (64, 64, (2, 2), True),
        (64, 1, (1, 1), False),
        (64, 100, (1, 1), False),  # three of four outputs are thrown away
        (64, symbol("n"), (symbol("h"), symbol("w")), True),
        (64, 0, (8, 8), False),
    ],
)
def test_the_rule(channels: int, images: Size, output: tuple[Size, Size], pays: bool) -> None:
    assert winograd_pays(TARGET, channels, channels, images, output, FLOATS) is pays


@pytest.mark.parametrize(
    ("channels", "output", "pays"),
    [
        (64, (56, 56), True),
        (512, (7, 7), True),
        (16, (56, 56), True),
        (64, (4, 4), True),
        (256, (3, 3), False),  # reading U
        (64, (2, 2), False),  # measured, it takes 2.6 times as long
        (64, (64, 1), False),  # three quarters of the tiles are thrown away
        (64, (symbol("h"), symbol("w")), True),
    ],
)
def test_the_rule_for_float16(channels: int, output: tuple[Size, Size], pays: bool) -> None:
    assert winograd_pays(TARGET, channels, channels, 1, output, HALVES) is pays


def test_wider_vectors_wait_longer_for_weights() -> None:
    # The last layers of a ResNet: U is three times the plain weights.
    wide = target_of(AVX512)
    assert not winograd_pays(wide, 512, 512, 1, (7, 7), FLOATS)
    assert winograd_pays(wide, 512, 512, 1, (14, 14), FLOATS)
