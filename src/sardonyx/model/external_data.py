"""Weights that lie in files beside the model, opened so that the model cannot choose what is read.

Each file is opened beneath the model's folder, one path component at a time, without following links; what
was opened is checked on its descriptor (a regular file with one name, long enough), then mapped. Nothing is
looked up by name a second time.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path, PurePosixPath

import onnx
import onnx_ir as ir

from sardonyx.errors import ExternalDataError
from sardonyx.model.guards.tensors import byte_size, check_bits, data_type, type_text
from sardonyx.model.limits import Limits
from sardonyx.model.mapped import MappedFile, MappedTensor, map_descriptor
from sardonyx.model.names import quote

__all__ = ["ExternalFiles", "MappedTensor"]

_KEYS = ("location", "offset", "length", "checksum")


class ExternalFiles:
    """The files beside one model, each opened once."""

    def __init__(self, base_dir: Path | None, limits: Limits) -> None:
        self._base_dir = base_dir
        self._limits = limits
        self._files: dict[str, MappedFile] = {}
        self._checksums: dict[str, str] = {}

    @property
    def opened(self) -> tuple[MappedFile, ...]:
        return tuple(self._files.values())

    def check(self, tensor: onnx.TensorProto, where: str) -> None:
        """Open the file that a tensor points at, and refuse what it does not hold."""
        entries = _entries(tensor, where)
        location = entries["location"]
        offset = _number(entries, "offset", where) or 0
        length = _number(entries, "length", where)
        dtype, count = data_type(tensor.data_type, where), math.prod(tensor.dims)
        need = byte_size(dtype, count)
        if length is not None and length != need:
            raise ExternalDataError(
                f"length is {length:,} bytes, but {type_text(dtype, tensor.dims)} needs {need:,}.",
                where=where,
                value=length,
                limit=need,
            )
        file = self._open(location, where)
        if offset + need > len(file.data):
            raise ExternalDataError(
                f"bytes {offset:,} to {offset + need:,} of {quote(location)}, which has {len(file.data):,}.",
                where=where,
                value=offset + need,
                limit=len(file.data),
                hint="The file is cut off, or belongs to another version of the model.",
            )
        check_bits(file.view(offset, offset + need), dtype, count, where)
        if "checksum" in entries:
            self._checksums[location] = entries["checksum"]

    def attach(self, tensor: ir.ExternalTensor) -> MappedTensor:
        """The same tensor, with its bytes; its file was opened by `check`."""
        location = os.fspath(tensor.location)
        return MappedTensor(
            tensor, self._files[location], str(self._base_dir), self._checksums.get(location)
        )

    def _open(self, location: str, where: str) -> MappedFile:
        if location not in self._files:
            if self._base_dir is None:
                raise ExternalDataError(
                    f"its data is in {quote(location)}, but the model came without a folder.",
                    where=where,
                    value=location,
                    hint="Load the model from its path, or pass base_dir=.",
                )
            self._files[location] = _open_beneath(self._base_dir, location, where, self._limits)
        return self._files[location]


def _entries(tensor: onnx.TensorProto, where: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key not in _KEYS:
            raise ExternalDataError(
                f"external data has the unknown key {quote(entry.key)} (known: {', '.join(_KEYS)}).",
                where=where,
                value=entry.key,
            )
        if entry.key in entries:
            raise ExternalDataError(
                f"external data has the key {entry.key!r} twice.", where=where, value=entry.key
            )
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
            f"{key} {quote(text)} is not a number of bytes.", where=where, value=text
        )
    return int(text)


def _open_beneath(base_dir: Path, location: str, where: str, limits: Limits) -> MappedFile:
    path = PurePosixPath(location)
    parts = path.parts
    if "\0" in location or not parts or path.is_absolute() or ".." in parts:
        raise ExternalDataError(
            f"the location {quote(location)} does not stay inside the model's folder.",
            where=where,
            value=location,
            hint="Locations are relative paths without '..'.",
        )
    full = base_dir.joinpath(*parts)
    descriptor = -1
    try:
        if limits.symlinks:
            descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        else:
            descriptor = _walk(base_dir, parts)
        _check_descriptor(os.fstat(descriptor), location, where, limits)
        taken, descriptor = descriptor, -1
        return map_descriptor(taken, str(full))
    except OSError as error:
        raise _refusal(error, location, where) from None
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


def _check_descriptor(status: os.stat_result, location: str, where: str, limits: Limits) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ExternalDataError(
            f"{quote(location)} is not a regular file.", where=where, value=location
        )
    if status.st_nlink > 1 and not limits.hardlinks:
        raise ExternalDataError(
            f"{quote(location)} has {status.st_nlink} names (hard links), so it may be somebody else's file.",
            where=where,
            value=status.st_nlink,
            limit=1,
            hint="Copy the file, or allow it with Limits(hardlinks=True).",
        )


_REASONS: dict[int | None, tuple[str, str]] = {
    errno.ENOENT: ("does not exist.", "Keep the data files beside the model."),
    errno.ELOOP: (
        "is a symbolic link.",
        "Copy the file, or allow links with Limits(symlinks=True).",
    ),
    errno.ENOTDIR: (
        "lies behind a symbolic link or a file.",
        "Copy the folder, or allow links with Limits(symlinks=True).",
    ),
    errno.EMFILE: ("is one file too many.", "Raise the number of open files: ulimit -n 65536."),
}


def _refusal(error: OSError, location: str, where: str) -> ExternalDataError:
    text, hint = _REASONS.get(error.errno, (f"cannot be opened: {error.strerror}.", None))
    return ExternalDataError(f"{quote(location)} {text}", where=where, value=location, hint=hint)
