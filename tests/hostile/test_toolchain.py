"""A cache that somebody tampered with, a disk that takes nothing, a process that dies, an environment that lies."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.backends.c.toolchain import (
    SUPPORT,
    Cpu,
    Toolchain,
    compile_object,
    find_toolchain,
    host_cpu,
    link_library,
    require,
)
from sardonyx.errors import CacheError, ToolchainError
from sardonyx.options import Environment, read_environment
from sardonyx.runtime.cache import Cache, content_key, default_cache
from sardonyx.runtime.compiling import Unit, build_library

CPU = host_cpu()
ROOT = os.getuid() == 0
NOBODY = 65534
EXPORT = '__attribute__((visibility("default")))'
UNITS = [Unit(f"f{i}", f"{EXPORT} int f{i}(void) {{ return {i}; }}") for i in range(3)]
KEY = content_key("a key")

# Builds the library of UNITS; the compiler is a script, so that a test can see and slow down its calls.
BUILD = f"""
import dataclasses, sys
from pathlib import Path
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.options import Environment
from sardonyx.runtime.cache import Cache
from sardonyx.runtime.compiling import Unit, build_library
root, script = map(Path, sys.argv[1:])
real = find_toolchain(Environment(root))
tools = dataclasses.replace(real, argv=(str(script), *real.argv[1:]), linker=(str(script), *real.linker[1:]))
units = [Unit(name, text) for name, text in {[(unit.name, unit.source) for unit in UNITS]!r}]
print("ready", flush=True)
print(build_library(units, tools, host_cpu(), Cache(root)), flush=True)
"""


def own() -> Toolchain:
    return find_toolchain(Environment(Path("unused")))


def write_content(path: Path) -> None:
    path.write_bytes(b"content")


def script(path: Path, before: str) -> Path:
    path.write_text(f'#!/bin/sh\n{before}\nexec {own().argv[0]} "$@"\n')
    path.chmod(0o755)
    return path


def start_build(root: Path, compiler: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILD, str(root), str(compiler)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


def answers(library: Path) -> list[int]:
    loaded = ctypes.CDLL(str(library))
    return [getattr(loaded, unit.name)() for unit in UNITS]


def wait_for(path: Path) -> None:
    for _ in range(3000):
        if path.exists() and path.read_text().endswith("\n"):
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


# A process dies, and sixteen at once


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_the_middle_of_a_compilation(tmp_path: Path, when: str) -> None:
    """Before the compiler has written a byte, and after it has written all but not ended."""
    root, told = tmp_path / "cache", tmp_path / "told"
    stop = f"echo > {told}; exec sleep 60"
    if when == "before":
        slow = script(tmp_path / "cc", f'case "$*" in *--version*) ;; *) {stop};; esac')
    else:
        slow = script(tmp_path / "cc", f'{own().argv[0]} "$@"; {stop}')
    victim = start_build(root, slow)
    wait_for(told)
    os.killpg(victim.pid, signal.SIGKILL)  # its compilers, too: they would go on writing
    victim.communicate()

    cache = Cache(root)
    assert cache.usage().count == 0
    for path in (root / "tmp").iterdir():  # an hour later
        os.utime(path, (0, 0))
    library = build_library(UNITS, own(), CPU, cache)
    assert answers(library) == [0, 1, 2]
    assert list((root / "tmp").iterdir()) == []


def test_killed_at_any_moment(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    plain = script(tmp_path / "cc", "")
    for delay in (0.0, 0.01, 0.02, 0.04, 0.06, 0.08):
        victim = start_build(root, plain)
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        time.sleep(delay)
        victim.kill()
        victim.communicate()
        cache = Cache(root)
        for kind in ("object", "library"):
            for path in (root / kind).glob("*/*"):
                assert cache.find(kind, path.parent.name) == path  # whole, as far as it goes
    assert answers(build_library(UNITS, own(), CPU, Cache(root))) == [0, 1, 2]


def test_sixteen_processes_compile_once(tmp_path: Path) -> None:
    root, log = tmp_path / "cache", tmp_path / "log"
    counting = script(tmp_path / "cc", f"echo call >> {log}; sleep 0.1")
    workers = [start_build(root, counting) for _ in range(16)]
    libraries = {worker.communicate()[0].splitlines()[-1] for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 16
    assert len(libraries) == 1
    assert answers(Path(libraries.pop())) == [0, 1, 2]
    assert len(log.read_text().split()) == len(UNITS) + 1


# What is in the cache is not what was put there


def truncate(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def append(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b"!")


def empty(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"")


def link(path: Path) -> None:
    """A link to the very same content: today."""
    elsewhere = path.parents[3] / "elsewhere"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(elsewhere)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("")


def renamed(path: Path) -> None:
    path.rename(path.with_name("libevil.so"))


def of_another_key(path: Path) -> None:
    """A sound entry of another key, under this entry's name."""
    path.chmod(0o600)
    path.write_bytes(b"sound, elsewhere")


