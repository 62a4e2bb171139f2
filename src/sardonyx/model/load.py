"""Guarded loading: any source becomes an `onnx_ir.Model`, or an error that says why not.

path, bytes, file, text, ModelProto
   │ read            within the limits; files are mapped, not copied
   │ wire            refuse oversized text, lift the large weights out
   │ parse           protobuf or ONNX text
   │ structure       every rule of the specification
   │ external data   opened beneath the model's folder, checked, mapped
   │ build           onnx_ir, and around it what onnx_ir does not carry
   ▼
onnx_ir.Model
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from sardonyx.errors import FormatError, LimitError, SardonyxError
from sardonyx.model.build import FILES, TRAINING, Parsed, build_model
from sardonyx.model.external_data import ExternalFiles
from sardonyx.model.guards.message import check_message
from sardonyx.model.guards.wire import lift_weights
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.mapped import MappedFile, map_descriptor
from sardonyx.model.names import quote
from sardonyx.model.text import is_text, parse_text

__all__ = ["FILES", "TRAINING", "Source", "load", "verify_files"]

Source = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | onnx.ModelProto | ir.Model
)


def load(
    source: Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    base_dir: str | os.PathLike[str] | None = None,
) -> ir.Model:
    """Load a model from a path, bytes, a binary file, ONNX text, a ModelProto, or pass an ir.Model through.

    Large weights stay memory-mapped. External data is found in the model's folder, or in `base_dir`. A
    ModelProto is not copied: leave it as it is while the model is in use.

    Raises:
        ModelError: FormatError, StructureError, ExternalDataError, LimitError or UnsupportedError.
    """
    if isinstance(source, ir.Model):
        return source
    folder = Path(base_dir) if base_dir is not None else None
    path = ""
    try:
        if isinstance(source, onnx.ModelProto):
            check_message(source, limits)
            parsed = Parsed(source, owned=False)
        else:
            file = _read(source, limits)
            if file.path:
                path = os.fspath(source)  # type: ignore[arg-type]
                folder = folder or Path(file.path).parent
            parsed = _parse(file, limits)
        return build_model(parsed, ExternalFiles(folder, limits), limits)
    except SardonyxError as error:
        if path and (error.where is None or isinstance(error, FormatError)):
            inside = f": {error.where}" if error.where is not None else ""
            error.where = f"file {quote(path)}{inside}"
        raise


def verify_files(model: ir.Model) -> None:
    """Refuse to go on when a file that the weights lie in has changed since it was mapped."""
    for file in model.meta.get(FILES, ()):
        file.verify()


def _read(source: Any, limits: Limits) -> MappedFile:
    if isinstance(source, str) and is_text(source[:4096].encode("utf-8", "replace")):
        return MappedFile("", source.encode("utf-8", "replace"))
    if isinstance(source, str | os.PathLike):
        return _open(os.fspath(source), limits)
    if isinstance(source, bytes | bytearray | memoryview):
        _check_size(memoryview(source).nbytes, limits, None)
        return MappedFile("", bytes(source))
    if not hasattr(source, "read"):
        raise FormatError(
            f"cannot load a model from {type(source).__name__}.",
            hint="Give a path, bytes, a binary file, an onnx.ModelProto or an onnx_ir.Model.",
        )
    try:
        content = source.read(limits.file_bytes + 1)
    except (OSError, ValueError) as error:
        raise FormatError(f"the file object cannot be read: {error}.") from error
    if not isinstance(content, bytes | bytearray | memoryview):
        raise FormatError(
            f"the file object gives {type(content).__name__}; open it in binary mode ('rb')."
        )
    _check_size(memoryview(content).nbytes, limits, None)
    return MappedFile("", bytes(content))


def _open(path: str, limits: Limits) -> MappedFile:
    where = f"file {quote(path)}"
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise FormatError(f"it is {what}.", where=where, hint="Give the .onnx file itself.")
        _check_size(status.st_size, limits, where)
        taken, descriptor = descriptor, -1
        return map_descriptor(taken, str(Path(path).absolute()))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"cannot be opened: {reason}.", where=where) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _check_size(size: int, limits: Limits, where: str | None) -> None:
    if size > limits.file_bytes:
        raise LimitError(
            f"{size:,} bytes; the limit is {limits.file_bytes:,} (Limits.file_bytes).",
            where=where,
            value=size,
            limit=limits.file_bytes,
            hint="A protobuf message ends at 2 GiB: save larger models with external data.",
        )
    if size == 0:
        raise FormatError("it is empty.", where=where, value=0)


def _parse(file: MappedFile, limits: Limits) -> Parsed:
    data = memoryview(file.data)
    if is_text(data):
        proto = parse_text(data, limits)
        check_message(proto, limits)
        return Parsed(proto)
    lifted = lift_weights(data, limits)
    try:
        proto = onnx.ModelProto.FromString(lifted.skeleton)  # type: ignore[arg-type]
    except DecodeError:
        raise FormatError(
            "protobuf cannot read it: it is damaged, cut off, or not an ONNX model."
        ) from None
    return Parsed(proto, file, lifted.weights)
