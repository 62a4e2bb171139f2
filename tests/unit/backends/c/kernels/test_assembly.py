"""What clang makes of the inner loops for x86-64: full vectors, and sums that stay in registers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.backends.c.scalar.harness import compile_text

from sardonyx.backends.c.cpu import Cpu, host_cpu
from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec, depthwise
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, gemm
from sardonyx.backends.c.kernels.gemv import gemv
from sardonyx.backends.c.kernels.isa import Isa, isa_of, tile_of
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.kernels.winograd import winograd
from sardonyx.backends.c.toolchain import find_toolchain
from sardonyx.options import read_environment

SSE = "sse sse2 pni cx16 lahf_lm"
V2 = f"{SSE} popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"
# Words of /proc/cpuinfo, and the registers that a vector should take.
MACHINES = {"portable": (SSE, "xmm"), "avx2": (V3, "ymm"), "avx512": (V4, "zmm")}

SQUARE = Window((3, 3), (1, 1), (1, 1), (1, 1), (56, 56), (56, 56))
LARGE = Window((5, 5), (2, 2), (1, 1), (2, 2), (56, 56), (28, 28))
DYNAMIC = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]"), Packed())


def kernel_text(name: str, isa: Isa) -> str:
    """The kernel as the static function `kernel`."""
    if name == "gemm":
        return gemm("kernel", DYNAMIC, "store_row", isa)
    if name == "gemv":
        return gemv("kernel", DYNAMIC, "store_row", isa)
    if name == "conv":
        return conv("kernel", ConvSpec(1, 64, 64, SQUARE), "store_row", isa)
    if name == "winograd":
        return winograd("kernel", ConvSpec(1, 64, 64, SQUARE), "store_row", isa)
    window = SQUARE if name == "depthwise 3x3" else LARGE
    return depthwise("kernel", DepthwiseSpec(1, 96, window), "store_row", isa)


def machine(words: str, root: Path) -> Cpu:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor : 0\nflags : {words}\n")
    return host_cpu(root, "x86_64")


def assembly(text: str, cpu: Cpu, value: str = "float") -> str:
    source = f"""\
#include "abi.h"
struct env {{ {value} *c; }};
static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const {value} *acc) {{
    for (int64_t i = 0; i < count; i++)
        env->c[(b + m) * 70 + n + i] = acc[i];
}}
{text}
void go(sx_run *r, struct env *e, void *const *p, const int64_t *n) {{ kernel(r, e, p[0], p[1], p[2], n); }}
"""
    flags = ["--target=x86_64-linux-gnu", *cpu.flags]
    return compile_text(find_toolchain(read_environment({})), source, flags)[0]


def inner_loops(function: list[str]) -> Iterator[list[str]]:
    """The instructions of loops that have no loop in them."""
    labels = {line.split(":")[0]: at for at, line in enumerate(function) if line.startswith(".L")}
    jumps = [(at, re.match(r"\tj\w+\s+(\.L\w+)", line)) for at, line in enumerate(function)]
    spans = [(labels[to[1]], at) for at, to in jumps if to and labels.get(to[1], at) < at]
    for first, last in spans:
        if not any(first <= a and b <= last for a, b in spans if (a, b) != (first, last)):
            yield [line for line in function[first:last] if line.startswith("\t")]


@pytest.mark.parametrize("name", ["gemm", "gemv", "conv", "winograd", "depthwise 3x3", "depthwise 5x5"])  # fmt: skip
@pytest.mark.parametrize("target", MACHINES)
def test_sums_stay_in_full_registers(target: str, name: str, tmp_path: Path) -> None:
    words, register = MACHINES[target]
    cpu = machine(words, tmp_path)
    text = assembly(kernel_text(name, isa_of(cpu)), cpu)
    functions = re.split(r"^(?=\w[\w.]*:)", text, flags=re.MULTILINE)
    seen = 0
    for function in functions:
        lines = function.splitlines()
        frame = r"%rsp|%rbp" if "%rsp, %rbp" in function else "%rsp"
        for loop in inner_loops(lines):
            sums = [line for line in loop if re.search(r"\tv?(fmadd\w*|mul)ps\s", line)]
            seen += len(sums)
            assert not [line for line in sums if register not in line]
            # A vector that is read back from the stack was pushed out of its register.
            pushed = [line for line in loop if re.search(rf"\((?:{frame})[^)]*\),.*mm\d", line)]
            assert len(sums) < 2 or not pushed, lines[0]
    assert seen > 8


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_bytes_are_multiplied_by_two_instructions_a_pair(target: str, tmp_path: Path) -> None:
    """Without VNNI: what is widened was so before the loop, or is for all rows of the tile."""
    words, register = MACHINES[target]
    cpu = machine(words, tmp_path)
    isa = isa_of(cpu)
    tile = tile_of(isa, "i32")
    a, rows = Operand(64, dtype="i32"), tile.rows
    spec = GemmSpec(4 * rows, 128, 64, a, Packed(dtype="i32"))
    text = assembly(gemm("kernel", spec, "store_row", isa), cpu, "int32_t")
    function = text[text.index(f"kernel_rows_{rows}:") :].partition(".cfi_endproc")[0].splitlines()
    frame = r"%rsp|%rbp" if any("%rsp, %rbp" in line for line in function) else "%rsp"
    [loop] = [one for one in inner_loops(function) if any("vpmaddwd" in line for line in one)]
    steps = sum("vpmaddwd" in line and register in line for line in loop) // (4 * rows)
    assert steps > 0
    counts = {
        name: sum(bool(re.match(rf"\tv(?:{name})\s", line)) for line in loop)
        for name in ("pmaddwd", "paddd", "ps[lr][la]w", "p?broadcast\\w+")
    }
    assert list(counts.values()) == [
        4 * rows * steps,
        4 * rows * steps,
        6 * steps,
        2 * rows * steps,
    ]
    assert not [line for line in loop if re.search(rf"\((?:{frame})[^)]*\),.*mm\d", line)]


def test_half_precision_calls_no_runtime_library(tmp_path: Path) -> None:
    """A CPU without conversions of halves: the compiler's own functions for it are not linked."""
    cpu = machine(SSE, tmp_path)
    isa = isa_of(cpu)
    spec = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]", dtype="f16"), Operand("n[1]", dtype="f16"))  # fmt: skip
    text = assembly(gemm("kernel", spec, "store_row", isa), cpu)
    assert not re.findall(r"\b__\w*hf\w*", text)
    alone = depthwise("kernel", DepthwiseSpec(1, 96, SQUARE, 1, "f16", "f16"), "store_row", isa)
    assert not re.findall(r"\b__\w*hf\w*", assembly(alone, cpu))
