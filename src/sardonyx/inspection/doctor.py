"""What this machine can do, and what Sardonyx finds on it. Quick: nothing heavy is imported, and only the compiler is asked for its version."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.errors import CacheError, ToolchainError
from sardonyx.options import Environment, read_environment
from sardonyx.runtime.amx_trial import has_tiles, known_verdict
from sardonyx.runtime.budget import limit_of, read_count
from sardonyx.runtime.cache import Cache
from sardonyx.runtime.machine import (
    ROOT,
    Cpu,
    cpu_quota,
    machine_memory,
    memory_limit,
    process_cpus,
    read_cpu,
    usable_cores,
    usable_memory,
)
from sardonyx.runtime.private_folder import distrust, forbids_execution
from sardonyx.runtime.timings import TimingStore

__all__ = [
    "CacheFolder",
    "Compiler",
    "Cores",
    "Diagnosis",
    "Library",
    "Memory",
    "NativeCode",
    "Tuning",
    "diagnose",
]

# What Sardonyx stands on, and what it can use beside; the extra that brings each of the latter.
_REQUIRED = ("numpy", "ml_dtypes", "onnx", "onnx-ir", "protobuf", "rich", "typer")
_OPTIONAL = {
    "onnxruntime": "peers",
    "Pillow": "image",
    "torch": "torch",
    "onnxscript": "torch",
    "transformers": "models",
    "scikit-learn": "models",
}


@dataclass(frozen=True)
class Cores:
    """CPUs: in the machine, in the affinity mask, granted by the control group, and so usable."""

    total: int
    affinity: int
    quota: float | None
    usable: int


@dataclass(frozen=True)
class Memory:
    """Bytes: in the machine, granted by the control group, and so usable."""

    total: int | None
    limit: int | None
    usable: int | None


@dataclass(frozen=True)
class Compiler:
    """The C compiler that native code is built with. `problem` says why there is none, "" when there is."""

    command: tuple[str, ...]
    name: str
    origin: str
    problem: str


@dataclass(frozen=True)
class NativeCode:
    """What models are compiled for: the CPU, the vectors of the kernels, and the threads of a run."""

    cpu: str
    isa: str
    lanes: int  # float32 values in a vector
    flags: tuple[str, ...]
    threads: int
    tiles: str  # whether products go through AMX tiles, in words


@dataclass(frozen=True)
class Tuning:
    """How many contractions were measured with this CPU and compiler, and on which day the last one was."""

    problems: int
    newest: str


@dataclass(frozen=True)
class CacheFolder:
    """Where compiled work is kept. `problem` says why it cannot be used, "" when it can.

    Attributes:
        bytes: what it holds, as it was counted; None where nobody has.
        limit: how much it may hold before what was used longest ago goes.
    """

    path: str
    exists: bool
    problem: str
    bytes: int | None
    limit: int


@dataclass(frozen=True)
class Library:
    """A package; version None when it is not installed, and then `extra` is what installs it."""

    name: str
    version: str | None
    extra: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Everything that `doctor` found."""

    sardonyx: str
    python: str
    system: str
    architecture: str
    cpu: Cpu
    cores: Cores
    memory: Memory
    compiler: Compiler
    native: NativeCode
    cache: CacheFolder
    tuning: Tuning
    libraries: tuple[Library, ...]
    extras: tuple[Library, ...]
    environment: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What a user should do something about."""
        missing = [f"{lib.name} is not installed." for lib in self.libraries if lib.version is None]
        if self.cache.problem:
            missing.append(f"The cache folder {self.cache.path} {self.cache.problem}")
        if self.compiler.problem:
            missing.append(
                f"{self.compiler.problem} Until then models run on the reference backend."
            )
        return tuple(missing)

    @property
    def summary(self) -> dict[str, str]:
        """The machine in a few words, to stand beside a measurement."""
        features = ", ".join(self.cpu.features) or "no vector features known"
        return {
            "cpu": f"{self.cpu.model} ({self.architecture}; {features})",
            "cores": f"{self.cores.usable} usable of {self.cores.total}",
            "system": self.system,
            "python": self.python,
        }

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "problems": list(self.problems)}


def diagnose(root: Path = ROOT, environment: Environment | None = None) -> Diagnosis:
    """Look at the machine. `root` and `environment` are this machine's own unless a test gives others."""
    settings = read_environment() if environment is None else environment
    cpu = read_cpu(root)
    return Diagnosis(
        sardonyx=importlib.import_module("sardonyx").__version__,  # the package is above every room
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpu=cpu,
        cores=_cores(cpu, root),
        memory=_memory(root),
        compiler=_compiler(settings),
        native=_native(settings, root),
        cache=_cache(settings),
        tuning=_tuning(settings, root),
        libraries=tuple(Library(name, _version(name)) for name in _REQUIRED),
        extras=tuple(Library(name, _version(name), extra) for name, extra in _OPTIONAL.items()),
        environment=settings.is_set,
    )


