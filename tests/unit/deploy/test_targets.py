"""Artifacts for other machines: they link, and where an emulator is there, they answer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.backends.c.cpu import named_cpu
from sardonyx.deploy.interface import FUNCTIONS
from sardonyx.deploy.targets import TARGETS
from sardonyx.errors import BuildError, ToolchainError

MODEL = """
<ir_version: 10, opset_import: ["": 21]>
small (float[rows, 8] x) => (float[rows, 6] y)
<float[8, 6] w = {WEIGHTS}>
{
    p = MatMul(x, w)
    y = Softmax(p)
}
"""

# A program without a C library: what the model needs of one is here, and nothing else.
BARE = r"""
#include "small.h"
void *memcpy(void *to, const void *from, size_t n) {
    for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
void *memset(void *to, int c, size_t n) {
    for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = (char)c;
    return to;
}
void *malloc(size_t n) { (void)n; return 0; }
void free(void *p) { (void)p; }

static long call(long number, long a, long b, long c) {
#if defined(__riscv)
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#else
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number == 64 ? 1 : 60), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#endif
}

static _Alignas(64) char memory[1 << 16];

#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
void _start(void) {
    float x[24], y[18];
    for (int i = 0; i < 24; i++) x[i] = (float)i / 16;
    const int64_t dims[SMALL_DIMS] = {3};
    const sardonyx_buffer inputs[SMALL_INPUTS] = {{x, sizeof x}}, outputs[SMALL_OUTPUTS] = {{y, sizeof y}};
    const sardonyx_options options = {.memory = memory, .memory_bytes = sizeof memory};
    small_context *context;
    sardonyx_error error;
    int32_t code = small_open(&context, &options, &error);
    if (code == 0) code = small_run(context, dims, inputs, outputs, &error);
    if (code == 0) call(64, 1, (long)y, sizeof y);
    call(93, code, 0, 0);
}
"""

ARCHITECTURES = ("riscv64", "aarch64", "x86_64")


def text() -> str:
    numbers = np.random.default_rng(3).standard_normal(48).astype(np.float32)
    return MODEL.replace("WEIGHTS", ", ".join(repr(float(number)) for number in numbers))


def expected() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    x = np.arange(24, dtype=np.float32).reshape(3, 8) / 16
    (y,) = sx.Session(text()).run(None, {"x": x})
    assert isinstance(y, np.ndarray)
    return y


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_answers_under_an_emulator_without_any_library(
    architecture: str, tmp_path: Path
) -> None:
    emulator = shutil.which(f"qemu-{architecture}")
    if emulator is None:
        pytest.skip(f"qemu-{architecture} is not installed")
    target = f"{architecture}-linux"
    cpu = {"x86_64": "x86-64-v3"}.get(architecture)
    built = sx.build(
        text(), tmp_path, target=target, emit="a", name="small", threads=False, cpu=cpu
    )
    source, program = tmp_path / "bare.c", tmp_path / "bare"
    source.write_text(BARE)
    toolchain, flags_of_cpu = TARGETS[target].toolchain(), TARGETS[target].cpu(cpu).flags
    unit = tmp_path / "bare.o"
    flags = [flag for flag in toolchain.flags if flag != "-Werror"]
    argv = [
        *toolchain.argv,
        *flags,
        *flags_of_cpu,
        "-fno-builtin",
        "-c",
        "-o",
        str(unit),
        str(source),
    ]
    subprocess.run(argv, check=True)
    argv = [packaged_zig(), "ld.lld", "-static", "-o", str(program), str(unit)]
    subprocess.run([*argv, str(built.files[0][0])], check=True)
    done = subprocess.run([emulator, str(program)], capture_output=True, check=True)
    answer = np.frombuffer(done.stdout, np.float32).reshape(3, 6)
    np.testing.assert_allclose(answer, expected(), rtol=1e-5)


@pytest.mark.parametrize("target", [one for one in TARGETS if one != "native"])
def test_every_target_has_its_libraries(target: str, tmp_path: Path) -> None:
    for emit in ("a", "so"):
        if emit not in TARGETS[target].emits:
            continue
        built = sx.build(text(), tmp_path, target=target, emit=emit, name="small")
        content = built.files[0][0].read_bytes()
        levels = 3 if target == "x86_64-linux" else 1  # in one file
        assert 0 < built.code_bytes < 80_000 * levels
        assert all(f"small_{name}".encode() in content for name in FUNCTIONS)


def test_cpus_have_names() -> None:
    assert "avx512f" in named_cpu("x86_64", "x86-64-v4").features
    assert "avx2" not in named_cpu("x86_64", "x86-64-v2").features
    assert "dotprod" in named_cpu("aarch64", "armv8-a+dotprod").features
    with pytest.raises(ToolchainError, match="there is no CPU 'x86-64-v9'"):
        named_cpu("x86_64", "x86-64-v9")
    with pytest.raises(BuildError, match="this machine's own CPU"):
        TARGETS["native"].cpu("armv8-a")
