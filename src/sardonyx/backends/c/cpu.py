"""What code may be compiled for: a CPU as data, with the compiler flags that say exactly that and no more.

    host_cpu()  ->  Cpu("neoverse-n1", ("-march=armv8-a+lse+rdma+fp16+dotprod", …), {"neon", "fp16", …}, 4)

`-march=native` would let the compiler use what no artifact mentions. Here every instruction set beyond the
architecture's baseline is a word in `features`, and `require` refuses code that needs a word the host lacks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sardonyx.backends.cpuinfo import ROOT, CpuInfo, read_cpuinfo
from sardonyx.errors import ToolchainError

__all__ = ["OF_CLANG", "Cpu", "flags_for_moments", "host_cpu", "named_cpu", "require"]

# Several loads in place of a gather, which CPUs that are mended against Downfall take ten times as long for.
_NO_GATHER = "-mno-gather"
OF_CLANG = frozenset(
    {_NO_GATHER}
)  # flags that say how to, not what may be used; other compilers lack them

# How wide the vectors are that a compiler makes of loops, where there are 16 lanes.
_WIDE, _NARROW = "-mprefer-vector-width=512", "-mprefer-vector-width=256"

# Words of /proc/cpuinfo that each level of the x86-64 psABI stands for, past the level before it.
_LEVELS = {
    "x86-64-v2": ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_LANES = {"x86-64-v3": 8, "x86-64-v4": 16}
# Past the levels: the word, and what switches it on. Each needs the level that stands before it.
_X86_EXTRAS = {
    "avx_vnni": ("x86-64-v3", "-mavxvnni"),
    "avx512_vnni": ("x86-64-v4", "-mavx512vnni"),
    "avx512_bf16": ("x86-64-v4", "-mavx512bf16"),
    "avx512_fp16": ("x86-64-v4", "-mavx512fp16"),
    "amx_tile": ("x86-64-v4", "-mamx-tile"),
    "amx_int8": ("x86-64-v4", "-mamx-int8"),
    "amx_bf16": ("x86-64-v4", "-mamx-bf16"),
}
# Past the levels of the psABI: what came with AMX.
_TILED = "x86-64-amx"
_OF_TILED = ("avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16")
# The word of /proc/cpuinfo, the name of the feature here, and its name to the compiler. SVE is left out: a
# vector has as many lanes as `Cpu.lanes` says, wherever it runs.
_ARM = {
    "asimd": ("neon", ""),  # in the baseline
    "atomics": ("lse", "+lse"),
    "asimdrdm": ("rdma", "+rdma"),
    "asimdhp": ("fp16", "+fp16"),
    "asimddp": ("dotprod", "+dotprod"),
    "i8mm": ("i8mm", "+i8mm"),
    "bf16": ("bf16", "+bf16"),
}
# What to tune for, by (implementer, part). Tuning orders instructions; it never adds any.
_ARM_TUNING = {
    ("0x41", "0xd03"): "cortex-a53",
    ("0x41", "0xd08"): "cortex-a72",
    ("0x41", "0xd0b"): "cortex-a76",
    ("0x41", "0xd0c"): "neoverse-n1",
    ("0x41", "0xd40"): "neoverse-v1",
    ("0x41", "0xd49"): "neoverse-n2",
    ("0x41", "0xd4f"): "neoverse-v2",
}


class Cpu(NamedTuple):
    """A CPU to compile for.

    Attributes:
        name: what people call it.
        flags: exactly these go to the compiler; part of every key of compiled code.
        features: every instruction set that the flags allow, past the architecture's baseline.
        lanes: how many float32 a vector holds.
    """

    name: str
    flags: tuple[str, ...]
    features: frozenset[str]
    lanes: int


def host_cpu(root: Path = ROOT, architecture: str | None = None) -> Cpu:
    """The CPU of this machine, or of the one whose files are under `root`."""
    machine = os.uname().machine if architecture is None else architecture
    info = read_cpuinfo(root)
    if machine in ("x86_64", "AMD64"):
        return _x86(info)
    if machine in ("aarch64", "arm64"):
        return _arm(info)
    return Cpu(machine or "unknown", (), frozenset(), 4)


def named_cpu(architecture: str, name: str) -> Cpu:
    """A CPU that is not this one: a level of x86-64 ("x86-64-v3"), or "armv8-a" with extensions ("armv8-a+dotprod+fp16").

    Raises:
        ToolchainError: there is no such level or extension.
    """
    if architecture == "x86_64":
        levels = ["x86-64", *_LEVELS]
        if name == _TILED:
            words = [*(word for level in _LEVELS.values() for word in level), *_OF_TILED]
            return _x86(CpuInfo({}, frozenset(words), 1))._replace(name=name)
        if name not in levels:
            raise _unknown(name, [*levels, _TILED])
        words = [word for level in levels[1 : levels.index(name) + 1] for word in _LEVELS[level]]
        return _x86(CpuInfo({}, frozenset(words), 1))
    if architecture == "aarch64":
        base, *extensions = name.split("+")
        known = {switch.removeprefix("+"): word for word, (_, switch) in _ARM.items() if switch}
        if base != "armv8-a" or not known.keys() >= set(extensions):
            raise _unknown(name, ["armv8-a", *(f"+{one}" for one in known)])
        found = _arm(CpuInfo({}, frozenset(known[one] for one in extensions), 1))
        return Cpu(name, found.flags, found.features, found.lanes)
    return Cpu(name, (), frozenset(), 4)


def _unknown(name: str, known: list[str]) -> ToolchainError:
    return ToolchainError(
        f"there is no CPU {name[:120]!r}", value=name, hint=f"Choose of: {', '.join(known)}."
    )


def flags_for_moments(cpu: Cpu) -> tuple[str, ...]:
    """More flags, for code that runs for microseconds between calls: some CPUs slow down for a while when they are asked for
    their widest vectors, and Python with them."""
    return (_NARROW,) if _WIDE in cpu.flags else ()


def require(features: Iterable[str], host: Cpu | None = None) -> None:
    """Refuse code that needs what this CPU lacks; running it would end the process."""
    cpu = host_cpu() if host is None else host
    missing = sorted(set(features) - cpu.features)
    if missing:
        raise ToolchainError(
            f"this code needs {', '.join(missing)}, which this CPU ({cpu.name}) does not have",
            value=missing,
            limit=sorted(cpu.features),
            hint="Compile the model again on this machine.",
        )


def _x86(info: CpuInfo) -> Cpu:
    name, features = "x86-64", set[str]()
    for level, words in _LEVELS.items():
        if not info.flags.issuperset(words):
            break
        name = level
        features.update(words)
    flags = [f"-march={name}"]
    if name == "x86-64-v4":
        flags.append(_WIDE)  # compilers halve vectors of 16 lanes otherwise
    if name in _LANES:
        flags.append(_NO_GATHER)
    for word, (level, flag) in _X86_EXTRAS.items():
        if word in info.flags and features.issuperset(_LEVELS[level]):
            features.add(word)
            flags.append(flag)
    return Cpu(name, tuple(flags), frozenset(features), _LANES.get(name, 4))


def _arm(info: CpuInfo) -> Cpu:
    found = {word: names for word, names in _ARM.items() if word in info.flags}
    part = (info.fields.get("CPU implementer", ""), info.fields.get("CPU part", ""))
    tuning = _ARM_TUNING.get(part)
    flags = ["-march=armv8-a" + "".join(switch for _, switch in found.values())]
    # Atomics in line: by default they are calls into the compiler's runtime library, which is not linked.
    flags.append("-mno-outline-atomics")
    flags += [f"-mtune={tuning}"] if tuning else []
    features = {feature for feature, _ in found.values()} | {"neon"}
    return Cpu(tuning or "armv8-a", tuple(flags), frozenset(features), 4)
