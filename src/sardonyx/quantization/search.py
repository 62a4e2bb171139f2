"""The mix with the most nodes quantized that holds a bound.

1. all nodes quantized: done where that holds
2. the most sensitive ones go back to float, as few as hold (by halving)
3. of these, any that the bound does not need is quantized again, the most expensive first
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.quantization.calibration import Progress
from sardonyx.quantization.grid import Array

__all__ = ["find_mix"]

_MOST_RETRIES = 48


def find_mix(
    holds: Callable[[Array], bool],
    ranking: Sequence[int],
    costs: Sequence[float],
    progress: Progress,
) -> Array:
    """Which nodes to quantize, as flags.

    Args:
        holds: whether a mix is within the bound; none quantized always is.
        ranking: numbers of the nodes, the most sensitive first.
        costs: of each node; what is expensive gains most by being quantized.
    """
    tried = 0

    def attempt(mix: Array) -> bool:
        nonlocal tried
        tried += 1
        progress("trying mixes", tried, None)
        return holds(mix)

    def without(numbers: Sequence[int]) -> Array:
        mix = np.ones(len(ranking), np.bool_)
        mix[list(numbers)] = False
        return mix

    if attempt(without(())):
        return without(())
    low, high = 0, len(ranking)  # `low` floats do not hold, `high` do
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if attempt(without(ranking[:middle])) else (middle, high)
    mix = without(ranking[:high])
    # The last one put back is needed by itself; the others were only more sensitive.
    again = sorted(ranking[: high - 1], key=lambda number: -costs[number])
    for number in again[:_MOST_RETRIES]:
        mix[number] = True
        if not attempt(mix):
            mix[number] = False
    return mix
