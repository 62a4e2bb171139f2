/* What the generated part of an artifact (model.c) and its fixed part (core.c) know of each other. */
#ifndef SX_CORE_H
#define SX_CORE_H

#include "abi.h"

/* The sizes that follow from the dynamic dimensions, with the first thing that was wrong among them. */
typedef struct {
    const char *wrong; /* NULL is nothing */
    int64_t a, b;      /* the values that do not fit */
} sx_sizing;

/* No size of a real machine is near it, and sums of two such still fit. */
#define SX_MOST (INT64_MAX / 4)

static inline int64_t sx_refuse(sx_sizing *sizing, const char *wrong, int64_t a, int64_t b) {
    if (sizing->wrong == 0) {
        sizing->wrong = wrong;
        sizing->a = a;
        sizing->b = b;
    }
    return 0;
}

static inline int64_t sx_times(sx_sizing *sizing, int64_t a, int64_t b) {
    const int64_t most = a == 0 ? SX_MOST : SX_MOST / (a < 0 ? -a : a);
    if (b > most || b < -most) return sx_refuse(sizing, "a size would be {a} times {b}, past 64 bits", a, b);
    return a * b;
}

static inline int64_t sx_plus(sx_sizing *sizing, int64_t a, int64_t b) {
    if (a + b > SX_MOST || a + b < -SX_MOST) return sx_refuse(sizing, "a size would be {a} plus {b}, past 64 bits", a, b);
    return a + b;
}

/* Rounded towards minus infinity. */
static inline int64_t sx_quotient(sx_sizing *sizing, int64_t a, int64_t b) {
    if (b == 0) return sx_refuse(sizing, "a size divides {a} by {b}", a, b);
    return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}

static inline int64_t sx_rest(sx_sizing *sizing, int64_t a, int64_t b) {
    if (b == 0) return sx_refuse(sizing, "a size divides {a} by {b}", a, b);
    return a % b + (((a % b != 0) & ((a < 0) != (b < 0))) ? b : 0);
}

static inline int64_t sx_most_of(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t sx_least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t sx_joined(sx_sizing *sizing, const char *wrong, int64_t a, int64_t b) {
    if (a != b && a != 1 && b != 1) return sx_refuse(sizing, wrong, a, b);
    return a == 1 ? b : a;
}

/* Where a tensor is: the caller's input or output of that number, a constant, or a slot of the arena. */
enum { SX_INPUT, SX_OUTPUT, SX_CONSTANT, SX_SLOT };
typedef struct {
    int32_t kind, number;
} sx_place;

/* Steps in which a slot is in use, the last one included. */
typedef struct {
    int32_t first, last;
} sx_life;

/* How an input's dimension is bound: a size, the dynamic dimension of that number, or whatever follows from others. */
enum { SX_FIXED, SX_DYNAMIC, SX_FOLLOWS };
typedef struct {
    int32_t kind;
    int64_t value;
} sx_axis;

/* The sizes that a dynamic dimension may have, both included. */
typedef struct {
    int64_t least, most;
} sx_range;

/* What a step's checks say, and of which nodes. */
typedef struct {
    int32_t step;
    const char *where;
    const char *const *reasons;
} sx_report;

#endif
