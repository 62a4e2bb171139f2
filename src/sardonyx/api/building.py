"""Native artifacts, which run without Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source

if TYPE_CHECKING:
    from sardonyx.deploy.build import Built
    from sardonyx.deploy.request import WeightsPlace
    from sardonyx.runtime.chosen import Precision

__all__ = ["build"]


def build(
    source: Source,
    out: str | os.PathLike[str],
    *,
    target: str = "native",
    emit: str = "so",
    cpu: str | None = None,
    name: str | None = None,
    weights: WeightsPlace = "embedded",
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision = "float32",
    threads: bool = True,
    version: str = "1.0",
    sign: str | os.PathLike[str] | None = None,
    portable: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Built:
    """Make a native artifact with a plain C interface of a model: no Python, no runtime, only what the model uses.

    Args:
        out: the folder that its files are written to.
        target: a machine of `sardonyx.deploy.targets`, as "native", "x86_64-linux" or "cortex-m".
        emit: "so" or "a", each with a header; "c" for sources with a CMakeLists.txt; "exe" for a program; "wheel" for a Python package;
            "wasm" for browsers and node, with a loader.
        cpu: of the target, as "x86-64-v4"; by default what is common.
        name: what functions and files are called; by default as the model's file.
        weights: "embedded" in the artifact, or "beside" it in a file that the program maps.
        dims: for dynamic dimensions a size to fix, or the smallest and the largest that there will be: then the memory has a bound.
        precision: as of a Session.
        threads: contexts may have worker threads, where the target has any.
        version: of a wheel, or of a package for npm.
        sign: a file with a private ed25519 key (PEM); `sardonyx verify` checks it with the public one.
        portable: of sources ("c"): plain C99 without extensions, for any compiler.
        progress: called with (steps done, steps in all).

    Raises:
        BuildError: the model needs more than machine code, or nothing of that kind can be made; the message says why.
    """
    from pathlib import Path

    from sardonyx.deploy.build import build_artifact
    from sardonyx.deploy.request import Request

    key = None if sign is None else Path(sign)
    request = Request(
        target,
        emit,
        cpu,
        name,
        weights,
        dict(dims or {}),
        precision,
        threads,
        version,
        key,
        portable,
    )
    return build_artifact(source, Path(out), request, limits=limits, progress=progress)
