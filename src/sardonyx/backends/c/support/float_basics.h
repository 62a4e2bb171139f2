/* Float operations that need no approximation: exact, or rounded once. For f32 and f64 alike. */
#ifndef SX_FLOAT_BASICS_H
#define SX_FLOAT_BASICS_H

#include "types.h"

#if __has_builtin(__builtin_elementwise_maximum)
/* One instruction on Arm, and a reduction that clang knows. */
#define SX_MAXIMUM(a, b, nan) __builtin_elementwise_maximum(a, b)
#define SX_MINIMUM(a, b, nan) __builtin_elementwise_minimum(a, b)
#else
#define SX_MAXIMUM(a, b, nan) \
    ((a) != (a) || (b) != (b) ? (nan) : (a) > (b) ? (a) : (a) < (b) || __builtin_signbit(a) ? (b) : (a))
#define SX_MINIMUM(a, b, nan) \
    ((a) != (a) || (b) != (b) ? (nan) : (a) < (b) ? (a) : (a) > (b) || !__builtin_signbit(a) ? (b) : (a))
#endif

/* One instruction too. */
#if defined(__aarch64__)
#define SX_ABOVE(a, b) SX_MAXIMUM(a, b, a + b)
#else
#define SX_ABOVE(a, b) ((a) > (b) ? (a) : (b))
#endif

/* S is the suffix of the builtins: f for float, none for double.
 *   round   half to even, the rounding mode that every process starts with
 *   sign    -1, 0 or 1; NaN for NaN, +0 for -0
 *   fmod    the sign of a
 *   mod     the sign of b, also of a zero; numerics.md has the table
 *   max     NaN if either is; +0 is above -0
 *   above   the larger one; if a is NaN, b or NaN */
#define SX_FLOAT_BASICS(t, T, S)                                                                   \
    static inline T sx_neg_##t(T x) { return -x; }                                                 \
    static inline T sx_abs_##t(T x) { return __builtin_fabs##S(x); }                               \
    static inline T sx_floor_##t(T x) { return __builtin_floor##S(x); }                            \
    static inline T sx_ceil_##t(T x) { return __builtin_ceil##S(x); }                              \
    static inline T sx_trunc_##t(T x) { return __builtin_trunc##S(x); }                            \
    static inline T sx_round_##t(T x) { return __builtin_rint##S(x); }                             \
    static inline T sx_sqrt_##t(T x) { return __builtin_sqrt##S(x); }                              \
    static inline T sx_rsqrt_##t(T x) { return 1 / __builtin_sqrt##S(x); }                         \
    static inline sx_bool sx_isnan_##t(T x) { return x != x; }                                     \
    static inline sx_bool sx_isinf_##t(T x) { return __builtin_fabs##S(x) == (T)__builtin_inf(); } \
    static inline T sx_sign_##t(T x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }           \
    static inline T sx_max_##t(T a, T b) { return SX_MAXIMUM(a, b, a + b); }                       \
    static inline T sx_min_##t(T a, T b) { return SX_MINIMUM(a, b, a + b); }                       \
    static inline T sx_above_##t(T a, T b) { return SX_ABOVE(a, b); }                              \
    static inline T sx_fmod_##t(T a, T b) { return __builtin_fmod##S(a, b); }                      \
    static inline T sx_mod_##t(T a, T b) {                                                         \
        T rest = __builtin_fmod##S(a, b);                                                          \
        T moved = (b < 0) != (rest < 0) ? rest + b : rest;                                         \
        return rest == 0 ? __builtin_copysign##S((T)0, b) : moved;                                 \
    }

/* x / by, to the bit, where the compiler knows an ordinary `by`, and x and the quotient are finite. Its reciprocal is rounded
 * to nearest, so the product is at most one step off, the rest is exact in one fused operation, and adding it rounds to the
 * quotient (Markstein). Without such operations there is nothing to gain. */
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define SX_OVER(t, T, S)                                                       \
    static inline T sx_over_##t(T x, T by) {                                   \
        const T inverse = 1 / by, near = x * inverse;                          \
        return __builtin_fma##S(__builtin_fma##S(-near, by, x), inverse, near); \
    }
#else
#define SX_OVER(t, T, S) \
    static inline T sx_over_##t(T x, T by) { return x / by; }
#endif

SX_OVER(f32, float, f)
SX_OVER(f64, double, )
#undef SX_OVER

SX_FLOAT_BASICS(f32, float, f)
SX_FLOAT_BASICS(f64, double, )

#undef SX_FLOAT_BASICS
#undef SX_MAXIMUM
#undef SX_MINIMUM
#undef SX_ABOVE

#endif