def _cores(cpu: Cpu, root: Path) -> Cores:
    return Cores(cpu.total, process_cpus(), cpu_quota(root), usable_cores(root))


def _memory(root: Path) -> Memory:
    return Memory(machine_memory(root), memory_limit(root), usable_memory(root))


def _native(settings: Environment, root: Path) -> NativeCode:
    cpu = host_cpu(root)
    isa, tiles = isa_of(cpu), _tiles(settings, root)
    return NativeCode(cpu.name, isa.name, isa.lanes, cpu.flags, usable_cores(root), tiles)


def _tiles(settings: Environment, root: Path) -> str:
    """What is remembered of the trial; nothing is tried for it."""
    cpu, folder = host_cpu(root), _cache(settings)
    if not has_tiles(cpu):
        halves = "computes in float16" if isa_of(cpu).half_arithmetic else "is for the weights of few rows"  # fmt: skip
        return f"none: precision fast is as float32, bfloat16 {halves}"
    found = None
    if folder.exists and not folder.problem:
        try:
            found = known_verdict(Cache(settings.cache_dir), cpu, find_toolchain(settings))
        except (ToolchainError, CacheError):
            found = None
    if found is None:
        return "AMX, tried when the first model is compiled"
    return f"AMX, used: {found.why}" if found.usable else f"AMX, not used: {found.why}"


def _compiler(settings: Environment) -> Compiler:
    origin = "ziglang" if settings.compiler is None else "SARDONYX_CC"
    try:
        found = find_toolchain(settings)
    except ToolchainError as error:
        return Compiler(settings.compiler or (), "", origin, str(error))
    return Compiler(found.argv, found.name, origin, "")


def _cache(settings: Environment) -> CacheFolder:
    """A folder is usable when it is ours alone to write, or can be made."""
    folder = settings.cache_dir
    held = read_count(folder)
    found = partial(
        CacheFolder,
        str(folder),
        bytes=held,
        limit=limit_of(folder, settings.cache_limit, held or 0),
    )
    try:
        problem = distrust(folder)
        if not problem and not os.access(folder, os.W_OK):
            problem = "is not writable."
        if not problem and forbids_execution(folder):
            problem = "is on a disk that is mounted noexec: no code can be loaded from it."
    except FileNotFoundError:
        above = next((p for p in folder.parents if p.exists()), None)
        writable = above is not None and above.is_dir() and os.access(above, os.W_OK)
        return found(False, "" if writable else "cannot be made here.")
    except OSError as error:
        return found(False, f"cannot be looked at: {error.strerror}.")
    return found(True, problem)


def _tuning(settings: Environment, root: Path) -> Tuning:
    """What is remembered; nothing is made or measured for it."""
    folder = _cache(settings)
    if not folder.exists or folder.problem:
        return Tuning(0, "")
    try:
        store = TimingStore(Cache(settings.cache_dir), host_cpu(root), find_toolchain(settings))
    except (ToolchainError, CacheError):
        return Tuning(0, "")
    found = store.measured()
    return Tuning(found.problems, found.newest)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
