"""Objects → what is delivered: an archive, or a shared library, the same bytes wherever it is done.

A shared library of ELF names libc.so.6 and libm.so.6 and leaves their symbols to the machine that loads it. So it is
linked here against two empty libraries of these names, whatever machine it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.backends.c.toolchain import (
    Toolchain,
    compile_object,
    link_library,
    packaged_zig,
    run_tool,
)
from sardonyx.deploy.artifact import TAG
from sardonyx.deploy.targets import DeployTarget

__all__ = ["link_archive", "link_shared", "shared_name"]

_EMULATIONS = {"x86_64": "elf_x86_64", "aarch64": "aarch64linux", "riscv64": "elf64lriscv"}
_NEEDED = ("libc.so.6", "libm.so.6")
_FORMATS = {"elf": "gnu", "wasm": "gnu", "coff": "coff", "macho": "darwin"}
# What generated code asks of the C library of Windows.
_WINDOWS = (
    "acos acosh asin asinh atan atanh calloc cos cosh erf exp expm1 fmod fmodf fma fmaf free log log1p log2 malloc "
    "memcmp memcpy memmove memset pow rint rintf sin sinh sqrt strncmp tan tanh tgamma lgamma"
)


def shared_name(name: str, target: DeployTarget) -> str:
    """What a shared library is called there."""
    if target.form == "coff":
        return f"{name}.dll"
    return f"lib{name}.dylib" if target.form == "macho" else f"lib{name}.so"


def link_archive(target: DeployTarget, objects: Sequence[Path], out: Path) -> None:
    """A static library. Members have neither dates nor owners."""
    argv = [packaged_zig(), "ar", f"--format={_FORMATS[target.form]}", "rcsD", str(out)]
    run_tool(target.toolchain(), [*argv, *map(str, objects)], out.parent, "")


def link_shared(
    target: DeployTarget, objects: Sequence[Path], out: Path, names: Sequence[str]
) -> None:
    """A shared library that shows these names and no others."""
    toolchain = target.toolchain()
    if target.form == "coff":
        _link_windows(toolchain, objects, out, names)
    elif target.form == "macho":
        argv = [packaged_zig(), "cc", "-target", "aarch64-macos", "-shared", "-Wl,-s"]
        argv += [f"-Wl,-install_name,@rpath/{out.name}", "-o", str(out), *map(str, objects)]
        run_tool(toolchain, argv, out.parent, "")
    elif not toolchain.linker:  # a compiler of the user's own brings its own libraries
        link_library(toolchain, objects, out, [f"-Wl,-soname,{out.name}"])
    else:
        _link_elf(target, toolchain, objects, out)


def _link_elf(
    target: DeployTarget, toolchain: Toolchain, objects: Sequence[Path], out: Path
) -> None:
    linker = [packaged_zig(), "ld.lld", "-m", _EMULATIONS[target.architecture], "-shared"]
    linker += ["--build-id=none", "--hash-style=gnu", "-s"]
    empty = out.parent / "empty.o"
    compile_object(toolchain, "", empty, target.cpu().flags, out.parent)
    libraries = []
    for name in _NEEDED:
        library = out.parent / name
        argv = [*linker, "-soname", name, "-o", str(library), str(empty)]
        run_tool(toolchain, argv, out.parent, "")
        libraries.append(str(library))
    argv = [*linker, "-z", "undefs", "-z", "now", "-z", "relro", "--gc-sections"]
    argv += ["-z", "noexecstack", "-soname", out.name, "-o", str(out)]
    run_tool(toolchain, [*argv, *map(str, objects), "--no-as-needed", *libraries], out.parent, "")


def _link_windows(
    toolchain: Toolchain, objects: Sequence[Path], out: Path, names: Sequence[str]
) -> None:
    """With an import library of the functions that there are on every Windows."""
    listing = out.parent / "ucrt.def"
    listing.write_text("LIBRARY ucrtbase.dll\nEXPORTS\n" + "\n".join(_WINDOWS.split()) + "\n")
    library = out.parent / "ucrt.lib"
    argv = [packaged_zig(), "dlltool", "-m", "i386:x86-64", "-d", str(listing), "-l", str(library)]
    run_tool(toolchain, argv, out.parent, "")
    argv = [packaged_zig(), "lld-link", "/dll", "/noentry", "/nodefaultlib", "/Brepro", "/opt:ref"]
    argv += [
        f"/out:{out}",
        *(f"/export:{name}{',DATA' * (name == TAG)}" for name in names),
        f"/implib:{out.with_suffix('.lib')}",
    ]
    run_tool(toolchain, [*argv, *map(str, objects), str(library)], out.parent, "")
