/* Elementary functions of float64: the C library's. */
#ifndef SX_DOUBLE_MATH_H
#define SX_DOUBLE_MATH_H

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
SX_LIBRARY(tanh)
SX_LIBRARY(asinh)
SX_LIBRARY(acosh)
SX_LIBRARY(atanh)
SX_LIBRARY(erf)

#undef SX_LIBRARY

static inline double sx_pow_f64(double x, double y) { return __builtin_pow(x, y); }

static inline double sx_sigmoid_f64(double x) {
    double e = __builtin_exp(-__builtin_fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

static inline double sx_softplus_f64(double x) {
    return (x > 0 ? x : 0.0) + __builtin_log1p(__builtin_exp(-__builtin_fabs(x)));
}

#endif
