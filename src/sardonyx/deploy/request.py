"""What is asked of a build, and what of it cannot be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.plain import PLAIN_CPU
from sardonyx.deploy.levels import AMX, DISPATCH, level_names
from sardonyx.deploy.memory import Range
from sardonyx.deploy.targets import DeployTarget
from sardonyx.errors import BuildError
from sardonyx.runtime.chosen import Precision

__all__ = ["Request", "WeightsPlace", "check_weights", "chosen_cpu"]

WeightsPlace = Literal["embedded", "beside"]
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

    @property
    def embedded(self) -> bool:
        return self.weights == "embedded"


def chosen_cpu(request: Request, target: DeployTarget) -> Cpu:
    """What is compiled for. Sources go without dispatch: every file of theirs has the same flags.

    Raises:
        BuildError: it is plain C and something else, or tiles without anybody who asks the system for them.
    """
    if request.portable:
        _check_portable(request)
        return PLAIN_CPU
    if request.cpu == AMX and not level_names(request.target, request.cpu, request.emit):
        raise BuildError(
            f"{AMX} is for libraries and programs of x86_64-linux, which ask the system for tiles",
            value=request.cpu,
            hint="Name x86-64-v4, or another target.",
        )
    several = request.cpu in (None, DISPATCH) and target.cpus[0] == DISPATCH
    return target.cpu("x86-64-v3" if several and request.emit == "c" else request.cpu)


def check_weights(request: Request, size: int) -> None:
    """Whether weights of so many bytes can be where they are asked for.

    Raises:
        BuildError: they cannot.
    """
    most = _MOST_IN_WASM if request.emit == "wasm" else _MOST_EMBEDDED
    if request.embedded and size > most:
        raise BuildError(
            f"the weights have {size} bytes, and {most} can be embedded at most",
            value=size,
            limit=most,
            hint="Keep them in a file of their own: --weights beside.",
        )
    if request.emit == "exe" and not request.embedded:
        raise BuildError(
            "a program has its weights inside", hint="Leave --weights away, or emit a library."
        )


def _check_portable(request: Request) -> None:
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
