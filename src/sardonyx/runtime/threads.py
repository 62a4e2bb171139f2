"""The one thread pool of the process, which every native run shares.

It is written in C (backends/c/support/threads.c) and compiled once; here it is built, loaded and sized to the
CPUs that this process may really use.

    pool = process_pool()
    run.parallel, run.allocate, run.pool = pool.parallel_address, pool.allocate_address, pool.handle
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from sardonyx.errors import RunError
from sardonyx.runtime.machine import usable_cores

__all__ = ["Pool", "make_pool", "process_pool"]

_SOURCES = ("memory.c", "threads.c")

# How long an idle worker looks out for the next job before it sleeps: longer than what lies between two
# kernels of a run, shorter than anybody would notice in the bill for electricity. Where threads outnumber
# cores, one that spins keeps another from its work.
_SPIN = 60_000  # nanoseconds
_CROWDED_SPIN = 2_000


class Pool:
    """A thread pool, by the addresses that an `sx_run` needs.

    A pool and its handle stay good in the child of a fork, whatever its threads were doing at that moment:
    new workers start there with the first job.

    Attributes:
        library: what it was loaded from.
        threads: how many threads work on a job at most, the caller among them.
        grants_tiles: whether the system lets this process use tile registers (AMX).
        handle: for `sx_run.pool`.
        parallel_address: for `sx_run.parallel`.
        look_address: for `sx_run.look`.
        allocate_address: for `sx_run.allocate`; `release` gives back what it handed out.
    """

    def __init__(self, library: Path, threads: int, *, crowded: bool = False) -> None:
        """
        Args:
            crowded: there are more threads than cores.
        """
        functions = ctypes.CDLL(str(library))
        create = functions.sx_pool_create
        create.argtypes = (ctypes.c_int32, ctypes.c_int64)
        create.restype = ctypes.c_void_p
        handle: int | None = create(threads, _CROWDED_SPIN if crowded else _SPIN)
        if handle is None:
            raise RunError(
                f"there is no memory for a pool of {threads} threads",
                value=threads,
                hint="Raise the memory limit of this process.",
            )
        self.library = library
        self.threads = threads
        self.handle = handle
        self.grants_tiles = bool(functions.sx_tiles_granted())
        self.parallel_address = _address(functions.sx_parallel)
        self.look_address = _address(functions.sx_look)
        self.allocate_address = _address(functions.sx_allocate)
        self._release = functions.sx_release
        self._release.argtypes = (ctypes.c_void_p,)
        self._release.restype = None

    def release(self, run_address: int) -> None:
        """Free what `allocate` handed out to this run."""
        self._release(run_address)


def process_pool(library: Path | None = None) -> Pool:
    """The pool of this process, made on first use for as many threads as there are usable cores.

    Args:
        library: what to make it from, where that is known already.
    """
    global _pool  # noqa: PLW0603 - one a process is the point
    pool = _pool
    if pool is None:
        with _lock:
            cores = usable_cores()
            made = make_pool(cores) if library is None else Pool(library, cores)
            pool = _pool = _pool or made
    return pool


_pool: Pool | None = None
_lock = threading.Lock()


def make_pool(threads: int, flags: Sequence[str] = ()) -> Pool:
    """A pool of its own, as tests and tools want one; `flags` are for the compiler."""
    from sardonyx.backends.c.toolchain import SUPPORT, find_toolchain, host_cpu
    from sardonyx.options import read_environment
    from sardonyx.runtime.cache import default_cache
    from sardonyx.runtime.compiling import Unit, build_library

    environment = read_environment()
    units = [
        Unit(name, (SUPPORT / name).read_text(encoding="utf-8"), tuple(flags)) for name in _SOURCES
    ]
    toolchain = find_toolchain(environment)
    library = build_library(units, toolchain, host_cpu(), default_cache(environment))
    return Pool(library, threads, crowded=threads > usable_cores())


def _address(function: ctypes._NamedFuncPointer) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _after_fork() -> None:
    """The thread that made the pool when the process forked is not in the child, and would never unlock."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
