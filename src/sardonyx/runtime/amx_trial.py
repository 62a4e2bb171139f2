"""Whether kernels through AMX tiles may be trusted on this machine: they are tried once, in a process of their own.

    a CPU with AMX ──► permission of the system ──► a small product in a child process ──► the verdict, in the cache

An instruction that a hypervisor or an emulator does not honour would end the process; one that computes something else would
be worse. So nothing of it is used before a child has computed a product, special values among it, that is right.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sardonyx.backends.c.kernels import amx as template
from sardonyx.backends.c.kernels import byte_tiles, digit_tiles, parts, planes, tiles
from sardonyx.backends.c.kernels.amx import VARIANTS, amx
from sardonyx.backends.c.kernels.digit_tiles import pack_digits
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.isa import AVX512, Tile
from sardonyx.backends.c.kernels.packing import pack_b, quads
from sardonyx.backends.c.kernels.planes import pack_tiles
from sardonyx.backends.c.kernels.tiles import planes_of
from sardonyx.backends.c.toolchain import SUPPORT, Cpu, Toolchain
from sardonyx.errors import ToolchainError
from sardonyx.runtime.cache import Cache, content_key
from sardonyx.runtime.compiling import Unit, build_library
from sardonyx.runtime.machine import read_cpu
from sardonyx.runtime.threads import Pool

__all__ = ["Verdict", "has_tiles", "known_verdict", "may_use_tiles", "try_tiles"]

KIND = "timing"
_ROWS, _COLUMNS, _DEPTH = (
    49,
    40,
    600,
)  # tiles of several heights, a panel and a step that are not full, two blocks of K
_QUADS = 810  # of K, of bytes: likewise
_BYTES = "bytes"
_BYTE_TILE = Tile(byte_tiles.STRIP, 32)
_SECONDS = 60
_NOT_TRIED = "could not be tried"
# The largest error of a sum, as part of the sum of the products' magnitudes.
_BOUNDS = {"amx10": 2.0**-21, "amx6": 2.0**-22, "amx3": 2.0**-15, "amx1": 2.0**-7}

_UNIT = """\
#include "abi.h"

struct env {{ {value} *c; }};

static inline void store_row(
    const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const {value} *sums) {{
    (void)b;
    for (int64_t i = 0; i < count; i++)
        env->c[m * {columns} + n + i] = sums[i];
}}

