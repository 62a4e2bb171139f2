"""Where an array's elements are, in a fifth of the time that numpy takes to tell.

An array's object begins with Python's head of an object, and then has the pointer to its elements: so it is in
numpy's ABI, which its C users compile in. Whether it is so here is tried once; elsewhere numpy is asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PLACE", "address_of"]

Array = np.ndarray[Any, np.dtype[Any]]

_HEAD = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address


def _as_numpy_says(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _as_it_lies(array: Array) -> int:
    return _pointer_at(id(array) + _HEAD).value or 0


def _lies_as_thought() -> bool:
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    samples = (whole, whole[1:, 2:], whole.T, np.empty((0, 3)), np.ones((), np.int8))
    return ctypes.sizeof(ctypes.c_void_p) + _HEAD <= np.ndarray.__basicsize__ and all(
        _as_it_lies(array) == _as_numpy_says(array) for array in samples
    )


# Where in the object of an array the address of its elements lies, in bytes; None where that is not known.
PLACE: int | None = _HEAD if _lies_as_thought() else None
address_of: Callable[[Array], int] = _as_numpy_says if PLACE is None else _as_it_lies
