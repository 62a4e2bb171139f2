"""Compiles a contraction kernel alone and calls it on arrays: for its tests and its benchmark.

The epilogue stores the rows as they are. `parallel` runs the tasks in order, in reverse, or on two threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.toolchain import (
    SUPPORT,
    compile_object,
    find_toolchain,
    host_cpu,
    link_library,
)
from sardonyx.options import read_environment

IN_ORDER, REVERSED, THREADED = 0, 1, 2

_HOST = """\
#include <pthread.h>
#include <sched.h>
#include "abi.h"
#include "index.h"

struct env {{ {value} *c; int64_t pitch, plane; {value} scale; }};

/* A plan's epilogue scales as well; a mere copy would become a call of memcpy, which takes longer. */
static inline void store_row(
    const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, const {value} *acc) {{
    {value} *c = env->c + b * env->plane + m * env->pitch + n;
    const {value} scale = env->scale;
    SX_VECTORS
    for (int64_t i = 0; i < count; i++)
        c[i] = acc[i] * scale;
}}

static inline void store_row_soon(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count) {{
    for (int64_t i = 0; i < count; i += 16)
        __builtin_prefetch(env->c + b * env->plane + m * env->pitch + n + i);
}}

{kernel}

/* A pool of one helper: it spins for work between start and stop, and lets others by if it takes long. */
static inline void pass_time(int32_t *spins) {{
    if (++*spins > 4096)
        sched_yield();
}}

static struct {{
    sx_body body; void *arg; int64_t count, grain;
    int64_t next __attribute__((aligned(64)));
    int32_t round, done, stop;
    pthread_t thread;
}} pool;

static void work(void) {{
    for (;;) {{
        const int64_t begin = __atomic_fetch_add(&pool.next, pool.grain, __ATOMIC_RELAXED);
        if (begin >= pool.count)
            return;
        const int64_t end = begin + pool.grain;
        pool.body(pool.arg, begin, end < pool.count ? end : pool.count);
    }}
}}

static void *helper(void *unused) {{
    int32_t seen = 0;
    (void)unused;
    for (;;) {{
        for (int32_t spins = 0; __atomic_load_n(&pool.round, __ATOMIC_ACQUIRE) == seen; pass_time(&spins))
            if (__atomic_load_n(&pool.stop, __ATOMIC_ACQUIRE))
                return 0;
        seen++;
        work();
        __atomic_store_n(&pool.done, 1, __ATOMIC_RELEASE);
    }}
}}

__attribute__((visibility("default"))) void start(void) {{ pool.round = pool.stop = 0; pthread_create(&pool.thread, 0, helper, 0); }}

__attribute__((visibility("default"))) void stop(void) {{
    __atomic_store_n(&pool.stop, 1, __ATOMIC_RELEASE);
    pthread_join(pool.thread, 0);
}}

static void threaded(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {{
    (void)run;
    pool.body = body, pool.arg = arg, pool.count = count, pool.grain = grain, pool.next = 0, pool.done = 0;
    __atomic_fetch_add(&pool.round, 1, __ATOMIC_RELEASE);
    work();
    for (int32_t spins = 0; !__atomic_load_n(&pool.done, __ATOMIC_ACQUIRE);)
        pass_time(&spins);
}}

static void in_order(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {{
    (void)run;
    for (int64_t i = 0; i < count; i += grain)
        body(arg, i, i + grain < count ? i + grain : count);
}}

static void reversed(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {{
    (void)run;
    for (int64_t i = (count - 1) / grain * grain; i >= 0; i -= grain)
        body(arg, i, i + grain < count ? i + grain : count);
}}

__attribute__((visibility("default"))) void call(int64_t order, void *const *p, int64_t pitch, int64_t plane, const int64_t *n) {{
    sx_run run = {{.parallel = order == 0 ? in_order : order == 1 ? reversed : threaded, .threads = order == 2 ? 2 : 1}};
    struct env env = {{p[0], pitch, plane, 1}};
    {name}(&run, &env, p[1], p[2], p[3], n);
}}
"""


@dataclass
class Kernel:
    """A compiled kernel: `call(order, c, a, b, scratch, sizes)`."""

    library: ctypes.CDLL

    def start(self) -> None:
        self.library.start()

    def stop(self) -> None:
        self.library.stop()

    def call(
        self,
        order: int,
        c: NDArray[np.generic],
        a: NDArray[np.generic],
        b: NDArray[np.generic],
        scratch: NDArray[np.generic] | None = None,
        sizes: Sequence[int] = (),
    ) -> None:
        """Compute into `c`, whose last axis is the columns and the one before it the rows."""
        self.prepared(order, c, a, b, scratch, sizes)()

    def prepared(
        self,
        order: int,
        c: NDArray[np.generic],
        a: NDArray[np.generic],
        b: NDArray[np.generic],
        scratch: NDArray[np.generic] | None = None,
        sizes: Sequence[int] = (),
    ) -> Callable[[], None]:
        """The call without the cost of its arguments, for timing; the arrays must outlive it."""
        pointers = (ctypes.c_void_p * 4)(
            *[x.ctypes.data if x is not None else None for x in (c, a, b, scratch)]
        )
        numbers = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
        pitch, plane = c.shape[-1], c.shape[-1] * c.shape[-2]
        function = self.library.call
        function.restype = None

        def run() -> None:
            function(
                ctypes.c_int64(order),
                pointers,
                ctypes.c_int64(pitch),
                ctypes.c_int64(plane),
                numbers,
            )

        return run


def compile_kernel(
    name: str,
    kernel: str,
    folder: Path,
    value: str = "float",
    flags: Sequence[str] | None = None,
) -> Kernel:
    """The kernel `name` as a loaded library, compiled as those of a model are; `flags` instead of this CPU's."""
    toolchain = find_toolchain(read_environment())
    source = _HOST.format(kernel=kernel, name=name, value=value)
    made, library = folder / f"{name}.o", folder / f"{name}.so"
    compile_object(toolchain, source, made, host_cpu().flags if flags is None else flags, SUPPORT)
    link_library(toolchain, [made], library)
    return Kernel(ctypes.CDLL(str(library)))