def writable_by_others(path: Path) -> None:
    path.chmod(0o666)


def of_another_user(path: Path) -> None:
    if not ROOT:
        pytest.skip("only root can give a file away")
    os.chown(path, NOBODY, NOBODY)


def key_is_a_file(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("")


def kind_is_a_file(path: Path) -> None:
    shutil.rmtree(path.parents[1])
    path.parents[1].write_text("")


TAMPERING = [
    truncate,
    flip_a_bit,
    append,
    empty,
    link,
    fifo,
    folder,
    renamed,
    of_another_key,
    writable_by_others,
    of_another_user,
    key_is_a_file,
    kind_is_a_file,
]


@pytest.mark.parametrize("kind", ["object", "library", "weights"])
@pytest.mark.parametrize("tamper", TAMPERING)
def test_what_was_tampered_with_is_dropped(
    tmp_path: Path, tamper: Callable[[Path], None], kind: str
) -> None:
    cache = Cache(tmp_path / "cache")
    tamper(cache.put(kind, KEY, write_content))
    assert cache.find(kind, KEY) is None
    again = cache.put(kind, KEY, write_content)
    assert cache.find(kind, KEY) == again
    assert again.read_bytes() == b"content"
    assert [path.name for path in again.parent.iterdir()] == [again.name]


def test_a_poisoned_library_is_built_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    library = build_library(UNITS, own(), CPU, cache)
    sound = library.read_bytes()
    evil = [Unit(unit.name, unit.source.replace("return", "return 666 +")) for unit in UNITS]
    other = build_library(evil, own(), CPU, cache)
    library.chmod(0o600)
    shutil.copyfile(other, library)
    for path in (cache.root / "object").glob("*/*"):
        flip_a_bit(path)
    again = build_library(UNITS, own(), CPU, cache)
    assert again.read_bytes() == sound
    assert answers(again) == [0, 1, 2]


# A folder of somebody else


def others_write(path: Path) -> None:
    path.chmod(0o707)


def group_writes(path: Path) -> None:
    path.chmod(0o770)


def give_away(path: Path) -> None:
    if not ROOT:
        pytest.skip("only root can give a folder away")
    os.chown(path, NOBODY, NOBODY)


def a_file(path: Path) -> None:
    path.rmdir()
    path.write_text("")


@pytest.mark.parametrize("through_a_link", [False, True])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (others_write, "writable by everybody"),
        (group_writes, "writable by its group"),
        (give_away, f"another user (uid {NOBODY})"),
        (a_file, "is not a folder"),
    ],
)
def test_a_folder_that_cannot_be_trusted_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], said: str, through_a_link: bool
) -> None:
    root = tmp_path / "cache"
    root.mkdir()
    spoil(root)
    if through_a_link:
        (tmp_path / "link").symlink_to(root)
        root = tmp_path / "link"
    for open_it in (Cache, lambda path: default_cache(Environment(path))):
        with pytest.raises(CacheError) as caught:
            open_it(root)
        assert said in str(caught.value)
        assert str(root) in str(caught.value)
        assert "SARDONYX_CACHE" in str(caught.value)


@pytest.mark.skipif(not ROOT, reason="only root can give a link away")
def test_a_link_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(CacheError, match="another user"):
        Cache(tmp_path / "link")


# A disk that takes nothing


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Small disks, mounted with options of the test's choice, where this process may do that."""
    mounted: list[Path] = []

    def make(options: str) -> Path:
        point = tmp_path / "disk"
        point.mkdir(exist_ok=True)
        argv = ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "none", str(point)]
        if not ROOT or subprocess.run(argv, capture_output=True, check=False).returncode != 0:
            pytest.skip("only root may mount a disk")
        mounted.append(point)
        return point

    yield make
    for point in mounted:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def test_a_full_disk(mount: Callable[[str], Path]) -> None:
    root = mount("size=40k") / "cache"
    cache = default_cache(Environment(root))
    filler = "".join(f"{EXPORT} char g{i}[4000] = {{1}};" for i in range(20))
    units = [*UNITS, Unit("large", filler)]
    with pytest.warns(UserWarning, match="No space left"):
        library = build_library(units, own(), CPU, cache)
    assert answers(library) == [0, 1, 2]
    assert root not in library.parents
    assert "No space left" in cache.reason
    assert build_library(units, own(), CPU, cache) == library  # found, not built again


