"""`sardonyx run` and `bench` on what `sardonyx build` made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.backends.reference import Value
    from sardonyx.comparison.bench import Bench, Schedule
    from sardonyx.deploy.artifact import Artifact

__all__ = ["bench_library", "is_shared_library", "run_library"]


def is_shared_library(path: Path) -> bool:
    """Whether a file is one by its name."""
    return path.suffix in (".so", ".dylib", ".dll")


def run_library(
    path: Path, inputs: list[Path], threads: int | None
) -> tuple[dict[str, Value], str]:
    """Its answers by name, and what there is to say about them: without inputs, the self-test's."""
    from sardonyx.deploy.artifact import Artifact
    from sardonyx.deploy.manifest import changed_files

    if not inputs:
        _refuse(path, changed_files(path))  # before anything of it is loaded
    with Artifact(path, threads=threads or 1) as artifact:
        note = ""
        if not inputs:
            _refuse(path, artifact.self_test())
            note = "self-test: ok"
        answers = artifact.run(None, _feeds(artifact, inputs))
        return dict(zip([port.name for port in artifact.outputs], answers, strict=True)), note


def _refuse(path: Path, wrong: list[str]) -> None:
    from sardonyx.errors import VerificationError

    if wrong:
        raise VerificationError(
            f"the self-test fails: {', '.join(wrong)} differ from what was built",
            where=f"artifact {path.name!r}",
            hint="The file is damaged, or this CPU lacks what it was built for: build it again.",
        )


def bench_library(
    path: Path, inputs: Path | None, threads: int | None, schedule: Schedule, tell: Any
) -> Bench:
    """How long a run of it takes, on given inputs or the self-test's."""
    from sardonyx.comparison.bench import bench_call
    from sardonyx.deploy.artifact import Artifact

    with Artifact(path, threads=threads or 1) as artifact:
        feeds = _feeds(artifact, [] if inputs is None else [inputs])
        names = [port.name for port in artifact.outputs]

        def call(given: Mapping[str, Value]) -> dict[str, Value]:
            return dict(zip(names, artifact.run(None, given), strict=True))

        return bench_call(
            call,
            feeds,
            name=path.name,
            engine="artifact",
            schedule=schedule,
            tell=tell,
        )


def _feeds(artifact: Artifact, inputs: list[Path]) -> dict[str, Value]:
    from sardonyx.comparison.reading import read_for_ports
    from sardonyx.errors import InputError

    ports = list(artifact.inputs)
    feeds: dict[str, Value] = {}
    for path in inputs:
        feeds.update(read_for_ports(path, ports))
    if inputs:
        return feeds
    if artifact.question is None:
        raise InputError(
            "it has no self-test beside it to take inputs from",
            where=f"artifact {artifact.path.name!r}",
            hint="Give inputs: --inputs x.npy.",
        )
    return dict(zip([port.name for port in ports], artifact.question.inputs, strict=True))
