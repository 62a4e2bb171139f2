/* The thread pool under stress: `threads_stress <scenario> <threads> <rounds>` ends with 0, or says
 * which check did not hold and aborts. A program, or a library whose `main` is called. One scenario a function; the table is at the end. */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __func__, __LINE__, #condition);   \
            abort();                                                                  \
        }                                                                             \
    } while (0)

enum { MOST = 4096, SPIN = 20000 };

static int threads, rounds;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void pass_time(int64_t nanoseconds) {
    int64_t end = now() + nanoseconds;
    while (now() < end) {
    }
}

static sx_run a_run(sx_pool *pool) {
    return (sx_run){.parallel = sx_parallel, .allocate = sx_allocate, .pool = pool, .budget = -1, .threads = threads};
}

static unsigned next_random(unsigned *seed) {
    return *seed = *seed * 1664525u + 1013904223u;
}

/* What one job does: plain writes, so that a sanitizer sees any that is not ordered. */
struct sheet {
    sx_run *run;
    int64_t count, grain;
    int32_t hits[MOST];
    int64_t begins[MOST]; /* where the chunk of each element began */
    int64_t pause;
};

static void fill(void *arg, int64_t begin, int64_t end) {
    struct sheet *sheet = arg;
    CHECK(begin % sheet->grain == 0 && begin < end && end <= sheet->count);
    CHECK(end - begin == sheet->grain || end == sheet->count);
    if (sheet->pause)
        pass_time(sheet->pause);
    for (int64_t i = begin; i < end; i++) {
        sheet->hits[i]++;
        sheet->begins[i] = begin;
    }
}

static void fill_sheet(struct sheet *sheet, sx_run *run, int64_t count, int64_t grain) {
    sheet->run = run, sheet->count = count, sheet->grain = grain < 0 ? -grain : grain;
    memset(sheet->hits, 0, sizeof sheet->hits);
    run->parallel(run, count, grain, fill, sheet);
}

static void check_sheet(const struct sheet *sheet) {
    for (int64_t i = 0; i < MOST; i++)
        CHECK(sheet->hits[i] == (i < sheet->count));
    for (int64_t i = 0; i < sheet->count; i++)
        CHECK(sheet->begins[i] == i / sheet->grain * sheet->grain);
}

/* ---- every element once, with the same borders, whatever the sizes ---- */

static void many_sizes(sx_pool *pool, unsigned seed) {
    static _Thread_local struct sheet sheet;
    sx_run run = a_run(pool);
    for (int i = 0; i < rounds; i++) {
        unsigned draw = next_random(&seed);
        int64_t count = draw >> 8 & 1 ? draw >> 16 & 15 : (draw >> 16) % MOST;
        int64_t grain = 1 + (next_random(&seed) >> 8) % (count + 3);
        run.threads = 1 + (int32_t)((next_random(&seed) >> 8) % (unsigned)(threads + 1));
        if (i % 16 == 0)
            pass_time(next_random(&seed) % (3 * SPIN)); /* some workers sleep by now, some do not */
        sheet.pause = i % 8 == 0 ? 300 : 0; /* long enough for a worker to be late */
        fill_sheet(&sheet, &run, count, i % 3 == 0 ? -grain : grain);
        check_sheet(&sheet);
    }
}

/* Chunks in the order in which one thread takes them: of a share, by a thread that has it to itself. */
static int64_t seen[MOST], calls;

static void see(void *arg, int64_t begin, int64_t end) {
    (void)arg, (void)end;
    seen[calls++] = begin;
}

static void both_ways(sx_run *run) {
    calls = 0;
    run->parallel(run, 10, 3, see, NULL);
    CHECK(calls == 4 && seen[0] == 0 && seen[1] == 3 && seen[2] == 6 && seen[3] == 9);
    calls = 0;
    run->parallel(run, 10, -3, see, NULL);
    CHECK(calls == 4 && seen[0] == 9 && seen[1] == 6 && seen[2] == 3 && seen[3] == 0);
}

static void sizes(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    many_sizes(pool, 7);
    struct sheet *sheet = calloc(1, sizeof *sheet);
    sx_run run = a_run(pool);
    fill_sheet(sheet, &run, -5, 1);
    sheet->count = 0;
    check_sheet(sheet);
    sheet->count = 10, sheet->grain = 1;
    run.parallel(&run, 10, 0, fill, sheet); /* a grain of 0 is 1 */
    check_sheet(sheet);
    run.pool = NULL;
    both_ways(&run);
    fill_sheet(sheet, &run, 100, 7);
    check_sheet(sheet);
    free(sheet);
    sx_pool_destroy(pool);
}

