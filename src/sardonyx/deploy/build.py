"""A model → an artifact in a folder.

    built = build_artifact("mlp.onnx", Path("out"), Request(target="native", emit="so"))
    built.files       # out/libmlp.so, out/mlp.h, …

The plan is made by rules alone, never by what this machine has measured: the same model and the same request are the same
bytes, wherever and by whomever they are built.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sardonyx.deploy.delivery import Delivery
from sardonyx.deploy.draft import Draft
from sardonyx.deploy.levels import (
    Level,
    level_cpu,
    level_names,
    memory_of_levels,
    name_at,
    share_weights,
)
from sardonyx.deploy.linking import shared_name
from sardonyx.deploy.manifest import model_file
from sardonyx.deploy.memory import MemoryBill, memory_of
from sardonyx.deploy.names import c_identifier
from sardonyx.deploy.request import Request, check_weights, chosen_cpu
from sardonyx.deploy.self_test import make_self_test
from sardonyx.deploy.signing import read_private_key, sign_manifest
from sardonyx.deploy.targets import find_target
from sardonyx.errors import BuildError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source

__all__ = ["Built", "build_artifact"]


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
    cpu = chosen_cpu(request, target)
    names = level_names(request.target, request.cpu, request.emit)
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
        weights = blueprint.weights.size
        check_weights(request, weights)
        cpus = [level.cpu for level in levels] or [cpu]
        test = make_self_test(draft.model, blueprint, cpus, draft.precision)
        made = Delivery(blueprint, test, request, target, cpu, folder, memory, tuple(levels))
        paths, memory = made.write(source, draft.model, progress)
        if signer is not None:
            paths.append(sign_manifest(paths[-1], signer))
        # What is inside of a wheel is compressed: its library counts.
        main = folder / shared_name(name, target) if request.emit == "wheel" else paths[0]
        size = main.stat().st_size
        files = [(final, final.stat().st_size) for final in _moved(paths, folder, out)]
    inside = 0 if request.emit == "c" or not request.embedded else weights
    inside += 0 if test is None or request.emit != "exe" else test.size
    return Built(name, tuple(files), size - inside, weights, memory)


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


def _moved(paths: list[Path], folder: Path, out: Path) -> Iterator[Path]:
    """The files where they are to lie."""
    for path in paths:
        final = out / path.relative_to(folder)
        final.parent.mkdir(exist_ok=True)
        yield path.replace(final)
