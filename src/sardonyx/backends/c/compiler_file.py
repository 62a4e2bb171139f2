"""Which compiler there is, told by its file and without starting it.

Whoever opens a model that was compiled before asks no more than this, and need not wait for what runs a compiler.
"""

from __future__ import annotations

import os
import platform
import sys

from sardonyx.errors import ToolchainError
from sardonyx.options import Environment

__all__ = ["compiler_stamp", "packaged_zig"]


def compiler_stamp(options: Environment) -> tuple[str, ...]:
    """What changes with the compiler that would be found: its file, and the C library; nothing where there is none."""
    program = packaged_zig() if options.compiler is None else _program(options.compiler[0])
    if program is None:
        return ()
    status = os.stat(program)  # noqa: PTH116 - whoever opens a model waits for it
    words = (program, *(options.compiler or ()), str(status.st_size), str(status.st_mtime_ns))
    return (*words, *platform.libc_ver())


def _program(name: str) -> str | None:
    import shutil

    return shutil.which(name)


def packaged_zig() -> str:
    """The program inside the ziglang package; the package itself is not imported."""
    for folder in sys.path:  # where nearly everybody has it
        program = f"{folder}/ziglang/zig"
        if folder and os.access(program, os.X_OK):
            return program
    import importlib.util

    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = f"{folder}/zig"
        if os.access(program, os.X_OK):
            return program
    raise ToolchainError(
        "there is no C compiler: the package ziglang is not installed",
        hint="Run: pip install ziglang. Or name a compiler of your own, as in SARDONYX_CC=gcc.",
    )