/* ---- sleep at once, between all jobs: a lost signal would leave the caller alone, a lost end hang it ---- */

static int64_t arrivals;

static void arrive(void *arg, int64_t begin, int64_t end) {
    (void)arg, (void)begin, (void)end;
    __atomic_fetch_add(&arrivals, 1, __ATOMIC_RELAXED);
    int64_t give_up = now() + 20000000000;
    while (__atomic_load_n(&arrivals, __ATOMIC_RELAXED) < threads)
        CHECK(now() < give_up && sched_yield() == 0); /* all must come: nobody else can do their chunk */
}

static void signals(void) {
    sx_pool *pool = sx_pool_create(threads, 0);
    sx_run run = a_run(pool);
    for (int i = 0; i < rounds; i++) {
        arrivals = 0;
        if (i % 4 == 0)
            usleep(50);
        run.parallel(&run, threads, 1, arrive, NULL);
        CHECK(arrivals == threads);
    }
    sx_pool_destroy(pool);
}

/* ---- no more threads than the run may have ---- */

static int32_t at_work, most_at_work;

static void count_workers(void *arg, int64_t begin, int64_t end) {
    (void)arg, (void)begin, (void)end;
    int32_t here = __atomic_add_fetch(&at_work, 1, __ATOMIC_RELAXED);
    int32_t most = __atomic_load_n(&most_at_work, __ATOMIC_RELAXED);
    while (here > most && !__atomic_compare_exchange_n(&most_at_work, &most, here, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    pass_time(2000);
    __atomic_sub_fetch(&at_work, 1, __ATOMIC_RELAXED);
}

static void limits(void) {
    sx_pool *pool = sx_pool_create(8, SPIN);
    sx_run run = a_run(pool);
    for (int i = 0; i < rounds; i++) {
        run.threads = 1 + i % threads;
        most_at_work = 0;
        run.parallel(&run, 32, 1, count_workers, NULL);
        CHECK(most_at_work >= 1 && most_at_work <= run.threads);
    }
    sx_pool_destroy(pool);
}

/* ---- a job inside a job ---- */

static void nest(void *arg, int64_t begin, int64_t end) {
    struct sheet *sheets = arg;
    for (int64_t i = begin; i < end; i++) {
        fill_sheet(&sheets[i], sheets[i].run, 100 + i, 1 + i);
        check_sheet(&sheets[i]);
    }
}

static void nested(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    sx_run run = a_run(pool);
    struct sheet *sheets = calloc(16, sizeof *sheets);
    for (int i = 0; i < 16; i++)
        sheets[i].run = &run;
    for (int i = 0; i < rounds; i++)
        run.parallel(&run, 16, 1 + i % 3, nest, sheets);
    free(sheets);
    sx_pool_destroy(pool);
}

/* ---- several callers at once ---- */

static void *call_often(void *arg) {
    many_sizes(arg, (unsigned)(uintptr_t)&arg);
    return NULL;
}

static void callers(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    pthread_t others[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&others[i], NULL, call_often, pool) == 0);
    call_often(pool);
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
    sx_pool_destroy(pool);
}

/* The second caller does not wait for the first, even where the first is stuck. */

static int32_t stuck, let_go;

static void hold(void *arg, int64_t begin, int64_t end) {
    (void)arg, (void)begin, (void)end;
    __atomic_fetch_add(&stuck, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
        usleep(100);
}

static void *hold_pool(void *arg) {
    sx_run run = a_run(arg);
    run.parallel(&run, 64, 1, hold, NULL);
    return NULL;
}

static void busy(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    sx_run run = a_run(pool);
    struct sheet *sheet = calloc(1, sizeof *sheet);
    pthread_t holder;
    CHECK(pthread_create(&holder, NULL, hold_pool, pool) == 0);
    while (__atomic_load_n(&stuck, __ATOMIC_ACQUIRE) < threads)
        usleep(100);
    for (int i = 0; i < rounds; i++) {
        fill_sheet(sheet, &run, 1 + i % MOST, 5);
        check_sheet(sheet);
    }
    __atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
    pthread_join(holder, NULL);
    free(sheet);
    sx_pool_destroy(pool);
}

/* ---- stop and deadline in the middle of a job ---- */

static int64_t count_hits(const struct sheet *sheet) {
    int64_t hits = 0;
    for (int64_t i = 0; i < MOST; i++)
        hits += sheet->hits[i];
    return hits;
}

static void stop_there(void *arg, int64_t begin, int64_t end) {
    struct sheet *sheet = arg;
    fill(arg, begin, end);
    if (begin >= sheet->count / 2)
        __atomic_store_n(&sheet->run->stop, SX_CANCELLED, __ATOMIC_RELAXED);
}

static void stops(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    struct sheet *sheet = calloc(1, sizeof *sheet);
    for (int i = 0; i < rounds; i++) {
        sx_run run = a_run(pool);
        *sheet = (struct sheet){.run = &run, .count = MOST, .grain = 1, .pause = 100};
        run.parallel(&run, MOST, 1, stop_there, sheet);
        CHECK(run.stop == SX_CANCELLED);
        int64_t hits = count_hits(sheet);
        CHECK(hits > 0 && hits < MOST);
        run.deadline = 1; /* long past: the first reason is kept */
        run.parallel(&run, MOST, 64, fill, sheet);
        CHECK(run.stop == SX_CANCELLED && count_hits(sheet) == hits);
    }
    free(sheet);
    sx_pool_destroy(pool);
}

static void deadlines(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    struct sheet *sheet = calloc(1, sizeof *sheet);
    for (int i = 0; i < rounds; i++) {
        sx_run run = a_run(pool);
        run.deadline = now() + 2000000;
        sheet->pause = 1000000; /* 4 seconds of work for a thread */
        fill_sheet(sheet, &run, MOST, 1);
        CHECK(run.stop == SX_DEADLINE && now() >= run.deadline);
        CHECK(count_hits(sheet) < MOST);
        run = a_run(pool);
        run.deadline = 1; /* also before a single chunk */
        fill_sheet(sheet, &run, 1, 1);
        CHECK(run.stop == SX_DEADLINE && count_hits(sheet) == 0);
        run = a_run(pool);
        run.deadline = now() + 3600000000000;
        sheet->pause = 0;
        fill_sheet(sheet, &run, MOST, 3);
        check_sheet(sheet);
        CHECK(run.stop == SX_OK);
    }
    free(sheet);
    sx_pool_destroy(pool);
}

/* ---- fork, while workers work, spin or sleep ---- */

static int32_t enough;

static void *keep_busy(void *arg) {
    struct sheet *sheet = calloc(1, sizeof *sheet);
    sx_run run = a_run(arg);
    sheet->pause = 500;
    for (int i = 0; !__atomic_load_n(&enough, __ATOMIC_ACQUIRE); i++) {
        fill_sheet(sheet, &run, 200, 1 + i % 5);
        check_sheet(sheet);
        if (i % 8 == 0)
            usleep(200);
    }
    free(sheet);
    return NULL;
}

static void forks(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, keep_busy, pool) == 0);
    for (int i = 0; i < rounds; i++) {
        usleep((unsigned)(i * 37 % 400));
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            int all = threads;
            for (threads = 1; threads <= all; threads++)
                many_sizes(pool, (unsigned)i);
            threads = all;
            arrivals = 0; /* new workers are there, all of them */
            sx_run run = a_run(pool);
            run.parallel(&run, threads, 1, arrive, NULL);
            CHECK(arrivals == threads);
            sx_pool_destroy(pool);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&enough, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    sx_pool_destroy(pool);
}

/* ---- pools come and go ---- */

static void lives(void) {
    struct sheet *sheet = calloc(1, sizeof *sheet);
    for (int i = 0; i < rounds; i++) {
        sx_pool *pool = sx_pool_create(threads, i % 3 * SPIN);
        sx_pool *second = sx_pool_create(2, 0);
        sx_run run = a_run(pool);
        for (int jobs = i % 4; jobs > 0; jobs--) { /* none at all, too */
            fill_sheet(sheet, &run, 50, 1);
            check_sheet(sheet);
        }
        if (i % 5 == 0)
            usleep(100);
        sx_pool_destroy(i % 2 ? pool : second);
        sx_pool_destroy(i % 2 ? second : pool);
    }
    free(sheet);
}

/* ---- late buffers, from many threads ---- */

static void take_memory(void *arg, int64_t begin, int64_t end) {
    sx_run *run = arg;
    for (int64_t i = begin; i < end; i++) {
        char *memory = run->allocate(run, i);
        CHECK(memory != NULL && (uintptr_t)memory % 64 == 0);
        memset(memory, 1, (size_t)i);
    }
}

static void buffers(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    for (int i = 0; i < rounds; i++) {
        sx_run run = a_run(pool);
        run.budget = 499 * 500 / 2 + 10;
        run.parallel(&run, 500, 3, take_memory, &run);
        CHECK(run.error == SX_OK && run.budget == 10);
        CHECK(run.allocate(&run, 10) != NULL && run.budget == 0);
        CHECK(run.allocate(&run, 1) == NULL);
        CHECK(run.error == SX_BUDGET && run.a == 1 && run.b == 0);
        CHECK(run.allocate(&run, -1) == NULL && run.error == SX_BUDGET); /* the first error is kept */
        sx_release(&run);
        CHECK(run.memory == NULL);
        run = a_run(pool);
        CHECK(run.allocate(&run, -8) == NULL && run.error == SX_NO_MEMORY && run.a == -8);
        run.error = SX_OK;
        CHECK(run.allocate(&run, INT64_MAX) == NULL && run.error == SX_NO_MEMORY);
        run.error = SX_OK;
        CHECK(run.allocate(&run, INT64_MAX / 2) == NULL && run.error == SX_NO_MEMORY);
        sx_release(&run);
    }
    sx_pool_destroy(pool);
}

/* ---- workers: their floating-point mode is their caller's, and no signal ends up with them ---- */

static volatile float tiny = 1e-38f;

static void halve(void *arg, int64_t begin, int64_t end) {
    float *halves = arg;
    arrive(NULL, begin, end);
    halves[begin] = tiny * 0.25f;
}

#if defined(__aarch64__)
static uint64_t flush(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" ::"r"(mode | 1u << 24) : "memory");
    return mode;
}

static void keep(uint64_t mode) {
    __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory");
}
#else
static uint64_t flush(void) {
    const uint32_t mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040u);
    return mode;
}

