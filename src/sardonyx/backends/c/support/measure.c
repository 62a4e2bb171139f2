/* Measuring: the clock of a profile, and what this machine does at its best.
 *
 * SX_LANES is the number of floats in a vector register.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <time.h>

enum {
    CHAINS = 12,      /* sums that do not wait for each other: more than one multiply-add takes cycles, times two units */
    ROUNDS = 1 << 14, /* of a chunk: some 50 microseconds */
    SPAN = 1 << 18,   /* floats of a chunk that is read */
    SIDE = 1 << 9,    /* of a chunk that is turned: SIDE * SIDE = SPAN */
    BLOCK = 16,       /* a side of what is turned at a time: its rows and columns are whole cache lines */
    REPEATS = 20,     /* the best one counts */
    STARTS = 200      /* of a job of nothing: the best of so many */
};

typedef float vector __attribute__((vector_size(4 * SX_LANES), aligned(4)));

/* Where it is one instruction, it accumulates; where it is two, neither may be shared between chains. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MULTIPLY_ADD(sum, a, b) ((a) * (b) + (sum))
#else
#define MULTIPLY_ADD(sum, a, b) ((sum) * (a) + (b))
#endif

struct work {
    const float *data;
    float *sums; /* one a chunk, so that nothing is optimised away */
    float factor, term;
};

SX_EXPORT int64_t sx_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static float total(const vector *chains, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++)
        for (int lane = 0; lane < SX_LANES; lane++)
            sum += chains[i][lane];
    return sum;
}

static void multiply_add(void *arg, int64_t begin, int64_t end) {
    const struct work *work = arg;
    const vector term = (vector){0} + work->term;
    /* Loaded anew in every round, so that the product is computed in every round too. */
    volatile vector factor = (vector){0} + work->factor;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        vector chains[CHAINS];
        for (int i = 0; i < CHAINS; i++)
            chains[i] = term * (float)i;
        for (int64_t round = 0; round < ROUNDS; round++) {
            const vector now = factor;
            for (int i = 0; i < CHAINS; i++)
                chains[i] = MULTIPLY_ADD(chains[i], now, term);
        }
        work->sums[chunk] = total(chains, CHAINS);
    }
}

static void read_all(void *arg, int64_t begin, int64_t end) {
    const struct work *work = arg;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const float *data = work->data + chunk * SPAN;
        vector chains[4] = {{0}, {0}, {0}, {0}};
        for (int64_t at = 0; at < SPAN; at += 4 * SX_LANES)
            for (int i = 0; i < 4; i++)
                chains[i] += *(const vector *)(data + at + i * SX_LANES);
        work->sums[chunk] = total(chains, 4);
    }
}

static void turn_all(void *arg, int64_t begin, int64_t end) {
    const struct work *work = arg;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const float *data = work->data + chunk * SPAN;
        float *turned = work->sums + chunk * SPAN;
        for (int64_t row = 0; row < SIDE; row += BLOCK)
            for (int64_t column = 0; column < SIDE; column += BLOCK)
                for (int64_t i = row; i < row + BLOCK; i++)
                    for (int64_t j = column; j < column + BLOCK; j++)
                        turned[j * SIDE + i] = data[i * SIDE + j];
    }
}

static void touch(void *arg, int64_t begin, int64_t end) {
    const struct work *work = arg;
    for (int64_t chunk = begin; chunk < end; chunk++)
        work->sums[chunk] = (float)chunk;
}

/* The shortest time of a job of so many chunks, in nanoseconds. */
static int64_t shortest(sx_run *run, int64_t chunks, sx_body body, struct work *work, int repeats) {
    int64_t best = INT64_MAX;
    for (int repeat = 0; repeat < repeats; repeat++) {
        const int64_t begin = sx_clock();
        run->parallel(run, chunks, 1, body, work);
        const int64_t took = sx_clock() - begin;
        best = took < best ? took : best;
    }
    return best > 0 ? best : 1;
}

/* Float32 operations in a second: a multiply-add is two. `sums` has room for one float a chunk. */
SX_EXPORT double sx_most_flops(sx_run *run, int64_t chunks, float *sums) {
    struct work work = {0, sums, 0.75f, 0.25f};
    const int64_t took = shortest(run, chunks, multiply_add, &work, REPEATS);
    return 2e9 * CHAINS * SX_LANES * ROUNDS * (double)chunks / (double)took;
}

/* Bytes that are read from memory in a second; `data` should be larger than any cache. */
SX_EXPORT double sx_most_bytes(sx_run *run, int64_t chunks, float *sums, const float *data) {
    struct work work = {data, sums, 0, 0};
    const int64_t took = shortest(run, chunks, read_all, &work, REPEATS);
    return 1e9 * sizeof(float) * SPAN * (double)chunks / (double)took;
}

/* Bytes that are read and written in a second where rows become columns; `turned` is as large as `data`. */
SX_EXPORT double sx_most_carried(sx_run *run, int64_t chunks, float *turned, const float *data) {
    struct work work = {data, turned, 0, 0};
    const int64_t took = shortest(run, chunks, turn_all, &work, REPEATS);
    return 2e9 * sizeof(float) * SPAN * (double)chunks / (double)took;
}

/* Jobs in a second that do next to nothing: one float a thread. `sums` has room for them. */
SX_EXPORT double sx_most_launches(sx_run *run, int64_t chunks, float *sums) {
    struct work work = {0, sums, 0, 0};
    return 1e9 / (double)shortest(run, chunks, touch, &work, STARTS);
}

SX_EXPORT int64_t sx_span(void) { return SPAN; }
