"""What this process may really use: cores under affinity and cgroup quota, memory under cgroup limit."""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = ["usable_cores", "usable_memory"]

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """CPUs the scheduler may give us: the affinity mask, cut by the cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota(cgroup)
    return max(1, min(cores, math.ceil(quota))) if quota else cores


def _quota(cgroup: Path) -> float | None:
    unified = _words(cgroup / "cpu.max")  # cgroup v2: "200000 100000" or "max 100000"
    if len(unified) == 2 and unified[0].isdigit():
        return int(unified[0]) / int(unified[1])
    quota = _words(cgroup / "cpu" / "cpu.cfs_quota_us")  # cgroup v1
    period = _words(cgroup / "cpu" / "cpu.cfs_period_us")
    if quota and period and quota[0].isdigit() and period[0].isdigit():
        return int(quota[0]) / int(period[0])
    return None


def usable_memory(cgroup: Path = _CGROUP) -> int:
    """Bytes of memory this process may have: the machine's, cut by the cgroup's limit."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        words = _words(cgroup / name)
        if words and words[0].isdigit():
            memory = min(memory, int(words[0]))
    return memory


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
