"""Weights in a file, used where they lie: the file mapped into memory, and the tensors over its bytes.

A map outlives what happens to the file. If the file shrinks, reading past its new end kills the process, so
every tensor asks `verify` first; a change is then an error that can be read.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import ExternalDataError

__all__ = ["EmbeddedTensor", "MappedFile", "MappedTensor", "map_descriptor"]

_READ_WHOLE = 1 << 20  # smaller files are read: a model in a thousand files needs no thousand maps


@dataclass(frozen=True)
class MappedFile:
    """A file in memory: mapped, or read when it is small. Bytes that never were a file have no path."""

    path: str
    data: mmap.mmap | bytes
    identity: tuple[int, int, int] = (0, 0, 0)  # inode, size, modification time

    def verify(self) -> None:
        """Refuse to touch a mapped file that has shrunk or been rewritten."""
        if isinstance(self.data, bytes):
            return
        size = self.data.size()
        if size < len(self.data):
            raise self._changed(
                f"the file had {len(self.data):,} bytes when it was opened, and has {size:,} now.",
                size,
            )
        try:
            now = Path(self.path).stat()
        except OSError:
            return  # unlinked or moved: the map keeps the old file alive
        if now.st_ino == self.identity[0] and (now.st_size, now.st_mtime_ns) != self.identity[1:]:
            raise self._changed("the file was changed after it was opened.", now.st_size)

    def _changed(self, message: str, size: int) -> ExternalDataError:
        return ExternalDataError(
            message,
            where=f"file {self.path!r}",
            value=size,
            limit=len(self.data),
            hint="Load the model again; do not write to its files while it is in use.",
        )

    def view(self, start: int, end: int) -> memoryview:
        """The bytes from start to end, after a look at the file."""
        self.verify()
        return memoryview(self.data)[start:end]


def map_descriptor(descriptor: int, path: str) -> MappedFile:
    """Take over an open, checked descriptor; it is closed here, the map keeps the file."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        if status.st_size <= _READ_WHOLE:
            return MappedFile(path, file.read(status.st_size), identity)
        data = mmap.mmap(file.fileno(), status.st_size, prot=mmap.PROT_READ)
        return MappedFile(path, data, identity)


class EmbeddedTensor(ir.LazyTensor):
    """A tensor whose raw_data stays in the model's own file, looked up anew at every use."""

    __slots__ = ()

    def __init__(self, stored: onnx.TensorProto, file: MappedFile, start: int, end: int) -> None:
        dtype, shape = ir.DataType(stored.data_type), ir.Shape(stored.dims, frozen=True)
        super().__init__(
            lambda: _tensor(file.view(start, end), dtype, shape),
            dtype,
            shape,
            name=stored.name if stored.HasField("name") else None,
            doc_string=stored.doc_string if stored.HasField("doc_string") else None,
            metadata_props={e.key: e.value for e in stored.metadata_props} or None,
        )

    def __repr__(self) -> str:
        return f"{self._repr_base()}(name={self.name!r})"


class MappedTensor(ir.ExternalTensor):
    """An external tensor whose bytes come from a file that was opened and checked at load."""

    __slots__ = ("_file", "_stop", "checksum")

    def __init__(
        self, tensor: ir.ExternalTensor, file: MappedFile, base_dir: str, checksum: str | None
    ) -> None:
        super().__init__(
            tensor.location,
            tensor.offset,
            tensor.length,
            tensor.dtype,
            shape=tensor.shape,
            name=tensor.name or "",
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props) or None,
            base_dir=base_dir,
        )
        self.checksum = checksum  # carried along, for onnx_ir does not
        self._file = file
        self._stop = (tensor.offset or 0) + (tensor.size * tensor.dtype.bitwidth + 7) // 8

    @property
    def file(self) -> MappedFile:
        return self._file

    def _bytes(self) -> memoryview:
        return self._file.view(self.offset or 0, self._stop)

    def _load(self) -> None:
        self._array = _tensor(self._bytes(), self.dtype, self.shape).numpy()

    def numpy(self) -> np.ndarray[Any, Any]:
        self._file.verify()
        return super().numpy()

    def __array__(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        self._file.verify()
        return super().__array__(dtype)

    def tobytes(self) -> bytes:
        return bytes(self._bytes())

    def tofile(self, file: IO[bytes]) -> None:
        file.write(self._bytes())


def _tensor(data: memoryview, dtype: ir.DataType, shape: ir.Shape) -> ir.TensorProtocol:
    """A tensor over the bytes themselves; elements of less than a byte are unpacked when they are read."""
    if dtype.bitwidth < 8:
        return ir.PackedTensor(np.frombuffer(data, np.uint8), dtype, shape=shape)
    element = np.dtype(dtype.numpy()).newbyteorder("<")
    return ir.Tensor(np.frombuffer(data, element).reshape(shape.numpy()), dtype, shape=shape)
