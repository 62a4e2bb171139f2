"""Winograd's transforms, as C has them, against the sum that they stand for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.cells import FOUR, SQUARE, TWO, WIDE, Axis, Cell, both_ways

NUMBERS = st.lists(st.integers(-1000, 1000), min_size=6, max_size=6)
# Of the largest sum that there can be: weights are 243rds, which float64 rounds to 1e-16 of themselves.
ROUNDING = 1e-13


def computed(lines: list[str], values: dict[str, float]) -> None:
    """What statements of C define, by Python's numbers."""
    for line in lines:
        found = re.fullmatch(r"const value (\w+) = (.*);", line)
        assert found is not None
        plain = re.sub(r"\b(\d+\.\d+)f\b", r"\1", found[2])
        values[found[1]] = eval(plain, {"__builtins__": {}}, values)


@pytest.mark.parametrize("axis", [TWO, FOUR])
@given(NUMBERS, st.lists(st.integers(-1000, 1000), min_size=3, max_size=3))
def test_an_axis_is_a_sum_of_three_products(axis: Axis, inputs: list[int], taps: list[int]) -> None:
    values: dict[str, float] = {f"d{i}": inputs[i] for i in range(axis.points)}
    points = [f"v{i}" for i in range(axis.points)]
    computed(axis.input("value", [f"d{i}" for i in range(axis.points)], points), values)
    for i, row in enumerate(axis.weights):
        values[f"m{i}"] = values[f"v{i}"] * np.dot(row, taps)
    outputs = [f"y{i}" for i in range(axis.outputs)]
    computed(axis.output("value", [f"m{i}" for i in range(axis.points)], outputs), values)
    expected = [np.dot(inputs[i : i + 3], taps) for i in range(axis.outputs)]
    assert np.allclose([values[name] for name in outputs], expected, rtol=0, atol=ROUNDING * 3e6)


@pytest.mark.parametrize(("cell", "points", "outputs"), [(SQUARE, 16, 4), (WIDE, 24, 8)])
def test_a_cell_is_two_axes(cell: Cell, points: int, outputs: int) -> None:
    assert (cell.points, cell.outputs, len(cell.places)) == (points, outputs, points)
    random = np.random.default_rng(points)
    inputs = random.integers(-9, 9, (cell.down.points, cell.across.points)).astype(float)
    taps = random.integers(-9, 9, (3, 3)).astype(float)
    values = {f"d{i}{j}": inputs[i, j] for i, j in cell.places}
    computed(both_ways("value", "d", "t", "v", cell, inputs=True), values)
    weights: NDArray[np.float64] = np.array(cell.down.weights) @ taps @ np.array(cell.across.weights).T  # fmt: skip
    values |= {f"m{i}{j}": values[f"v{i}{j}"] * weights[i, j] for i, j in cell.places}
    computed(both_ways("value", "m", "s", "y", cell, inputs=False), values)
    for i in range(cell.down.outputs):
        for j in range(cell.across.outputs):
            expected = np.sum(inputs[i : i + 3, j : j + 3] * taps)
            assert np.isclose(values[f"y{i}{j}"], expected, rtol=0, atol=ROUNDING * 9 * 81)
