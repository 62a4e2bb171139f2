"""A compiled model in the cache: its plan, its library and its constants, laid out for mapping.

    files     JSON: where the model's external data lies, if it has any
    plan      lines of JSON: ports, and which library and constants belong to it; the plan, two lines; the placement
    library   machine code, verified by content before it is loaded
    weights   every constant as its kernel wants it, mapped rather than read; found by content, so that all compiled
              forms of a model whose constants are the same bytes share one file

A model that lies in a file is found by that file's identity: device, inode, size, and the times of its
last change. Opening it then reads neither the file nor the graph. Which files hold its external data
is remembered, and their identities are part of its key. A file that changed a moment ago might change again
within the same tick of the clock, and is not trusted.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import starmap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.backends.c.toolchain import compiler_stamp, host_cpu
from sardonyx.errors import CacheError
from sardonyx.options import Environment
from sardonyx.plan.amx import uses_amx
from sardonyx.plan.plan import ReferenceStep, SizeStep
from sardonyx.runtime.cache import Cache, content_key
from sardonyx.runtime.chosen import Choosing, chosen_key, keep_choices
from sardonyx.runtime.native import Array, NativeModel
from sardonyx.runtime.own_code import OWN_CODE
from sardonyx.runtime.placement import Placement
from sardonyx.runtime.ports import Port
from sardonyx.runtime.stored_plan import read_plan, write_plan
from sardonyx.runtime.threads import process_pool

__all__ = ["Opened", "artifact_key", "keep", "open_kept"]

SETTLED = 2_000_000_000  # nanoseconds after which a file's times tell its contents
ALIGNMENT = 64
# Linux keeps what is written at once in one piece, up to 2 MiB, and maps it as a whole when one byte of it is read: weights
# that are kept for a rare case would be in memory beside their neighbours.
PIECE = 1 << 16


@dataclass(frozen=True)
class Opened:
    """What a session needs of a model, without the model."""

    native: NativeModel
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    placed: bytes

    def placement(self) -> tuple[Placement, ...]:
        """Where every node runs; few ask."""
        return tuple(Placement(**one) for one in json.loads(self.placed))


def artifact_key(path: Path, environment: Environment, *options: object) -> str | None:
    """What a compiled form of this file is kept under; None where the file is too young to be known."""
    identity = _identity(path)
    if identity is None:
        return None
    cpu = host_cpu()
    machine = (
        cpu.name,
        cpu.flags,
        sorted(cpu.features),
        cpu.lanes,
    )  # a set has no order to rely on
    return content_key(
        "artifact",
        *map(repr, (identity, machine, compiler_stamp(environment), OWN_CODE, options)),
    )


def _identity(path: Path) -> tuple[int, int, int, int, int] | None:
    """What changes with a file's content; None where there is no file, or one that is too young."""
    try:
        now = path.stat()
    except OSError:
        return None
    if time.time_ns() - max(now.st_mtime_ns, now.st_ctime_ns) < SETTLED:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_dev


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
        whole = _whole_key(cache, key, keep_choices(cache, key, choosing, native.plan))
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


def open_kept(cache: Cache, key: str, choosing: Choosing) -> Opened | None:
    """The compiled model that was kept under this key; None where there is none."""
    chosen = chosen_key(cache, key, choosing)
    whole = None if chosen is None else _whole_key(cache, key, chosen)
    try:
        return None if whole is None else _open_whole(cache, whole, choosing.threads)
    except OSError:
        return None  # it was there, and another process has removed it since


def _open_whole(cache: Cache, whole: str, threads: int) -> Opened | None:
    found = cache.read("plan", whole)
    if found is None:
        return None
    lines = found.split(b"\n")
    contents = json.loads(lines[0])
    weights = cache.find("weights", contents["weights"])
    library = cache.find("library", contents["library"])
    if weights is None or library is None:
        return None
    blob = _map(weights)
    constants = [_constant(blob, *entry) for entry in contents["constants"]]
    workers = process_pool(cache.find("library", contents["pool"]))
    if contents["tiles"] and not workers.grants_tiles:
        return None  # another process was allowed to; here its first tile would be the end
    native = NativeModel(read_plan(lines[1], lines[2]), library, constants, workers, threads)
    return Opened(
        native,
        tuple(map(_port_from_json, contents["inputs"])),
        tuple(map(_port_from_json, contents["outputs"])),
        lines[3],
    )


def _whole_key(cache: Cache, key: str, chosen: str) -> str | None:
    """The key with the identities of the files of external data; None where one is gone or too young.

    Args:
        key: of the file.
        chosen: of the form with the kernels of choice.
    """
    found = cache.read("files", key)
    if found is None:
        return chosen
    identities = [_identity(Path(path)) for path in json.loads(found)]
    return None if None in identities else content_key("external", chosen, repr(identities))


def _is_as_read(path: Path, then: tuple[int, int, int]) -> bool:
    identity = _identity(path)
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


def _map(path: Path) -> mmap.mmap | bytes:
    """The file's bytes where they lie; `numpy.memmap` would take as long as all the rest."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(opened).st_size
        return mmap.mmap(opened, size, prot=mmap.PROT_READ) if size else b""
    finally:
        os.close(opened)


def _constant(blob: mmap.mmap | bytes, place: int, dtype: str, shape: Sequence[int]) -> Array:
    return np.ndarray(shape, _dtype(dtype), blob, place)


@lru_cache(maxsize=64)
def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def _port_as_json(port: Port) -> list[Any]:
    assert port.dtype is not None
    return [port.name, port.type, port.dtype.name, port.shape, port.optional]


def _port_from_json(entry: Sequence[Any]) -> Port:
    name, kind, dtype, shape, optional = entry
    return Port(name, kind, _dtype(dtype), None if shape is None else tuple(shape), optional)
