/* The thread pool of the process: one job at a time, shared by its caller and the workers.
 *
 * A job's chunks are cut into shares, one after the other. A thread begins with its own, the same at every job, and then
 * helps with the others: what it read or wrote in one loop is still in its cache when the next one comes by. A loop that goes
 * over more than a cache holds, again and again, finds some of it there if it turns every time: then shares are claimed
 * from their ends.
 *
 *     caller    take the pool, write the job, open seats, wake sleepers | claim chunks | close, wait
 *     worker    spin or sleep until there is a seat, sit down           | claim chunks | stand up
 *
 * Workers that come too late find no seat and are not waited for. All of a job's coming and going
 * is one word, so that no two views of it can disagree:
 *
 *     state = QUIT | WAITING | seats left (12 bits) | workers at work (12 bits)
 *
 * A job is written while nobody sits (the pool is taken, no seats, no workers), and read by those
 * who sit alone. Every step after its opening is a read-modify-write of `state`, so whoever sits
 * down sees the whole job, and the caller that sees the last one stand up sees all they wrote.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#if defined(__linux__) && !defined(SX_CONDITION_VARIABLES)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SX_FUTEX
#endif

enum {
    LINE = 64,            /* bytes that two cores must not share without need */
    MOST_WORKERS = 1023,
    STACK = 1 << 20,
    PAUSES_A_LOOK = 32,   /* pauses between two looks at the clock */
    MOST_SHARES = 16,     /* more threads than this begin two or more to a share */
    WAKES_AT_ONCE = 2,    /* a thread wakes two, each of these two more */
    COARSE_TICK = 10 * 1000 * 1000,
    PAUSE_AFTER = 50 * 1000 * 1000
};

/* A third of the price, and behind the exact clock by no more than a tick of the kernel. */
#ifdef CLOCK_MONOTONIC_COARSE
#define COARSE CLOCK_MONOTONIC_COARSE
#else
#define COARSE CLOCK_MONOTONIC
#endif

#define ACTIVE 0xfffu
#define SEAT 0x1000u
#define SEATS 0xfff000u
#define WAITING 0x40000000u
#define QUIT 0x80000000u

struct job {
    sx_run *run;
    sx_body body;
    void *arg;
    int64_t count, grain, chunks;
    int32_t shares, backward;
    uint32_t mode;
};

struct share {
    _Alignas(LINE) int64_t next; /* its first chunk that nobody has claimed, counted from its end where the job goes backward */
};

struct worker {
    sx_pool *pool;
    int32_t number; /* from 1: the caller is 0 */
    pthread_t thread;
};

struct sx_pool {
    _Alignas(LINE) uint32_t state;
    struct share shares[MOST_SHARES];
    _Alignas(LINE) struct job job;
    _Alignas(LINE) uint32_t taken; /* by a caller */
    uint32_t finished;             /* what a WAITING caller sleeps on */
    _Alignas(LINE) uint32_t sleepers;
    int32_t limit;                 /* workers that there may be */
    int32_t workers;               /* workers that there are; -1 before the first job */
    int64_t spin;
    struct worker *staff;
    sx_pool *neighbour;            /* the next pool of the process */
};

/* ---- the floating-point mode ---- */

#if defined(__aarch64__)
static uint32_t get_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (uint32_t)mode;
}

static void set_mode(uint32_t mode) {
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)mode) : "memory");
}
#elif defined(__x86_64__) || defined(__SSE__)
static uint32_t get_mode(void) {
    return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the flags of exceptions that happened */
}

static void set_mode(uint32_t mode) {
    __builtin_ia32_ldmxcsr(mode);
}
#else
static uint32_t get_mode(void) {
    return 0;
}

static void set_mode(uint32_t mode) {
    (void)mode;
}
#endif

/* ---- tile registers ---- */

int32_t sx_tiles_granted(void) {
#if defined(__x86_64__) && defined(SX_FUTEX)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM; the state component of the tiles' contents */
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return 0;
#endif
}

