/* Index arithmetic and the words of printed kernels. */
#ifndef SX_INDEX_H
#define SX_INDEX_H

#include <stdint.h>

#if defined(__GNUC__)
/* Loops that folded away leave their names behind; and gcc warns of loops that it has itself proved never to run. */
#pragma GCC diagnostic ignored "-Wunused-variable"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#endif
#endif

/* Iterations do not depend on each other, or only through sums that may be reassociated. */
#if defined(__clang__)
/* Unrolling is off: clang would unroll short loops before it could vectorise them. */
#define SX_VECTOR _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
/* The same for longer loops: several vectors at a time hide how long each step takes. So many that their numbers and some
 * constants share the registers, and that compilers take what is left in vectors too. */
#if defined(__aarch64__)
#define SX_VECTORS _Pragma("clang loop vectorize(assume_safety) interleave_count(4) unroll(disable)")
#elif defined(__x86_64__)
#define SX_VECTORS _Pragma("clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)")
#else
#define SX_VECTORS SX_VECTOR
#endif
/* The same for sums. */
#define SX_INTERLEAVED _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
/* And for short ones, which clang would write out, one addition behind the other. */
#define SX_SHORT_SUMS _Pragma("clang loop vectorize(assume_safety) interleave_count(4) unroll(disable)")
/* Loops of so many iterations that, where vectors have 16 lanes, `count` of them at a time are better than what is usual
 * otherwise; or that they are `count` vectors whose last ones are masked. No fmax may be reduced under a mask: clang 22 makes a
 * loop of it that never ends. */
#if defined(__AVX512F__)
#define SX_PRAGMA(words) _Pragma(#words)
#define SX_SIXTEENS(count, otherwise) \
    SX_PRAGMA(clang loop vectorize(assume_safety) interleave_count(count))
#define SX_MASKED(count, otherwise) \
    SX_PRAGMA(clang loop vectorize(assume_safety) vectorize_predicate(enable) interleave_count(count) unroll(disable))
#else
#define SX_SIXTEENS(count, otherwise) otherwise
#define SX_MASKED(count, otherwise) otherwise
#endif
/* So many results at a time: compilers count by the widest type, and bytes that are made of floats come four at a time. */
#define SX_SIXTEEN _Pragma("clang loop vectorize(assume_safety) vectorize_width(16) unroll(disable)")
#define SX_EIGHT _Pragma("clang loop vectorize(assume_safety) vectorize_width(8) unroll(disable)")
/* A short loop over an array on the stack: unrolled, so that the array need not be in memory at all. */
#define SX_REGISTERS _Pragma("clang loop vectorize(assume_safety)")
#define SX_UNROLL _Pragma("clang loop unroll(full)")
#define SX_REASSOCIATE _Pragma("clang fp reassociate(on)")
#else
#define SX_VECTOR _Pragma("GCC ivdep")
#define SX_VECTORS _Pragma("GCC ivdep")
#define SX_INTERLEAVED _Pragma("GCC ivdep")
#define SX_SHORT_SUMS _Pragma("GCC ivdep")
#define SX_SIXTEENS(count, otherwise) otherwise
#define SX_MASKED(count, otherwise) otherwise
#define SX_SIXTEEN _Pragma("GCC ivdep")
#define SX_EIGHT _Pragma("GCC ivdep")
#define SX_REGISTERS _Pragma("GCC ivdep")
#define SX_UNROLL _Pragma("GCC unroll 16")
#define SX_REASSOCIATE
#endif

/* Rounded towards minus infinity, as the sizes of the model are. */
static inline int64_t sx_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}

static inline int64_t sx_floor_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}

static inline int64_t sx_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t sx_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* The size that two dimensions broadcast to. */
static inline int64_t sx_broadcast(int64_t a, int64_t b) { return a == 1 ? b : a; }

#endif
