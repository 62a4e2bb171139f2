"""The compiler that pip brings, aimed at another machine.

Its clang compiles for every target that zig knows; headers of their C libraries come along. What is linked against is
the user's system on that other machine, so a shared library of ELF only names the C library's files, and leaves
its symbols to be found there: such a library runs with any glibc.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.backends.c.toolchain import BASE_FLAGS, WARNINGS, Toolchain, ask_compiler, digest_of

__all__ = ["cross_toolchain"]


@functools.lru_cache(maxsize=32)
def cross_toolchain(
    triple: str, headers: tuple[str, ...], without: frozenset[str] = frozenset()
) -> Toolchain:
    """A compiler for this target; it does not link.

    Args:
        triple: as clang writes it.
        headers: folders of zig's headers of C libraries, the first that is searched first.
        without: flags that the target does not have.
    """
    program = packaged_zig()
    root = Path(program).resolve().parent / "lib"
    zig = ask_compiler((program, "version")).strip()
    version = ask_compiler((program, "clang", "--version"))
    shared = tuple(flag for flag in (*BASE_FLAGS, *WARNINGS) if flag not in without)
    flags = [f"--target={triple}", "--no-default-config", "-nostdinc", *_system(root, headers)]
    clang = " ".join(version.split()[:3]).replace(" version", "")
    return Toolchain(
        argv=(program, "clang"),
        name=f"zig {zig} ({clang})",
        identity=digest_of(zig, version, triple, *headers, *shared),
        flags=(*flags, *shared),
        linker=(program,),
    )


def _system(root: Path, headers: Sequence[str]) -> list[str]:
    folders = [root / "include", *(root / "libc/include" / name for name in headers)]
    return [word for folder in folders for word in ("-isystem", str(folder))]
