"""MXNet's files, written as MXNet writes them: a symbol as JSON, and a list of arrays."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Net", "params_bytes"]

Array = np.ndarray[Any, np.dtype[Any]]

_FLAGS = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6}
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA


class Net:
    """A symbol under construction: `net.op("Activation", x, act_type="relu")`."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}

    def variable(self, name: str, array: Any = None, *, aux: bool = False) -> list[int]:
        if array is not None:
            self.arrays[f"{'aux' if aux else 'arg'}:{name}"] = np.asarray(array)
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        return [len(self.nodes) - 1, 0, 0]

    def op(self, kind: str, *inputs: list[int], name: str = "", **attrs: Any) -> list[int]:
        texts = {key: str(value) for key, value in attrs.items()}
        name = name or f"{kind.lower().strip('_')}{len(self.nodes)}"
        self.nodes.append({"op": kind, "name": name, "attrs": texts, "inputs": list(inputs)})
        return [len(self.nodes) - 1, 0, 0]

    def save(
        self, prefix: Path, *heads: list[int], place: str = "attrs", version: int = _V2
    ) -> Path:
        """`prefix-symbol.json` and `prefix-0000.params`; the path of the first."""
        nodes = [{place if k == "attrs" else k: v for k, v in n.items()} for n in self.nodes]
        arguments = [index for index, node in enumerate(nodes) if node["op"] == "null"]
        content = {"nodes": nodes, "arg_nodes": arguments, "heads": list(heads)}
        symbol = prefix.with_name(f"{prefix.name}-symbol.json")
        symbol.write_text(json.dumps(content), encoding="utf-8")
        params = prefix.with_name(f"{prefix.name}-0000.params")
        params.write_bytes(params_bytes(self.arrays, version))
        return symbol


def params_bytes(arrays: dict[str, Array], version: int = _V2) -> bytes:
    """As mx.nd.save writes them; version 0 is how it was before arrays had one."""
    out = [struct.pack("<QQQ", 0x112, 0, len(arrays))]
    for array in arrays.values():
        flag = _FLAGS[array.dtype.name]
        if version:
            out.append(struct.pack("<I", version))
        if version in (_V2, _V3):
            out.append(struct.pack("<i", 0))
        width = "q" if version else "I"
        out.append(struct.pack(f"<I{array.ndim}{width}", array.ndim, *array.shape))
        out.append(struct.pack("<iii", 1, 0, flag))
        out.append(np.ascontiguousarray(array).tobytes())
    out.append(struct.pack("<Q", len(arrays)))
    out.extend(struct.pack("<Q", len(name)) + name.encode() for name in arrays)
    return b"".join(out)
