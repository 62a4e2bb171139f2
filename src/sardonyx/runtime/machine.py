"""What the machine has, and how much of it this process may use. Read from /proc and /sys; nothing is run.

Every function takes the root folder, so that another machine's files can be looked at.
"""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path
from typing import NamedTuple

from sardonyx.backends.cpuinfo import ROOT, read_beginning, read_cpuinfo

__all__ = [
    "ROOT",
    "Cpu",
    "cpu_quota",
    "machine_memory",
    "memory_limit",
    "process_cpus",
    "read_cpu",
    "usable_cores",
    "usable_memory",
]

# What matters to kernels, by what the kernel calls it in /proc/cpuinfo.
_X86 = {
    "sse4_2": "SSE4.2",
    "avx": "AVX",
    "f16c": "F16C",
    "fma": "FMA",
    "avx2": "AVX2",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX-512F",
    "avx512bw": "AVX-512BW",
    "avx512dq": "AVX-512DQ",
    "avx512vl": "AVX-512VL",
    "avx512_vnni": "AVX-512 VNNI",
    "avx512_bf16": "AVX-512 BF16",
    "avx512_fp16": "AVX-512 FP16",
    "amx_tile": "AMX",
    "amx_int8": "AMX INT8",
    "amx_bf16": "AMX BF16",
    "amx_fp16": "AMX FP16",
}
_ARM = {
    "asimd": "NEON",
    "neon": "NEON",
    "asimdhp": "FP16",
    "asimddp": "DOTPROD",
    "i8mm": "I8MM",
    "bf16": "BF16",
    "sve": "SVE",
    "sve2": "SVE2",
    "sme": "SME",
}

# ARM cores give numbers instead of a name: (implementer, part).
_ARM_PARTS = {
    ("0x41", "0xd03"): "ARM Cortex-A53",
    ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd0b"): "ARM Cortex-A76",
    ("0x41", "0xd0c"): "ARM Neoverse N1",
    ("0x41", "0xd40"): "ARM Neoverse V1",
    ("0x41", "0xd49"): "ARM Neoverse N2",
    ("0x41", "0xd4f"): "ARM Neoverse V2",
    ("0x61", "0x022"): "Apple M1",
    ("0x61", "0x032"): "Apple M2",
}


class Cpu(NamedTuple):
    """The processor: its model, its logical CPUs, and the vector features worth knowing."""

    model: str
    total: int
    features: tuple[str, ...]


def read_cpu(root: Path = ROOT) -> Cpu:
    """The processor as Linux describes it; elsewhere what Python knows, without features."""
    info = read_cpuinfo(root)
    fields = info.fields
    found = [shown for flag, shown in (_X86 | _ARM).items() if flag in info.flags]
    part = (fields.get("CPU implementer", ""), fields.get("CPU part", ""))
    model = fields.get("model name") or _ARM_PARTS.get(part) or " ".join(filter(None, part))
    return Cpu(
        model=model or platform.processor() or platform.machine() or "unknown",
        total=info.total or os.cpu_count() or 1,
        features=tuple(dict.fromkeys(found)),
    )


def process_cpus() -> int:
    """CPUs in this process's affinity mask."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cores(root: Path = ROOT) -> int:
    """CPUs the scheduler may give us: the affinity mask, cut by the control group's quota."""
    quota = cpu_quota(root)
    return process_cpus() if quota is None else min(process_cpus(), max(1, math.ceil(quota)))


def usable_memory(root: Path = ROOT) -> int | None:
    """Bytes this process may have: the machine's, cut by the control group's limit."""
    limit = memory_limit(root)
    return machine_memory(root) if limit is None else limit  # a limit is less than the machine has


def cpu_quota(root: Path = ROOT) -> float | None:
    """CPUs that the control group grants, as 1.5; None without a quota. The tightest of all levels."""
    quotas: list[float] = []
    unified, own = _groups(root, "cpu")
    for group in unified:
        words = read_beginning(f"{group}/cpu.max").split()  # "150000 100000", or "max 100000"
        if len(words) == 2 and words[0].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
    for group in own:
        quota = read_beginning(f"{group}/cpu.cfs_quota_us").strip()  # -1 is no quota
        period = read_beginning(f"{group}/cpu.cfs_period_us").strip() if quota.isdigit() else ""
        if period.isdigit():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that the control group grants; None without a limit. The tightest of all levels."""
    unified, own = _groups(root, "memory")
    texts = [read_beginning(f"{group}/memory.max").strip() for group in unified]
    texts += [read_beginning(f"{group}/memory.limit_in_bytes").strip() for group in own]
    total = machine_memory(root)
    # Version 1 says "no limit" with a number near 2^63.
    limits = (int(text) for text in texts if text.isdigit())
    return min((limit for limit in limits if total is None or limit < total), default=None)


def machine_memory(root: Path = ROOT) -> int | None:
    """Bytes of memory in the machine."""
    for line in read_beginning(f"{root}/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _groups(root: Path, controller: str) -> tuple[list[str], list[str]]:
    """The folders of this process's control group and all above it, of version 2 and of version 1.

    /proc/self/cgroup has a line a hierarchy: `4:memory:/a/b`, and `0::/a/b` for version 2. In a
    container the path is often that of the host, and only the mounted root is there.
    """
    mounted = f"{root}/sys/fs/cgroup"
    unified, own = [mounted], [f"{mounted}/{controller}"]
    for line in read_beginning(f"{root}/proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        parts = [part for part in path.strip().split("/") if part and part != ".."]
        if number == "0":
            unified += _below(mounted, parts)
        elif controller in controllers.split(","):
            joint = f"{mounted}/{controllers}"
            is_joint = joint != own[0] and Path(joint).is_dir()
            own += _below(joint if is_joint else own[0], parts)
    return unified, own


def _below(base: str, parts: list[str]) -> list[str]:
    return ["/".join([base, *parts[: depth + 1]]) for depth in range(len(parts))]
