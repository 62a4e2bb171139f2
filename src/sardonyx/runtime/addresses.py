"""Where an array's elements are, in a fifth of the time that numpy takes to tell.

An array's object begins with Python's head of an object, and then has the pointer to its elements: so it is in
numpy's ABI, which its C users compile in. Whether it is so here is tried once; elsewhere numpy is asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["address_of"]

Array = npt.NDArray[Any]

_HEAD = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address


def _as_numpy_says(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _as_it_lies(array: Array) -> int:
    return _pointer_at(id(array) + _HEAD).value or 0


def _choose() -> Callable[[Array], int]:
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    samples = (whole, whole[1:, 2:], whole.T, np.empty((0, 3)), np.ones((), np.int8))
    lie = ctypes.sizeof(ctypes.c_void_p) + _HEAD <= np.ndarray.__basicsize__ and all(
        _as_it_lies(array) == _as_numpy_says(array) for array in samples
    )
    return _as_it_lies if lie else _as_numpy_says


address_of = _choose()
