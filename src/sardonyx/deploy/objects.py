"""C of an artifact → objects, through the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.toolchain import compile_object
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.embedding import write_data_unit
from sardonyx.deploy.sources import ArtifactSources, inline_headers
from sardonyx.deploy.stack import STACK_FLAG, stack_of
from sardonyx.deploy.targets import DeployTarget
from sardonyx.options import read_environment
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.compiling import Unit, build_objects

__all__ = ["Objects", "compile_data", "compile_sources"]


@dataclass(frozen=True)
class Objects:
    """What was compiled.

    Attributes:
        files: in the order of their sources.
        stack: the most bytes of it in one run; None where the compiler did not say.
    """

    files: tuple[Path, ...]
    stack: int | None


def compile_sources(
    sources: ArtifactSources,
    target: DeployTarget,
    cpu: Cpu,
    folder: Path,
    *,
    flags: Mapping[str, Sequence[str]],
    blueprints: Sequence[Blueprint],
    progress: Callable[[int, int], None] | None,
) -> Objects:
    """Objects in the folder, under the names of their sources.

    Args:
        flags: of single sources.
        blueprints: of which a run goes through one.
    """
    toolchain = target.toolchain()
    told = (STACK_FLAG,) * (target.form == "elf" and toolchain.linker != ())
    units = {
        file: Unit(file, inline_headers(text, sources.headers), (*told, *flags.get(file, ())))
        for file, text in sources.units.items()
    }
    cache = default_cache(read_environment())
    cached: dict[str, Path] = {}
    for one in dict.fromkeys(sources.cpus.get(file, cpu) for file in units):
        files = [file for file in units if sources.cpus.get(file, cpu) == one]
        several = [units[file] for file in files]
        made = build_objects(several, toolchain, one, cache, progress=progress)
        cached |= zip(files, made, strict=True)
    objects: dict[str, Path] = {}
    for file in units:
        objects[file] = folder / f"{Path(file).stem}.o"
        objects[file].write_bytes(cached[file].read_bytes())
    stack = _stack(objects, sources, blueprints) if told else None
    return Objects(tuple(objects.values()), stack)


def compile_data(symbol: str, file: Path, target: DeployTarget, cpu: Cpu) -> Path:
    """An object beside the file that has the file's bytes under this name."""
    path = file.parent / f"{symbol}.o"
    text = write_data_unit(symbol, file.name, target.form)
    compile_object(target.toolchain(), text, path, cpu.flags, file.parent)
    return path


def _stack(
    objects: Mapping[str, Path], sources: ArtifactSources, blueprints: Sequence[Blueprint]
) -> int | None:
    """Of the blueprint that takes most."""
    shared = {file: path for file, path in objects.items() if file not in sources.cpus}
    found = []
    for blueprint in blueprints:
        own = {file: path for file, path in objects.items() if file.startswith(blueprint.name)}
        own |= shared
        found.append(stack_of(own, own.keys() - blueprint.kernels.keys()))
    return None if None in found else max(stack or 0 for stack in found)
