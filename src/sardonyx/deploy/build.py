"""A model → an artifact in a folder.

    built = build_artifact("mlp.onnx", Path("out"), Request(target="native", emit="so"))
    built.files       # out/libmlp.so, out/mlp.h, …

The plan is made by rules alone, never by what this machine has measured: the same model and the same request are the same
bytes, wherever and by whomever they are built.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

import onnx_ir as ir

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.plain import PLAIN_CPU
from sardonyx.backends.c.toolchain import compile_object
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.c_project import write_c_project
from sardonyx.deploy.draft import Draft
from sardonyx.deploy.embedding import write_data_unit
from sardonyx.deploy.levels import (
    AMX,
    DISPATCH,
    Level,
    level_cpu,
    level_names,
    memory_of_levels,
    name_at,
    share_weights,
    write_level_sources,
)
from sardonyx.deploy.linking import (
    link_archive,
    link_module,
    link_program,
    link_shared,
    shared_name,
)
from sardonyx.deploy.manifest import describe_artifact, model_file
from sardonyx.deploy.memory import MemoryBill, Range, memory_of
from sardonyx.deploy.names import c_identifier
from sardonyx.deploy.plain_project import write_plain_project
from sardonyx.deploy.program import seal_program, write_program
from sardonyx.deploy.self_test import SelfTest, make_self_test
from sardonyx.deploy.signing import read_private_key, sign_manifest
from sardonyx.deploy.sources import ArtifactSources, inline_headers, write_sources
from sardonyx.deploy.stack import STACK_FLAG, stack_of
from sardonyx.deploy.tag import TAG
from sardonyx.deploy.targets import DeployTarget, find_target
from sardonyx.deploy.wasm import write_package, write_web_module
from sardonyx.deploy.wheel import write_wheel
from sardonyx.errors import BuildError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source
from sardonyx.options import read_environment
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.chosen import Precision
from sardonyx.runtime.compiling import Unit, build_objects

__all__ = ["FUNCTIONS", "Built", "Request", "WeightsPlace", "build_artifact"]

WeightsPlace = Literal["embedded", "beside"]
FUNCTIONS = [
    "input",
    "output",
    "dim",
    "bind",
    "input_shape",
    "output_shape",
    "memory_needed",
    "open",
    "run",
    "stop",
    "close",
]
_OF_JAVASCRIPT = ["bind", "input_shape", "output_shape", "memory_needed", "open", "run"]
_MOST_EMBEDDED = 2_000_000_000  # what 32-bit distances between code and weights reach
_MOST_IN_WASM = 1_000_000_000  # what browsers take as one module


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        cpu: of the target; None for its default.
        name: a C identifier, or what one is made from; None takes the model's file.
        weights: inside the artifact, or in a file that the program maps or loads.
        dims: for dynamic dimensions a size, which is fixed then, or the smallest and the largest that there will be.
        precision: as of a session (docs/numerics.md).
        threads: worker threads are linked in, where the target has any; contexts use them when they are opened so.
        version: of a wheel, or of a package for npm.
        sign: a file with the key that the manifest is signed with.
        portable: C sources are plain C99, without vectors or threads.
    """

    target: str = "native"
    emit: str = "so"
    cpu: str | None = None
    name: str | None = None
    weights: WeightsPlace = "embedded"
    dims: Mapping[str, int | Range] = field(default_factory=dict)
    precision: Precision = "float32"
    threads: bool = True
    version: str = "1.0"
    sign: Path | None = None
    portable: bool = False


@dataclass(frozen=True)
class Built:
    """What was made.

    Attributes:
        files: with their bytes; the first is the artifact itself.
        code_bytes: of the artifact without its weights.
        memory: of a context, its arena and its stack.
    """

    name: str
    files: tuple[tuple[Path, int], ...]
    code_bytes: int
    weights_bytes: int
    memory: MemoryBill

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "files": {str(path): size for path, size in self.files},
            "code_bytes": self.code_bytes,
            "weights_bytes": self.weights_bytes,
            "memory": self.memory.to_json(),
        }