static void keep(uint64_t mode) {
    __builtin_ia32_ldmxcsr((uint32_t)mode);
}
#endif

static void modes(void) {
    sx_pool *pool = sx_pool_create(threads, SPIN);
    float halves[64];
    for (int i = 0; i < rounds; i++) {
        sx_run run = a_run(pool);
        const uint64_t mode = i % 2 ? flush() : 0;
        arrivals = 0;
        run.parallel(&run, threads, 1, halve, halves);
        if (i % 2)
            keep(mode);
        for (int j = 0; j < threads; j++)
            CHECK((halves[j] == 0) == i % 2);
        CHECK(tiny * 0.25f != 0);
    }
    sx_pool_destroy(pool);
}

static pthread_t caller;

static void on_signal(int number) {
    (void)number;
    if (!pthread_equal(pthread_self(), caller))
        abort();
}

static void raise_signal(void *arg, int64_t begin, int64_t end) {
    (void)arg, (void)begin, (void)end;
    kill(getpid(), SIGUSR1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, SIGUSR1) == !pthread_equal(pthread_self(), caller));
    CHECK(sigismember(&mask, SIGINT) == !pthread_equal(pthread_self(), caller));
}

static void signal_masks(void) {
    caller = pthread_self();
    signal(SIGUSR1, on_signal);
    sx_pool *pool = sx_pool_create(threads, SPIN);
    sx_run run = a_run(pool);
    for (int i = 0; i < rounds; i++)
        run.parallel(&run, 64, 1, raise_signal, NULL);
    sx_pool_destroy(pool);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"sizes", sizes},         {"signals", signals}, {"limits", limits},   {"nested", nested},
    {"callers", callers},     {"busy", busy},       {"stops", stops},     {"deadlines", deadlines},
    {"forks", forks},         {"lives", lives},     {"buffers", buffers}, {"modes", modes},
    {"signal_masks", signal_masks},
};

SX_EXPORT int main(int count, char **arguments) {
    CHECK(count == 4);
    threads = atoi(arguments[2]);
    rounds = atoi(arguments[3]);
    CHECK(threads >= 1 && threads <= 64 && rounds > 0);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, arguments[1]) == 0) {
            scenarios[i].run();
            return 0;
        }
    fprintf(stderr, "no scenario is called %s\n", arguments[1]);
    return 2;
}
