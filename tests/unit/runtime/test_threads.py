"""The thread pool: its own stress program, natively and under ThreadSanitizer, and the process-wide pool."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import pytest

from sardonyx.backends.c.toolchain import SUPPORT, find_toolchain, host_cpu
from sardonyx.options import Environment
from sardonyx.runtime import threads
from sardonyx.runtime.abi import Run
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.compiling import Unit, build_library
from sardonyx.runtime.machine import usable_cores
from sardonyx.runtime.threads import Pool, process_pool

STRESS = Path(__file__).parents[1] / "backends/c/threads_stress.c"
SOURCES = [SUPPORT / "threads.c", SUPPORT / "memory.c"]

# Rounds that take some tenths of a second at most.
SCENARIOS = {
    "sizes": 3000,
    "signals": 200,
    "limits": 100,
    "nested": 50,
    "callers": 300,
    "busy": 200,
    "stops": 30,
    "deadlines": 10,
    "forks": 10,
    "lives": 50,
    "buffers": 20,
    "modes": 50,
    "signal_masks": 50,
}
# The sanitizer refuses to start threads in the child of a fork.
SANITIZED = {name: max(1, rounds // 3) for name, rounds in SCENARIOS.items() if name != "forks"}

CALL_MAIN = """
import ctypes, sys
arguments = [b"stress", *(text.encode() for text in sys.argv[2:])]
sys.exit(ctypes.CDLL(sys.argv[1]).main(4, (ctypes.c_char_p * 5)(*arguments, None)))
"""

FORK_WARNS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="affinity and /proc are Linux's")


def build(folder: Path, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
    options = Environment(cache_dir=folder)
    units = [Unit(path.name, path.read_text(encoding="utf-8"), flags) for path in sources]
    return build_library(units, find_toolchain(options), host_cpu(), default_cache(options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("threads")


@pytest.fixture(scope="module", params=["futexes", "condition_variables"])
def stress(request: pytest.FixtureRequest, folder: Path) -> Path:
    flags = () if request.param == "futexes" else ("-DSX_CONDITION_VARIABLES",)
    return build(folder / "cache", STRESS, *SOURCES, flags=flags)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pool_under_stress(stress: Path, scenario: str, count: int) -> None:
    argv = [sys.executable, "-ISc", CALL_MAIN, stress, scenario, str(count)]
    done = subprocess.run(
        [*argv, str(SCENARIOS[scenario])], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def sanitized(folder: Path) -> Path:
    """The stress program under ThreadSanitizer, whose runtime comes with gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    program = folder / "sanitized"
    argv = [compiler, "-fsanitize=thread", "-O1", "-g", "-std=gnu11", "-pthread", f"-I{SUPPORT}"]
    argv += [str(path) for path in (STRESS, *SOURCES)]
    done = subprocess.run([*argv, "-o", program], capture_output=True, text=True, check=False)
    if "-ltsan" in done.stderr or "libtsan" in done.stderr:
        pytest.skip("gcc has no ThreadSanitizer here")
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("scenario", SANITIZED)
def test_pool_has_no_races(sanitized: Path, scenario: str) -> None:
    argv = [sanitized, scenario, "8", str(SANITIZED[scenario])]
    # Without this option the sanitizer ends the program where `malloc` would say no.
    options = os.environ | {"TSAN_OPTIONS": "allocator_may_return_null=1"}
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, env=options
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel's address layout is not one that the sanitizer knows")
    assert done.returncode == 0, done.stderr


Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

SQUARES = """
#include "abi.h"
static void square(void *arg, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        ((int64_t *)arg)[i] = i * i;
}
__attribute__((visibility("default"))) void squares(sx_run *run, int64_t *out, int64_t count, int64_t rounds) {
    for (int64_t i = 0; i < rounds && !__atomic_load_n(&run->stop, __ATOMIC_RELAXED); i++)
        run->parallel(run, count, 16, square, out);
}
"""


def run_on(pool: Pool) -> Run:
    return Run(
        parallel=pool.parallel_address,
        allocate=pool.allocate_address,
        pool=pool.handle,
        budget=-1,
        threads=pool.threads,
    )


@pytest.fixture(scope="module")
def squares(folder: Path) -> Any:
    source = folder / "squares.c"
    source.write_text(SQUARES)
    function = ctypes.CDLL(str(build(folder / "cache", source))).squares
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return function


