"""An artifact as C sources that a stock compiler builds: a folder with a header, files, weights and a CMakeLists.txt.

mlp.h  CMakeLists.txt  mlp.weights  src/mlp.c  src/mlp_k_….c  src/abi.h …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.backends.c.cpu import OF_CLANG, Cpu
from sardonyx.backends.c.plain import expand_ranges
from sardonyx.deploy.embedding import write_data_unit
from sardonyx.deploy.sources import ArtifactSources, announce_functions, support_headers
from sardonyx.deploy.targets import DeployTarget

__all__ = ["write_c_project", "write_files"]

# What the answers depend on, and a compiler would not do by itself.
_FLAGS = (
    "-O3",
    "-ffp-contract=on",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
)


def write_c_project(
    name: str,
    sources: ArtifactSources,
    target: DeployTarget,
    cpu: Cpu,
    folder: Path,
    *,
    embedded: bool,
    threads: bool,
) -> list[Path]:
    """Write the files into the folder, next to the weights; the header comes first."""
    units = dict(sources.units)
    if embedded:
        units[f"{name}_weights.c"] = write_data_unit(
            f"{name}_weights", f"{name}.weights", target.form
        )
    inside = {
        **{file: announce_functions(expand_ranges(text)) for file, text in units.items()},
        **support_headers(units),
        **{file: text for file, text in sources.headers.items() if file != f"{name}.h"},
    }
    files = {f"{name}.h": sources.headers[f"{name}.h"]}
    files["CMakeLists.txt"] = _cmake(name, sorted(units), cpu.flags, threads=threads)
    files |= {f"src/{file}": text for file, text in sorted(inside.items())}
    return write_files(folder, files)


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Texts under their names; those of `src/` in a folder of their own."""
    (folder / "src").mkdir()
    written = []
    for file, text in files.items():
        path = folder / file
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _cmake(name: str, units: Sequence[str], flags: Sequence[str], *, threads: bool) -> str:
    files = "\n".join(f"  src/{unit}" for unit in units)
    # The assembler behind gcc has dot products from ARMv8.2 on alone; so have the CPUs.
    flags = [
        flag.replace("=armv8-a+", "=armv8.2-a+") if "dotprod" in flag else flag
        for flag in flags
        if flag not in OF_CLANG
    ]
    return CMAKE.format(
        name=name,
        upper=name.upper(),
        files=files,
        flags=" ".join((*_FLAGS, *flags)),
        threads="find_package(Threads REQUIRED)\n" if threads else "",
        libraries=" Threads::Threads" if threads else "",
    )


CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project({name} C)

option(BUILD_SHARED_LIBS "a shared library, not a static one" OFF)
{threads}
add_library({name}
{files}
)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}} PRIVATE src)
set_target_properties({name} PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
separate_arguments(own_flags UNIX_COMMAND "{flags}")
# The assembler finds the weights by this path.
target_compile_options({name} PRIVATE ${{own_flags}} -Wa,-I${{CMAKE_CURRENT_SOURCE_DIR}})
if(BUILD_SHARED_LIBS)
  target_compile_definitions({name} PRIVATE "{upper}_API=__attribute__((visibility(\\"default\\")))")
endif()
target_link_libraries({name} PUBLIC m{libraries})
"""
