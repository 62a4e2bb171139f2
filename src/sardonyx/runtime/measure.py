"""What this machine does at its best, to hold a profile against; and the clock of native code.

limits = machine_limits(threads=2)
limits.flops, limits.bytes            # float32 operations and bytes read from memory, in a second
limits.carried, limits.launches       # bytes that only change places, and kernels that are started, in a second

Measured once by a small kernel (backends/c/support/measure.c), the best of many times, and kept in the cache
unless the machine was too busy to tell.
"""

from __future__ import annotations

import ctypes
import functools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.toolchain import SUPPORT, find_toolchain, host_cpu
from sardonyx.options import read_environment
from sardonyx.runtime.abi import Run
from sardonyx.runtime.cache import content_key, default_cache
from sardonyx.runtime.compiling import Unit, build_library
from sardonyx.runtime.machine import read_cpu, usable_memory
from sardonyx.runtime.threads import process_pool

__all__ = ["Limits", "clock_address", "machine_limits"]

_SOURCE = "measure.c"
_CHUNKS_A_THREAD = 32  # so that the threads end together
_MOST_BYTES = 1 << 27  # to read: past any cache
_ROUNDS = 3  # some time apart, so that a short disturbance does not decide
_CALM = 0.75  # of what the threads should reach together; below, others kept the machine busy


@dataclass(frozen=True)
class Limits:
    """The most that these threads can do in a second.

    Attributes:
        flops: float32 operations; a multiply-add is two.
        bytes: read from memory. What lies in a cache is read faster.
        carried: bytes read and written where rows become columns, as a Transpose does.
        launches: jobs that do next to nothing, handed to all threads and waited for.
    """

    threads: int
    flops: float
    bytes: float
    carried: float
    launches: float


def clock_address() -> int:
    """int64_t (void): nanoseconds of the same clock as `time.monotonic_ns`."""
    address = ctypes.cast(_library().sx_clock, ctypes.c_void_p).value
    assert address is not None
    return address


@functools.cache
def machine_limits(threads: int) -> Limits:
    """The limits of so many threads on this machine, from the cache if they were measured before."""
    environment = read_environment()
    cache = default_cache(environment)
    identity = find_toolchain(environment).identity
    source = (SUPPORT / _SOURCE).read_bytes()
    key = content_key("limits", identity, read_cpu().model, *host_cpu().flags, str(threads), source)
    found = cache.read("timing", key)
    if found is not None:
        return Limits(**json.loads(found))
    limits = _measure(threads)
    if limits.flops > _CALM * threads * _most_flops(1):
        content = json.dumps(asdict(limits))
        cache.put("timing", key, lambda path: _write(path, content))
    return limits


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")


@functools.cache
def _library() -> ctypes.CDLL:
    environment, cpu = read_environment(), host_cpu()
    flags = (f"-DSX_LANES={isa_of(cpu).lanes}",)
    unit = Unit(_SOURCE, (SUPPORT / _SOURCE).read_text(encoding="utf-8"), flags)
    toolchain = find_toolchain(environment)
    return ctypes.CDLL(str(build_library([unit], toolchain, cpu, default_cache(environment))))


def _measure(threads: int) -> Limits:
    measured = (_most_flops, _most_bytes, _most_carried, _most_launches)
    rounds = [[rate(threads) for rate in measured] for _ in range(_ROUNDS)]
    return Limits(threads, *(max(column) for column in zip(*rounds, strict=True)))


def _most_flops(threads: int) -> float:
    chunks = threads * _CHUNKS_A_THREAD
    sums = np.zeros(chunks, np.float32)
    return _ask("sx_most_flops", threads, chunks, sums)


def _most_bytes(threads: int) -> float:
    data = _data(_MOST_BYTES)
    sums = np.zeros(data.size // _span(), np.float32)
    return _ask("sx_most_bytes", threads, sums.size, sums, data)


def _most_carried(threads: int) -> float:
    data = _data(_MOST_BYTES // 2)
    return _ask("sx_most_carried", threads, data.size // _span(), np.empty_like(data), data)


def _most_launches(threads: int) -> float:
    return _ask("sx_most_launches", threads, threads, np.zeros(threads, np.float32))


def _data(most: int) -> npt.NDArray[np.float32]:
    """As many spans as a sixteenth of the memory holds, and `most` bytes."""
    size = min(most, (usable_memory() or 16 * most) // 16)
    return np.ones(max(1, size // (4 * _span())) * _span(), np.float32)


def _span() -> int:
    span = _library().sx_span
    span.restype = ctypes.c_int64
    floats: int = span()
    return floats


def _ask(name: str, threads: int, chunks: int, *arrays: npt.NDArray[np.float32]) -> float:
    pool, function = process_pool(), _library()[name]
    function.restype = ctypes.c_double
    run = Run(parallel=pool.parallel_address, pool=pool.handle, threads=threads)
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    rate: float = function(ctypes.byref(run), ctypes.c_int64(chunks), *addresses)
    return rate
