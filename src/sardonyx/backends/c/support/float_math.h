/* Elementary functions of float32 in float32: what networks call a million times a run.
 *
 * No function here branches, loads a table or calls a library: clang turns a plain loop over them
 * into vector code. Errors are measured in docs/numerics.md. Subnormal results are right unless the
 * thread flushes them; a sigmoid has none.
 */
#ifndef SX_FLOAT_MATH_H
#define SX_FLOAT_MATH_H

#include "float_basics.h"
#include "polynomials.h"
#include "types.h"

#define SX_INF __builtin_inff()
#define SX_NAN __builtin_nanf("")
/* ln 2 in two pieces: the first has 15 bits, so that its product with an exponent is exact. */
#define SX_LN2_HIGH 0x1.62e4p-1f
#define SX_LN2_LOW 0x1.7f7d1cp-20f
/* log2 e, and what is left of it. */
#define SX_LOG2E 0x1.715476p+0f
#define SX_LOG2E_LOW 0x1.4ae0cp-26f
/* Added to a number below 2^22, it leaves the nearest integer in the low bits. */
#define SX_ROUNDER 0x1.8p23f

/* 2^n for -126 <= n <= 127. */
static inline float sx_power_of_two(int32_t n) { return sx_from_bits_f32((uint32_t)(n + 127) << 23); }

/* y * 2^n for |n| <= 252: in two steps, since 2^n itself may not be a float. */
static inline float sx_scale(float y, int32_t n) {
    int32_t half = n >> 1;
    return y * sx_power_of_two(half) * sx_power_of_two(n - half);
}

/* x = n * ln 2 + r with |r| <= ln 2 / 2; returns e^r - 1. The low bits of `shifted` are those of n. */
static inline float sx_exp_above(float x, float *shifted) {
    *shifted = x * 0x1.715476p+0f + SX_ROUNDER;
    float whole = *shifted - SX_ROUNDER;
    float rest = x - whole * SX_LN2_HIGH; /* exact: r without its last bits */
    float r = rest - whole * SX_LN2_LOW;
    return rest + (r * r * sx_poly_exp(r) - whole * SX_LN2_LOW);
}

/* The same, with n itself. A NaN is returned; its n is 0. */
static inline float sx_exp_reduce(float x, int32_t *n) {
    float shifted, above = sx_exp_above(x, &shifted);
    *n = x == x ? (int32_t)(sx_bits_f32(shifted) - sx_bits_f32(SX_ROUNDER)) : 0;
    return above;
}

/* 2^n for -126 <= n <= 127; `shifted` as above. Of a NaN it is any number. */
static inline float sx_power_of_shifted(float shifted) { return sx_from_bits_f32((sx_bits_f32(shifted) + 127) << 23); }

static inline float sx_exp_f32(float x) {
    /* Past these ends the result is infinite or zero; a NaN compares false and passes. */
    float inside = x > 89.0f ? 89.0f : x;
    inside = inside < -104.0f ? -104.0f : inside;
    int32_t n;
    float above = sx_exp_reduce(inside, &n);
    return sx_scale(1.0f + above, n);
}

/* e^x for x <= 0, with 0 below 2^-126: a weight of a softmax, where another weight is 1. A NaN passes. */
#if defined(__x86_64__) && defined(__FMA__)
/* 2^n · 2^f with f = x · log2 e - n, which multiply-adds round once: a fifth fewer operations than below. */
static inline float sx_exp_weight_f32(float x) {
    const float inside = sx_max_f32(x, -88.0f), shifted = inside * SX_LOG2E + SX_ROUNDER;
    const float rest = __builtin_fmaf(inside, SX_LOG2E, SX_ROUNDER - shifted), f = __builtin_fmaf(inside, SX_LOG2E_LOW, rest);
    return (1.0f + f * sx_poly_exp2_of_weights(f)) * sx_power_of_shifted(shifted); /* 2^-127 comes out as 0 */
}
#else
static inline float sx_exp_weight_f32(float x) {
    const float inside = sx_max_f32(x, -100.0f), shifted = inside * 0x1.715476p+0f + SX_ROUNDER;
    const float whole = shifted - SX_ROUNDER, r = inside - whole * SX_LN2_HIGH - whole * SX_LN2_LOW;
    const int32_t exponent = (int32_t)(sx_bits_f32(shifted) - sx_bits_f32(SX_ROUNDER)) + 127;
    const float power = sx_from_bits_f32((uint32_t)(exponent > 0 ? exponent : 0) << 23); /* 2^n, or 0 */
    return (1.0f + r + r * r * sx_poly_exp(r)) * power;
}
#endif

