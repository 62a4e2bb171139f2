/* Elementary functions of float32 computed in float64 and rounded once: within 0.51 ulp.
 *
 * Half as many lanes as float_math.h, but range reduction, powers and inverse functions need the
 * bits, and are rarer. Branch-free in the same way.
 */
#ifndef SX_WIDE_MATH_H
#define SX_WIDE_MATH_H

#include "polynomials.h"
#include "types.h"

/* Added to a number below 2^51, it leaves the nearest integer in the low bits. */
#define SX_WIDE_ROUNDER 0x1.8p52

/* x in quarter turns, x * 2/pi = 4k + n + f with |f| <= 1/2; returns the angle f * pi/2.
 *
 * Right for every float. 2/pi is cut into pieces of 29 bits: a float times a piece is exact, whole
 * turns are taken off each product exactly, and the pieces below 2^-203 are beyond the smallest
 * angle that any float leaves. The last two products are below 1 as they are. An infinity gives NaN.
 */
#define SX_WITHOUT_TURNS(p) ((p) - 4.0 * __builtin_rint((p) * 0.25))
static inline double sx_quarter_turns(float angle, int64_t *n) {
    double x = (double)angle;
    double p0 = SX_WITHOUT_TURNS(x * 0x1.45f306dp-1);
    double p1 = SX_WITHOUT_TURNS(x * 0x1.9391054p-30);
    double p2 = SX_WITHOUT_TURNS(x * 0x1.4fe13abp-59);
    double p3 = SX_WITHOUT_TURNS(x * 0x1.d1f534dp-88);
    double p4 = SX_WITHOUT_TURNS(x * 0x1.b81b6c5p-117);
    double p5 = x * 0x1.5993c4p-148;
    double p6 = x * 0x1.c820ff2p-175;
    double shifted = ((((p0 + p1) + p2) + p3) + p4) + SX_WIDE_ROUNDER;
    double whole = shifted - SX_WIDE_ROUNDER;
    *n = (int64_t)sx_bits_f64(shifted); /* the rounder's own bits are a multiple of 4 */
    /* From the coarsest piece to the finest: where the sum cancels, it is exact. */
    double f = ((((((p0 - whole) + p1) + p2) + p3) + p4) + p5) + p6;
    return f * 0x1.921fb54442d18p+0;
}
#undef SX_WITHOUT_TURNS

static inline double sx_sine_of(double r) { return r + r * (r * r) * sx_poly_sin(r * r); }
static inline double sx_cosine_of(double r) { return 1.0 + (r * r) * sx_poly_cos(r * r); }

static inline float sx_sin_f32(float x) {
    int64_t n;
    double r = sx_quarter_turns(x, &n);
    double y = n & 1 ? sx_cosine_of(r) : sx_sine_of(r);
    return x == 0 ? x : (float)(n & 2 ? -y : y);
}

static inline float sx_cos_f32(float x) {
    int64_t n;
    double r = sx_quarter_turns(x, &n);
    double y = n & 1 ? sx_sine_of(r) : sx_cosine_of(r);
    return (float)((n + 1) & 2 ? -y : y);
}

static inline float sx_tan_f32(float x) {
    int64_t n;
    double r = sx_quarter_turns(x, &n);
    double sine = sx_sine_of(r), cosine = sx_cosine_of(r);
    double y = (n & 1 ? -cosine : sine) / (n & 1 ? sine : cosine);
    return x == 0 ? x : (float)y;
}

/* log2 of a double that is 0 or normal; NaN below 0. */
static inline double sx_wide_log2(double a) {
    uint64_t bits = sx_bits_f64(a);
    int64_t e = (int64_t)(bits - 0x3fe6a09e667f3bcdu) >> 52; /* a = 2^e * m, sqrt(1/2) <= m < sqrt(2) */
    double m = sx_from_bits_f64(bits - ((uint64_t)e << 52));
    double exponent = sx_from_bits_f64(sx_bits_f64(SX_WIDE_ROUNDER) + (uint64_t)e) - SX_WIDE_ROUNDER;
    double s = (m - 1.0) / (m + 1.0);
    double y = exponent + s * sx_poly_log2(s * s);
    y = a < __builtin_inf() ? y : a; /* NaN, infinity */
    y = a == 0 ? -__builtin_inf() : y;
    return a < 0 ? __builtin_nan("") : y;
}

