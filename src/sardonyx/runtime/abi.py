"""What a compiled model and this process say to each other: `backends/c/support/abi.h` as ctypes."""

from __future__ import annotations

import ctypes

__all__ = ["CANCELLED", "DEADLINE", "PAUSED", "Again", "Run"]

CANCELLED, DEADLINE, PAUSED = 1, 2, 6


class Run(ctypes.Structure):
    """sx_run."""

    _fields_ = (
        ("parallel", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("look", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("deadline", ctypes.c_int64),
        ("since", ctypes.c_int64),
        ("budget", ctypes.c_int64),
        ("threads", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("step", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
    )


class Again(ctypes.Structure):
    """sx_call."""

    _fields_ = (
        ("run", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("first", ctypes.c_int32),
        ("end", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("items", ctypes.c_int32),
        ("at", ctypes.c_int32),
        ("tensors", ctypes.c_void_p),
        ("list", ctypes.c_void_p),
    )
