"""A built artifact, opened from Python through its C interface: what a C program sees, with arrays.

    artifact = Artifact(Path("out/libmlp.so"))
    (y,) = artifact.run(None, {"x": x})

One context serves one call at a time; calls from several threads wait for each other.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sardonyx.deploy.manifest import changed_files, read_self_test
from sardonyx.deploy.self_test import SelfTest, differing
from sardonyx.deploy.tag import TAG
from sardonyx.errors import BuildError, InputError, RunError, SardonyxError
from sardonyx.runtime.addresses import address_of
from sardonyx.runtime.ports import Port, check_feeds

__all__ = ["Artifact"]

Array = npt.NDArray[Any]

_ALIGNMENT = 64


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


class Artifact:
    """A shared library that `sardonyx build` made.

    Args:
        threads: of the context.
        weights: where the weights are beside it and not under their usual name.
        fixed_memory: sizes of the dynamic dimensions for which all memory is taken now; nothing is allocated later.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int = 1,
        weights: Path | None = None,
        fixed_memory: Sequence[int] | None = None,
    ) -> None:
        self.path = path
        self._library, self.name = _load(path)
        self._lock = threading.Lock()
        self._blob: mmap.mmap | None = None
        self._memory: Array | None = None
        self.inputs = self._ports("input")
        self.outputs = self._ports("output")
        self.dims = self._dims()
        options = _Options(threads=threads)
        self._give_weights(options, weights or path.parent / f"{self.name}.weights")
        if fixed_memory is not None:
            self._give_memory(options, fixed_memory)
        self._context = ctypes.c_void_p()
        self._call("open", ctypes.byref(self._context), ctypes.byref(options))

    def close(self) -> None:
        """Give its memory back; further calls are mistakes."""
        if self._context.value is not None:
            self._function("close", None)(self._context)
            self._context = ctypes.c_void_p()

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Array]:
        """Run once: arrays by input name; the named outputs, or all."""
        checked = check_feeds(self.inputs, feeds)
        arrays = [np.ascontiguousarray(checked[port.name]) for port in self.inputs]
        dims = self.bind([array.shape for array in arrays])
        shapes = [self._shape("output", n, port, dims) for n, port in enumerate(self.outputs)]
        results = [np.empty(s, p.dtype) for s, p in zip(shapes, self.outputs, strict=True)]
        with self._lock:
            self._call("run", self._context, dims, _buffers(arrays), _buffers(results))
        named = {port.name: array for port, array in zip(self.outputs, results, strict=True)}
        return results if output_names is None else [named[name] for name in output_names]

    @cached_property
    def question(self) -> SelfTest | None:
        """The self-test that was built with it, where it still lies beside it."""
        return read_self_test(self.path, self.name)

    def self_test(self) -> list[str]:
        """What is not as it was built: files of other bytes, outputs of other answers; nothing is good."""
        if self.question is None:
            raise InputError(
                f"{self.name}.json and {self.name}.selftest do not lie beside it",
                where=f"artifact {self.path.name!r}",
                hint="Keep the files of a build together, or feed inputs of your own.",
            )
        changed = changed_files(self.path, self.name)
        if changed:
            return changed
        names = [port.name for port in self.inputs]
        answers = self.run(None, dict(zip(names, self.question.inputs, strict=True)))
        return [self.outputs[number].name for number in differing(self.question, answers)]

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
            raise _failure(error, self.path)

    def _ports(self, word: str) -> tuple[Port, ...]:
        function = self._function(word, ctypes.POINTER(_Port))
        found: list[Port] = []
        while port := function(ctypes.c_int32(len(found))):
            found.append(_port(port.contents))
        return tuple(found)

    def _dims(self) -> tuple[str, ...]:
        function = self._function("dim", ctypes.c_char_p)
        found: list[str] = []
        while (name := function(ctypes.c_int32(len(found)))) is not None:
            found.append(name.decode())
        return tuple(found)

    def _shape(self, word: str, number: int, port: Port, dims: Any) -> list[int]:
        assert port.shape is not None
        shape = (ctypes.c_int64 * max(len(port.shape), 1))()
        self._call(f"{word}_shape", number, dims, shape)
        return list(shape[: len(port.shape)])

    def _give_weights(self, options: _Options, path: Path) -> None:
        if not path.is_file():
            return
        with path.open("rb") as file:
            self._blob = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        options.weights = np.frombuffer(self._blob, np.uint8).ctypes.data
        options.weights_bytes = len(self._blob)

    def _give_memory(self, options: _Options, dims: Sequence[int]) -> None:
        needed = self.memory_needed(dims)
        self._memory = np.empty(needed + _ALIGNMENT, np.uint8)
        begin = address_of(self._memory)
        options.memory = -(-begin // _ALIGNMENT) * _ALIGNMENT
        options.memory_bytes = needed


def _load(path: Path) -> tuple[ctypes.CDLL, str]:
    try:
        library = ctypes.CDLL(str(path.absolute()))
        tag = ctypes.cast(library[TAG], ctypes.c_char_p).value
    except (OSError, AttributeError) as error:
        raise BuildError(
            f"it is no artifact that this machine can load: {error}",
            where=f"file {str(path)!r}",
            hint="Build it for this machine: sardonyx build MODEL --target native --emit so.",
        ) from None
    return library, (tag or b"").decode()


def _port(port: _Port) -> Port:
    name = port.type.decode()
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = tuple(_dim(port.shape[axis].decode()) for axis in range(port.rank))
    return Port(port.name.decode(), f"tensor({name})", dtype, shape)


def _dim(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _buffers(arrays: Sequence[Array]) -> ctypes.Array[_Buffer]:
    rows = [_Buffer(address_of(array), array.nbytes) for array in arrays]
    return (_Buffer * max(len(rows), 1))(*rows)


def _failure(error: _Error, path: Path) -> SardonyxError:
    text, where = error.text.decode("utf-8", "replace"), f"artifact {path.name!r}"
    return (InputError if error.code == 16 else RunError)(text, where=where, value=error.code)
