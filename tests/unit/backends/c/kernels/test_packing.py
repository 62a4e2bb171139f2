"""The packed layouts, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.backends.c.kernels.isa import Tile
from sardonyx.backends.c.kernels.packing import (
    pack_b,
    pack_conv,
    pack_depthwise,
    packed_bytes,
    packed_elements,
)
from sardonyx.sizes import evaluate, symbol


@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 8), (5, 9), (4, 17), (0, 3), (3, 0)])
@pytest.mark.parametrize("transposed", [False, True])
def test_panels_hold_the_columns_and_zeros(k: int, n: int, transposed: bool) -> None:
    b = np.arange(1, k * n + 1, dtype=np.float32).reshape(k, n)
    if transposed:
        b = np.ascontiguousarray(b.T).T
    packed = pack_b(b, Tile(8, 8))
    assert packed.shape == (-(-n // 8), k, 8)
    for panel, row, lane in np.ndindex(packed.shape):
        column = 8 * panel + lane
        assert packed[panel, row, lane] == (b[row, column] if column < n else 0)


def test_sizes_of_packed_operands() -> None:
    packed = pack_b(np.ones((5, 9), np.float16), Tile(8, 8))
    assert packed_elements(5, 9, Tile(8, 8)) == packed.size
    assert packed_bytes(5, 9, Tile(8, 8), "f16") == packed.nbytes
    symbolic = packed_bytes(symbol("k"), symbol("n"), Tile(8, 8))
    assert evaluate(symbolic, {"k": 5, "n": 9}) == 2 * packed.nbytes


def test_convolution_weights_run_over_taps_then_channels() -> None:
    weights = np.arange(2 * 3 * 2 * 2 * 5, dtype=np.float32).reshape(6, 2, 2, 5)
    packed = pack_conv(weights, 2, Tile(4, 4))
    assert packed.shape == (2, 1, 2 * 2 * 5, 4)
    for group, tap, channel, filter_ in np.ndindex(2, 10, 2, 3):
        expected = weights[group * 3 + filter_, channel].reshape(-1)[tap]
        assert packed[group, 0, tap * 2 + channel, filter_] == expected
    assert not packed[..., 3].any()


def test_depthwise_weights_have_the_filters_last() -> None:
    weights = np.arange(24, dtype=np.float32).reshape(4, 1, 2, 3)
    packed = pack_depthwise(weights)
    assert packed.shape == (6, 4)
    assert packed[4, 2] == weights[2, 0, 1, 1]
    assert packed.flags.c_contiguous