@pytest.fixture(params=[2, 8])
def pool(folder: Path, request: pytest.FixtureRequest) -> Pool:
    return Pool(build(folder / "cache", *SOURCES), request.param)


def compute(squares: Any, pool: Pool, count: int, rounds: int = 3) -> bool:
    run, out = run_on(pool), (ctypes.c_int64 * count)()
    squares(ctypes.addressof(run), out, count, rounds)
    return list(out) == [i * i for i in range(count)]


@pytest.fixture
def active(squares: Any, pool: Pool) -> Iterator[None]:
    """A run that goes on in another thread."""
    run, out = run_on(pool), (ctypes.c_int64 * 1000)()
    arguments = (ctypes.addressof(run), out, len(out), 1 << 60)
    thread = threading.Thread(target=squares, args=arguments)
    thread.start()
    give_up = time.monotonic() + 60
    while out[-1] == 0:
        assert time.monotonic() < give_up
        time.sleep(0.001)
    yield
    run.stop = 1
    thread.join(60)
    assert not thread.is_alive()


def in_child(work: Any, *arguments: Any) -> Any:
    """What `work(queue, …)` puts there, in the child of a fork."""
    context = multiprocessing.get_context("fork")
    queue: SimpleQueue[Any] = context.SimpleQueue()
    child = context.Process(target=work, args=(queue, *arguments))
    child.start()
    child.join(60)
    try:
        assert child.exitcode == 0
        return queue.get()
    finally:
        child.kill()
        queue.close()


def compute_in_child(queue: SimpleQueue[Any], squares: Any, pool: Pool) -> None:
    answer = all(compute(squares, pool, count) for count in (1, 17, 1000))
    queue.put((answer, len(list(Path("/proc/self/task").iterdir()))))


@LINUX
@FORK_WARNS
@pytest.mark.usefixtures("active")
def test_fork_while_a_run_is_active(squares: Any, pool: Pool) -> None:
    for _ in range(5):
        assert in_child(compute_in_child, squares, pool) == (True, pool.threads)
        assert compute(squares, pool, 500)


@pytest.mark.usefixtures("active")
def test_many_python_threads_share_one_pool(squares: Any, pool: Pool) -> None:
    answers: list[bool] = []

    def work() -> None:
        answers.extend(compute(squares, pool, 100 + i, rounds=20) for i in range(20))

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert answers == [True] * 80


def test_release_frees_late_buffers_and_can_be_called_again(pool: Pool) -> None:
    run = run_on(pool)
    run.budget = 1000
    allocate = Allocate(pool.allocate_address)
    address = allocate(ctypes.addressof(run), 1000)
    assert address is not None
    assert address % 64 == 0
    assert allocate(ctypes.addressof(run), 1) is None
    assert (run.error, run.a, run.b) == (3, 1, 0)
    assert run.memory is not None
    for _ in range(2):
        pool.release(ctypes.addressof(run))
        assert run.memory is None


def test_one_pool_a_process(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", str(folder / "cache"))
    assert process_pool() is process_pool()
    assert process_pool().threads == usable_cores()


AFFINITY = """
import os
from sardonyx.runtime.threads import process_pool
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(process_pool().threads)
"""


@LINUX
def test_no_more_threads_than_the_affinity_mask_allows(folder: Path) -> None:
    environment = os.environ | {
        "SARDONYX_CACHE": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", AFFINITY],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"


def pool_in_child(queue: SimpleQueue[Any], library: Path) -> None:
    threads.make_pool = lambda count: Pool(library, count)
    queue.put(process_pool().threads)


@FORK_WARNS
def test_fork_while_another_thread_makes_the_pool(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    library = build(folder / "cache", *SOURCES)
    building, go_on = threading.Event(), threading.Event()

    def make_slowly(count: int) -> Pool:
        building.set()
        assert go_on.wait(60)
        return Pool(library, count)

    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "make_pool", make_slowly)
    maker = threading.Thread(target=process_pool)
    maker.start()
    try:
        assert building.wait(60)
        assert in_child(pool_in_child, library) == usable_cores()
    finally:
        go_on.set()
        maker.join(60)
    assert process_pool().threads == usable_cores()
