"""An artifact as plain C99: `--emit c --portable`. Any compiler builds it, with no flags of its own; weights are a table of numbers.

mlp.h  CMakeLists.txt  src/mlp.c  src/mlp_k_….c  src/mlp_weights.c  src/abi.h …
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from sardonyx.backends.c.plain import PLAIN_DOT, plain_text
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.c_project import write_files
from sardonyx.deploy.sources import ArtifactSources, announce_functions, support_headers
from sardonyx.errors import BuildError

__all__ = ["write_plain_project"]

_MOST_TABLE = 64_000_000  # bytes of weights in a table; a compiler takes a minute for these


def write_plain_project(
    blueprint: Blueprint, sources: ArtifactSources, weights: Path, *, embedded: bool
) -> list[Path]:
    """Write the files next to the weights; the header comes first.

    Raises:
        BuildError: the weights are more than compilers like to read.
    """
    name = blueprint.name
    if embedded and blueprint.weights.size > _MOST_TABLE:
        raise BuildError(
            f"the weights have {blueprint.weights.size} bytes, and {_MOST_TABLE} are the most for a table in C",
            value=blueprint.weights.size,
            limit=_MOST_TABLE,
            hint="Keep them in a file of their own: --weights beside.",
        )
    units = {file: announce_functions(plain_text(text)) for file, text in sources.units.items()}
    headers = {**support_headers(sources.units), **sources.headers}
    if "dot.h" in headers:
        headers["dot.h"] = PLAIN_DOT
    inside = {**units, **{file: plain_text(text) for file, text in headers.items()}}
    own = inside.pop(f"{name}.h")
    if embedded:
        inside[f"{name}_weights.c"] = _table(name, weights.read_bytes())
    names = sorted(file for file in inside if file.endswith(".c"))
    files = {f"{name}.h": own, "CMakeLists.txt": _cmake(name, names)}
    files |= {f"src/{file}": text for file, text in sorted(inside.items())}
    return [*write_files(weights.parent, files), *([] if embedded else [weights])]


def _table(name: str, content: bytes) -> str:
    """Bytes as words of 64 bits: they are aligned to eight, and little-endian."""
    words = struct.unpack(f"<{len(content) // 8}Q", content)
    lines = [
        "    " + " ".join(f"0x{word:x}," for word in words[at : at + 6])
        for at in range(0, len(words), 6)
    ]
    head = f"#include <stdint.h>\n\nextern const uint64_t {name}_weights[{len(words)}];\n"
    rows = "\n".join(lines)
    return f"{head}const uint64_t {name}_weights[{len(words)}] = {{\n{rows}\n}};\n"


def _cmake(name: str, units: Sequence[str]) -> str:
    files = "\n".join(f"  src/{unit}" for unit in units)
    return f"""\
cmake_minimum_required(VERSION 3.13)
project({name} C)

add_library({name}
{files}
)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}} PRIVATE src)
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
# Bytes are read four at a time: a compiler that goes by types must not.
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({name} PRIVATE -fno-strict-aliasing)
endif()
if(NOT MSVC)
  target_link_libraries({name} PUBLIC m)
endif()
"""
