from __future__ import annotations

import numpy as np
import pytest

from sardonyx.quantization.observers import CALIBRATIONS, Histogram, make_observer


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_batches_count_as_one(calibration: str) -> None:
    """However the numbers come, and however much larger the later ones are."""
    numbers = np.random.default_rng(0).standard_normal(40_000).astype(np.float32)
    numbers[20_000:] *= 37
    whole, parts = make_observer(calibration), make_observer(calibration)  # type: ignore[arg-type]
    whole.see(numbers)
    for part in np.split(numbers, 16):
        parts.see(part.reshape(50, 50))
    np.testing.assert_allclose(whole.range(255), parts.range(255), rtol=0.02)


@pytest.mark.parametrize("calibration", ["percentile", "entropy", "mse"])
def test_single_numbers_far_out_are_left_out(calibration: str) -> None:
    numbers = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    numbers[:2] = 60.0, -60.0
    observer = make_observer(calibration)  # type: ignore[arg-type]
    observer.see(numbers)
    low, high = observer.range(255)
    assert (
        -50 < low < -2
    )  # the squared error of a clipped number counts for more than that of many rounded ones
    assert 2 < high < 50


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_what_is_never_negative_has_no_range_below_zero(calibration: str) -> None:
    observer = make_observer(calibration)  # type: ignore[arg-type]
    observer.see(np.abs(np.random.default_rng(0).standard_normal(10_000)).astype(np.float32))
    low, high = observer.range(255)
    assert low >= 0
    assert high > 1


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("numbers", [np.zeros(10), np.full(5, 3.0), np.empty(0)])
def test_degenerate_values_have_a_range(calibration: str, numbers: np.ndarray) -> None:
    observer = make_observer(calibration)  # type: ignore[arg-type]
    observer.see(numbers.astype(np.float32))
    low, high = observer.range(255)
    largest = float(numbers.max(initial=0.0))
    assert low <= largest
    assert high == pytest.approx(largest, rel=0.01)


def test_a_histogram_loses_nothing_when_it_widens() -> None:
    histogram = Histogram()
    numbers = np.random.default_rng(0).standard_normal((30, 1000)).astype(np.float32)
    for power, batch in enumerate(numbers):
        histogram.see(batch * np.float32(1.7) ** power)
    assert histogram.counts.sum() == 30_000
    assert histogram.limit >= np.abs(numbers[-1]).max() * 1.7**29
    below = histogram.counts[: len(histogram.counts) // 2].sum()
    assert below == sum((batch < 0).sum() for batch in numbers)
