"""Puts a compiled model into the cache, in the form that `artifact` opens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.errors import CacheError
from sardonyx.plan.amx import uses_amx
from sardonyx.plan.plan import ReferenceStep, SizeStep
from sardonyx.runtime.artifact import identity_of, whole_key
from sardonyx.runtime.cache import Cache
from sardonyx.runtime.chosen import Choosing, keep_choices
from sardonyx.runtime.native import Array, NativeModel
from sardonyx.runtime.placement import Placement
from sardonyx.runtime.ports import Port
from sardonyx.runtime.stored_plan import write_plan

__all__ = ["keep"]

ALIGNMENT = 64
# Linux keeps what is written at once in one piece, up to 2 MiB, and maps it as a whole when one byte of it is read: weights
# that are kept for a rare case would be in memory beside their neighbours.
PIECE = 1 << 16


def keep(
    cache: Cache,
    key: str,
    native: NativeModel,
    placement: Sequence[Placement],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    files: Mapping[Path, tuple[int, int, int]],
    choosing: Choosing,
) -> bool:
    """Put a compiled model into the cache; False where it needs more than a plan to run, or the disk takes no more.

    Args:
        files: what the model was read from beside the file that the key is for: inode, size and time of the
            last change as they were then.
        choosing: how its kernels were chosen.
    """
    plain = all(port.dtype is not None and port.element is None for port in (*inputs, *outputs))
    asks_nodes = any(isinstance(step, ReferenceStep | SizeStep) for step in native.plan.steps)
    if not plain or asks_nodes or not all(starmap(_is_as_read, files.items())):
        return False
    if not cache.outlives():
        return False  # this process has it all in memory already
    ports = {
        "inputs": [_port_as_json(port) for port in inputs],
        "outputs": [_port_as_json(port) for port in outputs],
    }
    try:
        if files:
            _put_text(cache, "files", key, json.dumps([str(path.absolute()) for path in files]))
        whole = whole_key(cache, key, keep_choices(cache, key, choosing, native.plan))
        if whole is None:
            return False
        head = {**_put_constants(cache, native.constants), **_code_as_json(native), **ports}
        placed = [asdict(one) for one in placement]
        lines = [_as_line(head), *write_plan(native.plan), _as_line(placed)]
        _put_text(cache, "plan", whole, "\n".join(lines))
    except CacheError:
        if cache.outlives():
            raise
        return False  # the disk took no more just now; the cache has said so
    return True


def _put_constants(cache: Cache, constants: Sequence[Array]) -> dict[str, Any]:
    """Keep what is not there yet, and say what it is kept under and where each array lies in it."""
    places, size = _places(constants)
    key = _constants_key(constants)
    if cache.find("weights", key) is None:

        def write(path: Path) -> None:
            _write_constants(path, constants, places, size)

        cache.put("weights", key, write, spare=False)
    arrays = [
        [place, array.dtype.name, list(array.shape)]
        for place, array in zip(places, constants, strict=True)
    ]
    return {"weights": key, "constants": arrays}


def _code_as_json(native: NativeModel) -> dict[str, Any]:
    return {
        "tiles": uses_amx(native.plan),
        "library": native.library.parent.name,
        "pool": native.pool.library.parent.name,
    }


def _as_line(content: object) -> str:
    return json.dumps(content, separators=(",", ":"))


def _is_as_read(path: Path, then: tuple[int, int, int]) -> bool:
    identity = identity_of(path)
    return identity is not None and identity[: len(then)] == then


def _put_text(cache: Cache, kind: str, key: str, text: str) -> None:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    cache.put(kind, key, write, spare=False)


def _places(constants: Sequence[Array]) -> tuple[list[int], int]:
    places, at = [], 0
    for array in constants:
        places.append(at)
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    return places, at


def _constants_key(constants: Sequence[Array]) -> str:
    digest = hashlib.sha256(f"constants at multiples of {ALIGNMENT}".encode())
    for array in constants:
        digest.update(f"{array.nbytes}:".encode())
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _write_constants(
    path: Path, constants: Sequence[Array], places: Sequence[int], size: int
) -> None:
    with path.open("wb") as file:
        for array, place in zip(constants, places, strict=True):
            file.seek(place)
            content = _bytes_of(array)
            for begin in range(0, len(content), PIECE):
                file.write(content[begin : begin + PIECE])
        file.truncate(size)


def _port_as_json(port: Port) -> list[Any]:
    assert port.dtype is not None
    return [port.name, port.type, port.dtype.name, port.shape, port.optional]
