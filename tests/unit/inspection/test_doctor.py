"""The machine as /proc and /sys tell it, from files of other machines; and the environment."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.inspection import doctor
from sardonyx.inspection.doctor import diagnose
from sardonyx.options import VARIABLES, Environment, read_environment
from sardonyx.runtime.amx_trial import Verdict
from sardonyx.runtime.machine import cpu_quota, machine_memory, memory_limit, read_cpu

XEON = """\
processor : 0
model name : Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags : fpu sse4_2 avx f16c fma avx2 avx512f avx512bw avx512_vnni avx512_bf16 amx_tile amx_int8 amx_bf16

processor : 1
model name : Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags : fpu sse4_2 avx f16c fma avx2 avx512f avx512bw avx512_vnni avx512_bf16 amx_tile amx_int8 amx_bf16
"""
GRAVITON = """\
processor : 0
Features : fp asimd asimdhp asimddp sve i8mm bf16
CPU implementer : 0x41
CPU part : 0xd40
"""


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_an_x86_server(tmp_path: Path) -> None:
    cpu = read_cpu(machine(tmp_path, {"proc/cpuinfo": XEON}))
    assert cpu.model == "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
    assert cpu.total == 2
    assert {"AVX2", "AVX-512F", "AVX-512 VNNI", "AVX-512 BF16", "AMX", "AMX INT8"} <= set(
        cpu.features
    )
    assert "NEON" not in cpu.features


def test_an_arm_server(tmp_path: Path) -> None:
    cpu = read_cpu(machine(tmp_path, {"proc/cpuinfo": GRAVITON}))
    assert cpu.model == "ARM Neoverse V1"
    assert cpu.features == ("NEON", "FP16", "DOTPROD", "I8MM", "BF16", "SVE")


def test_a_machine_without_proc(tmp_path: Path) -> None:
    cpu = read_cpu(tmp_path)
    assert cpu.total >= 1
    assert cpu.model
    assert cpu.features == ()
    assert cpu_quota(tmp_path) is None
    assert memory_limit(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        (  # a group inside a group: the tighter one counts, wherever it is
            {
                "proc/self/cgroup": "0::/outer/inner\n",
                "sys/fs/cgroup/outer/cpu.max": "100000 100000\n",
                "sys/fs/cgroup/outer/inner/cpu.max": "400000 100000\n",
            },
            1.0,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
    ],
)
def test_cpu_quotas(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert cpu_quota(machine(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20),
        ({"sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        (
            {
                "proc/self/cgroup": "4:memory:/job\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2097152\n",
            },
            2 << 20,
        ),
    ],
)
def test_memory_limits(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    root = machine(tmp_path, {**files, "proc/meminfo": "MemTotal:  8192 kB\n"})
    assert machine_memory(root) == 8 << 20
    assert memory_limit(root) == limit


def test_usable_is_what_every_limit_leaves(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/cpuinfo": XEON,
            "proc/meminfo": "MemTotal: 8192 kB\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/memory.max": "1048576\n",
        },
    )
    found = diagnose(root, Environment(tmp_path / "cache"))
    assert found.cores.usable == 1
    assert found.cores.quota == 0.5
    assert found.memory.usable == 1 << 20
    assert found.problems == ()
    assert json.loads(json.dumps(found.to_json()))["cores"]["usable"] == 1
    assert found.summary["cores"] == "1 usable of 2"
    assert found.native.threads == 1
    assert found.native.lanes >= 4


def test_libraries_are_found_without_importing_them() -> None:
    found = diagnose()
    versions = {library.name: library.version for library in (*found.libraries, *found.extras)}
    assert versions["onnx"] is not None
    assert all(library.extra for library in found.extras)


def test_a_compiler_of_the_users_choice(tmp_path: Path) -> None:
    found = diagnose(environment=Environment(tmp_path, compiler=("no-such-cc", "-O2")))
    assert found.compiler.name == ""
    assert any("no-such-cc" in problem for problem in found.problems)
    tool = tmp_path / "mycc"
    tool.write_text("#!/bin/sh\necho mycc 1.0\n")
    tool.chmod(0o755)
    found = diagnose(environment=Environment(tmp_path, compiler=(str(tool),)))
    assert found.compiler.name == "mycc 1.0"
    assert found.compiler.origin == "SARDONYX_CC"
    assert found.problems == ()


def test_cache_folders(tmp_path: Path) -> None:
    def problem(folder: Path) -> str:
        return diagnose(environment=Environment(folder)).cache.problem

    assert problem(tmp_path / "new" / "deep") == ""
    assert problem(tmp_path) == ""
    file = tmp_path / "file"
    file.write_text("")
    assert problem(file) == "is not a folder."
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "writable by everybody" in problem(shared)
    shared.chmod(0o770)
    assert "writable by its group" in problem(shared)


def test_a_cache_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    found = diagnose(environment=Environment(tmp_path))
    assert "belongs to another user" in found.cache.problem
    assert found.problems


def test_the_environment_is_read_in_one_place() -> None:
    given = read_environment(
        {
            "SARDONYX_CACHE": "/fast",
            "SARDONYX_CACHE_LIMIT": "2.5 GiB",
            "SARDONYX_CC": "zig cc -O2",
            "SARDONYX_PADDLE_PYTHON": "/opt/paddle/bin/python",
            "SARDONYX_TRACEBACK": "1",
        }
    )
    assert given.paddle_python == "/opt/paddle/bin/python"
    assert given.cache_dir == Path("/fast")
    assert given.cache_limit == 5 << 29
    assert given.compiler == ("zig", "cc", "-O2")
    assert given.traceback
    assert given.is_set == tuple(VARIABLES)


def test_an_empty_environment() -> None:
    given = read_environment({"HOME": "/home/me", "SARDONYX_CC": "", "XDG_CACHE_HOME": "relative"})
    assert given == Environment(Path("/home/me/.cache/sardonyx"))
    assert read_environment({"XDG_CACHE_HOME": "/xdg"}).cache_dir == Path("/xdg/sardonyx")
    assert not read_environment({"SARDONYX_TRACEBACK": "0"}).traceback
    assert read_environment({"SARDONYX_CC": "cc 'unbalanced"}).compiler == ("cc 'unbalanced",)


def test_no_other_module_reads_the_environment() -> None:
    package = Path(__file__).parents[3] / "src/sardonyx"
    readers = [
        path.name
        for path in package.rglob("*.py")
        if "os.environ" in path.read_text() or "os.getenv" in path.read_text()
    ]
    assert readers == ["options.py"]


def test_tiles_are_reported_and_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tiles(*, there: bool, verdict: Verdict | None = None) -> str:
        monkeypatch.setattr(doctor, "has_tiles", lambda _: there)
        monkeypatch.setattr(doctor, "known_verdict", lambda *_: verdict)
        return diagnose(environment=Environment(cache_dir=tmp_path)).native.tiles

    tmp_path.chmod(0o700)
    for halves, what in ((False, "is for the weights of few rows"), (True, "computes in float16")):
        here = replace(NEON, half_arithmetic=halves)
        monkeypatch.setattr(doctor, "isa_of", lambda _, isa=here: isa)
        expected = f"none: precision fast is as float32, bfloat16 {what}"
        assert tiles(there=False) == expected
    assert tiles(there=True) == "AMX, tried when the first model is compiled"
    good, bad = Verdict(True, "right"), Verdict(False, "amx6 ended its process by signal 4")
    assert tiles(there=True, verdict=good) == "AMX, used: right"
    assert tiles(there=True, verdict=bad) == "AMX, not used: amx6 ended its process by signal 4"
