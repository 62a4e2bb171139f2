/* Elementary functions of float64: the C library's, and a tanh that becomes vector code. */
#ifndef SX_DOUBLE_MATH_H
#define SX_DOUBLE_MATH_H

#include "float_basics.h"
#include "polynomials.h"
#include "types.h"
#include "wide_math.h"

#define SX_LIBRARY(name) \
    static inline double sx_##name##_f64(double x) { return __builtin_##name(x); }

SX_LIBRARY(exp)
SX_LIBRARY(expm1)
SX_LIBRARY(log)
SX_LIBRARY(log1p)
SX_LIBRARY(sin)
SX_LIBRARY(cos)
SX_LIBRARY(tan)
SX_LIBRARY(asin)
SX_LIBRARY(acos)
SX_LIBRARY(atan)
SX_LIBRARY(sinh)
SX_LIBRARY(cosh)
SX_LIBRARY(asinh)
SX_LIBRARY(acosh)
SX_LIBRARY(atanh)
SX_LIBRARY(erf)

#undef SX_LIBRARY

static inline double sx_pow_f64(double x, double y) { return __builtin_pow(x, y); }

/* As sx_tanh_f32. ln 2 / 2 is in two pieces: the first has 32 bits, so that its product with an exponent is exact. */
static inline double sx_tanh_f64(double x) {
    const double a = sx_min_f64(__builtin_fabs(x), 20.0); /* 1 from here on; a NaN passes */
    const double shifted = a * 0x1.71547652b82fep+1 + SX_WIDE_ROUNDER, whole = shifted - SX_WIDE_ROUNDER;
    const double rest = a - whole * 0x1.62e42feep-2, low = whole * 0x1.a39ef35793c76p-34, r = rest - low;
    const double above = rest + (r * r * sx_poly_wide_tanh(r) - low);
    const double power = sx_from_bits_f64((sx_bits_f64(shifted) + 1023) << 52);
    const double h = above * power + (0.5 * power - 0.5), near = sx_min_f64(a, 1.0);
    return __builtin_copysign(near + ((h - near) - near * h) / (h + 1.0), x);
}

static inline double sx_sigmoid_f64(double x) {
    double e = __builtin_exp(-__builtin_fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

static inline double sx_softplus_f64(double x) {
    return (x > 0 ? x : 0.0) + __builtin_log1p(__builtin_exp(-__builtin_fabs(x)));
}

#endif