def build_artifact(
    source: Source,
    out: Path,
    request: Request,
    *,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Built:
    """Build it. What stands in the folder under other names is left alone.

    Raises:
        BuildError: nothing of that kind can be made of this model, or the folder cannot be written to.
    """
    target = find_target(request.target, request.emit)
    _check_portable(request)
    names = level_names(request.target, request.cpu, request.emit)
    cpu = PLAIN_CPU if request.portable else _cpu(target, request)
    signer = None if request.sign is None else read_private_key(request.sign)
    file = model_file(source)
    name = c_identifier(request.name or ("model" if file is None else file.stem))
    with _folder(out) as folder:
        draft = Draft(source, request.dims, request.precision, limits, plain=request.portable)
        levels = share_weights(
            [Level(one, draft.draw(one, name_at(name, one.name))) for one in map(level_cpu, names)]
        )
        if levels:
            blueprint = replace(levels[0].blueprint, name=name)
            memory = memory_of_levels(levels, target.pointer_bytes)
        else:
            blueprint = draft.draw(cpu, name)
            memory = memory_of(blueprint, target.pointer_bytes)
        model = draft.model
        test = make_self_test(model, blueprint)
        made = _Making(blueprint, test, request, target, cpu, folder, memory, tuple(levels))
        files, size = [], 0
        paths = made.all_files(source, model, progress)
        if signer is not None:
            paths.append(sign_manifest(paths[-1], signer))
        for path in paths:
            # What is inside of a wheel is compressed: its library counts.
            inner = folder / shared_name(name, target) if path.suffix == ".whl" else path
            size = size or inner.stat().st_size
            final = out / path.relative_to(folder)
            final.parent.mkdir(exist_ok=True)
            path.replace(final)
            files.append((final, final.stat().st_size))
    weights = blueprint.weights.size
    inside = 0 if request.emit == "c" or request.weights == "beside" else weights
    inside += 0 if made.test is None or request.emit != "exe" else made.test.size
    return Built(name, tuple(files), size - inside, weights, made.memory)


@contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A folder to work in on the same disk, so that what is finished is moved and not copied."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=out) as folder:
            yield Path(folder)
    except OSError as error:
        raise BuildError(
            f"it cannot be written to: {error.strerror}",
            where=f"folder {str(out)!r}",
            hint="Name a folder that this user may write to, on a disk with room.",
        ) from error


def _cpu(target: DeployTarget, request: Request) -> Cpu:
    """What is compiled for. Sources go without dispatch: every file of theirs has the same flags."""
    if request.cpu == AMX and not level_names(request.target, request.cpu, request.emit):
        raise BuildError(
            f"{AMX} is for libraries and programs of x86_64-linux, which ask the system for tiles",
            value=request.cpu,
            hint="Name x86-64-v4, or another target.",
        )
    several = request.cpu in (None, DISPATCH) and target.cpus[0] == DISPATCH
    return target.cpu("x86-64-v3" if several and request.emit == "c" else request.cpu)


def _check_portable(request: Request) -> None:
    if not request.portable:
        return
    if request.emit != "c":
        raise BuildError(
            f"portable means C sources, not {request.emit!r}",
            value=request.emit,
            hint="As in: --emit c --portable.",
        )
    if request.precision not in ("float32", "strict"):
        raise BuildError(
            f"plain C computes in float32, not as {request.precision!r}",
            value=request.precision,
            hint="Leave --precision or --portable away.",
        )


def _put(file: IO[bytes], text: str) -> None:
    file.write(text.encode())


@dataclass
class _Making:
    """Writing the files of one artifact into a folder."""

    blueprint: Blueprint
    test: SelfTest | None
    request: Request
    target: DeployTarget
    cpu: Cpu
    folder: Path
    memory: MemoryBill  # its stack is known once all is compiled
    levels: tuple[Level, ...] = ()  # where it has the code for several CPUs

    @property
    def name(self) -> str:
        return self.blueprint.name

    @property
    def embedded(self) -> bool:
        return self.request.weights == "embedded"

    def all_files(
        self, source: Source, model: ir.Model, progress: Callable[[int, int], None] | None
    ) -> list[Path]:
        """What is delivered; the main file first, the manifest last."""
        self._check()
        files = self._files(progress)
        if self.test is not None and self.request.emit not in ("exe", "wheel"):
            files.append(self._write("selftest", self.test.write))
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
            self.memory,
        )
        return [*files, self._write("json", lambda file: _put(file, text))]

    def _files(self, progress: Callable[[int, int], None] | None) -> list[Path]:
        """All but what describes them."""
        threads = self.target.threads and self.request.threads and not self.request.portable
        name, folder, emit = self.name, self.folder, self.request.emit
        hosted = self.target.hosted and emit != "wasm"  # where JavaScript lays memory out
        sources = self._sources(threads=threads, hosted=hosted)
        weights = self._write("weights", self.blueprint.weights.write)
        if emit == "c":
            if self.blueprint.plain:
                return write_plain_project(self.blueprint, sources, weights, embedded=self.embedded)
            project = write_c_project(
                name,
                sources,
                self.target,
                self.cpu,
                folder,
                embedded=self.embedded,
                threads=threads,
            )
            return [*project, weights]
        if emit == "exe":
            return [self._program(sources, weights, progress)]
        if emit == "wasm":
            return self._web_module(sources, weights, progress)
        header = folder / f"{name}.h"
        header.write_text(sources.headers[header.name], encoding="utf-8")
        objects = self._objects(sources, weights, progress)
        if emit == "a":
            main = folder / f"lib{name}.a"
            link_archive(self.target, objects, main)
        else:
            main = folder / shared_name(name, self.target)
            link_shared(self.target, objects, main, [TAG, *(f"{name}_{one}" for one in FUNCTIONS)])
        beside = [] if self.embedded else [weights]
        if emit == "wheel":
            version = self.request.version
            return [write_wheel(self.blueprint, self.test, self.target, version, main, beside)]
        others = [folder / f"{name}.lib"] if main.suffix == ".dll" else []
        return [main, header, *others, *beside]

    def _sources(self, *, threads: bool, hosted: bool) -> ArtifactSources:
        if self.levels:
            return write_level_sources(
                self.blueprint,
                self.levels,
                self.memory,
                embedded=self.embedded,
                threads=threads,
                pointer_bytes=self.target.pointer_bytes,
            )
        return write_sources(
            self.blueprint, self.memory, embedded=self.embedded, threads=threads, hosted=hosted
        )

    def _check(self) -> None:
        size = self.blueprint.weights.size
        most = _MOST_IN_WASM if self.request.emit == "wasm" else _MOST_EMBEDDED
        if self.embedded and size > most:
            raise BuildError(
                f"the weights have {size} bytes, and {most} can be embedded at most",
                value=size,
                limit=most,
                hint="Keep them in a file of their own: --weights beside.",
            )
        if self.request.emit == "exe" and not self.embedded:
            raise BuildError(
                "a program has its weights inside", hint="Leave --weights away, or emit a library."
            )

    def _write(self, suffix: str, write: Callable[[IO[bytes]], None]) -> Path:
        path = self.folder / f"{self.name}.{suffix}"
        with path.open("wb") as file:
            write(file)
        return path

    def _objects(
        self,
        sources: ArtifactSources,
        weights: Path,
        progress: Callable[[int, int], None] | None,
    ) -> list[Path]:
        objects = self._compile(sources, progress)
        return [*objects, self._data("weights", weights)] if self.embedded else objects

    def _program(
        self,
        sources: ArtifactSources,
        weights: Path,
        progress: Callable[[int, int], None] | None,
    ) -> Path:
        text = write_program(self.blueprint, self.test)
        units = {**sources.units, f"{self.name}_program.c": text}
        objects = self._objects(replace(sources, units=units), weights, progress)
        if self.test is not None:
            objects.append(self._data("selftest", self._write("selftest", self.test.write)))
        program = self.folder / self.name
        link_program(self.target, objects, program)
        seal_program(program)
        return program

    def _web_module(
        self,
        sources: ArtifactSources,
        weights: Path,
        progress: Callable[[int, int], None] | None,
    ) -> list[Path]:
        module = self.folder / f"{self.name}.wasm"
        names = [f"{self.name}_{one}" for one in _OF_JAVASCRIPT]
        link_module(self.target, self._objects(sources, weights, progress), module, names)
        beside = [] if self.embedded else [weights]
        files = [module, *write_web_module(self.blueprint, self.test, module, *beside), *beside]
        package = write_package(self.name, self.request.version, self.folder, files)
        return [*files, package]

    def _data(self, word: str, file: Path) -> Path:
        """An object that has the file's bytes at `<name>_<word>`."""
        path = self.folder / f"{self.name}_{word}.o"
        text = write_data_unit(f"{self.name}_{word}", file.name, self.target.form)
        compile_object(self.target.toolchain(), text, path, self.cpu.flags, self.folder)
        return path

    def _compile(
        self, sources: ArtifactSources, progress: Callable[[int, int], None] | None
    ) -> list[Path]:
        """Objects under the names of their sources, through the cache."""
        shown: tuple[str, ...] = ()
        if self.request.emit in ("so", "wheel"):
            visible = '__attribute__((visibility("default")))'
            shown = (f"-D{self.name.upper()}_API={visible}", f"-DSX_TAG={visible}")
        toolchain = self.target.toolchain()
        told = (STACK_FLAG,) * (self.target.form == "elf" and toolchain.linker != ())
        units = {
            file: Unit(
                file,
                inline_headers(text, sources.headers),
                (*told, *(shown if file == f"{self.name}.c" else ())),
            )
            for file, text in sources.units.items()
        }
        cache = default_cache(read_environment())
        objects: dict[str, Path] = {}
        for cpu in dict.fromkeys(sources.cpus.get(file, self.cpu) for file in units):
            files = [file for file in units if sources.cpus.get(file, self.cpu) == cpu]
            several = [units[file] for file in files]
            made = build_objects(several, toolchain, cpu, cache, progress=progress)
            objects |= zip(files, made, strict=True)
        found = []
        for file in units:
            own = self.folder / f"{Path(file).stem}.o"
            own.write_bytes(objects[file].read_bytes())
            objects[file] = own
            found.append(own)
        if told:
            self.memory = replace(self.memory, stack=self._stack(objects, sources))
        return found

    def _stack(self, objects: Mapping[str, Path], sources: ArtifactSources) -> int | None:
        """Of the level that takes most; a run goes through one of them."""
        shared = {file: path for file, path in objects.items() if file not in sources.cpus}
        found = []
        for blueprint in [level.blueprint for level in self.levels] or [self.blueprint]:
            own = {file: path for file, path in objects.items() if file.startswith(blueprint.name)}
            own |= shared
            found.append(stack_of(own, own.keys() - blueprint.kernels.keys()))
        return None if None in found else max(stack or 0 for stack in found)
