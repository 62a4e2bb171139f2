"""Caffe2's files, written as Caffe2 writes them: two networks as protocol buffers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Nets"]


def _varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _argument(name: str, value: Any) -> bytes:
    out = _field(1, name)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return out + b"".join(b"\x2d" + struct.pack("<f", each) for each in value.reshape(-1))
    if isinstance(value, np.ndarray | list | tuple):
        return out + b"".join(b"\x30" + _varint(int(each)) for each in np.reshape(value, -1))
    if isinstance(value, str):
        return out + _field(4, value)
    if isinstance(value, float):
        return out + b"\x15" + struct.pack("<f", value)
    return out + b"\x18" + _varint(int(value))


def _operator(kind: str, inputs: list[str], outputs: list[str], arguments: dict[str, Any]) -> bytes:
    names = [_field(1, each) for each in inputs] + [_field(2, each) for each in outputs]
    listed = [_field(5, _argument(name, value)) for name, value in arguments.items()]
    return b"".join([*names, _field(4, kind), *listed])


class Nets:
    """A network and the one that fills its weights: `nets.op("Relu", "x", "x")`."""

    def __init__(self) -> None:
        self.predict: list[bytes] = []
        self.init: list[bytes] = []
        self.filled: list[str] = []

    def op(self, kind: str, inputs: str, outputs: str, **arguments: Any) -> None:
        """Blobs are told by their names, with spaces between."""
        self.predict.append(_operator(kind, inputs.split(), outputs.split(), arguments))

    def fill(self, name: str, array: Any) -> None:
        given = np.asarray(array)
        kind = "GivenTensorFill" if given.dtype.kind == "f" else "GivenTensorInt64Fill"
        self.init.append(_operator(kind, [], [name], {"shape": given.shape, "values": given}))
        self.filled.append(name)

    def save(self, folder: Path, inputs: str, outputs: str) -> Path:
        """`predict_net.pb` and `init_net.pb` in the folder."""
        ports = [_field(7, each) for each in (*inputs.split(), *self.filled)]
        ports += [_field(8, each) for each in outputs.split()]
        operators = [_field(2, each) for each in self.predict]
        predict = b"".join([_field(1, "net"), *operators, *ports])
        (folder / "predict_net.pb").write_bytes(predict)
        (folder / "init_net.pb").write_bytes(b"".join(_field(2, each) for each in self.init))
        return folder
