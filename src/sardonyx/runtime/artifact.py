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

Here it is opened; `keeping` puts it there. Nothing that only a compiler needs is imported for it.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sardonyx.backends.c.compiler_file import compiler_stamp
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.loops.numpy_types import named_type
from sardonyx.options import Environment
from sardonyx.runtime.cache import Cache, content_key
from sardonyx.runtime.chosen import Choosing, chosen_key
from sardonyx.runtime.native import Array, NativeModel
from sardonyx.runtime.own_code import OWN_CODE
from sardonyx.runtime.ports import Port
from sardonyx.runtime.stored_plan import read_plan
from sardonyx.runtime.threads import process_pool

if TYPE_CHECKING:
    from sardonyx.runtime.placement import Placement

__all__ = ["Opened", "artifact_key", "identity_of", "open_kept", "whole_key"]

SETTLED = 2_000_000_000  # nanoseconds after which a file's times tell its contents


class Opened(NamedTuple):
    """What a session needs of a model, without the model."""

    native: NativeModel
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    placed: bytes

    def placement(self) -> tuple[Placement, ...]:
        """Where every node runs; few ask."""
        from sardonyx.runtime.placement import Placement

        return tuple(Placement(**one) for one in json.loads(self.placed))


def artifact_key(path: Path, environment: Environment, *options: object) -> str | None:
    """What a compiled form of this file is kept under; None where the file is too young to be known."""
    identity = identity_of(path)
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


def identity_of(path: Path) -> tuple[int, int, int, int, int] | None:
    """What changes with a file's content; None where there is no file, or one that is too young."""
    try:
        now = path.stat()
    except OSError:
        return None
    if time.time_ns() - max(now.st_mtime_ns, now.st_ctime_ns) < SETTLED:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_dev


def open_kept(cache: Cache, key: str, choosing: Choosing) -> Opened | None:
    """The compiled model that was kept under this key; None where there is none."""
    chosen = chosen_key(cache, key, choosing)
    whole = None if chosen is None else whole_key(cache, key, chosen)
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


def whole_key(cache: Cache, key: str, chosen: str) -> str | None:
    """The key with the identities of the files of external data; None where one is gone or too young.

    Args:
        key: of the file.
        chosen: of the form with the kernels of choice.
    """
    found = cache.read("files", key)
    if found is None:
        return chosen
    identities = [identity_of(Path(path)) for path in json.loads(found)]
    return None if None in identities else content_key("external", chosen, repr(identities))


def _map(path: Path) -> mmap.mmap | bytes:
    """The file's bytes where they lie; `numpy.memmap` would take as long as all the rest."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(opened).st_size
        return mmap.mmap(opened, size, prot=mmap.PROT_READ) if size else b""
    finally:
        os.close(opened)


def _constant(blob: mmap.mmap | bytes, place: int, dtype: str, shape: Sequence[int]) -> Array:
    return np.ndarray(shape, named_type(dtype), blob, place)


def _port_from_json(entry: Sequence[Any]) -> Port:
    name, kind, dtype, shape, optional = entry
    return Port(name, kind, named_type(dtype), None if shape is None else tuple(shape), optional)
