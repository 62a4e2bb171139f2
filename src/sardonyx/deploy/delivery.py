"""The files of one artifact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

import onnx_ir as ir

from sardonyx.backends.c.cpu import Cpu
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.c_project import write_c_project
from sardonyx.deploy.interface import FUNCTIONS
from sardonyx.deploy.levels import Level, write_level_sources
from sardonyx.deploy.linking import (
    link_archive,
    link_module,
    link_program,
    link_shared,
    shared_name,
)
from sardonyx.deploy.manifest import describe_artifact
from sardonyx.deploy.memory import MemoryBill
from sardonyx.deploy.objects import Objects, compile_data, compile_sources
from sardonyx.deploy.plain_project import write_plain_project
from sardonyx.deploy.program import seal_program, write_program
from sardonyx.deploy.request import Request
from sardonyx.deploy.self_test import SelfTest
from sardonyx.deploy.sources import ArtifactSources, write_sources
from sardonyx.deploy.tag import TAG
from sardonyx.deploy.targets import DeployTarget
from sardonyx.deploy.wasm import write_package, write_web_module
from sardonyx.deploy.wheel import write_wheel
from sardonyx.model.load import Source

__all__ = ["Delivery"]

_OF_JAVASCRIPT = ["bind", "input_shape", "output_shape", "memory_needed", "open", "run"]
_VISIBLE = '__attribute__((visibility("default")))'


@dataclass(frozen=True)
class Delivery:
    """One artifact on its way into a folder.

    Attributes:
        memory: all but the stack, which is known once everything is compiled.
        levels: where it has the code for several CPUs.
    """

    blueprint: Blueprint
    test: SelfTest | None
    request: Request
    target: DeployTarget
    cpu: Cpu
    folder: Path
    memory: MemoryBill
    levels: tuple[Level, ...] = ()

    @property
    def name(self) -> str:
        return self.blueprint.name

    @property
    def threads(self) -> bool:
        return self.target.threads and self.request.threads and not self.request.portable

    def write(
        self, source: Source, model: ir.Model, progress: Callable[[int, int], None] | None
    ) -> tuple[list[Path], MemoryBill]:
        """What is delivered, the main file first and the manifest last; and all the memory that it takes."""
        emit, memory = self.request.emit, self.memory
        weights = self._write("weights", self.blueprint.weights.write)
        sources = self._sources()
        if emit == "c":
            files = self._project(sources, weights)
        else:
            compiled = self._compile(sources, progress)
            memory = replace(memory, stack=compiled.stack)
            files = self._link(compiled.files, sources, weights)
        if self.test is not None and emit not in ("exe", "wheel"):
            files.append(self._write("selftest", self.test.write))
        return [*files, self._manifest(source, model, files, memory)], memory

    def _write(self, suffix: str, write: Callable[[IO[bytes]], None]) -> Path:
        path = self.folder / f"{self.name}.{suffix}"
        with path.open("wb") as file:
            write(file)
        return path

    def _sources(self) -> ArtifactSources:
        embedded, threads = self.request.embedded, self.threads
        if self.levels:
            sources = write_level_sources(
                self.blueprint,
                self.levels,
                self.memory,
                embedded=embedded,
                threads=threads,
                pointer_bytes=self.target.pointer_bytes,
            )
        else:
            # JavaScript lays memory out.
            hosted = self.target.hosted and self.request.emit != "wasm"
            sources = write_sources(
                self.blueprint, self.memory, embedded=embedded, threads=threads, hosted=hosted
            )
        if self.request.emit != "exe":
            return sources
        program = {f"{self.name}_program.c": write_program(self.blueprint, self.test)}
        return replace(sources, units=sources.units | program)

    def _project(self, sources: ArtifactSources, weights: Path) -> list[Path]:
        embedded = self.request.embedded
        if self.blueprint.plain:
            return write_plain_project(self.blueprint, sources, weights, embedded=embedded)
        project = write_c_project(
            self.name,
            sources,
            self.target,
            self.cpu,
            self.folder,
            embedded=embedded,
            threads=self.threads,
        )
        return [*project, weights]

    def _compile(
        self, sources: ArtifactSources, progress: Callable[[int, int], None] | None
    ) -> Objects:
        shown: tuple[str, ...] = ()
        if self.request.emit in ("so", "wheel"):
            shown = (f"-D{self.name.upper()}_API={_VISIBLE}", f"-DSX_TAG={_VISIBLE}")
        return compile_sources(
            sources,
            self.target,
            self.cpu,
            self.folder,
            flags={f"{self.name}.c": shown},
            blueprints=[level.blueprint for level in self.levels] or [self.blueprint],
            progress=progress,
        )

    def _link(
        self, compiled: Sequence[Path], sources: ArtifactSources, weights: Path
    ) -> list[Path]:
        emit, embedded = self.request.emit, self.request.embedded
        objects = [*compiled, *([self._data("weights", weights)] if embedded else [])]
        beside = [] if embedded else [weights]
        if emit == "exe":
            return [self._program(objects)]
        if emit == "wasm":
            return self._web_module(objects, beside)
        header = self.folder / f"{self.name}.h"
        header.write_text(sources.headers[header.name], encoding="utf-8")
        if emit == "a":
            archive = self.folder / f"lib{self.name}.a"
            link_archive(self.target, objects, archive)
            return [archive, header, *beside]
        library = self.folder / shared_name(self.name, self.target)
        names = [TAG, *(f"{self.name}_{one}" for one in FUNCTIONS)]
        link_shared(self.target, objects, library, names)
        if emit == "wheel":
            version = self.request.version
            return [write_wheel(self.blueprint, self.test, self.target, version, library, beside)]
        others = [self.folder / f"{self.name}.lib"] if library.suffix == ".dll" else []
        return [library, header, *others, *beside]

    def _data(self, word: str, file: Path) -> Path:
        return compile_data(f"{self.name}_{word}", file, self.target, self.cpu)

    def _program(self, objects: Sequence[Path]) -> Path:
        inside = list(objects)
        if self.test is not None:
            inside.append(self._data("selftest", self._write("selftest", self.test.write)))
        program = self.folder / self.name
        link_program(self.target, inside, program)
        seal_program(program)
        return program

    def _web_module(self, objects: Sequence[Path], beside: Sequence[Path]) -> list[Path]:
        module = self.folder / f"{self.name}.wasm"
        names = [f"{self.name}_{one}" for one in _OF_JAVASCRIPT]
        link_module(self.target, objects, module, names)
        files = [module, *write_web_module(self.blueprint, self.test, module, *beside), *beside]
        package = write_package(self.name, self.request.version, self.folder, files)
        return [*files, package]

    def _manifest(
        self, source: Source, model: ir.Model, files: Sequence[Path], memory: MemoryBill
    ) -> Path:
        options = {**asdict(self.request), "dims": dict(self.request.dims)}
        del options["sign"]  # what is signed does not depend on who signs
        text = describe_artifact(
            self.blueprint,
            self.test,
            self.target,
            self.cpu,
            options,
            (source, model),
            files,
            memory,
        )
        return self._write("json", lambda file: _put(file, text))


def _put(file: IO[bytes], text: str) -> None:
    file.write(text.encode())
