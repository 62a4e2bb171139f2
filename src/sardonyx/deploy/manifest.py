"""What an artifact is, as JSON beside it: where it came from, for which machine, what it takes and gives, and its self-test.

Nothing in it depends on when, where or by whom it was built.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.backends.c.cpu import Cpu
from sardonyx.comparison.tolerance import tolerance_of
from sardonyx.deploy.blueprint import Blueprint, PortShape
from sardonyx.deploy.memory import MemoryBill
from sardonyx.deploy.self_test import SelfTest, checksum
from sardonyx.deploy.targets import DeployTarget
from sardonyx.errors import InputError
from sardonyx.model.load import Source
from sardonyx.model.save import to_proto

__all__ = [
    "changed_files",
    "describe_artifact",
    "digest_of_file",
    "listed_files",
    "manifest_of",
    "model_file",
    "read_self_test",
]

_FORMAT = 1
_MOST_BYTES = 1 << 26  # of a file that could be a manifest


def model_file(source: Source) -> Path | None:
    """The file that a model comes from, where it comes from one."""
    if isinstance(source, str | os.PathLike):
        with suppress(OSError, ValueError):  # a model as text is too long for a path
            return Path(source) if Path(source).is_file() else None
    return None


def describe_artifact(
    blueprint: Blueprint,
    test: SelfTest | None,
    target: DeployTarget,
    cpu: Cpu,
    options: Mapping[str, Any],
    source: tuple[Source, ir.Model],
    files: Sequence[Path],
    memory: MemoryBill,
) -> str:
    """The text of `<name>.json`.

    Args:
        options: what was asked for.
        source: where the model came from, and what it is.
        files: of the artifact, all but this one.
    """
    weights = blueprint.weights
    types = tuple(tolerance_of(port.dtype) for port in blueprint.outputs)
    tolerances = types if test is None else test.tolerances
    content = {
        "format": _FORMAT,
        "name": blueprint.name,
        "model": {"sha256": _digest_of_model(*source)},
        "options": dict(options),
        "target": {"name": target.name, "cpu": cpu.name, "flags": list(cpu.flags)},
        "compiler": target.toolchain().name,
        "weights": {"bytes": weights.size, "checksum": f"{checksum(weights):016x}"},
        "inputs": [_port(port) for port in blueprint.inputs],
        "outputs": [
            {**_port(port), "tolerance": str(tolerance)}
            for port, tolerance in zip(blueprint.outputs, tolerances, strict=True)
        ],
        "dims": list(blueprint.dims),
        "memory": memory.to_json(),
        "files": {
            path.relative_to(files[0].parent).as_posix(): digest_of_file(path) for path in files
        },
        "self_test": None if test is None else _described(blueprint, test),
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def read_self_test(artifact: Path, name: str) -> SelfTest | None:
    """The self-test that lies beside an artifact; None where there is none.

    Raises:
        InputError: what lies there is not what was built.
    """
    manifest, blob = artifact.with_name(f"{name}.json"), artifact.with_name(f"{name}.selftest")
    if not manifest.is_file() or not blob.is_file():
        return None
    content = blob.read_bytes()
    try:
        described = json.loads(manifest.read_bytes())["self_test"]
        arrays = {
            word: tuple(_array(content, one) for one in described[word])
            for word in ("inputs", "outputs")
        }
        dims = tuple(int(size) for size in described["dims"])
        of_largest = float(described.get("of_largest", 0.0))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"it does not describe a self-test: {error!r}",
            where=f"file {str(manifest)!r}",
            hint="Build the artifact again.",
        ) from None
    return SelfTest(dims, arrays["inputs"], arrays["outputs"], of_largest)


def manifest_of(artifact: Path) -> Path | None:
    """The manifest that lies beside an artifact and lists it; the artifact itself is not looked into."""
    for path in sorted(artifact.parent.glob("*.json")):
        if path.stat().st_size <= _MOST_BYTES and artifact.name in listed_files(path.read_bytes()):
            return path
    return None


def listed_files(content: bytes) -> dict[str, str]:
    """The files of a manifest with their SHA-256; none where it is some other JSON."""
    try:
        files = json.loads(content)["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def changed_files(artifact: Path) -> list[str]:
    """Which of the files that the manifest beside an artifact lists are not as they were built; missing ones do not count."""
    manifest = manifest_of(artifact)
    listed = {} if manifest is None else listed_files(manifest.read_bytes())
    paths = {name: artifact.parent / name for name in listed}
    return [
        name
        for name, path in paths.items()
        if path.is_file() and digest_of_file(path) != listed[name]
    ]


def _array(content: bytes, described: Mapping[str, Any]) -> npt.NDArray[Any]:
    name, shape = str(described["type"]), tuple(int(size) for size in described["shape"])
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(content, dtype, count, int(described["offset"])).reshape(shape)


def _described(blueprint: Blueprint, test: SelfTest) -> dict[str, Any]:
    rows = [
        {"name": port.name, "type": port.dtype.name, "shape": list(array.shape), "offset": offset}
        for port, array, offset in zip(
            (*blueprint.inputs, *blueprint.outputs),
            (*test.inputs, *test.outputs),
            test.offsets,
            strict=True,
        )
    ]
    count = len(test.inputs)
    return {
        "dims": list(test.dims),
        "inputs": rows[:count],
        "outputs": rows[count:],
        "of_largest": test.of_largest,
    }


def _port(port: PortShape) -> dict[str, Any]:
    return {"name": port.name, "type": port.dtype.name, "shape": [str(dim) for dim in port.shape]}


def _digest_of_model(source: Source, model: ir.Model) -> str:
    file = model_file(source)
    if file is not None:
        return digest_of_file(file)
    return hashlib.sha256(to_proto(model).SerializeToString(deterministic=True)).hexdigest()


def digest_of_file(path: Path) -> str:
    """Its SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
