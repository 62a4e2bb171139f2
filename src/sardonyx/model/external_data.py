"""Weights that lie in files beside the model, opened so that the model cannot choose what is read.

Each file is opened beneath the model's folder, one path component at a time, without following links; what
was opened is checked on its descriptor (a regular file with one name, long enough), then mapped. Nothing is
looked up by name a second time.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import ExternalDataError
from sardonyx.model.limits import Limits
from sardonyx.model.tensors import data_type, type_text

__all__ = ["ExternalFiles", "MappedFile", "MappedTensor"]

_KEYS = ("location", "offset", "length", "checksum")
_READ_WHOLE = (
    1 << 20
)  # files up to this size are read, so that a model in a thousand files needs no thousand maps


@dataclass(frozen=True)
class MappedFile:
    """A file in memory: mapped, or read when it is small. `verify` notices when it changes under the map."""

    path: str
    data: mmap.mmap | bytes
    identity: tuple[int, int, int]  # inode, size, modification time

    def verify(self) -> None:
        """Refuse to touch a mapped file that has shrunk or been rewritten: reading it could kill the process."""
        if isinstance(self.data, bytes):
            return
        if self.data.size() < len(self.data):
            raise ExternalDataError(
                f"the file had {len(self.data):,} bytes when it was opened, and has {self.data.size():,} now.",
                where=f"file {self.path!r}",
                hint="Load the model again; do not write to its files while it is in use.",
            )
        try:
            now = Path(self.path).stat()
        except OSError:
            return  # unlinked or moved: the map keeps the old file alive
        if now.st_ino == self.identity[0] and (now.st_size, now.st_mtime_ns) != self.identity[1:]:
            raise ExternalDataError(
                "the file was changed after it was opened.",
                where=f"file {self.path!r}",
                hint="Load the model again; do not write to its files while it is in use.",
            )


def map_descriptor(descriptor: int, path: str) -> MappedFile:
    """Take over an open, checked descriptor; it is closed here, the map keeps the file."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        if status.st_size <= _READ_WHOLE:
            return MappedFile(path, file.read(status.st_size), identity)
        return MappedFile(
            path, mmap.mmap(file.fileno(), status.st_size, prot=mmap.PROT_READ), identity
        )


