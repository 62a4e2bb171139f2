"""A C compiler, used and nothing more: text in, object out; objects in, shared library out. It knows no cache.

Two kinds of toolchain:

- `ziglang`, which pip brings. Its clang and its lld are called directly, past the `zig cc` driver: the driver
  compiles its own runtime libraries before the first link (half a minute), and searches
  the host's header folders. So zig's own headers are named here, and the libraries are the ones that this
  process has mapped: what is linked is what will be loaded.
- any other compiler that `SARDONYX_CC` names (gcc, clang), through its driver.

Never a shell. Nothing of the caller's environment reaches the compiler, so CC, CFLAGS, CPATH, LD_PRELOAD and
their like have no influence on what is built.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.backends.c.cpu import OF_CLANG, Cpu, host_cpu, require
from sardonyx.errors import ToolchainError
from sardonyx.options import Environment

__all__ = [
    "BASE_FLAGS",
    "SUPPORT",
    "WARNINGS",
    "Cpu",
    "Toolchain",
    "ask_compiler",
    "compile_object",
    "digest_of",
    "find_toolchain",
    "host_cpu",
    "link_library",
    "precompile",
    "require",
    "run_tool",
]

SUPPORT = Path(__file__).parent / "support"  # the headers that generated code includes

_SECONDS = 600  # no kernel takes a compiler that long; a compiler that hangs does
_SHOWN_LINES = 12

BASE_FLAGS = (
    "-std=gnu11",
    "-O2",  # -O3 unrolls loops of a few steps: as fast, and a quarter more code
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=on",
    # The arena's bytes serve one type after another, in place: a load of the old type must stay before
    # the store of the new one.
    "-fno-strict-aliasing",
    # Distributions change these defaults; the code should not differ.
    "-fno-stack-protector",
)
# Our own clang is always the same one, so its warnings are errors.
WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Werror",
    # All kernels have one signature, and use what they need of it; loops that folded away leave their
    # names and always-true conditions behind.
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-type-limits",
    "-Wno-tautological-compare",
    # Conditions are joined with & on purpose: both sides are cheap, and branches are not.
    "-Wno-bitwise-instead-of-logical",
    # Vectors are passed between static functions only: no ABI is at stake.
    "-Wno-psabi",
    # A loop that could not be vectorised is slow, not wrong.
    "-Wno-pass-failed",
)
# What a compiler of the user's choice warns about changes with its release; it is not the user's to fix.
NO_WARNINGS = ("-w",)
_LINK_FLAGS = ("-z", "defs", "-z", "now", "--build-id=none", "--gc-sections", "--as-needed", "-s")

# What the C library is called where a process has it mapped. Before glibc 2.34 threads had a file of their own;
# thread-local variables are the loader's.
_LIBRARIES = ("libm.so", "libpthread.so", "libc.so", "ld-linux", "ld-musl-", "libc.musl-")

# A compiler's words for a disk that takes no more; the same errors as when Python writes.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)


@dataclass(frozen=True)
class Toolchain:
    """A compiler that was found and answers.

    Attributes:
        argv: what compiles, as an argument list; never a shell's line.
        name: for people, as `zig 0.17.0 (clang 22.1.8)`.
        identity: a digest of the version, the flags and the C library; part of every key of compiled code.
        flags: for every compilation, before the caller's own.
        linker: what links, as an argument list; empty when `argv` drives its own linker.
        libraries: what is linked against, when `linker` is called directly.
        without: flags of a CPU that this compiler does not know.
        precompiles: whether it can read the beginning of a text once for many texts.
    """

    argv: tuple[str, ...]
    name: str
    identity: str
    flags: tuple[str, ...]
    linker: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    precompiles: bool = False


def find_toolchain(options: Environment) -> Toolchain:
    """The compiler that the user chose, or the one that pip brought; a `ToolchainError` if there is none."""
    return _find(options.compiler)


def compile_object(
    toolchain: Toolchain,
    source: str,
    out: Path,
    flags: Sequence[str],
    include: Path,
    *,
    begun: Path | None = None,
) -> None:
    """Compile C text into an object. The same text and flags give the same bytes, wherever it is done.

    Args:
        begun: what `precompile` made of what the text begins with, by these flags. Nothing changes but the time.
    """
    more = () if begun is None else ("-include-pch", str(begun))
    _compile(toolchain, source, out, (*flags, *more), include, "c")


def precompile(
    toolchain: Toolchain, beginning: str, out: Path, flags: Sequence[str], include: Path
) -> None:
    """Read the headers that many texts begin with, once for all."""
    more = (
        # A header that was installed again is the same by its content, which whoever keeps this knows it by.
        *("-Xclang", "-fno-pch-timestamp"),
        # A disk that is full would stay full: clang leaves its temporary file behind.
        *("-Xclang", "-fno-temp-file"),
    )
    _compile(toolchain, beginning, out, (*flags, *more), include, "c-header")


def _compile(
    toolchain: Toolchain, source: str, out: Path, flags: Sequence[str], include: Path, kind: str
) -> None:
    argv = [
        *toolchain.argv,
        *toolchain.flags,
        *(flag for flag in flags if flag not in toolchain.without),
        f"-ffile-prefix-map={include}=support",
        f"-I{include}",
        "-c",
        "-o",
        str(out),
        "-x",
        kind,
        "-",  # no source file: no path of one in the object
    ]
    run_tool(toolchain, argv, out.parent, source)


def link_library(
    toolchain: Toolchain, objects: Sequence[Path], out: Path, flags: Sequence[str] = ()
) -> None:
    """Link objects into a shared library in which nothing is left undefined."""
    files = [str(path) for path in objects]
    if toolchain.linker:
        argv = [*toolchain.linker, "-shared", *_LINK_FLAGS, *flags, "-o", str(out), *files]
        argv += toolchain.libraries
    else:
        passed = [f"-Wl,{','.join(_LINK_FLAGS)}"]
        argv = [*toolchain.argv, "-shared", *passed, *flags, "-o", str(out), *files]
        argv += ["-lm", "-pthread"]
    run_tool(toolchain, argv, out.parent, "")


@functools.lru_cache(maxsize=8)
def _find(chosen: tuple[str, ...] | None) -> Toolchain:
    if chosen is None:
        return _zig(packaged_zig(), ())
    program = shutil.which(chosen[0])
    if program is None:
        raise ToolchainError(
            f"SARDONYX_CC names {chosen[0]!r}, which is not found",
            value=chosen[0],
            hint="Give the compiler's full path, or unset SARDONYX_CC to use the one that pip brings.",
        )
    if Path(program).name.startswith("zig") and chosen[1:2] == ("cc",):
        return _zig(program, chosen[2:])
    return _driver((program, *chosen[1:]))


def _zig(program: str, extra: tuple[str, ...]) -> Toolchain:
    libraries = _mapped_libraries()
    if not libraries:
        raise ToolchainError(
            "the C library of this process is not in /proc/self/maps, so nothing can be linked with it",
            hint="Name a compiler that brings its own, as in SARDONYX_CC=gcc.",
        )
    zig = ask_compiler((program, "version")).strip()
    version = ask_compiler((program, "clang", "--version"))
    machine = platform.machine()
    libc, release = platform.libc_ver()
    abi = "gnu" if libc == "glibc" else "musl"
    flags = [f"--target={machine}-linux-{abi}", "--no-default-config", "-nostdinc"]
    for folder in zig_headers(Path(program).resolve().parent / "lib", machine, abi):
        flags += ["-isystem", str(folder)]
    if libc == "glibc":
        flags.append(f"-D__GLIBC_MINOR__={release.partition('.')[2] or '0'}")
    shared = (*BASE_FLAGS, *WARNINGS, *extra)
    clang = " ".join(version.split()[:3]).replace(" version", "")
    return Toolchain(
        argv=(program, "clang"),
        name=f"zig {zig} ({clang})",
        identity=digest_of(zig, version, libc, release, machine, *shared, *_LINK_FLAGS),
        flags=(*flags, *shared),
        linker=(program, "ld.lld"),
        libraries=libraries,
        precompiles=True,
    )


def _driver(argv: tuple[str, ...]) -> Toolchain:
    version = ask_compiler((*argv, "--version"))
    first = version.splitlines()[0].strip() if version.strip() else Path(argv[0]).name
    flags = (*BASE_FLAGS, *NO_WARNINGS)
    where = (platform.machine(), *platform.libc_ver())
    identity = digest_of(version, *argv, *where, *flags, *_LINK_FLAGS)
    without = frozenset() if "clang" in version else OF_CLANG
    return Toolchain(argv, first, identity, flags, without=without)


def zig_headers(root: Path, machine: str, abi: str) -> list[Path]:
    """The folders that zig itself would search for this target, in its order."""
    family = "x86" if machine == "x86_64" else "riscv" if machine.startswith("riscv") else machine
    library = "generic-glibc" if abi == "gnu" else "generic-musl"
    names = [f"{machine}-linux-{abi}", f"{family}-linux-{abi}", library]
    names += [f"{machine}-linux-any", f"{family}-linux-any", "any-linux-any"]
    folders = [root / "include", *(root / "libc/include" / name for name in names)]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _mapped_libraries() -> tuple[str, ...]:
    """The C library's files, as this process has them mapped."""
    for name in ("libm.so.6", "libc.so.6"):  # Python need not have mapped libm yet
        try:
            ctypes.CDLL(name)
        except OSError:
            continue  # musl has all of it in one file, which is mapped
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ()
    paths = {words[5] for line in lines if len(words := line.split(None, 5)) == 6}
    found = [path for path in sorted(paths) if Path(path).name.startswith(_LIBRARIES)]
    return tuple(path for path in found if Path(path).is_file())


