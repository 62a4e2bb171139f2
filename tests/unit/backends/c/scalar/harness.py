"""Every function of scalar.h as a loop over arrays, compiled as kernels are, called through ctypes.

    void exp_f32(const float *x, float *y, int64_t n) { for (…) y[i] = sx_exp_f32(x[i]); }

Run as a program with the path of such a library, it calls every loop over the corners of its types:
what a sanitizer would stop, it stops there, in a process of its own.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.backends.c.expressions import C_TYPES
from sardonyx.backends.c.toolchain import SUPPORT, Toolchain, compile_object, link_library
from sardonyx.loops.operations import FLOATS, INTEGERS, OPERATIONS, cast_modes
from sardonyx.loops.scalars import NUMPY_TYPES

TYPES: dict[str, np.dtype[Any]] = {
    **NUMPY_TYPES,
    "i4": np.dtype(np.int8),
    "u4": np.dtype(np.uint8),
    "i2": np.dtype(np.int8),
    "u2": np.dtype(np.uint8),
}
FLOAT8 = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
ROUNDINGS = ("up", "down", "nearest")


@dataclass(frozen=True)
class Loop:
    """One function: sx_<name>, the types it takes, and the type it gives."""

    name: str
    takes: tuple[str, ...]
    gives: str


def _operations() -> list[Loop]:
    loops = []
    for op, operation in OPERATIONS.items():
        for dtype in sorted(operation.takes):
            plain = operation.result == "bool" and operation.arity == 2
            if plain or (dtype in FLOATS and op in ("add", "sub", "mul", "div")):
                continue  # C's own operators
            gives = "bool" if operation.result == "bool" else dtype
            loops.append(Loop(f"{op}_{dtype}", (dtype,) * operation.arity, gives))
    return [*loops, Loop("eq_bool", ("bool", "bool"), "bool")]


def _conversions() -> list[Loop]:
    every = list(NUMPY_TYPES)
    found = [(a, b, mode) for a in every for b in every for mode in sorted(cast_modes(a, b))]
    return [Loop(f"cast_{a}_{b}" + (f"_{mode}" if mode else ""), (a,), b) for a, b, mode in found]


LOOPS = {loop.name: loop for loop in [*_operations(), *_conversions()]}


def _c_type(dtype: str) -> str:
    return C_TYPES[dtype]  # type: ignore[index]


def source(names: list[str]) -> str:
    """One loop a line, from line 2 on: a compiler's remarks are told apart by their lines."""
    lines = ['#include "scalar.h"']
    for name in names:
        loop = LOOPS[name]
        letters = "ab"[: len(loop.takes)]
        params = [
            f"const {_c_type(t)} *restrict {x}" for x, t in zip(letters, loop.takes, strict=True)
        ]
        args = ", ".join(f"{x}[i]" for x in letters)
        lines.append(
            f'__attribute__((visibility("default"))) void {name}({", ".join(params)}, '
            f"{_c_type(loop.gives)} *restrict y, int64_t n) {{ "
            f"for (int64_t i = 0; i < n; i++) y[i] = sx_{name}({args}); }}"
        )
    # What a sanitizer must stop, so that silence about the rest means something.
    lines.append(
        '__attribute__((visibility("default"))) int undefined(int a, int b) { return a + b; }\n'
    )
    return "\n".join(lines)


def build(toolchain: Toolchain, folder: Path, flags: list[str]) -> Path:
    """A library of all the loops."""
    compile_object(toolchain, source(list(LOOPS)), folder / "scalar.o", flags, SUPPORT)
    link_library(toolchain, [folder / "scalar.o"], folder / "scalar.so")
    return folder / "scalar.so"


def compile_text(toolchain: Toolchain, text: str, flags: list[str]) -> tuple[str, str]:
    """Assembly, and what the compiler said."""
    argv = [
        *toolchain.argv,
        *toolchain.flags,
        *flags,
        f"-I{SUPPORT}",
        "-S",
        "-o",
        "-",
        "-x",
        "c",
        "-",
    ]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


class Library:
    """The compiled loops as functions of arrays."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))

    def __call__(self, name: str, *arrays: Any) -> Any:
        loop = LOOPS[name]
        size = np.broadcast_shapes(*(np.shape(array) for array in arrays))[0]
        inputs = [
            np.ascontiguousarray(np.broadcast_to(array, size), TYPES[dtype])
            for array, dtype in zip(arrays, loop.takes, strict=True)
        ]
        result = np.zeros(size, TYPES[loop.gives])
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in [*inputs, result]]
        self.c[name](*pointers, ctypes.c_int64(size))
        return result


def corners(dtype: str) -> Any:
    """The values of a type where functions change their mind."""
    kind = TYPES[dtype]
    if kind.itemsize == 1:
        return np.arange(2 if dtype == "bool" else 256, dtype=np.uint8).view(kind)
    if dtype in INTEGERS:
        bits = 8 * kind.itemsize
        around = [
            sign * (1 << k) + d for k in range(bits + 1) for d in (-1, 0, 1) for sign in (1, -1)
        ]
        few = [*range(-20, 21), *around]
        ends = np.iinfo(kind)
        return np.array(sorted({v for v in few if ends.min <= v <= ends.max}), kind)
    if kind.itemsize == 2:
        return np.arange(65536, dtype=np.uint16).view(kind)
    powers = [
        sign * 2.0**k * (1 + d)
        for k in range(-150, 130)
        for d in (-1e-7, 0, 1e-7, 0.5)
        for sign in (1, -1)
    ]
    plain = [
        s * v
        for v in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 88.9, 1e-40, 1e5, np.inf, np.nan)
        for s in (1, -1)
    ]
    with np.errstate(over="ignore"):
        return np.array([*powers, *plain], np.float64).astype(kind)


def main(path: str) -> None:
    library = Library(Path(path))
    for loop in LOOPS.values():
        values = [corners(dtype) for dtype in loop.takes]
        if len(values) == 2:
            left, right = np.meshgrid(values[0][:1200], values[1][:1200])
            library(loop.name, left.ravel(), right.ravel())
        else:
            library(loop.name, values[0])
    print("done", flush=True)
    library.c.undefined(2**31 - 1, 1)
    print("unnoticed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
