"""Arrays that begin at a line of the cache: a vector that lies across two lines takes two loads.

numpy begins arrays at multiples of 16 bytes, large ones 16 behind a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.plan.memory import ALIGNMENT
from sardonyx.runtime.addresses import address_of

__all__ = ["on_a_line", "owns"]

Array = np.ndarray[Any, np.dtype[Any]]


def on_a_line(array: Array) -> Array:
    """The array in memory of its own that begins at a line: a copy, unless it is there."""
    if array.dtype == object or (owns(array) and address_of(array) % ALIGNMENT == 0):
        return array
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    begin = -address_of(memory) % ALIGNMENT
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def owns(array: Array) -> bool:
    """Whether its elements are in Python's memory, and not in a file that is mapped, or in somebody else's buffer."""
    return array.flags.owndata or (isinstance(array.base, np.ndarray) and owns(array.base))