def ask_compiler(argv: tuple[str, ...]) -> str:
    """What the compiler says about itself."""
    done = _start(list(argv), _environment(argv[0], None), "")
    if done.returncode != 0:
        raise ToolchainError(
            f"the compiler does not answer to {' '.join(argv)!r} "
            f"(exit code {done.returncode}): {_first_lines(done.stdout)}",
            value=argv,
            hint="Install ziglang again, or name another compiler with SARDONYX_CC.",
        )
    # Folders are not part of what a compiler is.
    return "\n".join(
        line for line in done.stdout.splitlines() if not line.startswith("InstalledDir")
    )


def run_tool(toolchain: Toolchain, argv: list[str], folder: Path, source: str) -> None:
    done = _start(argv, _environment(toolchain.argv[0], folder), source)
    if done.returncode == 0:
        return
    for number in _DISK_ERRORS:
        if os.strerror(number) in done.stdout:
            raise OSError(number, os.strerror(number), str(folder))
    if done.returncode == -signal.SIGXFSZ:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(folder))
    killed = f"was killed by signal {-done.returncode}" if done.returncode < 0 else "failed"
    raise ToolchainError(
        f"{toolchain.name} {killed}: {_first_lines(done.stdout)}",
        value=done.returncode,
        hint="Generated code should always compile: please report this.",
    )


def _start(
    argv: list[str], environment: dict[str, str], source: str
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            input=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolchainError(
            f"{argv[0]} did not finish within {_SECONDS} s",
            limit=_SECONDS,
            hint="Generated code should compile in a moment: please report this.",
        ) from None
    except OSError as error:
        raise ToolchainError(
            f"the compiler {argv[0]!r} cannot be started: {error.strerror}",
            value=argv[0],
            hint="Install ziglang again, or name another compiler with SARDONYX_CC.",
        ) from error


def _environment(program: str, folder: Path | None) -> dict[str, str]:
    """All of the compiler's environment. gcc finds its assembler by PATH."""
    variables = {
        "PATH": os.pathsep.join([str(Path(program).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "LC_ALL": "C",
    }
    if folder is not None:
        variables["TMPDIR"] = str(folder)
    return variables


def _first_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    more = f"\n… and {len(lines) - _SHOWN_LINES} lines more" * (len(lines) > _SHOWN_LINES)
    return "\n".join(lines[:_SHOWN_LINES]) + more


def digest_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
