"""C text → one shared library, through the cache: what was compiled before is not compiled again.

    headers, flags, compiler, CPU ──► header           what every kernel begins with, read once
    unit, flags, headers, compiler, CPU ──► object     shared by all models
    objects ──► library                                one a model

Units are compiled in as many processes as there are usable cores. One compiler call for several units would save
their 12 ms of starting up, and cost what is shared between models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sardonyx.backends.c.render import HEADERS
from sardonyx.backends.c.toolchain import (
    SUPPORT,
    Cpu,
    Toolchain,
    compile_object,
    link_library,
    precompile,
)
from sardonyx.errors import ToolchainError
from sardonyx.runtime.cache import Cache, content_key
from sardonyx.runtime.machine import usable_cores

__all__ = ["Unit", "build_library", "build_objects"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Unit:
    """One piece of C.

    Attributes:
        name: for people, when it does not compile.
        source: the text; it may include what is in the support folder.
        flags: for the compiler, past those of the toolchain and the CPU.
    """

    name: str
    source: str
    flags: tuple[str, ...] = ()


def build_library(
    units: Sequence[Unit],
    toolchain: Toolchain,
    cpu: Cpu,
    cache: Cache,
    *,
    progress: Progress | None = None,
) -> Path:
    """The shared library of these units, found or built. Load it at once: `cache clear` may remove it.

    Args:
        progress: called with (steps done, steps in all) while there is something to build; the last step links.
    """
    build = _Build(toolchain, cpu, cache, _digest_of_headers(SUPPORT), progress)
    keys = [build.key(unit) for unit in units]
    library = content_key("library", toolchain.identity, *cpu.flags, "units", *keys)
    found = cache.find("library", library)
    if found is not None:
        return found
    with cache.lock(library):
        # Another process may have built it while this one waited.
        return cache.find("library", library) or build.library(
            library, dict(zip(keys, units, strict=True))
        )


def build_objects(
    units: Sequence[Unit],
    toolchain: Toolchain,
    cpu: Cpu,
    cache: Cache,
    *,
    progress: Progress | None = None,
) -> list[Path]:
    """The objects of these units in their order, found or compiled: for whoever links them otherwise."""
    build = _Build(toolchain, cpu, cache, _digest_of_headers(SUPPORT), progress)
    keyed = {build.key(unit): unit for unit in units}
    objects, _ = build.objects(keyed)
    found = dict(zip(keyed, objects, strict=True))
    return [found[build.key(unit)] for unit in units]


@dataclass(frozen=True)
class _Build:
    toolchain: Toolchain
    cpu: Cpu
    cache: Cache
    headers: str
    progress: Progress | None

    def key(self, unit: Unit) -> str:
        flags = (*self.cpu.flags, "unit", *unit.flags)
        return content_key("object", self.toolchain.identity, self.headers, unit.source, *flags)

    def library(self, key: str, units: dict[str, Unit]) -> Path:
        while True:
            objects, steps = self.objects(units)
            link = functools.partial(self._link, objects, self._link_flags(units))
            try:
                library = self.cache.put("library", key, link)
            except ToolchainError as error:
                if all(path.exists() for path in objects):
                    error.where = f"linking {len(objects)} objects"
                    raise
                continue  # the cache was cleared meanwhile
            self._tell(steps, steps)
            return library

    def objects(self, units: dict[str, Unit]) -> tuple[list[Path], int]:
        """All objects, and how many steps it takes to have the library: one a missing object, one to link."""
        found = {key: self.cache.find("object", key) for key in units}
        missing = [key for key, path in found.items() if path is None]
        steps = len(missing) + 1
        self._tell(0, steps)
        pool = ThreadPoolExecutor(max(1, min(usable_cores(), len(missing))), "compile")
        try:
            begun = self._read_headers([units[key] for key in missing])
            jobs = {pool.submit(self._object, key, units[key], begun): key for key in missing}
            for done, job in enumerate(as_completed(jobs), start=1):
                found[jobs[job]] = job.result()
                self._tell(done, steps)
        finally:
            pool.shutdown(cancel_futures=True)
        return [path for path in found.values() if path is not None], steps

    def _read_headers(self, units: Sequence[Unit]) -> Mapping[tuple[str, ...], Path]:
        """The headers of kernels, precompiled, by the flags of units. A kernel takes 50 ms to read them, a third of its time."""
        found: dict[tuple[str, ...], Path] = {}
        if self.toolchain.precompiles:
            for flags in {unit.flags: None for unit in units if unit.source.startswith(HEADERS)}:
                with suppress(ToolchainError):  # what is wrong is said where it matters
                    header = self._header(flags)
                    found |= {} if header is None else {flags: header}
        return found

    def _header(self, unit_flags: tuple[str, ...]) -> Path | None:
        flags = (*self.cpu.flags, *unit_flags)
        # It names the files that it was read from, of the compiler too.
        places = (str(SUPPORT), *self.toolchain.flags)
        key = content_key("header", self.toolchain.identity, self.headers, HEADERS, *places, *flags)

        def write(out: Path) -> None:
            precompile(self.toolchain, HEADERS, out, flags, SUPPORT)

        with self.cache.lock(key):
            return self.cache.find("header", key) or self.cache.offer("header", key, write)

    def _object(self, key: str, unit: Unit, begun: Mapping[tuple[str, ...], Path]) -> Path:
        flags = (*self.cpu.flags, *unit.flags)
        header = begun.get(unit.flags) if unit.source.startswith(HEADERS) else None

        def write(out: Path) -> None:
            if header is not None:
                # It may have been cleared away meanwhile; what is wrong with the text is said without it too.
                with suppress(ToolchainError):
                    compile_object(self.toolchain, unit.source, out, flags, SUPPORT, begun=header)
                    return
            compile_object(self.toolchain, unit.source, out, flags, SUPPORT)

        with self.cache.lock(key):
            try:
                return self.cache.find("object", key) or self.cache.put("object", key, write)
            except ToolchainError as error:
                error.where = f"unit {unit.name!r}"
                raise

    def _link(self, objects: list[Path], flags: list[str], out: Path) -> None:
        link_library(self.toolchain, objects, out, flags)

    def _link_flags(self, units: dict[str, Unit]) -> list[str]:
        """A sanitizer has a runtime, which only a driver knows how to link."""
        if self.toolchain.linker:
            return []
        flags = (flag for unit in units.values() for flag in unit.flags)
        return sorted({flag for flag in flags if flag.startswith("-fsanitize")})

    def _tell(self, done: int, steps: int) -> None:
        if self.progress is not None:
            self.progress(done, steps)


def _digest_of_headers(folder: Path) -> str:
    parts: list[str | bytes] = []
    for path in sorted(folder.glob("*.[ch]")):  # a unit may include either
        parts += [path.name, path.read_bytes()]
    return content_key(*parts)
