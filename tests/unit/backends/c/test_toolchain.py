"""A compiler is found, and used the same way on every machine."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from sardonyx.backends.c import toolchain as module
from sardonyx.backends.c.cpu import flags_for_moments, named_cpu
from sardonyx.backends.c.toolchain import (
    SUPPORT,
    Toolchain,
    compile_object,
    find_toolchain,
    host_cpu,
    link_library,
    require,
)
from sardonyx.errors import ToolchainError
from sardonyx.options import Environment

KERNEL = """
#include "abi.h"
#include <math.h>
#include <string.h>
#define EXPORT __attribute__((visibility("default")))
static inline float half(float x) { return x * 0.5f; }
EXPORT int32_t twice(sx_run *run, void *const *p, const int64_t *n) {
    const float *a = p[0];
    float *b = p[1];
    const int64_t never_read = n[0];
    _Pragma("clang loop vectorize(assume_safety)")
    for (int64_t i = 0; i < n[0]; i++) b[i] = 4.0f * half(a[i]);
    return SX_OK;
}
EXPORT double root(double x) { return sqrt(x) + cbrt(0.0); }
EXPORT int32_t count(int32_t *x) { return __atomic_fetch_add(x, 1, __ATOMIC_SEQ_CST); }
"""

COMPILERS = [None, *([("gcc",)] if shutil.which("gcc") else [])]


def toolchain_of(compiler: tuple[str, ...] | None) -> Toolchain:
    return find_toolchain(Environment(Path("unused"), compiler=compiler))


@pytest.fixture(params=COMPILERS, ids=lambda argv: "zig" if argv is None else argv[0])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    return toolchain_of(request.param)


def test_text_becomes_a_library_that_runs(toolchain: Toolchain, tmp_path: Path) -> None:
    compile_object(toolchain, KERNEL, tmp_path / "k.o", host_cpu().flags, SUPPORT)
    link_library(toolchain, [tmp_path / "k.o"], tmp_path / "k.so")
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    a, b = (ctypes.c_float * 5)(1, 2, 3, 4, 5), (ctypes.c_float * 5)()
    buffers = (ctypes.c_void_p * 2)(ctypes.addressof(a), ctypes.addressof(b))
    assert library.twice(None, buffers, (ctypes.c_int64 * 1)(5)) == 0
    assert list(b) == [2, 4, 6, 8, 10]
    library.root.restype = ctypes.c_double
    library.root.argtypes = [ctypes.c_double]
    assert library.root(9.0) == 3.0
    # Only what is exported can be seen.
    assert not hasattr(library, "half")


def test_the_same_text_gives_the_same_bytes_anywhere(toolchain: Toolchain, tmp_path: Path) -> None:
    text = KERNEL + '#include "place.h"\nEXPORT const char *file(void) { return place(); }'
    made = []
    for folder in (tmp_path / "here", tmp_path / "there" / "deeper"):
        shutil.copytree(SUPPORT, folder / "support")
        header = folder / "support/place.h"
        header.write_text("static const char *place(void) { return __FILE__; }")
        compile_object(toolchain, text, folder / "k.o", host_cpu().flags, folder / "support")
        link_library(toolchain, [folder / "k.o"], folder / "k.so")
        made.append([(folder / name).read_bytes() for name in ("k.o", "k.so")])
    assert made[0] == made[1]
    assert b"support/place.h" in made[0][0]


def test_nothing_may_stay_undefined(toolchain: Toolchain, tmp_path: Path) -> None:
    text = 'int missing(void); __attribute__((visibility("default"))) int f(void) { return missing(); }'
    compile_object(toolchain, text, tmp_path / "f.o", (), SUPPORT)
    with pytest.raises(ToolchainError, match="missing"):
        link_library(toolchain, [tmp_path / "f.o"], tmp_path / "f.so")
    assert not (tmp_path / "f.so").exists()


def test_code_that_does_not_compile_is_shown(toolchain: Toolchain, tmp_path: Path) -> None:
    text = "\n".join(f"int f{i}(void) {{ return nothing{i}; }}" for i in range(30))
    with pytest.raises(ToolchainError, match=r"nothing0") as caught:
        compile_object(toolchain, text, tmp_path / "f.o", (), SUPPORT)
    assert "please report" in str(caught.value)
    assert "lines more" in str(caught.value)
    assert str(caught.value).count("\n") < 20
    assert not (tmp_path / "f.o").exists()


def test_suspicious_code_is_an_error(tmp_path: Path) -> None:
    text = "int f(int x, unsigned y) { return x < y; }"
    with pytest.raises(ToolchainError, match="sign-compare"):
        compile_object(toolchain_of(None), text, tmp_path / "f.o", (), SUPPORT)


def test_overflow_is_no_trap(toolchain: Toolchain, tmp_path: Path) -> None:
    """A driver that adds sanitizers of its own would end the process here."""
    text = '__attribute__((visibility("default"))) int f(int x, int y) { return x << y; }'
    compile_object(toolchain, text, tmp_path / "f.o", (), SUPPORT)
    link_library(toolchain, [tmp_path / "f.o"], tmp_path / "f.so")
    assert isinstance(ctypes.CDLL(str(tmp_path / "f.so")).f(1, 40), int)


def test_the_compiler_that_pip_brings() -> None:
    found = toolchain_of(None)
    assert re.fullmatch(r"zig \d+\.\d+\.\d+ \(clang \d+\.\d+\.\d+\)", found.name)
    assert re.fullmatch(r"[0-9a-f]{64}", found.identity)
    assert Path(found.argv[0]).name == "zig"
    assert found is toolchain_of(None)
    # The same compiler under the name its users know.
    chosen = toolchain_of((found.argv[0], "cc"))
    assert chosen.identity == found.identity
    assert toolchain_of((found.argv[0], "cc", "-DX")).identity != found.identity


def test_without_a_c_library_there_is_nothing_to_link(monkeypatch: pytest.MonkeyPatch) -> None:
    module._find.cache_clear()
    monkeypatch.setattr(module, "_LIBRARIES", ("libnothing",))
    with pytest.raises(ToolchainError, match="SARDONYX_CC=gcc"):
        toolchain_of(None)


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    module._find.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ToolchainError, match=r"pip install ziglang.*SARDONYX_CC"):
        toolchain_of(None)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "is not found"),
        ("#!/bin/sh\necho broken; exit 3\n", r"exit code 3\): broken"),
        ("#!/no/such/interpreter\n", "cannot be started"),
    ],
)
def test_a_compiler_that_is_none(tmp_path: Path, script: str | None, said: str) -> None:
    program = tmp_path / "cc"
    if script is not None:
        program.write_text(script)
        program.chmod(0o755)
    with pytest.raises(ToolchainError, match=said):
        toolchain_of((str(program),))


def test_a_compiler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "cc"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo slow 1;; *) exec sleep 60;; esac\n'
    )
    program.chmod(0o755)
    slow = toolchain_of((str(program),))
    assert slow.name == "slow 1"
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    with pytest.raises(ToolchainError, match="did not finish"):
        compile_object(slow, "", tmp_path / "x.o", (), SUPPORT)


V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"
N1 = "CPU implementer : 0x41\nCPU part : 0xd0c\n"


@pytest.mark.parametrize(
    ("cpuinfo", "architecture", "name", "lanes", "has", "lacks"),
    [
        ("flags : fpu sse2", "x86_64", "x86-64", 4, "", "avx avx2"),
        (f"flags : {V2}", "x86_64", "x86-64-v2", 4, "sse4_2", "avx2"),
        (f"flags : {V3} avx_vnni", "x86_64", "x86-64-v3", 8, "avx2 fma avx_vnni", "avx512f"),
        (f"flags : {V3} avx512f avx512_vnni", "x86_64", "x86-64-v3", 8, "avx2", "avx512_vnni"),
        (
            f"flags : {V4} avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16",
            "x86_64",
            "x86-64-v4",
            16,
            "avx512f avx512_vnni amx_int8",
            "neon",
        ),
        # The cores of one chip may differ; a thread may run on any.
        (f"flags : {V4}\n\nflags : {V3}", "x86_64", "x86-64-v3", 8, "avx2", "avx512f"),
        (
            f"Features : fp asimd atomics asimdrdm asimdhp asimddp sve\n{N1}",
            "aarch64",
            "neoverse-n1",
            4,
            "neon fp16 dotprod lse",
            "sve i8mm",
        ),
        ("Features : fp asimd i8mm bf16", "aarch64", "armv8-a", 4, "neon i8mm bf16", "fp16"),
        ("", "aarch64", "armv8-a", 4, "neon", "fp16"),
        ("", "riscv64", "riscv64", 4, "", "neon"),
    ],
)
def test_a_cpu_is_data(
    tmp_path: Path,
    cpuinfo: str,
    architecture: str,
    name: str,
    lanes: int,
    has: str,
    lacks: str,
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(cpuinfo + "\n")
    cpu = host_cpu(tmp_path, architecture)
    assert (cpu.name, cpu.lanes) == (name, lanes)
    assert cpu.features.issuperset(has.split())
    assert not cpu.features & set(lacks.split())
    if architecture != "riscv64":  # clang takes every flag, for a CPU that is not this one too
        flags = (f"--target={architecture}-linux-gnu", *cpu.flags)
        text = "typedef float v __attribute__((vector_size(64))); v f(v a, v b) { return a * b; }"
        compile_object(toolchain_of(None), text, tmp_path / "x.o", flags, SUPPORT)
        assert (tmp_path / "x.o").stat().st_size > 0


def test_code_for_another_cpu_is_refused() -> None:
    cpu = host_cpu()
    require(cpu.features)
    with pytest.raises(ToolchainError, match=r"needs avx512f.*does not have") as caught:
        require({*cpu.features, "avx512f"}, module.Cpu("old", (), cpu.features - {"avx512f"}, 4))
    assert caught.value.value == ["avx512f"]


def test_code_for_moments_has_no_vectors_that_a_cpu_slows_down_for() -> None:
    wide = named_cpu("x86_64", "x86-64-v4")
    flags = [*wide.flags, *flags_for_moments(wide)]
    assert [flag for flag in flags if "vector-width" in flag][-1].endswith("=256")
    assert flags_for_moments(named_cpu("x86_64", "x86-64-v3")) == ()
    assert flags_for_moments(named_cpu("aarch64", "armv8-a")) == ()