def test_a_disk_that_fills_up_under_a_writer(mount: Callable[[str], Path]) -> None:
    cache = Cache(mount("size=40k"))
    with pytest.warns(UserWarning, match="No space left"):
        path = cache.put("weights", KEY, lambda out: out.write_bytes(bytes(100_000)) and None)
    assert path.stat().st_size == 100_000
    assert cache.root not in path.parents
    assert list((cache.root / "tmp").iterdir()) == []


def test_a_read_only_disk_serves_what_it_has(mount: Callable[[str], Path]) -> None:
    disk = mount("size=1m")
    library = build_library(UNITS[:1], own(), CPU, Cache(disk / "cache"))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    cache = default_cache(Environment(disk / "cache"))
    assert build_library(UNITS[:1], own(), CPU, cache) == library
    assert cache.reason == ""
    with pytest.warns(UserWarning, match="Read-only file system"):
        more = build_library(UNITS, own(), CPU, cache)
    assert answers(more) == [0, 1, 2]


def test_a_read_only_disk_without_a_cache(mount: Callable[[str], Path]) -> None:
    disk = mount("ro")
    with pytest.warns(UserWarning, match="Read-only file system"):
        cache = default_cache(Environment(disk / "cache"))
    assert answers(build_library(UNITS, own(), CPU, cache)) == [0, 1, 2]


def test_a_disk_from_which_no_code_can_be_loaded(mount: Callable[[str], Path]) -> None:
    disk = mount("noexec")
    with pytest.warns(UserWarning, match="noexec"):
        cache = default_cache(Environment(disk / "cache"))
    assert answers(build_library(UNITS, own(), CPU, cache)) == [0, 1, 2]


def test_no_disk_takes_anything(tmp_path: Path) -> None:
    """No file may grow past 16 bytes, the temporary folder's neither: a typed error, in one line."""
    code = (
        "import resource, warnings; warnings.simplefilter('ignore')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))\n"
    ) + BUILD
    compiler = script(tmp_path / "cc", "")
    argv = [sys.executable, "-c", code, str(tmp_path / "cache"), str(compiler)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "sardonyx.errors.CacheError: cache: " in done.stderr
    assert "File too large" in done.stderr
    assert "SARDONYX_CACHE" in done.stderr.splitlines()[-1]


SESSION = """
import sys, warnings, resource
import numpy as np
import sardonyx as sx
if sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
warnings.simplefilter("always")
for _ in range(2):
    with warnings.catch_warnings(record=True) as said:
        session = sx.Session(sys.argv[1])
        (y,) = session.run(None, {"x": np.ones((1, 256), np.float32)})
    print({place.backend for place in session.placement}, y.sum() == 256 * 4096, *(one.message for one in said))
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose weights have 4 MB, in a file that is known."""
    weights = numpy_helper.from_array(np.ones((256, 4096), np.float32), "w")
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 256])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 4096])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights]
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    time.sleep(2.1)  # only then do its times tell its contents
    return path


