"""A model for browsers and node: NAME.wasm, NAME.js that loads and runs it, NAME.d.ts with its types.

    const model = await load();
    const { logits } = model.run({ x: new Float32Array(784) });

The module allocates nothing: JavaScript lays weights, context and tensors out in its memory. Elementary functions of
float64 are JavaScript's own; float32 has code of ours, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sardonyx.deploy.blueprint import Blueprint, PortShape
from sardonyx.deploy.interface import SUPPORT
from sardonyx.deploy.manifest import digest_of_file
from sardonyx.deploy.names import c_comment
from sardonyx.deploy.self_test import SelfTest
from sardonyx.errors import BuildError

__all__ = ["write_package", "write_web_module"]

_ARRAYS = {
    "float32": "Float32Array",
    "float64": "Float64Array",
    "int8": "Int8Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "int64": "BigInt64Array",
    "uint16": "Uint16Array",
    "uint32": "Uint32Array",
    "uint64": "BigUint64Array",
    "float16": "Uint16Array",
    "bfloat16": "Uint16Array",
}
_BYTES = "Uint8Array"  # booleans, bytes, and types that JavaScript has no arrays for


def write_web_module(
    blueprint: Blueprint, test: SelfTest | None, code: Path, weights: Path | None = None
) -> list[Path]:
    """Put the loader and its types beside the module.

    Args:
        weights: their file, where they are not inside the module.
    """
    loader, types = code.with_suffix(".js"), code.with_suffix(".d.ts")
    fixed = (SUPPORT / "loader.js").read_text(encoding="utf-8")
    head = _tables(blueprint, test, code, weights)
    loader.write_text(f"{_title(blueprint)}{head}\n{fixed}", encoding="utf-8")
    types.write_text(f"{_title(blueprint)}{_types(blueprint)}", encoding="utf-8")
    return [loader, types]


def write_package(name: str, version: str, folder: Path, files: Sequence[Path]) -> Path:
    """The package.json that makes one module of these files, for npm and node.

    Raises:
        BuildError: where it shall go, another package has one already.
    """
    path = folder / "package.json"
    other = folder.parent / path.name
    package = name.lower()  # as npm has it
    if other.is_file() and f'"name": "{package}"' not in other.read_text(encoding="utf-8"):
        raise BuildError(
            "it belongs to another package, and would be overwritten",
            where=f"file {str(other)!r}",
            hint="Name a folder of its own for the model: -o DIR.",
        )
    content = {
        "name": package,
        "version": version + ".0" * (2 - version.count(".")),  # npm wants three numbers
        "type": "module",
        "exports": f"./{name}.js",
        "types": f"./{name}.d.ts",
        "files": [file.name for file in files],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def _title(blueprint: Blueprint) -> str:
    lines = [f"The model {blueprint.name} for browsers and node."]
    lines += [f"    input   {_described(port)}" for port in blueprint.inputs]
    lines += [f"    output  {_described(port)}" for port in blueprint.outputs]
    return "".join(f"// {line}\n" for line in lines)


def _tables(blueprint: Blueprint, test: SelfTest | None, code: Path, weights: Path | None) -> str:
    tested = None if test is None else f"{blueprint.name}.selftest"
    names = {"code": code.name, "weights": weights and weights.name, "selfTest": tested}
    digests = {"code": digest_of_file(code), "weights": weights and digest_of_file(weights)}
    tables: dict[str, Any] = {
        "NAME": blueprint.name,
        "FILES": names,
        "SHA256": digests,
        "INPUTS": [_port(port) for port in blueprint.inputs],
        "OUTPUTS": [_port(port) for port in blueprint.outputs],
        "DIMS": list(blueprint.dims),
        "TEST": None if test is None else _tested(test),
    }
    lines = [f"const {word} = {json.dumps(table)};" for word, table in tables.items()]
    return "\n".join(lines) + "\n"


def _port(port: PortShape) -> dict[str, Any]:
    shape = [dim if isinstance(dim, int) else str(dim) for dim in port.shape]
    size = port.dtype.itemsize
    single = size if port.dtype.name not in _ARRAYS else 1
    return {
        "name": port.name,
        "type": port.dtype.name,
        "shape": shape,
        "elementBytes": size,
        "perElement": single,
    }


def _tested(test: SelfTest) -> dict[str, Any]:
    arrays = [
        {"offset": at, "bytes": array.nbytes, "shape": list(array.shape)}
        for array, at in zip((*test.inputs, *test.outputs), test.offsets, strict=True)
    ]
    count = len(test.inputs)
    outputs = [
        {**row, "rtol": bound.rtol, "ofLargest": bound.of_largest}
        for row, bound in zip(arrays[count:], test.tolerances, strict=True)
    ]
    return {"dims": list(test.dims), "inputs": arrays[:count], "outputs": outputs}


def _types(blueprint: Blueprint) -> str:
    template = (SUPPORT / "loader.d.ts").read_text(encoding="utf-8")
    return (
        template.replace("/*INPUTS*/", _members(blueprint.inputs, ""))
        .replace("/*OUTPUTS*/", _members(blueprint.outputs, " & Shaped"))
        .replace("/*DIMS*/", "".join(f"  {json.dumps(dim)}: number;\n" for dim in blueprint.dims))
    )


def _members(ports: Sequence[PortShape], more: str) -> str:
    return "".join(
        f"  /** {_described(port)} */\n  {json.dumps(port.name)}: {_array(port)}{more};\n"
        for port in ports
    )


def _array(port: PortShape) -> str:
    return _ARRAYS.get(port.dtype.name, _BYTES)


def _described(port: PortShape) -> str:
    return c_comment(f"{port.name}: {port.dtype.name}[{', '.join(map(str, port.shape))}]")
