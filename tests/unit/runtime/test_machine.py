from __future__ import annotations

import os
from pathlib import Path

import pytest

from sardonyx.runtime.machine import machine_memory, usable_cores, usable_memory

AFFINITY = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, AFFINITY),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, AFFINITY),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"sys/fs/cgroup/cpu.max": "99900000 100000"}, AFFINITY),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            AFFINITY,
        ),
    ],
)
def test_cores_under_a_quota(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    write(tmp_path, files)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(
    "name", ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"]
)
def test_memory_under_a_limit(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "1048576"})
    assert usable_memory(tmp_path) == 1 << 20


def test_memory_without_a_limit(tmp_path: Path) -> None:
    write(tmp_path, {"sys/fs/cgroup/memory.max": "max"})
    assert usable_memory(tmp_path) == machine_memory(tmp_path)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
