"""How much each node, quantized by itself, changes the model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sardonyx.quantization.accuracy import decibels, measure
from sardonyx.quantization.calibration import Progress
from sardonyx.quantization.data import Feeds
from sardonyx.quantization.switchboard import Switchboard

__all__ = ["Sensitivity", "measure_sensitivity"]

_MOST_BATCHES = 4  # each is run once a node


@dataclass(frozen=True)
class Sensitivity:
    """Of one target.

    Attributes:
        sqnr: decibels of its output over the error it makes on float inputs.
        change: 1 - cosine of the model's outputs, the worst of them.
    """

    sqnr: float
    change: float


def measure_sensitivity(
    board: Switchboard, sample: Sequence[Feeds], progress: Progress
) -> list[Sensitivity]:
    """Of every target, quantized alone."""
    batches = sample[:_MOST_BATCHES]
    answers = [board.run(np.zeros(board.size, np.bool_), feeds) for feeds in batches]
    sums = [board.noise(feeds) for feeds in batches]
    noise = sum((np.asarray(n, np.float64) for n, _ in sums), np.zeros(board.size))
    signal = sum((np.asarray(s, np.float64) for _, s in sums), np.zeros(board.size))
    found: list[Sensitivity] = []
    for number in range(board.size):
        alone = np.arange(board.size) == number
        accuracy = measure(partial(board.run, alone), batches, answers)
        change = 0.0 if accuracy is None else max(1.0 - accuracy.cosine, 0.0)
        found.append(Sensitivity(decibels(float(signal[number]), float(noise[number])), change))
        progress("measuring nodes", number + 1, board.size)
    return found
