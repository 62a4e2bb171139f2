"""How near a model's answers are to those that were right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.backends.values import Value
from sardonyx.quantization.data import Feeds
from sardonyx.quantization.grid import Array
from sardonyx.quantization.report import Accuracy

__all__ = ["MOST_DECIBELS", "Tally", "decibels", "measure"]

MOST_DECIBELS = 200.0  # what no error at all is called


@dataclass
class Tally:
    """Sums over batches, of one output."""

    signal: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0

    def add(self, truth: Array, answer: Array) -> None:
        a, b = (np.asarray(x, np.float64).reshape(-1) for x in (truth, answer))
        known = np.isfinite(a)  # masked scores may be infinite on purpose
        a, b = a[known], b[known]
        self.signal += float(a @ a)
        self.other += float(b @ b)
        self.product += float(a @ b)
        self.noise += float((a - b) @ (a - b))

    @property
    def cosine(self) -> float:
        if self.signal == 0.0 or self.other == 0.0:
            return 1.0 if self.noise == 0.0 else 0.0
        found = self.product / math.sqrt(self.signal * self.other)
        return found if math.isfinite(found) else 0.0

    @property
    def sqnr(self) -> float:
        return decibels(self.signal, self.noise)


def decibels(signal: float, noise: float) -> float:
    """Of a signal over its error."""
    if not math.isfinite(noise):
        return -MOST_DECIBELS
    if noise == 0.0:
        return MOST_DECIBELS
    return max(10 * math.log10(signal / noise), -MOST_DECIBELS) if signal else -MOST_DECIBELS


def measure(
    run: Callable[[Feeds], Sequence[Value]],
    sample: Sequence[Feeds],
    answers: Sequence[Sequence[Value]],
) -> Accuracy | None:
    """The worst output's nearness to the answers that were right; None where no output is a float tensor."""
    tallies: dict[int, Tally] = {}
    for feeds, truth in zip(sample, answers, strict=True):
        for number, (a, b) in enumerate(zip(truth, run(feeds), strict=True)):
            if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype.kind in "fV":
                tallies.setdefault(number, Tally()).add(a, b)
    if not tallies:
        return None
    cosine = min(tally.cosine for tally in tallies.values())
    return Accuracy(len(answers), cosine, min(tally.sqnr for tally in tallies.values()))