class MappedTensor(ir.ExternalTensor):
    """An external tensor whose bytes come from a file that was opened and checked at load."""

    __slots__ = ("_file", "_view")

    def __init__(self, tensor: ir.ExternalTensor, file: MappedFile, base_dir: str) -> None:
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
        self._file = file
        self._view = (tensor.offset or 0, (tensor.size * tensor.dtype.bitwidth + 7) // 8)

    @property
    def file(self) -> MappedFile:
        return self._file

    def _bytes(self) -> memoryview:
        self._file.verify()
        offset, nbytes = self._view
        return memoryview(self._file.data)[offset : offset + nbytes]

    def _load(self) -> None:
        if self.dtype.bitwidth >= 8:
            dtype = np.dtype(self.dtype.numpy()).newbyteorder("<")
            self._array = np.frombuffer(self._bytes(), dtype=dtype).reshape(self.shape.numpy())
        else:
            packed = onnx.TensorProto(
                data_type=self.dtype.value, dims=self.shape.numpy(), raw_data=bytes(self._bytes())
            )
            self._array = ir.serde.TensorProtoTensor(packed).numpy()

    def numpy(self) -> np.ndarray:
        self._file.verify()
        return super().numpy()

    def tobytes(self) -> bytes:
        return bytes(self._bytes())

    def tofile(self, file: IO[bytes]) -> None:
        file.write(self._bytes())


class ExternalFiles:
    """The files beside one model, each opened once."""

    def __init__(self, base_dir: Path | None, limits: Limits) -> None:
        self._base_dir = base_dir
        self._limits = limits
        self._files: dict[str, MappedFile] = {}

    @property
    def opened(self) -> tuple[MappedFile, ...]:
        return tuple(self._files.values())

    def check(self, proto: onnx.TensorProto, where: str) -> None:
        """Open the file that a tensor points at, and refuse what it does not hold."""
        entries = _entries(proto, where)
        location = entries["location"]
        file = self._open(location, where)
        dtype = data_type(proto.data_type, where)
        nbytes = (math.prod(proto.dims) * dtype.bitwidth + 7) // 8
        offset = _number(entries, "offset", where) or 0
        length = _number(entries, "length", where)
        if length is not None and length != nbytes:
            raise ExternalDataError(
                f"length is {length:,} bytes, but {type_text(dtype, proto.dims)} needs {nbytes:,}.",
                where=where,
                value=length,
                limit=nbytes,
            )
        if offset + nbytes > len(file.data):
            raise ExternalDataError(
                f"bytes {offset:,} to {offset + nbytes:,} of {location!r}, which has {len(file.data):,}.",
                where=where,
                value=offset + nbytes,
                limit=len(file.data),
                hint="The file is cut off, or belongs to another version of the model.",
            )
        if dtype == ir.DataType.BOOL and nbytes:
            stored = np.frombuffer(file.data, np.uint8, count=nbytes, offset=offset)
            if int(stored.max()) > 1:
                raise ExternalDataError(
                    "a bool tensor holds bytes other than 0 and 1.", where=where
                )

    def attach(self, tensor: ir.ExternalTensor) -> MappedTensor:
        """The same tensor, with its bytes; its file was opened by `check`."""
        return MappedTensor(tensor, self._files[os.fspath(tensor.location)], str(self._base_dir))

    def _open(self, location: str, where: str) -> MappedFile:
        if location not in self._files:
            if self._base_dir is None:
                raise ExternalDataError(
                    f"its data is in {location!r}, but the model came without a folder.",
                    where=where,
                    hint="Load the model from its path, or pass base_dir=.",
                )
            self._files[location] = _open_beneath(self._base_dir, location, where, self._limits)
        return self._files[location]


def _entries(proto: onnx.TensorProto, where: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for entry in proto.external_data:
        if entry.key not in _KEYS:
            raise ExternalDataError(
                f"external data has the unknown key {entry.key[:80]!r} (known: {', '.join(_KEYS)}).",
                where=where,
                value=entry.key[:80],
            )
        if entry.key in entries:
            raise ExternalDataError(f"external data has the key {entry.key!r} twice.", where=where)
        entries[entry.key] = entry.value
    if not entries.get("location"):
        raise ExternalDataError("external data without a location.", where=where)
    return entries


def _number(entries: dict[str, str], key: str, where: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ExternalDataError(
            f"{key} {text[:40]!r} is not a number of bytes.", where=where, value=text[:40]
        )
    return int(text)


def _open_beneath(base_dir: Path, location: str, where: str, limits: Limits) -> MappedFile:
    shown = location if len(location) <= 200 else location[:197] + "…"
    parts = PurePosixPath(location).parts
    if "\0" in location or not parts or PurePosixPath(location).is_absolute() or ".." in parts:
        raise ExternalDataError(
            f"the location {shown!r} does not stay inside the model's folder.",
            where=where,
            value=shown,
            hint="Locations are relative paths without '..'.",
        )
    path = base_dir.joinpath(*parts)
    descriptor = -1
    try:
        if limits.symlinks:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        else:
            descriptor = _walk(base_dir, parts)
        _check_descriptor(os.fstat(descriptor), shown, where, limits)
        found, descriptor = map_descriptor(descriptor, str(path)), -1
        return found
    except OSError as error:
        raise _refusal(error, shown, where) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _walk(base_dir: Path, parts: tuple[str, ...]) -> int:
    """Open base_dir/a/b/c one component at a time; a link anywhere on the way is an error (ELOOP)."""
    current = os.open(base_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            following = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = following
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(parts[-1], flags, dir_fd=current)
    finally:
        os.close(current)


def _check_descriptor(status: os.stat_result, shown: str, where: str, limits: Limits) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ExternalDataError(f"{shown!r} is not a regular file.", where=where, value=shown)
    if status.st_nlink > 1 and not limits.hardlinks:
        raise ExternalDataError(
            f"{shown!r} has {status.st_nlink} names (hard links), so it may be somebody else's file.",
            where=where,
            value=status.st_nlink,
            limit=1,
            hint="Copy the file, or allow it with Limits(hardlinks=True).",
        )


def _refusal(error: OSError, shown: str, where: str) -> ExternalDataError:
    details: dict[int | None, tuple[str, str | None]] = {
        errno.ENOENT: ("does not exist.", "Keep the data files beside the model."),
        errno.ELOOP: (
            "is a symbolic link.",
            "Copy the file, or allow links with Limits(symlinks=True).",
        ),
        errno.ENOTDIR: (
            "lies behind a symbolic link or a file.",
            "Copy the folder, or allow links with Limits(symlinks=True).",
        ),
    }
    text, hint = details.get(error.errno, (f"cannot be opened: {error.strerror}.", None))
    return ExternalDataError(f"{shown!r} {text}", where=where, value=shown, hint=hint)
