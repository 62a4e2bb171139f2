"""One file for every x86-64: the CPU is asked, and the highest level that it has answers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.deploy.test_targets import BARE, expected, text

import sardonyx as sx
from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.comparison.tolerance import tolerance_of
from sardonyx.deploy.interface import FUNCTIONS
from sardonyx.deploy.levels import _SIGNATURES
from sardonyx.deploy.library import agrees
from sardonyx.deploy.targets import TARGETS
from sardonyx.errors import BuildError

LIBRARY = r"""
#ifndef FORCED
#define FORCED 0
#endif
char *getenv(const char *name) { return name[0] == 'S' ? (char *)(unsigned long)FORCED : 0; }
int strcmp(const char *a, const char *b) {
    while (*a != 0 && *a == *b) a++, b++;
    return *a - *b;
}
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    built = sx.build(text(), folder, target="x86_64-linux", emit="a", name="small", threads=False)
    return built.files[0][0]


def program(archive: Path, forced: str = "") -> Path:
    folder, toolchain = archive.parent, TARGETS["x86_64-linux"].toolchain()
    source, unit, out = folder / "bare.c", folder / "bare.o", folder / f"bare{forced}"
    source.write_text(BARE + LIBRARY)
    flags = [flag for flag in toolchain.flags if flag != "-Werror"]
    flags += [f'-DFORCED="{forced}"'] * bool(forced)
    argv = [*toolchain.argv, *flags, "-march=x86-64", "-fno-builtin", "-c", "-o", str(unit)]
    subprocess.run([*argv, str(source)], check=True)
    argv = [packaged_zig(), "ld.lld", "-static", "-o", str(out), str(unit), str(archive)]
    subprocess.run(argv, check=True)
    return out


def run(program: Path, cpu: str) -> subprocess.CompletedProcess[bytes]:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 is not installed")
    return subprocess.run([emulator, "-cpu", cpu, program], capture_output=True, check=False)


def answer(done: subprocess.CompletedProcess[bytes]) -> np.ndarray[Any, np.dtype[np.float32]]:
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.float32).reshape(3, 6)


def test_each_cpu_runs_the_level_that_it_has(archive: Path) -> None:
    usual, held = program(archive), program(archive, "x86-64-v2")
    right = expected()
    bound = tolerance_of(right.dtype)
    old, new = answer(run(usual, "Nehalem")), answer(run(usual, "Haswell"))
    for one in (old, new):
        assert agrees(one, right, bound.atol, bound.rtol, bound.of_largest)
    # Without fused multiplications the last bits are others: so we see which level it was.
    assert not np.array_equal(old, new)
    assert np.array_equal(answer(run(held, "Haswell")), old)
    assert np.array_equal(answer(run(program(archive, "x86-64-v4"), "Haswell")), new)


def test_what_no_level_is_for_is_refused(archive: Path) -> None:
    assert run(program(archive), "qemu64,-sse4.2").returncode == 19
    assert run(program(archive, "pentium"), "Haswell").returncode == 19


def test_all_levels_are_in_the_library(tmp_path: Path) -> None:
    built = sx.build(text(), tmp_path, target="x86_64-linux", emit="a", name="small")
    content = built.files[0][0].read_bytes()
    found = {name.decode() for name in re.findall(rb"small_(v\d|amx)_run\b", content)}
    assert found == {"v2", "v3", "v4"}  # AMX would run the same kernels as v4 here
    pinned = sx.build(
        text(), tmp_path / "one", target="x86_64-linux", emit="a", name="small", cpu="x86-64-v3"
    )
    assert pinned.code_bytes < built.code_bytes / 2
    assert b"small_v3" not in pinned.files[0][0].read_bytes()


def test_every_function_of_the_interface_is_passed_on() -> None:
    assert [name for _, name, _ in _SIGNATURES] == FUNCTIONS


def test_tiles_are_used_where_products_are_large(tmp_path: Path) -> None:
    """That they compile is all that is seen here: no emulator has them."""
    wide = """
    <ir_version: 10, opset_import: ["": 21]>
    wide (uint8[256, 512] x) => (int32[256, 512] y)
    <int64[2] shape = {512, 512}>
    { w = ConstantOfShape <value = int8[1] {3}> (shape) y = MatMulInteger(x, w) }
    """
    dot = re.compile(rb"\xc4\xe2.\x5e", re.DOTALL)  # tdpbusd
    for cpu, there in (("x86-64-amx", True), ("x86-64-v4", False)):
        options = {"target": "x86_64-linux", "emit": "a", "cpu": cpu, "weights": "beside"}
        built = sx.build(wide, tmp_path / cpu, name="wide", **options)  # type: ignore[arg-type]
        content = built.files[0][0].read_bytes()
        assert (b"wide_amx_run" in content) == there
        assert bool(dot.search(content)) == there


def test_tiles_need_somebody_who_asks_for_them(tmp_path: Path) -> None:
    for target, emit in (("x86_64-linux", "c"), ("x86_64-windows", "so")):
        with pytest.raises(BuildError, match="which ask the system for tiles"):
            sx.build(text(), tmp_path, target=target, emit=emit, cpu="x86-64-amx")
