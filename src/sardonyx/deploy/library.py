"""A shared library that `sardonyx build` made, through its C interface: what a C program sees, with arrays.

This file stands by itself, over numpy alone: wheels carry a copy of it.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BAD_SHAPE", "Library", "LibraryError", "PortOf", "agrees"]

BAD_SHAPE = 16  # SARDONYX_BAD_SHAPE
_ALIGNMENT = 64

Array = NDArray[Any]


class LibraryError(RuntimeError):
    """What the library refused, in its own words."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class PortOf(NamedTuple):
    """An input or an output: the type as numpy or ml_dtypes call it, sizes as text."""

    name: str
    type: str
    shape: tuple[str, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        if hasattr(np, self.type):
            return np.dtype(self.type)
        import ml_dtypes  # small floats, which few models have at their border

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.type))
        return found


class _Error(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int32), ("text", ctypes.c_char * 252))


class _Buffer(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class _Port(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_char_p)),
        ("rank", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("element_bytes", ctypes.c_int32),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("user", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("parallel", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("memory_bytes", ctypes.c_int64),
        ("weights", ctypes.c_void_p),
        ("weights_bytes", ctypes.c_int64),
        ("threads", ctypes.c_int32),
    )


class Library:
    """A loaded library with one context, which serves one call at a time; calls from several threads wait.

    Args:
        threads: of the context.
        weights: the file of the weights, where they are not inside.
        fixed_memory: sizes of the dynamic dimensions for which all memory is taken now; nothing is allocated later.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        name: str,
        *,
        threads: int = 1,
        weights: Path | None = None,
        fixed_memory: Sequence[int] | None = None,
    ) -> None:
        self.name = name
        self._library = library
        self._lock = threading.Lock()
        self._blob: mmap.mmap | None = None
        self._memory: Array | None = None
        self.inputs = self._ports("input")
        self.outputs = self._ports("output")
        self.dims = self._dims()
        options = _Options(threads=threads)
        if weights is not None and weights.is_file():
            self._give_weights(options, weights)
        if fixed_memory is not None:
            self._give_memory(options, fixed_memory)
        self._context = ctypes.c_void_p()
        self._call("open", ctypes.byref(self._context), ctypes.byref(options))

    def close(self) -> None:
        """Give its memory back; further calls are mistakes."""
        if self._context.value is not None:
            self._function("close", None)(self._context)
            self._context = ctypes.c_void_p()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run once: arrays of the inputs' types in their order; all outputs."""
        arrays = [np.ascontiguousarray(array) for array in inputs]
        dims = self.bind([array.shape for array in arrays])
        shapes = [self._shape("output", n, port, dims) for n, port in enumerate(self.outputs)]
        results = [np.empty(s, p.dtype) for s, p in zip(shapes, self.outputs, strict=True)]
        with self._lock:
            self._call("run", self._context, dims, _buffers(arrays), _buffers(results))
        return results

    def bind(self, shapes: Sequence[Sequence[int]]) -> ctypes.Array[ctypes.c_int64]:
        """The dynamic dimensions that inputs of these shapes have."""
        dims = (ctypes.c_int64 * max(len(self.dims), 1))(*[-1] * len(self.dims))
        for number, shape in enumerate(shapes):
            sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
            self._call("bind", number, sizes, len(shape), dims)
        return dims

    def memory_needed(self, dims: Sequence[int] = ()) -> int:
        """The bytes that a context needs for these sizes of the dynamic dimensions."""
        found = ctypes.c_int64()
        given = (ctypes.c_int64 * max(len(self.dims), 1))(*dims)
        self._call("memory_needed", given, ctypes.byref(found))
        return found.value

    def _function(self, name: str, result: Any) -> Any:
        function = self._library[f"{self.name}_{name}"]
        function.restype = result
        return function

    def _call(self, name: str, *arguments: Any) -> None:
        error = _Error()
        function = self._function(name, ctypes.c_int32)
        if function(*arguments, ctypes.byref(error)) != 0:
            raise LibraryError(error.code, error.text.decode("utf-8", "replace"))

    def _ports(self, word: str) -> tuple[PortOf, ...]:
        function = self._function(word, ctypes.POINTER(_Port))
        found: list[PortOf] = []
        while port := function(ctypes.c_int32(len(found))):
            told = port.contents
            shape = tuple(told.shape[axis].decode() for axis in range(told.rank))
            found.append(PortOf(told.name.decode(), told.type.decode(), shape))
        return tuple(found)

    def _dims(self) -> tuple[str, ...]:
        function = self._function("dim", ctypes.c_char_p)
        found: list[str] = []
        while (name := function(ctypes.c_int32(len(found)))) is not None:
            found.append(name.decode())
        return tuple(found)

    def _shape(self, word: str, number: int, port: PortOf, dims: Any) -> list[int]:
        shape = (ctypes.c_int64 * max(len(port.shape), 1))()
        self._call(f"{word}_shape", number, dims, shape)
        return list(shape[: len(port.shape)])

    def _give_weights(self, options: _Options, path: Path) -> None:
        with path.open("rb") as file:
            self._blob = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        options.weights = np.frombuffer(self._blob, np.uint8).ctypes.data
        options.weights_bytes = len(self._blob)

    def _give_memory(self, options: _Options, dims: Sequence[int]) -> None:
        needed = self.memory_needed(dims)
        self._memory = np.empty(needed + _ALIGNMENT, np.uint8)
        options.memory = -(-self._memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        options.memory_bytes = needed


def agrees(answer: Array, expected: Array, atol: float, rtol: float, of_largest: float) -> bool:
    """Whether an answer lies within a tolerance: absolute, relative, and as part of the largest number."""
    if answer.shape != expected.shape or answer.dtype != expected.dtype:
        return False
    if expected.dtype.kind in "biu":
        return bool(np.array_equal(answer, expected))
    wide, right = answer.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(right)
    largest = float(np.max(np.abs(right[finite]), initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - right) <= atol + rtol * np.abs(right) + of_largest * largest
    same = (wide == right) | (np.isnan(wide) & np.isnan(right))
    return bool(np.all(np.where(finite, near, same)))


def _buffers(arrays: Sequence[Array]) -> ctypes.Array[_Buffer]:
    rows = [_Buffer(array.ctypes.data, array.nbytes) for array in arrays]
    return (_Buffer * max(len(rows), 1))(*rows)
