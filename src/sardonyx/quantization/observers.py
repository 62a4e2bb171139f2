"""What calibration remembers of a value: a range, or a histogram, of any number of batches in the same memory.

observer = make_observer("percentile")
for batch in batches: observer.see(batch)
low, high = observer.range(grid_steps=255)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args

import numpy as np

from sardonyx.quantization.grid import Array

__all__ = ["CALIBRATIONS", "Calibration", "Observer", "make_observer"]

Calibration = Literal["minmax", "percentile", "entropy", "mse"]
CALIBRATIONS: tuple[str, ...] = get_args(Calibration)
_BINS = 2048
_PERCENTILE = 99.99
_CUTS = 100  # how many narrower ranges are tried


class Observer(Protocol):
    """Sees every batch of a value, and says at the end which range to cover."""

    def see(self, batch: Array) -> None: ...

    def range(self, steps: int) -> tuple[float, float]:
        """The range to cover by so many steps."""
        ...


def make_observer(calibration: Calibration, percentile: float = _PERCENTILE) -> Observer:
    makers: dict[str, Callable[[], Observer]] = {
        "minmax": MinMax,
        "percentile": lambda: Percentile(percentile),
        "entropy": Entropy,
        "mse": SquaredError,
    }
    return makers[calibration]()


class MinMax:
    """The smallest and the largest number of all."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def see(self, batch: Array) -> None:
        if batch.size:
            self.low = min(self.low, float(batch.min()))
            self.high = max(self.high, float(batch.max()))

    def range(self, steps: int) -> tuple[float, float]:
        return (self.low, self.high) if self.low <= self.high else (0.0, 0.0)

    @property
    def largest(self) -> float:
        """The largest size of a number."""
        return max(-self.low, self.high, 0.0)


class Histogram(MinMax):
    """How often numbers fall into each of equal bins around zero.

    When a number lies outside, the bins become twice as wide, as often as it takes, and neighbours are merged: nothing
    that was counted is lost, and a bin never has to be split.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limit = 0.0  # the bins cover -limit … limit
        self.counts = np.zeros(_BINS, np.int64)

    def see(self, batch: Array) -> None:
        super().see(batch)
        largest = max(-self.low, self.high)
        if not batch.size or largest == 0.0:
            self.counts[_BINS // 2] += batch.size
            return
        if self.limit == 0.0:
            self.limit = _power_of_two(largest)
        while self.limit < largest:
            self._widen()
        scale = np.float32(_BINS / (2 * self.limit))
        places = (batch.reshape(-1).astype(np.float32) * scale).astype(np.int32)
        # Towards zero, not downwards: the two bins beside zero would be one. So negative ones are counted apart.
        negative = np.signbit(batch.reshape(-1))
        places += _BINS // 2
        places -= negative
        np.clip(places, 0, _BINS - 1, out=places)
        self.counts += np.bincount(places, minlength=_BINS)

    def _widen(self) -> None:
        half = _BINS // 2
        merged = self.counts.reshape(-1, 2).sum(axis=1)
        self.counts = np.zeros(_BINS, np.int64)
        self.counts[half // 2 : half // 2 + half] = merged
        self.limit *= 2

    @property
    def edges(self) -> Array:
        return np.linspace(-self.limit, self.limit, _BINS + 1)

    def cuts(self) -> list[tuple[float, float]]:
        """Ranges that leave out more and more of both ends, the whole one first."""
        low, high = super().range(0)
        limit = max(-low, high)
        return [
            (max(low, -limit * (1 - cut / _CUTS)), min(high, limit * (1 - cut / _CUTS)))
            for cut in range(_CUTS * 9 // 10)
        ]


class Percentile(Histogram):
    """The range that leaves out the given share of the numbers, at both ends together."""

    def __init__(self, percentile: float) -> None:
        super().__init__()
        self.percentile = percentile

    def range(self, steps: int) -> tuple[float, float]:
        low, high = super().range(steps)
        total = int(self.counts.sum())
        if total == 0 or self.limit == 0.0:
            return low, high
        outside = total * (1 - self.percentile / 100) / 2
        begins = np.cumsum(self.counts)
        first = int(np.searchsorted(begins, outside, side="right"))
        last = int(np.searchsorted(begins, total - outside, side="left"))
        edges = self.edges
        return max(low, float(edges[first])), min(high, float(edges[min(last, _BINS - 1) + 1]))


class SquaredError(Histogram):
    """The range with the smallest squared error, of rounding inside and of clipping outside."""

    def range(self, steps: int) -> tuple[float, float]:
        if self.limit == 0.0:
            return super().range(steps)
        edges = self.edges
        centers, counts = (edges[:-1] + edges[1:]) / 2, self.counts.astype(np.float64)

        def error(cut: tuple[float, float]) -> float:
            low, high = min(cut[0], 0.0), max(cut[1], 0.0)
            step = (high - low) / steps
            outside = np.maximum(np.maximum(low - centers, centers - high), 0.0)
            inside = np.where(outside > 0, 0.0, step * step / 12)
            return float(((outside**2 + inside) * counts).sum())

        return min(self.cuts(), key=error)


class Entropy(Histogram):
    """The range whose quantized histogram tells the most about the true one (least Kullback-Leibler divergence)."""

    def range(self, steps: int) -> tuple[float, float]:
        if self.limit == 0.0:
            return super().range(steps)
        levels = min(steps + 1, _BINS // 4)  # finer steps than bins say nothing
        return min(self.cuts(), key=lambda cut: self._divergence(cut, levels))

    def _divergence(self, cut: tuple[float, float], levels: int) -> float:
        edges = self.edges
        first = int(np.searchsorted(edges, cut[0], side="right")) - 1
        last = min(int(np.searchsorted(edges, cut[1], side="left")), _BINS)
        first, last = max(first, 0), max(last, first + 1)
        inside = self.counts[first:last].astype(np.float64)
        if inside.size < levels:
            return np.inf
        truth = inside.copy()
        truth[0] += self.counts[:first].sum()
        truth[-1] += self.counts[last:].sum()
        level = np.arange(inside.size) * levels // inside.size
        filled = (inside > 0).astype(np.float64)
        sums = np.bincount(level, inside, levels)
        sizes = np.bincount(level, filled, levels)
        guess = np.divide(sums, sizes, out=np.zeros(levels), where=sizes > 0)[level] * filled
        truth, guess = truth / truth.sum(), guess / max(guess.sum(), 1.0)
        # A bin that is not empty in truth alone: clipped mass fell there. A floor keeps the sum finite.
        floor = 1e-9
        known = truth > 0
        ratio = truth[known] / np.maximum(guess[known], floor)
        return float((truth[known] * np.log(ratio)).sum())


def _power_of_two(number: float) -> float:
    return float(2.0 ** np.ceil(np.log2(max(number, 1e-30))))
