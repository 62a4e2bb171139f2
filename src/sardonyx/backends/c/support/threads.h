/* What the process offers to a run: threads and memory for late buffers. Workers compute in the floating-point mode that
 * their caller is in, so an answer does not depend on which thread computed it.
 *
 *     sx_pool *pool = sx_pool_create(threads, spin);
 *     sx_run run = {.parallel = sx_parallel, .allocate = sx_allocate, .pool = pool, .threads = threads, ...};
 *     ... kernels ...
 *     sx_release(&run);
 */
#ifndef SX_THREADS_H
#define SX_THREADS_H

#include "abi.h"

#ifndef SX_EXPORT
#define SX_EXPORT __attribute__((visibility("default")))
#endif

typedef struct sx_pool sx_pool;

/* A pool for `threads` threads, the caller among them. Workers start at the first job, and again
 * at the first job in the child of a fork: a pool stays good there. Idle workers, and a caller
 * that waits for the last of them, spin for `spin` nanoseconds before they sleep. NULL if there is
 * no memory. */
SX_EXPORT sx_pool *sx_pool_create(int32_t threads, int64_t spin);

/* Whether this process may use tile registers (AMX). Linux grants them on request: to all threads, from then on. A
 * pool asks for them when it is created, so that kernels need not. */
SX_EXPORT int32_t sx_tiles_granted(void);

/* Ends the workers. No run may be using the pool. */
SX_EXPORT void sx_pool_destroy(sx_pool *pool);

/* For sx_run.parallel. The work is done by the calling thread alone where there is one chunk, one
 * thread or no pool, and where the pool is busy: with another caller's job, or with the very job
 * that this call is made from. */
SX_EXPORT void sx_parallel(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg);

/* For sx_run.look: a run that takes longer than a moment pauses now and then. */
SX_EXPORT int32_t sx_look(sx_run *run);

/* For sx_run.allocate: aligned to 64 bytes, counted against run->budget. Any thread may call it. */
SX_EXPORT void *sx_allocate(sx_run *run, int64_t bytes);

/* Gives back all that sx_allocate handed out to this run. */
SX_EXPORT void sx_release(sx_run *run);

#endif
