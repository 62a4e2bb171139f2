"""Objects → what is delivered: an archive, or a shared library, the same bytes wherever it is done.

A shared library of ELF names libc.so.6 and libm.so.6 and leaves their symbols to the machine that loads it. So it is
linked here against two empty libraries of these names, whatever machine it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.backends.c.toolchain import Toolchain, compile_object, link_library, run_tool
from sardonyx.deploy.interface import SUPPORT
from sardonyx.deploy.tag import TAG
from sardonyx.deploy.targets import DeployTarget

__all__ = ["link_archive", "link_module", "link_program", "link_shared", "shared_name"]

_EMULATIONS = {"x86_64": "elf_x86_64", "aarch64": "aarch64linux", "riscv64": "elf64lriscv"}
_NEEDED = ("libc.so.6", "libm.so.6")
_LOADERS = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1",
}
_FORMATS = {"elf": "gnu", "wasm": "gnu", "coff": "coff", "macho": "darwin"}
# What generated code asks of the C library: mathematics and memory; and what a program asks beside.
_FUNCTIONS = (
    "acos acosh asin asinh atan atanh calloc cos cosh erf exp expm1 fmod fmodf fma fmaf free log log1p log2 madvise malloc "
    "memcmp memcpy memmove memset pow rint rintf sin sinh sqrt strncmp tan tanh tgamma lgamma"
)
_OF_PROGRAMS = (
    "__libc_start_main atoi bcmp clock_gettime exit fclose ferror getenv fopen fprintf fread fwrite posix_memalign printf putchar puts "
    "pthread_attr_destroy pthread_attr_init pthread_attr_setstacksize pthread_create pthread_join pthread_mutex_lock "
    "pthread_mutex_unlock pthread_once pthread_self pthread_setname_np pthread_sigmask realloc sigfillset snprintf "
    "sincos strchr strcmp strlen strstr strtod strtol strtoll syscall fputc fputs"
)
_VARIABLES = "stderr stdin"
# What a loader in JavaScript has for a module of wasm; erf it has not.
_OF_JAVASCRIPT = (
    "acos acosh asin asinh atan atanh cos cosh exp expm1 fmod fmodf log log1p pow sin sinh tan tanh"
)
_WASM_STACK = 1 << 20


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
        _link_macos(toolchain, objects, out)
    elif not toolchain.linker:  # a compiler of the user's own brings its own libraries
        link_library(toolchain, objects, out, [f"-Wl,-soname,{out.name}"])
    else:
        _link_elf(target, toolchain, objects, out)


def _link_elf(
    target: DeployTarget, toolchain: Toolchain, objects: Sequence[Path], out: Path
) -> None:
    libraries = _named_libraries(target, toolchain, out.parent, "")
    argv = [*_elf_linker(target), "-shared", "-z", "undefs", "-soname", out.name, "-o", str(out)]
    run_tool(toolchain, [*argv, *map(str, objects), "--no-as-needed", *libraries], out.parent, "")


def link_module(
    target: DeployTarget, objects: Sequence[Path], out: Path, names: Sequence[str]
) -> None:
    """A module of wasm with these functions and its memory; the stack lies below all else, and traps where it ends."""
    toolchain = target.toolchain()
    imported = out.parent / "imported.txt"
    imported.write_text("\n".join(_OF_JAVASCRIPT.split()) + "\n")
    argv = [packaged_zig(), "wasm-ld", "--no-entry", "--gc-sections", "-s", "--stack-first"]
    argv += ["-z", f"stack-size={_WASM_STACK}", f"--allow-undefined-file={imported}"]
    argv += [f"--export={name}" for name in ("__heap_base", *names)]
    erf = _compile_erf(target, out.parent)
    run_tool(toolchain, [*argv, "-o", str(out), *map(str, objects), str(erf)], out.parent, "")


def _compile_erf(target: DeployTarget, folder: Path) -> Path:
    """Of float64, from the C library whose sources the compiler brings; modules that do not ask for it leave it out."""
    library = Path(packaged_zig()).resolve().parent / "lib/libc/musl"
    found = folder / "erf.o"
    flags = (f"-I{library / 'src/internal'}", f"-I{library / 'arch/generic'}", "-Dhidden=", "-w")
    include = library / "src/math"
    source = '#include "erf.c"\n'
    compile_object(target.toolchain(), source, found, (*target.cpu().flags, *flags), include)
    return found


def link_program(target: DeployTarget, objects: Sequence[Path], out: Path) -> None:
    """A program for Linux that finds its C library where it runs."""
    toolchain = target.toolchain()
    start = out.parent / "start.o"
    text = (SUPPORT / "start.c").read_text(encoding="utf-8")
    flags = (*target.cpu().flags, "-Wno-strict-prototypes", "-Wno-deprecated-non-prototype")
    compile_object(toolchain, text, start, flags, out.parent)
    functions = [f".globl {n}\n.type {n}, %function\n{n}:\n" for n in _names_of_programs()]
    variables = [
        f".globl {n}\n.type {n}, %object\n.size {n}, 8\n{n}: .quad 0\n" for n in _VARIABLES.split()
    ]
    stub = "".join(functions) + ".data\n" + "".join(variables)
    libraries = _named_libraries(target, toolchain, out.parent, stub)
    argv = [*_elf_linker(target), "-pie", "--dynamic-linker", _LOADERS[target.architecture]]
    argv += ["-o", str(out), str(start), *map(str, objects), "--no-as-needed", *libraries]
    run_tool(toolchain, argv, out.parent, "")


def _names_of_programs() -> list[str]:
    return [*_FUNCTIONS.split(), *_OF_PROGRAMS.split()]


def _elf_linker(target: DeployTarget) -> list[str]:
    linker = [packaged_zig(), "ld.lld", "-m", _EMULATIONS[target.architecture], "-s"]
    linker += ["--build-id=none", "--hash-style=gnu", "--gc-sections"]
    return [*linker, "-z", "now", "-z", "relro", "-z", "noexecstack"]


def _named_libraries(
    target: DeployTarget, toolchain: Toolchain, folder: Path, stub: str
) -> list[str]:
    """Libraries with the names of the C library's, and nothing in them but the stub's symbols in the first."""
    found = []
    for name, text in zip(_NEEDED, (stub, ""), strict=True):
        lines = "".join(f'    "{line}\\n"\n' for line in text.splitlines())
        unit, library = folder / f"{name}.o", folder / name
        source = f"__asm__(\n{lines});\n" if lines else ""
        compile_object(toolchain, source, unit, target.cpu().flags, folder)
        linker = [packaged_zig(), "ld.lld", "-m", _EMULATIONS[target.architecture], "-shared"]
        argv = [*linker, "-soname", name, "-o", str(library), str(unit)]
        run_tool(toolchain, argv, folder, "")
        found.append(str(library))
    return found


def _link_macos(toolchain: Toolchain, objects: Sequence[Path], out: Path) -> None:
    """By zig's own linker, which also signs it. Nothing of the compiler's library is needed: it would be compiled first."""
    argv = [packaged_zig(), "build-lib", "-dynamic", "-target", "aarch64-macos", "-lc", "-fstrip"]
    argv += ["-fno-compiler-rt", "-fno-ubsan-rt", "-install_name", f"@rpath/{out.name}"]
    cache = str(out.parent / "zig")
    argv += ["--cache-dir", cache, "--global-cache-dir", cache, f"-femit-bin={out}"]
    run_tool(toolchain, [*argv, *map(str, objects)], out.parent, "")


def _link_windows(
    toolchain: Toolchain, objects: Sequence[Path], out: Path, names: Sequence[str]
) -> None:
    """With an import library of the functions that there are on every Windows."""
    listing = out.parent / "ucrt.def"
    listing.write_text("LIBRARY ucrtbase.dll\nEXPORTS\n" + "\n".join(_FUNCTIONS.split()) + "\n")
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
