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
from dataclasses import dataclass, field

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.toolchain import SUPPORT as KERNEL_SUPPORT
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.interface import SUPPORT, write_header
from sardonyx.deploy.memory import MemoryBill
from sardonyx.deploy.model_unit import write_model_unit

__all__ = [
    "ArtifactSources",
    "announce_functions",
    "inline_headers",
    "support_headers",
    "write_sources",
]

# Other people's compilers are asked for more warnings than our own.
_UNUSED = re.compile(r'^(#pragma GCC diagnostic ignored "-Wunused-)variable(")$', re.MULTILINE)
_VISIBLE = re.compile(r"^(int32_t \w+\(sx_run [^{};]*\)) \{", re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)

_POOL_NAMES = re.compile(
    r"\bsx_(pool_create|pool_destroy|parallel|look|allocate|release|enter|leave|tiles_granted)\b"
)


@dataclass(frozen=True)
class ArtifactSources:
    """C text by file name. `headers` are the artifact's own, beside those that all kernels include.

    Attributes:
        cpus: what units are compiled for, where that is not the CPU of the whole.
    """

    headers: dict[str, str]
    units: dict[str, str]
    cpus: dict[str, Cpu] = field(default_factory=dict)


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


def announce_functions(text: str) -> str:
    """A declaration before every definition that other files see, as careful compilers ask for."""
    return _VISIBLE.sub(r"\1;\n\1 {", text)


def support_headers(units: dict[str, str]) -> dict[str, str]:
    """The headers that kernels include, and those that these include."""
    found: dict[str, str] = {}
    pending = list(units.values())
    while pending:
        for name in _INCLUDE.findall(pending.pop()):
            path = KERNEL_SUPPORT / name
            if name not in found and path.is_file():
                text = path.read_text(encoding="utf-8")
                found[name] = _UNUSED.sub(r"\1variable\2\n\1const-variable\2", text)
                pending.append(found[name])
    return found


def _threads(name: str) -> str:
    """The thread pool under names of its own: every artifact in a program has one."""
    header = (KERNEL_SUPPORT / "threads.h").read_text(encoding="utf-8")
    source = (KERNEL_SUPPORT / "threads.c").read_text(encoding="utf-8")
    text = source.replace('#include "threads.h"\n', header)
    return "#define SX_EXPORT\n#define SX_UNLOADABLE\n" + _POOL_NAMES.sub(rf"{name}_\1", text)
