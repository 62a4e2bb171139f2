"""Inputs from files: .npy, .npz, .pb, or a folder of them.

x.npy                 one array; for the input of that name, or the only one
inputs.npz            arrays by input name, or arr_0, arr_1, … by position
input_0.pb            a TensorProto, by position or by its own name
test_data_set_0/      a folder of the above
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx_ir as ir
from google.protobuf.message import DecodeError

from sardonyx.backends.reference import Value
from sardonyx.comparison.inputs import input_ports
from sardonyx.errors import InputError
from sardonyx.runtime.ports import Port

__all__ = ["read_for_ports", "read_inputs"]

_KINDS = (".npy", ".npz", ".pb")
_POSITION = re.compile(r"(?:input|arr)_(\d+)")


def read_inputs(path: Path, model: ir.Model) -> dict[str, Value]:
    """The inputs in a file or folder, by input name.

    Raises:
        InputError: there is nothing there, it cannot be read, or it fits no input.
    """
    return read_for_ports(path, [port for _, port in input_ports(model)])


def read_for_ports(path: Path, ports: list[Port]) -> dict[str, Value]:
    """The same for whatever has these inputs."""
    if path.is_dir():
        # Beside its inputs, an official data set holds the expected outputs.
        files = sorted(
            f for f in path.iterdir() if f.suffix in _KINDS and not f.stem.startswith("output_")
        )
        if not files:
            raise InputError(
                f"no {', '.join(_KINDS)} in the folder.", where=f"folder {str(path)!r}"
            )
    else:
        files = [path]
    feeds: dict[str, Value] = {}
    for file in files:
        for name, value in _read_file(file, ports).items():
            if name in feeds:
                raise InputError(f"the input {name!r} comes twice.", where=f"file {str(file)!r}")
            feeds[name] = value
    return feeds


def _read_file(file: Path, ports: list[Port]) -> dict[str, Value]:
    where = f"file {str(file)!r}"
    if file.suffix not in _KINDS:
        raise InputError(
            f"inputs are read from {', '.join(_KINDS)} and folders of them.",
            where=where,
            value=file.suffix,
        )
    try:
        if file.suffix == ".npy":
            array = np.load(file, allow_pickle=False)
            return {_port(file.stem, ports, where, alone=True).name: _plain(array)}
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as archive:
                found: Mapping[str, Any] = {key: _plain(archive[key]) for key in archive.files}
            alone = len(found) == 1
            return {_port(key, ports, where, alone=alone).name: found[key] for key in found}
        return _read_proto(file.read_bytes(), file.stem, ports, where)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, DecodeError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}.", where=where) from None


def _read_proto(content: bytes, stem: str, ports: list[Port], where: str) -> dict[str, Value]:
    numbered = _POSITION.fullmatch(stem)
    named = onnx.TensorProto.FromString(content).name if numbered is None else ""
    port = _port(stem if numbered else named or stem, ports, where, alone=len(ports) == 1)
    if port.type.startswith("seq("):
        return {port.name: onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content))}
    if port.type.startswith("optional("):
        return {port.name: onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(content))}
    return {port.name: onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))}


def _port(key: str, ports: list[Port], where: str, *, alone: bool) -> Port:
    """The input that a name in a file means: by name, by number, or the only one there is."""
    for port in ports:
        if port.name == key:
            return port
    numbered = _POSITION.fullmatch(key)
    if numbered is not None and int(numbered[1]) < len(ports):
        return ports[int(numbered[1])]
    if alone and len(ports) == 1:
        return ports[0]
    raise InputError(
        f"the model has no input {key[:120]!r}.",
        where=where,
        value=key[:120],
        hint=f"Its inputs are: {'; '.join(map(str, ports)) or 'none'}.",
    )


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array