/* e^x - 1 = 2^n * ((e^r - 1) + (1 - 2^-n)) */
static inline float sx_expm1_f32(float x) {
    float inside = x > 89.0f ? 89.0f : x;
    inside = inside < -18.0f ? -18.0f : inside; /* -1 from here on */
    int32_t n;
    float above = sx_exp_reduce(inside, &n);
    float inverse = sx_power_of_two(n > 60 ? -60 : -n); /* nothing beside 1 in either case */
    return x == 0 ? x : sx_scale(above + (1.0f - inverse), n); /* -0 */
}

/* x = 2^e * m with sqrt(1/2) <= m < sqrt(2); returns m. For positive, normal x. */
static inline float sx_log_reduce(float x, int32_t *e) {
    uint32_t bits = sx_bits_f32(x);
    *e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    return sx_from_bits_f32(bits - ((uint32_t)*e << 23));
}

/* e * ln 2 + log(1 + f) */
static inline float sx_log_assemble(float e, float f) {
    float square = f * f;
    float tail = f * square * sx_poly_log(f) - 0.5f * square;
    return e * SX_LN2_HIGH + (f + (tail + e * SX_LN2_LOW));
}

static inline float sx_log_f32(float x) {
    int subnormal = x < 0x1p-126f;
    int32_t e;
    float m = sx_log_reduce(subnormal ? x * 0x1p23f : x, &e);
    float y = sx_log_assemble((float)(e - (subnormal ? 23 : 0)), m - 1.0f);
    y = x < SX_INF ? y : x; /* NaN, infinity */
    y = x == 0 ? -SX_INF : y;
    return x < 0 ? SX_NAN : y;
}

static inline float sx_log1p_f32(float x) {
    float sum = 1.0f + x;
    /* What the sum lost in rounding; exact when taken from the larger operand. */
    float lost = x >= 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    int32_t e;
    float m = sx_log_reduce(sum, &e);
    /* 1 + x = sum + lost = 2^e * (m + lost * 2^-e); past 2^60 nothing of `lost` is seen. */
    float f = (m - 1.0f) + lost * sx_power_of_two(e > 60 ? -60 : -e);
    float y = sx_log_assemble((float)e, f);
    y = x < SX_INF ? y : x;
    y = x == -1.0f ? -SX_INF : y;
    y = x < -1.0f ? SX_NAN : y;
    return x == 0 ? x : y; /* -0 */
}

/* h / (h + 1) with h = (e^2a - 1) / 2, as what it differs by from a, and where a > 1, from 1: errors shrink with that. */
static inline float sx_tanh_f32(float x) {
    const float a = sx_min_f32(__builtin_fabsf(x), 10.0f); /* 1 from here on; a NaN passes */
    const float shifted = a * 0x1.715476p+1f + SX_ROUNDER, whole = shifted - SX_ROUNDER;
    const float r = a - whole * 0x1.62e43p-2f; /* ln 2 / 2, off by 2^-29 of it */
    const float above = r + r * r * sx_poly_tanh(r), power = sx_power_of_shifted(shifted);
    const float h = above * power + (0.5f * power - 0.5f), near = sx_min_f32(a, 1.0f);
    return __builtin_copysignf(near + ((h - near) - near * h) / (h + 1.0f), x);
}

#if defined(SX_COARSE)
/* 1 - 1 / P^16 (Abramowitz and Stegun, 7.1.28), within 2e-6 and a quarter of the time: behind sums of float16. */
static inline float sx_erf_f32(float x) {
    float a = __builtin_fabsf(x);
    float p = 0.0002765672f + a * 0.0000430638f;
    p = 0.0092705272f + a * (0.0001520143f + a * p);
    p = 1.0f + a * (0.0705230784f + a * (0.0422820123f + a * p));
    p *= p;
    p *= p;
    p *= p;
    p *= p;
    return __builtin_copysignf(1.0f - 1.0f / p, x);
}
#else
/* A polynomial near 0; further out, 1 - e^-P, whose errors shrink with the second term. */
static inline float sx_erf_f32(float x) {
    float a = __builtin_fabsf(x);
    float small = a + a * sx_poly_erf(a * a);
    float end = sx_min_f32(a, 3.95f); /* 1 from here on; a NaN passes */
    float shifted, above = sx_exp_above(-sx_poly_erfc(end), &shifted);
    float large = 1.0f - (1.0f + above) * sx_power_of_shifted(shifted); /* far from the ends of exp */
    return __builtin_copysignf(a < 0.92f ? small : large, x);
}
#endif

/* x·(1 + erf(x/sqrt(2)))/2 = max(x, 0) - |x|·(1 - erf(|x|/sqrt(2)))/2; the last term is below 0.17, and nearly 0 from 5 on.
 * Within 2^-16.8 beside one rounding: for what is rounded to bytes. A NaN passes, as below. The other is the one by tanh. */
