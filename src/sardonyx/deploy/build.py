"""A model → an artifact in a folder.

    built = build_artifact("mlp.onnx", Path("out"), Request(target="native", emit="so"))
    built.files       # out/libmlp.so, out/mlp.h, …

The plan is made by rules alone, never by what this machine has measured: the same model and the same request are the same
bytes, wherever and by whomever they are built.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.toolchain import compile_object
from sardonyx.deploy.artifact import TAG
from sardonyx.deploy.blueprint import Blueprint, draw
from sardonyx.deploy.c_project import write_c_project
from sardonyx.deploy.embedding import write_weights_unit
from sardonyx.deploy.linking import link_archive, link_shared, shared_name
from sardonyx.deploy.names import c_identifier
from sardonyx.deploy.sources import ArtifactSources, inline_headers, write_sources
from sardonyx.deploy.targets import DeployTarget, find_target
from sardonyx.errors import BuildError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source
from sardonyx.ops.lowering import NotNative
from sardonyx.options import read_environment
from sardonyx.plan.make import make_plan
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.chosen import Precision
from sardonyx.runtime.compiling import Unit, build_objects
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.loaded import Loaded

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
_MOST_EMBEDDED = 2_000_000_000  # what 32-bit distances between code and weights reach


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        cpu: of the target; None for its default.
        name: a C identifier, or what one is made from; None takes the model's file.
        weights: inside the artifact, or in a file that the program maps or loads.
        dims: sizes for dynamic dimensions, which are fixed then.
        precision: as of a session (docs/numerics.md).
        threads: worker threads are linked in, where the target has any; contexts use them when they are opened so.
    """

    target: str = "native"
    emit: str = "so"
    cpu: str | None = None
    name: str | None = None
    weights: WeightsPlace = "embedded"
    dims: Mapping[str, int] = field(default_factory=dict)
    precision: Precision = "float32"
    threads: bool = True


@dataclass(frozen=True)
class Built:
    """What was made.

    Attributes:
        files: with their bytes; the first is the artifact itself.
        code_bytes: of the artifact without its weights.
    """

    name: str
    files: tuple[tuple[Path, int], ...]
    code_bytes: int
    weights_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "files": {str(path): size for path, size in self.files},
            "code_bytes": self.code_bytes,
            "weights_bytes": self.weights_bytes,
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
    cpu = target.cpu(request.cpu)
    name = c_identifier(request.name or _stem(source))
    with _folder(out) as folder:
        blueprint = _plan(source, request, cpu, name, limits)
        made = _make(blueprint, request, target, cpu, folder, progress)
        files = []
        for path in made:
            final = out / path.relative_to(folder)
            final.parent.mkdir(exist_ok=True)
            path.replace(final)
            files.append((final, final.stat().st_size))
    weights = blueprint.weights.size
    inside = weights if request.weights == "embedded" and request.emit != "c" else 0
    return Built(name, tuple(files), files[0][1] - inside, weights)


def _stem(source: Source) -> str:
    return Path(source).stem if isinstance(source, str | os.PathLike) else "model"


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


def _plan(source: Source, request: Request, cpu: Cpu, name: str, limits: Limits) -> Blueprint:
    loaded = Loaded(source, limits, None)
    _fix_dims(loaded.model, request.dims)
    loaded.check("refuse")
    model = loaded.planned.model
    wanted = replace(target_of(isa_of(cpu)), precision=request.precision)
    try:
        planned = make_plan(
            model, loaded.planned.shapes, partial(fold_node, model), wanted, loaded.planned.border
        )
    except NotNative as refusal:
        raise BuildError(f"the model has no native code: {refusal}") from refusal
    ports, defaults, outputs = loaded.ports()
    inputs = [port for port in ports if port.name not in defaults]
    return draw(planned, isa_of(cpu), inputs, outputs, name)


def _fix_dims(model: ir.Model, dims: Mapping[str, int]) -> None:
    known: set[str] = set()
    for value in model.graph.inputs:
        if value.shape is None:
            continue
        sizes: list[int | str | None] = []
        for dim in value.shape:
            symbol = None if isinstance(dim, int) else dim.value
            known.update([symbol] if symbol else [])
            sizes.append(dim if isinstance(dim, int) else dims.get(symbol or "", symbol))
        value.shape = ir.Shape(sizes)
    for name in dims:
        if name not in known:
            raise BuildError(
                f"no input has the dimension {name[:120]!r}",
                value=name,
                hint=f"The dimensions are: {', '.join(sorted(known)) or 'all fixed'}.",
            )


def _make(
    blueprint: Blueprint,
    request: Request,
    target: DeployTarget,
    cpu: Cpu,
    folder: Path,
    progress: Callable[[int, int], None] | None,
) -> list[Path]:
    """The files of the artifact, in the folder to work in; the main one first."""
    name, embedded = blueprint.name, request.weights == "embedded"
    if embedded and blueprint.weights.size > _MOST_EMBEDDED:
        raise BuildError(
            f"the weights have {blueprint.weights.size} bytes, and {_MOST_EMBEDDED} can be embedded at most",
            value=blueprint.weights.size,
            limit=_MOST_EMBEDDED,
            hint="Keep them in a file of their own: --weights beside.",
        )
    sources = write_sources(
        blueprint,
        embedded=embedded,
        threads=target.threads and request.threads,
        hosted=target.hosted,
    )
    weights = folder / f"{name}.weights"
    with weights.open("wb") as file:
        blueprint.weights.write(file)
    if request.emit == "c":
        threads = target.threads and request.threads
        project = write_c_project(
            name, sources, target, cpu, folder, embedded=embedded, threads=threads
        )
        return [*project, weights]
    header = folder / f"{name}.h"
    header.write_text(sources.headers[header.name], encoding="utf-8")
    objects = _compile(sources, name, request.emit, target, cpu, folder, progress)
    if embedded:
        inside = folder / f"{name}_weights.o"
        text = write_weights_unit(name, weights.name, target.form)
        compile_object(target.toolchain(), text, inside, cpu.flags, folder)
        objects.append(inside)
    if request.emit == "a":
        main = folder / f"lib{name}.a"
        link_archive(target, objects, main)
    else:
        main = folder / shared_name(name, target)
        link_shared(target, objects, main, [TAG, *(f"{name}_{one}" for one in FUNCTIONS)])
    others = [folder / f"{name}.lib"] if main.suffix == ".dll" else []
    return [main, header, *others, *([] if embedded else [weights])]


def _compile(
    sources: ArtifactSources,
    name: str,
    emit: str,
    target: DeployTarget,
    cpu: Cpu,
    folder: Path,
    progress: Callable[[int, int], None] | None,
) -> list[Path]:
    """Objects under the names of their sources, through the cache."""
    shown: tuple[str, ...] = ()
    if emit == "so":
        visible = '__attribute__((visibility("default")))'
        shown = (f"-D{name.upper()}_API={visible}", f"-DSX_TAG={visible}")
    units = [
        Unit(file, inline_headers(text, sources.headers), shown if file == f"{name}.c" else ())
        for file, text in sources.units.items()
    ]
    cache = default_cache(read_environment())
    objects = build_objects(units, target.toolchain(), cpu, cache, progress=progress)
    found = []
    for unit, path in zip(units, objects, strict=True):
        own = folder / f"{Path(unit.name).stem}.o"
        own.write_bytes(path.read_bytes())
        found.append(own)
    return found