/* 2^t; past 2^300 and 2^-300 no float can tell. */
static inline double sx_wide_exp2(double t) {
    double inside = t > 300.0 ? 300.0 : t;
    inside = inside < -300.0 ? -300.0 : inside;
    double shifted = inside + SX_WIDE_ROUNDER;
    double f = inside - (shifted - SX_WIDE_ROUNDER);
    uint64_t n = sx_bits_f64(shifted) - sx_bits_f64(SX_WIDE_ROUNDER);
    return (1.0 + f * sx_poly_exp2(f)) * sx_from_bits_f64((n + 1023) << 52);
}

static inline double sx_wide_exp(double x) { return sx_wide_exp2(x * 0x1.71547652b82fep+0); }

/* log(1 + u): what 1 + u loses is below a float's precision, and log(1 + u) = u before that counts. */
static inline double sx_wide_log1p(double u) {
    double y = sx_wide_log2(1.0 + u) * 0x1.62e42fefa39efp-1;
    return __builtin_fabs(u) < 0x1p-26 ? u : y;
}

/* C's pow: x^0 and 1^y are 1 even of NaN; a negative base needs a whole exponent. */
static inline float sx_pow_f32(float x, float y) {
    float a = __builtin_fabsf(x);
    int whole = __builtin_truncf(y) == y;
    float half = y * 0.5f;
    int odd = whole & (__builtin_truncf(half) != half);
    double t = (double)y * sx_wide_log2((double)a);
    t = a == 1 && y == y ? 0.0 : t; /* infinity * 0 */
    float power = (float)sx_wide_exp2(t);
    power = odd ? __builtin_copysignf(power, x) : power;
    power = x < 0 && a < __builtin_inff() && !whole ? __builtin_nanf("") : power;
    return y == 0 || x == 1 ? 1.0f : power;
}

static inline float sx_sinh_f32(float x) {
    double a = __builtin_fabs((double)x), square = a * a, e = sx_wide_exp(a);
    double y = a < 1.0 ? a + a * square * sx_poly_sinh(square) : 0.5 * (e - 1.0 / e);
    return __builtin_copysignf((float)y, x);
}

static inline float sx_cosh_f32(float x) {
    double e = sx_wide_exp(__builtin_fabs((double)x));
    return (float)(0.5 * (e + 1.0 / e));
}

static inline float sx_asinh_f32(float x) {
    double a = __builtin_fabs((double)x), square = a * a;
    double y = sx_wide_log1p(a + square / (1.0 + __builtin_sqrt(square + 1.0)));
    return __builtin_copysignf((float)(a < __builtin_inf() ? y : a), x);
}

static inline float sx_acosh_f32(float x) {
    double above = (double)x - 1.0;
    double y = sx_wide_log1p(above + __builtin_sqrt(above * (above + 2.0)));
    return above < 0 ? __builtin_nanf("") : (float)y;
}

static inline float sx_atanh_f32(float x) {
    double a = __builtin_fabs((double)x);
    return __builtin_copysignf((float)(0.5 * sx_wide_log1p(2.0 * a / (1.0 - a))), x);
}

/* atan a = pi/4 + atan((a - 1) / (a + 1)) = pi/2 + atan(-1 / a) */
static inline float sx_atan_f32(float x) {
    double a = __builtin_fabs((double)x);
    int middle = a > 0x1.a827999fcef32p-2, far = a > 0x1.3504f333f9de6p+1; /* tan(pi/8), tan(3pi/8) */
    double t = (far ? -1.0 : middle ? a - 1.0 : a) / (far ? a : middle ? a + 1.0 : 1.0);
    double base = far ? 0x1.921fb54442d18p+0 : middle ? 0x1.921fb54442d18p-1 : 0.0;
    return __builtin_copysignf((float)(base + (t + t * (t * t) * sx_poly_atan(t * t))), x);
}

/* asin s for s = |x| <= 1/2; past it for s = sqrt((1 - |x|) / 2), with acos |x| = 2 asin s. */
static inline double sx_asin_half(double a, int far) {
    double square = far ? 0.5 * (1.0 - a) : a * a;
    double s = far ? __builtin_sqrt(square) : a;
    return s + s * square * sx_poly_asin(square);
}

static inline float sx_asin_f32(float x) {
    double a = __builtin_fabs((double)x);
    int far = a > 0.5;
    double y = sx_asin_half(a, far);
    return __builtin_copysignf((float)(far ? 0x1.921fb54442d18p+0 - 2.0 * y : y), x);
}

static inline float sx_acos_f32(float x) {
    double a = __builtin_fabs((double)x);
    int far = a > 0.5;
    double y = sx_asin_half(a, far);
    double near = 0x1.921fb54442d18p+0 - __builtin_copysign(y, (double)x);
    double end = x < 0 ? 0x1.921fb54442d18p+1 - 2.0 * y : 2.0 * y;
    return (float)(far ? end : near);
}

#endif