static void in_order(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {{
    (void)run, (void)grain;
    body(arg, 0, count);
}}

{kernel}
__attribute__((visibility("default"))) void sx_{name}(const void *a, const void *b, {value} *c) {{
    sx_run run = {{.parallel = in_order, .threads = 0}};
    const struct env env = {{c}};
    {name}(&run, &env, a, b, 0, 0);
}}
"""

# What the child runs: operands come in by the standard input, sums go out by the standard output.
_CHILD = """\
import ctypes, sys
pool, library, name, first, size = sys.argv[1:]
if not ctypes.CDLL(pool).sx_tiles_granted():
    sys.exit("the system does not grant tile registers")
data = sys.stdin.buffer.read()
a, b = ctypes.create_string_buffer(data[: int(first)]), ctypes.create_string_buffer(data[int(first) :])
sums = ctypes.create_string_buffer(int(size))
getattr(ctypes.CDLL(library), name)(a, b, sums)
sys.stdout.buffer.write(sums.raw)
"""


@dataclass(frozen=True)
class Verdict:
    """Whether tiles compute what they should here, and in words; `tried` where a child came to an end with them."""

    usable: bool
    why: str
    tried: bool = True


def has_tiles(cpu: Cpu) -> bool:
    """Whether the CPU says that it has tiles for bfloat16 and for bytes."""
    return cpu.features.issuperset({"avx512f", "amx_tile", "amx_bf16", "amx_int8"})


def may_use_tiles(cache: Cache, cpu: Cpu, toolchain: Toolchain, pool: Pool) -> bool:
    """Whether kernels through AMX tiles are candidates in this process; the first one on a machine tries them."""
    if not has_tiles(cpu) or not pool.grants_tiles:
        return False
    known = known_verdict(cache, cpu, toolchain)
    if known is None:
        known = try_tiles(cache, cpu, toolchain, pool)
        if not known.tried:  # the next session may have more luck
            return False
        text = json.dumps({"usable": known.usable, "why": known.why})
        key = _key(cpu, toolchain)
        with cache.lock(key):
            cache.replace(KIND, key, lambda path: _write(path, text))
    return known.usable


def known_verdict(cache: Cache, cpu: Cpu, toolchain: Toolchain) -> Verdict | None:
    """What was found on this machine before; None where nobody has tried, or what is kept is damaged."""
    found = cache.read(KIND, _key(cpu, toolchain))
    if found is None:
        return None
    try:
        content = json.loads(found)
        usable, why = content["usable"], content["why"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Verdict(usable, why) if isinstance(usable, bool) and isinstance(why, str) else None


def try_tiles(cache: Cache, cpu: Cpu, toolchain: Toolchain, pool: Pool) -> Verdict:
    """Compile a product of each kind, run it in a child process, and look at the sums."""
    for variant in (*VARIANTS, _BYTES):
        try:
            library = build_library([_unit(variant)], toolchain, cpu, cache)
        except ToolchainError as error:
            return Verdict(False, f"{variant} does not compile: {error.message}")
        problem = _judge(variant, library, pool.library)
        if problem:
            return Verdict(False, f"{variant} {problem}", tried=not problem.startswith(_NOT_TRIED))
    return Verdict(True, "their products are right")


def _unit(variant: str) -> Unit:
    if variant == _BYTES:
        a, value = Operand(_QUADS, dtype="i32"), "int32_t"
        spec = GemmSpec(_ROWS, _COLUMNS, _QUADS, a, Packed(dtype="i32"))
        isa = replace(AVX512, unsigned_bytes=True)
        kernel = product(variant, spec, "store_row", isa, _BYTE_TILE, in_tiles=True)
    else:
        spec, value = GemmSpec(_ROWS, _COLUMNS, _DEPTH, Operand(_DEPTH), Packed()), "float"
        kernel = amx(variant, spec, "store_row", variant)
    text = _UNIT.format(kernel=kernel, name=variant, columns=_COLUMNS, value=value)
    return Unit(variant, text)


def _byte_operands() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
    """Bytes without a sign and bytes with one, the largest of both among them."""
    random = np.random.default_rng(20)
    a = random.integers(0, 256, (_ROWS, 4 * _QUADS)).astype(np.uint8)
    b = random.integers(-128, 128, (4 * _QUADS, _COLUMNS)).astype(np.int8)
    a[3], b[:, 5] = 255, -128
    return a, b


def _operands() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Numbers of many magnitudes; a row and a column with special values."""
    random = np.random.default_rng(20)
    a = random.standard_normal((_ROWS, _DEPTH)) * np.exp(random.standard_normal((_ROWS, _DEPTH)))
    b = random.standard_normal((_DEPTH, _COLUMNS))
    a[7, 5], a[40, 599], b[33, 3], b[2, 39] = np.inf, np.nan, -np.inf, np.nan
    return a.astype(np.float32), b.astype(np.float32)


def _judge(variant: str, library: Path, pool: Path) -> str:
    """What is wrong with the sums that a child computes; "" where they are right."""
    if not sys.executable or getattr(sys, "frozen", False):
        return f"{_NOT_TRIED}: there is no Python to run it"  # but an application, that would begin anew
    if variant == _BYTES:
        bytes_of_a, bytes_of_b = _byte_operands()
        packed = pack_b(quads(bytes_of_b), _BYTE_TILE)
        problem, sums = _sums_of_child(variant, library, pool, bytes_of_a, packed)
        exact = bytes_of_a.astype(np.int64) @ bytes_of_b.astype(np.int64)
        if problem or np.array_equal(sums.view(np.int32), exact):
            return problem
        return "computes other integers"
    a, b = _operands()
    packed = pack_digits(b) if variant == "amx10" else pack_tiles(b, planes_of(variant))
    problem, sums = _sums_of_child(variant, library, pool, a, packed)
    return problem or _wrong(variant, sums, a, b)


def _sums_of_child(
    variant: str,
    library: Path,
    pool: Path,
    a: npt.NDArray[np.generic],
    packed: npt.NDArray[np.generic],
) -> tuple[str, npt.NDArray[np.float32]]:
    """What went wrong in the child, or "" and its sums, as bits."""
    nothing = np.zeros(0, np.float32)
    words = (pool, library, f"sx_{variant}", a.nbytes, _ROWS * _COLUMNS * 4)
    argv = [sys.executable, "-I", "-c", _CHILD, *map(str, words)]
    try:
        child = subprocess.run(
            argv, input=a.tobytes() + packed.tobytes(), capture_output=True, timeout=_SECONDS, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"took more than {_SECONDS} s", nothing
    except OSError as error:
        return f"{_NOT_TRIED}: {error}", nothing
    if child.returncode < 0:
        return f"ended its process by signal {-child.returncode}", nothing
    if child.returncode or len(child.stdout) != _ROWS * _COLUMNS * 4:
        said = child.stderr.decode(errors="replace").strip().splitlines()
        problem = said[-1] if said else f"exit code {child.returncode}"
        return f"{_NOT_TRIED}: {problem}", nothing
    return "", np.frombuffer(child.stdout, np.float32).reshape(_ROWS, _COLUMNS)


def _wrong(
    variant: str,
    sums: npt.NDArray[np.float32],
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
) -> str:
    with np.errstate(invalid="ignore"):
        exact = a.astype(np.float64) @ b.astype(np.float64)
    finite = np.isfinite(exact)
    if not np.array_equal(sums[~finite], exact[~finite].astype(np.float32), equal_nan=True):
        return "computes something else of infinities and NaN"
    known = np.where(np.isfinite(a), a, 0).astype(np.float64), np.where(np.isfinite(b), b, 0)
    scale = np.abs(known[0]) @ np.abs(known[1].astype(np.float64))
    error = np.max(np.abs(sums[finite] - exact[finite]) / scale[finite])
    if not error <= _BOUNDS[variant]:
        return f"has an error of {error:.1e}, where {_BOUNDS[variant]:.1e} is the limit"
    return ""


def _key(cpu: Cpu, toolchain: Toolchain) -> str:
    identity = (read_cpu().model, cpu.name, *cpu.flags, toolchain.identity, _digest_of_template())
    return content_key("tiles", *identity)


@functools.cache
def _digest_of_template() -> str:
    """What the kernels are printed by."""
    modules = [
        Path(module.__file__ or "")
        for module in (template, parts, tiles, planes, digit_tiles, byte_tiles)
    ]
    sources = [*modules, Path(__file__), SUPPORT / "tiles.h"]
    return content_key(*(source.read_bytes() for source in sources))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