static inline float sx_gelu_coarse_f32(float x) {
    const float t = sx_min_f32(__builtin_fabsf(x), 5.0f);
    return sx_max_f32(x, 0.0f) - sx_poly_gelu_coarse(t * (1.0f / 2.5f) - 1.0f);
}
static inline float sx_gelu_tanh_coarse_f32(float x) {
    const float t = sx_min_f32(__builtin_fabsf(x), 5.0f);
    return sx_max_f32(x, 0.0f) - sx_poly_gelu_tanh_coarse(t * (1.0f / 2.5f) - 1.0f);
}
#if defined(SX_COARSE)
static inline float sx_gelu_f32(float x) { return sx_gelu_coarse_f32(x); }
static inline float sx_gelu_tanh_f32(float x) { return sx_gelu_tanh_coarse_f32(x); }
#else
/* The same within 2^-22 of |x| beside one rounding; in half the time that erf takes. */
static inline float sx_gelu_f32(float x) {
    const float t = sx_min_f32(__builtin_fabsf(x), 6.0f), s = 1.0f - t * (1.0f / 6.0f), s2 = s * s;
    return sx_max_f32(x, 0.0f) - t * (s2 * s2 * sx_poly_gelu(t * 0.5f - 0.75f));
}
static inline float sx_gelu_tanh_f32(float x) {
    const float t = sx_min_f32(__builtin_fabsf(x), 6.0f), s = 1.0f - t * (1.0f / 6.0f), s2 = s * s;
    return sx_max_f32(x, 0.0f) - t * (s2 * s2 * sx_poly_gelu_tanh(t * 0.5f - 0.75f));
}
#endif

/* 2^t for t <= 0, within 2^-13 of it, which is more than float16 keeps; less than 2^-126 are 0, or nearly. For no NaN. */
static inline float sx_exp2_coarse(float t) {
    const float inside = sx_max_f32(t, -150.0f), shifted = inside + SX_ROUNDER;
    const float power = sx_poly_exp2_of_halves(inside - (shifted - SX_ROUNDER));
    const int32_t bits = (int32_t)(sx_bits_f32(power) + (sx_bits_f32(shifted) << 23));
    return sx_from_bits_f32((uint32_t)(bits > 0 ? bits : 0));
}

/* e^x for x <= 0, within 2^-13 of it, with 0 below 2^-126: a weight that is rounded to bfloat16. A NaN passes. */
static inline float sx_exp_weight_coarse(float x) {
    const float inside = sx_max_f32(x * SX_LOG2E, -127.0f), shifted = inside + SX_ROUNDER;
    return sx_poly_exp2_of_halves(inside - (shifted - SX_ROUNDER)) * sx_power_of_shifted(shifted);
}

#if defined(SX_COARSE)
/* 1 / (1 + t), or t / (1 + t) where x < 0, with t = e^-|x|: within 2^-13 of it, as what it follows. */
static inline float sx_sigmoid_f32(float x) {
    float t = sx_exp2_coarse(__builtin_fabsf(x) * -0x1.715476p+0f);
    float y = (x < 0.0f ? t : 1.0f) / (1.0f + t);
    return x == x ? y : x;
}
#elif defined(__aarch64__)
/* The same within 2.4 units, 0 where it is below 2^-126: these processors divide beside what else they do. */
static inline float sx_sigmoid_f32(float x) {
    const float t = sx_exp_weight_f32(-__builtin_fabsf(x));
    return (x < 0.0f ? t : 1.0f) / (1.0f + t);
}
#else
/* x / s for 1 <= s <= 2, in a third of the time that a processor takes to divide: a parabola within 1/99 of the reciprocal,
 * one step of Halley's, and what the quotient is off by. */
static inline float sx_divided(float x, float s) {
    float r = 0x1.0f83e1p+1f + s * (-0x1.745d17p+0f + s * 0x1.4afd6ap-2f);
    float off = 1.0f - s * r;
    r += r * (off + off * off);
    float y = x * r;
    return y + r * (x - s * y);
}

/* 1 / (1 + t), or t / (1 + t) where x < 0, with t = e^-|x|; 0 where that is below 2^-126. */
static inline float sx_sigmoid_f32(float x) {
    float inside = -__builtin_fabsf(x);
    inside = inside < -87.33654f ? -87.33654f : inside; /* a NaN passes */
    float shifted, above = sx_exp_above(inside, &shifted);
    float t = (1.0f + above) * sx_power_of_shifted(shifted);
    float y = sx_divided(x < 0.0f ? t : 1.0f, 1.0f + t);
    return x < -87.33654f ? 0.0f : y;
}
#endif

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
static inline float sx_softplus_f32(float x) {
    return (x > 0 ? x : 0.0f) + sx_log1p_f32(sx_exp_f32(-__builtin_fabsf(x)));
}

#endif