/* ---- time ---- */

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int is_past(int64_t deadline) {
    /* Far from the deadline the coarse clock is enough. */
    return read_clock(COARSE) >= deadline - COARSE_TICK && read_clock(CLOCK_MONOTONIC) >= deadline;
}

static int must_stop(sx_run *run) {
    int32_t stop = __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
    if (stop == SX_OK && run->deadline != 0 && is_past(run->deadline)) {
        /* Unless it is cancelled in this very moment: the first reason is kept. */
        __atomic_compare_exchange_n(&run->stop, &stop, SX_DEADLINE, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return 1;
    }
    return stop != SX_OK;
}

int32_t sx_look(sx_run *run) {
    if (must_stop(run))
        return __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
    int64_t now = read_clock(COARSE);
    if (run->since == 0)
        run->since = now;
    return now - run->since < PAUSE_AFTER ? SX_OK : SX_PAUSED;
}

struct spin {
    int64_t budget, end;
    uint32_t pauses;
};

static int keep_spinning(struct spin *spin) {
#if defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` does nothing on most cores */
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
    if (++spin->pauses % PAUSES_A_LOOK != 0)
        return 1;
    int64_t now = read_clock(CLOCK_MONOTONIC);
    if (spin->end == 0)
        spin->end = now + spin->budget;
    return now < spin->end;
}

/* ---- sleep: until somebody changes `word` from `value` and then wakes; it may return early ---- */

#ifdef SX_FUTEX
static void sleep_on(uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(uint32_t *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
#else
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

static void sleep_on(uint32_t *word, uint32_t value) {
    pthread_mutex_lock(&bed);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
        pthread_cond_wait(&bell, &bed);
    pthread_mutex_unlock(&bed);
}

static void wake(uint32_t *word, int count) {
    (void)word, (void)count; /* one bell for all: those who are not meant go back to sleep */
    pthread_mutex_lock(&bed);
    pthread_cond_broadcast(&bell);
    pthread_mutex_unlock(&bed);
}
#endif

/* Wake as many as have a seat to take, beyond those who are up and look for one themselves. */
static void wake_sleepers(sx_pool *pool, uint32_t state) {
    int32_t seats = (int32_t)((state & SEATS) / SEAT);
    if (seats == 0)
        return;
    int32_t sleepers = (int32_t)__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST);
    int32_t up = pool->workers - sleepers - (int32_t)(state & ACTIVE);
    int32_t missing = seats - up;
    if (sleepers > 0 && missing > 0)
        wake(&pool->state, missing < WAKES_AT_ONCE ? missing : WAKES_AT_ONCE);
}

/* ---- work ---- */

/* The first chunk of a share, and with it the end of the one before. */
static int64_t first_of(const struct job *job, int32_t share) {
    return job->chunks / job->shares * share + job->chunks % job->shares * share / job->shares;
}

static int claim_share(const struct job *job, int64_t *next, int32_t share) {
    int64_t first = first_of(job, share), end = first_of(job, share + 1);
    while (__atomic_load_n(next, __ATOMIC_RELAXED) < end) {
        int64_t chunk = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
        if (chunk >= end)
            return 1;
        if (must_stop(job->run))
            return 0;
        if (job->backward)
            chunk = first + end - 1 - chunk;
        int64_t begin = chunk * job->grain;
        int64_t left = job->count - begin;
        job->body(job->arg, begin, begin + (left < job->grain ? left : job->grain));
    }
    return 1;
}

static void claim_chunks(const struct job *job, struct share *shares, int32_t number) {
    for (int32_t i = 0; i < job->shares; i++) {
        int32_t share = (number + i) % job->shares;
        if (!claim_share(job, &shares[share].next, share))
            return;
    }
}

/* Returns a state with seats, or with QUIT. */
static uint32_t await_seat(sx_pool *pool) {
    struct spin spin = {.budget = pool->spin};
    for (;;) {
        uint32_t state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
        if (state & (SEATS | QUIT))
            return state;
        if (keep_spinning(&spin))
            continue;
        /* A caller opens seats and then looks for sleepers; a worker counts itself a sleeper and
         * then looks for seats. All four are sequentially consistent: one of the two sees the other. */
        __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
        state = __atomic_load_n(&pool->state, __ATOMIC_SEQ_CST);
        if (!(state & (SEATS | QUIT)))
            sleep_on(&pool->state, state);
        __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
        /* Where it was woken too late for a job, the next one is near. */
        spin = (struct spin){.budget = pool->spin};
    }
}

static void stand_up(sx_pool *pool) {
    uint32_t state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED), after;
    do {
        /* Nothing is left to claim: nobody need sit down any more. */
        after = (state & ~SEATS) - 1;
        if (after == WAITING)
            after = 0;
    } while (!__atomic_compare_exchange_n(&pool->state, &state, after, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if (after == 0 && (state & WAITING)) {
        __atomic_store_n(&pool->finished, 1, __ATOMIC_RELEASE);
        wake(&pool->finished, 1);
    }
}

static void *work(void *arg) {
    const struct worker *self = arg;
    sx_pool *pool = self->pool;
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "sardonyx");
#elif defined(__APPLE__)
    pthread_setname_np("sardonyx");
#endif
    uint32_t mode = get_mode();
    for (;;) {
        uint32_t state = await_seat(pool);
        if (state & QUIT)
            return NULL;
        uint32_t seated = state - SEAT + 1;
        if (!__atomic_compare_exchange_n(&pool->state, &state, seated, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        wake_sleepers(pool, seated);
        if (mode != pool->job.mode)
            set_mode(mode = pool->job.mode);
        claim_chunks(&pool->job, pool->shares, self->number);
        stand_up(pool);
    }
}

static void await_workers(sx_pool *pool) {
    uint32_t state = __atomic_and_fetch(&pool->state, ~SEATS, __ATOMIC_ACQ_REL);
    struct spin spin = {.budget = pool->spin};
    while (state & ACTIVE) {
        if (keep_spinning(&spin)) {
            state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
            continue;
        }
        __atomic_store_n(&pool->finished, 0, __ATOMIC_RELAXED);
        if (__atomic_fetch_or(&pool->state, WAITING, __ATOMIC_ACQ_REL) & ACTIVE)
            while (!__atomic_load_n(&pool->finished, __ATOMIC_ACQUIRE))
                sleep_on(&pool->finished, 0);
        else
            __atomic_and_fetch(&pool->state, ~WAITING, __ATOMIC_RELAXED);
        return;
    }
}

/* ---- the life of a pool ---- */

/* As many workers as the system grants; with none, callers work alone. */
static void start_workers(sx_pool *pool) {
    pthread_attr_t attributes;
    sigset_t all, before;
    pool->workers = 0;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread is born with the mask of its maker */
    while (pool->workers < pool->limit) {
        struct worker *next = &pool->staff[pool->workers];
        *next = (struct worker){.pool = pool, .number = pool->workers + 1};
        if (pthread_create(&next->thread, &attributes, work, next) != 0)
            break;
        pool->workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static int take(sx_pool *pool) {
    return __atomic_load_n(&pool->taken, __ATOMIC_RELAXED) == 0 &&
           __atomic_exchange_n(&pool->taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static void give_back(sx_pool *pool) {
    __atomic_store_n(&pool->taken, 0, __ATOMIC_RELEASE);
}

void sx_parallel(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {
    if (count <= 0)
        return;
    int32_t backward = grain < 0;
    if (backward)
        grain = -grain;
    if (grain == 0)
        grain = 1;
    struct job job = {run, body, arg, count, grain, count / grain + (count % grain != 0), 1, backward, 0};
    sx_pool *pool = run->pool;
    int64_t helpers = run->threads < job.chunks ? run->threads - 1 : job.chunks - 1;
    if (helpers < 1 || pool == NULL || pool->limit == 0 || !take(pool)) {
        int64_t next = 0;
        claim_share(&job, &next, 0);
        return;
    }
    if (pool->workers < 0)
        start_workers(pool);
    if (helpers > pool->workers)
        helpers = pool->workers;
    job.mode = get_mode();
    job.shares = (int32_t)(helpers < MOST_SHARES ? helpers + 1 : MOST_SHARES);
    pool->job = job;
    for (int32_t share = 0; share < job.shares; share++)
        __atomic_store_n(&pool->shares[share].next, first_of(&job, share), __ATOMIC_RELAXED);
    uint32_t open = (uint32_t)helpers * SEAT;
    __atomic_store_n(&pool->state, open, __ATOMIC_SEQ_CST);
    wake_sleepers(pool, open);
    claim_chunks(&pool->job, pool->shares, 0);
    await_workers(pool);
    give_back(pool);
}

static pthread_mutex_t neighbourhood = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sx_pool *first_pool;

static void lock_pools(void) {
    pthread_mutex_lock(&neighbourhood);
}

static void unlock_pools(void) {
    pthread_mutex_unlock(&neighbourhood);
}

static void rest(sx_pool *pool) {
    pool->state = 0;
    pool->taken = 0;
    pool->sleepers = 0;
    pool->workers = -1;
}

/* The child of a fork has one thread. Whatever the others were doing, their pools are at rest. */
static void rest_pools(void) {
    neighbourhood = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
#ifndef SX_FUTEX
    bed = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    bell = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
#endif
    for (sx_pool *pool = first_pool; pool != NULL; pool = pool->neighbour)
        rest(pool);
}

/* glibc keeps pthread_atfork itself out of its shared library; this is what it calls (and what the
 * Linux Standard Base names). The last argument would be the library to forget the handlers with:
 * one with threads inside is never unloaded. */
#if defined(SX_UNLOADABLE) /* a handler would outlive the library: there is none, and no run in the child of a fork */
#define pthread_atfork(prepare, parent, child) ((void)(prepare), (void)(parent), (void)(child))
#elif defined(__GLIBC__)
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
#define pthread_atfork(prepare, parent, child) __register_atfork(prepare, parent, child, NULL)
#endif

static void watch_forks(void) {
    pthread_atfork(lock_pools, unlock_pools, rest_pools);
}

sx_pool *sx_pool_create(int32_t threads, int64_t spin) {
    void *memory;
    int32_t limit = threads < 1 ? 0 : threads - 1 < MOST_WORKERS ? threads - 1 : MOST_WORKERS;
    if (posix_memalign(&memory, LINE, sizeof(sx_pool)) != 0)
        return NULL;
    sx_pool *pool = memory;
    *pool = (sx_pool){.limit = limit, .spin = spin};
    pool->staff = calloc((size_t)limit + 1, sizeof *pool->staff);
    if (pool->staff == NULL) {
        free(pool);
        return NULL;
    }
    rest(pool);
    sx_tiles_granted();
    pthread_once(&once, watch_forks);
    lock_pools();
    pool->neighbour = first_pool;
    first_pool = pool;
    unlock_pools();
    return pool;
}

void sx_pool_destroy(sx_pool *pool) {
    __atomic_fetch_or(&pool->state, QUIT, __ATOMIC_SEQ_CST);
    wake(&pool->state, MOST_WORKERS);
    for (int32_t i = 0; i < pool->workers; i++)
        pthread_join(pool->staff[i].thread, NULL);
    lock_pools();
    sx_pool **link = &first_pool;
    while (*link != pool)
        link = &(*link)->neighbour;
    *link = pool->neighbour;
    unlock_pools();
    free(pool->staff);
    free(pool);
}