def test_a_session_on_a_full_disk(mount: Callable[[str], Path], model: Path) -> None:
    """The code finds room, the weights do not: they stay in memory, and one warning says so."""
    disk = mount("size=1m")
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(model)],
        env={**os.environ, "SARDONYX_CACHE": str(disk / "cache"), "TMPDIR": str(model.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("{'native'} True the cache ")
    assert first.count("No space left on device") == 1
    assert second.startswith("{'native'} True")
    assert done.stderr == ""
    assert sorted(path.name for path in model.parent.iterdir()) == ["disk", "m.onnx"]


def test_a_session_where_no_disk_takes_anything(tmp_path: Path, model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(model), "16"],
        env={**os.environ, "SARDONYX_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sardonyx.errors.CacheError: cache: ")
    assert "File too large" in last
    assert "SARDONYX_CACHE" in last


def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    path = cache.put("plan", KEY, write_content)
    cache.root.chmod(0o500)
    try:
        assert default_cache(Environment(cache.root)).find("plan", KEY) == path
        if not ROOT:  # root may write anywhere
            with pytest.warns(UserWarning, match="Permission denied"):
                assert cache.root not in cache.put("object", KEY, write_content).parents
    finally:
        cache.root.chmod(0o700)


# An environment that lies

COMPILERS = [None, *([("gcc",)] if shutil.which("gcc") else [])]


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda argv: "zig" if argv is None else argv[0])
def test_the_environment_has_no_influence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: tuple[str, ...] | None
) -> None:
    toolchain = find_toolchain(Environment(tmp_path, compiler=compiler))
    text = f'#include <math.h>\n#include "abi.h"\n{EXPORT} double f(double x) {{ return sin(x) + SX_VALUE; }}'

    def build(name: str) -> tuple[bytes, bytes]:
        place = tmp_path / name
        place.mkdir()
        compile_object(toolchain, text, place / "f.o", CPU.flags, SUPPORT)
        link_library(toolchain, [place / "f.o"], place / "f.so")
        return (place / "f.o").read_bytes(), (place / "f.so").read_bytes()

    clean = build("clean")
    trap = tmp_path / "trap"
    trap.mkdir()
    for header in ("math.h", "abi.h", "stdint.h"):
        (trap / header).write_text("#error trapped\n")
    for program in ("as", "ld", "cc1", "collect2", "zig", "clang", "gcc"):
        (trap / program).write_text("#!/bin/sh\nexit 9\n")
        (trap / program).chmod(0o755)
    for name, value in {
        "CC": "false",
        "CFLAGS": "-O0 -Dsin=cos",
        "CPPFLAGS": "-Dsin=cos",
        "LDFLAGS": "-lnothing",
        "CPATH": str(trap),
        "C_INCLUDE_PATH": str(trap),
        "LIBRARY_PATH": str(trap),
        "COMPILER_PATH": str(trap),
        "GCC_EXEC_PREFIX": str(trap) + "/",
        "CCC_OVERRIDE_OPTIONS": "+-Dsin=cos",
        "CLANG_CONFIG_FILE_USER_DIR": str(trap),
        "LD_PRELOAD": "/no/such/library.so",
        "LD_LIBRARY_PATH": str(trap),
        "LD_RUN_PATH": str(trap),
        "DEPENDENCIES_OUTPUT": str(tmp_path / "written"),
        "SOURCE_DATE_EPOCH": "7",
        "TMPDIR": "/no/such/folder",
        "PATH": str(trap),
        "HOME": "/no/such/home",
        "ZIG_LIB_DIR": str(trap),
        "LC_ALL": "de_DE.UTF-8",
        "CDPATH": str(trap),
    }.items():
        monkeypatch.setenv(name, value)
    assert build("lied") == clean
    assert not (tmp_path / "written").exists()


def test_no_shell_reads_the_compilers_name(tmp_path: Path) -> None:
    for text in ("gcc; touch {}", "$(touch {})", "`touch {}`", "gcc && touch {}", "gcc\ntouch {}"):
        target = tmp_path / "touched"
        settings = read_environment({"SARDONYX_CC": text.format(target), "HOME": str(tmp_path)})
        with pytest.raises(ToolchainError):
            compile_object(find_toolchain(settings), "int x;", tmp_path / "x.o", (), SUPPORT)
        assert not target.exists()


def test_a_path_with_everything_in_it(tmp_path: Path) -> None:
    root = tmp_path / "a b;$(touch x)'\"\\,=é*\n-o"
    library = build_library(UNITS, own(), CPU, Cache(root))
    assert answers(library) == [0, 1, 2]


# Code for another CPU


def test_code_for_avx512_never_reaches_a_cpu_without_it(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    words = (
        "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
    )
    wide = " avx512f avx512bw avx512cd avx512dq avx512vl"
    cpus: list[Cpu] = []
    for flags in (words + wide, words):
        (tmp_path / "proc/cpuinfo").write_text(f"flags : {flags}\n")
        cpus.append(host_cpu(tmp_path, "x86_64"))
    new, old = cpus
    require(old.features, new)
    with pytest.raises(ToolchainError, match="avx512bw, avx512cd, avx512dq, avx512f, avx512vl"):
        require(new.features, old)
    # In one cache that both machines see, each finds only its own.
    cross = dataclasses.replace(own(), flags=("--target=x86_64-linux-gnu", *own().flags[1:]))
    cache = Cache(tmp_path / "cache")
    text = "typedef float v __attribute__((vector_size(64))); void f(v *a) { *a += *a; }"
    objects = set()
    for cpu in cpus:
        with suppress(ToolchainError):  # another machine has no x86 library to link with
            build_library([Unit("f", text)], cross, cpu, cache)
        objects = set((cache.root / "object").iterdir()) - objects
        assert len(objects) == 1
