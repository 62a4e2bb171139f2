"""What compilers make of scalar.h: vector code, no warnings, nothing undefined."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.backends.c.scalar import harness
from tests.unit.backends.c.scalar.conftest import toolchain_of
from tests.unit.backends.c.scalar.harness import LOOPS, build, compile_text, source

from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.toolchain import SUPPORT, Toolchain
from sardonyx.loops.operations import FLOATS, INTEGERS

X86 = "--target=x86_64-linux-gnu"
ARM = "--target=aarch64-linux-gnu"
# The flags, and the float32 lanes that a vector has there.
TARGETS = {
    "neon": ([ARM, "-march=armv8-a+fp16"], 4),
    "avx2": ([X86, "-march=x86-64-v3"], 8),
    "avx512": ([X86, "-march=x86-64-v4", "-mprefer-vector-width=512"], 16),
}
IN_DOUBLE = {
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "pow",
    "sin",
    "sinh",
    "tan",
}
LIBRARY = {"fmod", "mod"}  # of floats: they call the C library


def operation(name: str) -> str:
    return name.split("_")[0]


FLOAT_LOOPS = [
    name
    for name, loop in LOOPS.items()
    if loop.takes[0] == "f32" and operation(name) not in LIBRARY | {"cast"}
]
SAME_BITS = {
    *(f"cast_{a}_{b}" for a in INTEGERS for b in INTEGERS if a[1:] == b[1:]),
    *(name for name in LOOPS if name.endswith("_bits")),
}  # memcpy
CASTS = [
    name
    for name, loop in LOOPS.items()
    if operation(name) == "cast" and loop.takes[0] != loop.gives and name not in SAME_BITS
]
SIMPLE = {"abs", "add", "and", "max", "min", "neg", "not", "or", "shl", "shr", "sign", "sub", "xor"}
INTEGER_LOOPS = [
    name
    for name, loop in LOOPS.items()
    if loop.takes[0] in INTEGERS and operation(name) in SIMPLE and not name.startswith("abs_u")
]
VECTORISED = [*FLOAT_LOOPS, *CASTS, *INTEGER_LOOPS]


@pytest.mark.parametrize("target", TARGETS)
def test_plain_loops_become_vector_code(clang: Toolchain, target: str) -> None:
    """Nobody asks clang to: without a pragma its own cost model decides."""
    flags, lanes = TARGETS[target]
    assembly, said = compile_text(clang, source(VECTORISED), [*flags, "-Rpass=loop-vectorize"])
    widths = {}
    for line in said.splitlines():
        if found := re.match(r"<stdin>:(\d+):.*vectorized loop \(vectorization width: (\d+)", line):
            widths[VECTORISED[int(found[1]) - 2]] = int(found[2])
    assert not set(VECTORISED) - set(widths)
    for name in FLOAT_LOOPS:
        assert widths[name] >= (lanes // 2 if operation(name) in IN_DOUBLE else lanes), name
    # Not a vector of calls, nor of a library's scalar functions.
    assert not re.findall(r"^\s*(?:bl|callq?)\s.*", assembly, re.MULTILINE)


def test_the_list_of_vectorised_functions_is_whole() -> None:
    """What is left out is left out for a reason."""
    reasons = {
        "pow": "of integers: a loop over the exponent",
        "div": "integers: no vector unit divides them",
        "fmod": "division, or the C library's",
        "mod": "division, or the C library's",
        "mul": "of 64 bits: not on NEON",
        "abs": "of unsigned: the number itself",
        "cast": "to the same bits: a copy",
    }
    for name in set(LOOPS) - set(VECTORISED):
        of_bools = LOOPS[name].takes[0] == "bool"
        of_doubles = LOOPS[name].takes[0] == "f64"
        assert of_bools or of_doubles or operation(name) in reasons, name


def test_doubles_call_the_library_and_nothing_else(clang: Toolchain) -> None:
    names = [n for n, loop in LOOPS.items() if loop.takes[0] in FLOATS and operation(n) != "cast"]
    assembly, _ = compile_text(clang, source(names), TARGETS["neon"][0])
    called = set(re.findall(r"^\s*bl\s+(\w+)", assembly, re.MULTILINE))
    functions = {operation(name) for name in names} | {"fmodf"}
    assert called
    assert called <= functions


PORTABLE = {
    "zig on arm": ("clang", [ARM]),
    "zig on plain x86": ("clang", [X86]),
    "zig on avx2": ("clang", TARGETS["avx2"][0]),
    "zig on avx512": ("clang", TARGETS["avx512"][0]),
    "gcc": ("gcc", []),
}


@pytest.mark.parametrize("where", PORTABLE)
def test_no_warning(where: str) -> None:
    """The toolchain's own flags silence some; here they are on."""
    compiler, flags = PORTABLE[where]
    toolchain = toolchain_of(compiler)
    loud = [
        "-Wall",
        "-Wextra",
        "-Wunused-parameter",
        "-Wunused-variable",
        "-Wtype-limits",
        "-Werror",
    ]
    _, said = compile_text(toolchain, source(list(LOOPS)), [*flags, *loud, "-O1"])
    assert said == ""


@pytest.mark.parametrize("plain", [False, True])
def test_nothing_is_undefined(clang: Toolchain, tmp_path: Path, plain: bool) -> None:
    """Every function over the corners of its types, in a process that a sanitizer would end."""
    flags = [
        *host_cpu().flags,
        "-fsanitize=undefined,float-cast-overflow",
        "-fsanitize-trap=all",
        "-O1",
    ]
    flags += ["-DSX_HARDWARE_F16=0"] if plain else []
    library = build(clang, tmp_path, flags)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", harness.__file__, str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    assert done.stdout == "done\n", done.stderr
    assert done.returncode in (
        -signal.SIGTRAP,
        -signal.SIGILL,
    )  # what the harness did last, on purpose


def test_polynomials_are_those_of_the_tool() -> None:
    pytest.importorskip("mpmath")
    tool = Path(__file__).parents[5] / "tools/fit_polynomials.py"
    done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True, check=True)
    assert done.stdout == (SUPPORT / "polynomials.h").read_text()
