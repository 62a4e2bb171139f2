"""An artifact as C: its header, its own file, the steps, one file a kernel, and the threads.

mlp.h            the interface
mlp.c            tables of the model, and what every artifact has
mlp_steps.c      which kernel when
mlp_k_<digest>.c a kernel
mlp_threads.c    worker threads
mlp_weights.c    where the weights are linked in
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sardonyx.backends.c.toolchain import SUPPORT as KERNEL_SUPPORT
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.interface import SUPPORT, write_header
from sardonyx.deploy.memory import MemoryBill
from sardonyx.deploy.model_unit import write_model_unit

__all__ = ["ArtifactSources", "inline_headers", "write_sources"]

_POOL_NAMES = re.compile(
    r"\bsx_(pool_create|pool_destroy|parallel|look|allocate|release|enter|leave|tiles_granted)\b"
)


@dataclass(frozen=True)
class ArtifactSources:
    """C text by file name. `headers` are the artifact's own, beside those that all kernels include."""

    headers: dict[str, str]
    units: dict[str, str]


def write_sources(
    blueprint: Blueprint, memory: MemoryBill, *, embedded: bool, threads: bool, hosted: bool
) -> ArtifactSources:
    """Print the artifact: the same blueprint is the same text."""
    name = blueprint.name
    units = {**blueprint.kernels, f"{name}_steps.c": blueprint.steps}
    units[f"{name}.c"] = write_model_unit(
        blueprint, memory, embedded=embedded, threads=threads, hosted=hosted
    )
    if threads:
        units[f"{name}_threads.c"] = _threads(name)
    headers = {
        f"{name}.h": write_header(blueprint, memory),
        "core.h": (SUPPORT / "core.h").read_text(encoding="utf-8"),
    }
    return ArtifactSources(headers, dict(sorted(units.items())))


def inline_headers(text: str, headers: dict[str, str]) -> str:
    """The text with these headers written out, so that it compiles from no folder at all."""
    for name, header in headers.items():
        text = text.replace(f'#include "{name}"\n', header)
    return text


def _threads(name: str) -> str:
    """The thread pool under names of its own: every artifact in a program has one."""
    header = (KERNEL_SUPPORT / "threads.h").read_text(encoding="utf-8")
    source = (KERNEL_SUPPORT / "threads.c").read_text(encoding="utf-8")
    text = source.replace('#include "threads.h"\n', header)
    return "#define SX_EXPORT\n#define SX_UNLOADABLE\n" + _POOL_NAMES.sub(rf"{name}_\1", text)
