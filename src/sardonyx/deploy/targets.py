"""Machines that artifacts are built for, one entry each.

target = find_target("x86_64-linux")
target.cpus        # ("x86-64-v3", "x86-64-v2", …): the first is taken where nobody says
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from sardonyx.backends.c.cpu import Cpu, host_cpu, named_cpu
from sardonyx.backends.c.cross import cross_toolchain
from sardonyx.backends.c.toolchain import Toolchain, find_toolchain
from sardonyx.errors import BuildError
from sardonyx.options import read_environment

__all__ = ["EMITS", "TARGETS", "DeployTarget", "Emit", "Form", "find_target"]

Emit = Literal["so", "a", "c", "exe", "wheel", "wasm"]
Form = Literal["elf", "coff", "macho", "wasm"]

EMITS: dict[str, str] = {
    "so": "a shared library and its header (.dll on Windows, .dylib on macOS)",
    "a": "a static library and its header",
    "c": "C sources, the weights and a CMakeLists.txt",
    "exe": "a program that reads and writes .npy and .npz files",
    "wheel": "a Python package that pip installs; numpy is all that it needs",
    "wasm": "WebAssembly with a loader (an ES module, typed) for browsers and node",
}


@dataclass(frozen=True)
class DeployTarget:
    """A kind of machine.

    Attributes:
        triple: as clang writes it; empty for the machine that builds.
        cpus: names of what it may be compiled for; the first is the default.
        form: of object files.
        emits: what can be made for it.
        headers: folders of C headers that the compiler brings.
        flags: for the compiler, past those of the CPU.
        threads: whether there are POSIX threads.
        hosted: whether there is a malloc.
    """

    name: str
    summary: str
    triple: str
    cpus: tuple[str, ...]
    form: Form
    emits: tuple[Emit, ...]
    headers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    threads: bool = True
    hosted: bool = True

    @property
    def architecture(self) -> str:
        return self.triple.partition("-")[0] or os.uname().machine

    @property
    def pointer_bytes(self) -> int:
        return 4 if self.architecture in ("wasm32", "thumbv7em") else 8

    def cpu(self, name: str | None = None) -> Cpu:
        """What is compiled for: the CPU of that name, or the target's default."""
        if not self.triple:
            if name is not None:
                raise BuildError(
                    f"the target {self.name!r} is this machine's own CPU, not {name!r}",
                    value=name,
                    hint=f"Name the target, as in --target {self.architecture}-linux --cpu {name}.",
                )
            return host_cpu()
        wanted = name or self.cpus[0]
        found = named_cpu(self.architecture, _LEAST if wanted == "dispatch" else wanted)
        return Cpu(found.name, (*found.flags, *self.flags), found.features, found.lanes)

    def toolchain(self) -> Toolchain:
        """What compiles for it."""
        if not self.triple:
            return find_toolchain(read_environment())
        return cross_toolchain(self.triple, self.headers, self.without)


_LEAST = "x86-64-v2"  # of what is in one file: what it does before it has asked the CPU
_ARM_CPUS = ("armv8-a", "armv8-a+fp16+dotprod", "armv8-a+fp16+dotprod+i8mm+bf16")
_LIBRARIES: tuple[Emit, ...] = ("so", "a", "c", "wheel")
_EVERYTHING: tuple[Emit, ...] = ("so", "a", "c", "exe", "wheel")
_GLIBC = ("generic-glibc",)

TARGETS: dict[str, DeployTarget] = {
    target.name: target
    for target in (
        DeployTarget("native", "this machine, its own CPU", "", ("host",), "elf", _EVERYTHING),
        DeployTarget(
            "x86_64-linux",
            "Linux on x86-64: v2, v3 (AVX2), v4 (AVX-512) and AMX in one file, or one of them",
            "x86_64-linux-gnu",
            ("dispatch", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-amx", "x86-64"),
            "elf",
            _EVERYTHING,
            ("x86-linux-gnu", *_GLIBC, "x86-linux-any", "any-linux-any"),
        ),
        DeployTarget(
            "aarch64-linux",
            "Linux on 64-bit ARM, NEON",
            "aarch64-linux-gnu",
            _ARM_CPUS,
            "elf",
            _EVERYTHING,
            ("aarch64-linux-gnu", *_GLIBC, "aarch64-linux-any", "any-linux-any"),
        ),
        DeployTarget(
            "riscv64-linux",
            "Linux on 64-bit RISC-V (rv64gc)",
            "riscv64-linux-gnu",
            ("rv64gc",),
            "elf",
            _EVERYTHING,
            ("riscv-linux-gnu", *_GLIBC, "riscv-linux-any", "any-linux-any"),
            ("-march=rv64gc", "-mabi=lp64d"),
        ),
        DeployTarget(
            "x86_64-windows",
            "Windows on x86-64",
            "x86_64-windows-gnu",
            ("x86-64-v3", "x86-64-v2", "x86-64-v4", "x86-64"),
            "coff",
            _LIBRARIES,
            ("any-windows-any",),
            ("-mno-stack-arg-probe",),
            frozenset({"-fPIC"}),
            threads=False,
        ),
        DeployTarget(
            "aarch64-macos",
            "macOS on Apple silicon",
            "aarch64-apple-macos11",
            ("armv8-a+fp16+dotprod",),
            "macho",
            _LIBRARIES,
            ("any-darwin-any",),
        ),
        DeployTarget(
            "wasm32",
            "WebAssembly with SIMD; for browsers and node, or an archive for wasm-ld or emscripten",
            "wasm32-wasip1",
            ("simd128",),
            "wasm",
            ("wasm", "a", "c"),
            ("wasm-wasi-musl", "generic-musl"),
            ("-msimd128", "-mbulk-memory"),
            frozenset({"-fPIC"}),
            threads=False,
        ),
        DeployTarget(
            "cortex-m",
            "bare metal ARM Cortex-M4F and up: no malloc, no threads, no stdio",
            "thumbv7em-none-eabihf",
            ("cortex-m4",),
            "elf",
            ("a", "c"),
            ("arm-linux-musl", "generic-musl"),
            ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mthumb", "-ffreestanding"),
            frozenset({"-fPIC"}),
            threads=False,
            hosted=False,
        ),
    )
}


def find_target(name: str, emit: str) -> DeployTarget:
    """The target of that name, if that can be made for it; wasm needs no name, as there is one kind."""
    name = "wasm32" if (name, emit) == ("native", "wasm") else name
    target = TARGETS.get(name)
    if target is None:
        raise BuildError(
            f"there is no target {name[:120]!r}",
            value=name,
            hint=f"The targets are: {', '.join(TARGETS)}.",
        )
    if emit not in EMITS:
        raise BuildError(
            f"there is nothing called {emit[:120]!r} to emit",
            value=emit,
            hint=f"Choose of: {', '.join(EMITS)}.",
        )
    if emit not in target.emits:
        raise BuildError(
            f"{emit!r} cannot be made for {name}",
            value=emit,
            hint=f"For this target there are: {', '.join(target.emits)}.",
        )
    return target
