/* sx_cast_<from>_<to> for every pair of f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool.
 *
 *   float -> integer    truncates, saturates, NaN gives 0
 *   integer -> integer  the low bits
 *   any -> float        to nearest, ties to even, rounded once
 *   any -> bool         is it not 0; NaN is true
 *
 * Every pair goes through f32 or f64, whichever holds the source; where that alone would round
 * twice, it is rounded to odd on the way (sx_f64_to_odd_f32).
 */
#ifndef SX_CONVERSIONS_H
#define SX_CONVERSIONS_H

#include "types.h"

/* ---- between the floats ---- */

/* Toward zero, with the last bit set if anything was lost: rounding that again to a type at least
 * two bits shorter gives what rounding once would have given. */
static inline float sx_f64_to_odd_f32(double x) {
    float nearest = (float)x;
    uint32_t bits = sx_bits_f32(nearest);
    bits -= __builtin_fabs((double)nearest) > __builtin_fabs(x);
    return sx_from_bits_f32(bits | ((double)nearest != x));
}

#if SX_HARDWARE_F16
static inline float sx_cast_f16_f32(sx_f16 x) { return (float)x; }
static inline sx_f16 sx_cast_f32_f16(float x) { return (sx_f16)x; }
#else
/* Subnormals are met as integers and made normal by float arithmetic, which needs no float below
 * 2^-126: they survive threads that flush. */
static inline float sx_cast_f16_f32(sx_f16 x) {
    uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13;
    uint32_t normal = magnitude + (112u << 23);
    float subnormal = sx_from_bits_f32(magnitude + (113u << 23)) - 0x1p-14f;
    uint32_t bits = magnitude >= (31u << 23) ? normal + (112u << 23) : normal; /* infinity, NaN */
    bits = magnitude < (1u << 23) ? sx_bits_f32(subnormal) : bits;
    return sx_from_bits_f32(bits | (uint32_t)(x & 0x8000) << 16);
}

static inline sx_f16 sx_cast_f32_f16(float x) {
    uint32_t magnitude = sx_bits_f32(x) & 0x7fffffff;
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    uint32_t normal = (rounded >> 13) - (112u << 10);
    /* 0.5 has 2^-24, the last bit of a half, as its own last bit. */
    uint32_t subnormal = sx_bits_f32(sx_from_bits_f32(magnitude) + 0.5f) - sx_bits_f32(0.5f);
    uint32_t bits = magnitude < 0x38800000 ? subnormal : normal;
    bits = magnitude >= 0x47800000 ? 0x7c00 : bits; /* from 2^16 on; 65520 rounds there by itself */
    bits = magnitude > 0x7f800000 ? 0x7e00 : bits;
    return (sx_f16)(bits | (sx_bits_f32(x) >> 16 & 0x8000));
}
#endif

static inline float sx_cast_bf16_f32(sx_bf16 x) { return sx_from_bits_f32((uint32_t)x << 16); }

static inline sx_bf16 sx_cast_f32_bf16(float x) {
    uint32_t bits = sx_bits_f32(x);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (sx_bf16)((x == x ? rounded : bits | 0x400000) >> 16); /* a NaN must not round to infinity */
}

static inline float sx_cast_f64_f32(double x) { return (float)x; }
static inline float sx_cast_f64_f32_odd(double x) { return sx_f64_to_odd_f32(x); }
static inline double sx_cast_f32_f64(float x) { return (double)x; }
static inline sx_f16 sx_cast_f64_f16(double x) { return sx_cast_f32_f16(sx_f64_to_odd_f32(x)); }
static inline sx_bf16 sx_cast_f64_bf16(double x) { return sx_cast_f32_bf16(sx_f64_to_odd_f32(x)); }
static inline double sx_cast_f16_f64(sx_f16 x) { return (double)sx_cast_f16_f32(x); }
static inline double sx_cast_bf16_f64(sx_bf16 x) { return (double)sx_cast_bf16_f32(x); }
static inline sx_bf16 sx_cast_f16_bf16(sx_f16 x) { return sx_cast_f32_bf16(sx_cast_f16_f32(x)); }
static inline sx_f16 sx_cast_bf16_f16(sx_bf16 x) { return sx_cast_f32_f16(sx_cast_bf16_f32(x)); }
static inline sx_f16 sx_cast_f16_f16(sx_f16 x) { return x; }
static inline sx_bf16 sx_cast_bf16_bf16(sx_bf16 x) { return x; }
static inline float sx_cast_f32_f32(float x) { return x; }
static inline double sx_cast_f64_f64(double x) { return x; }

/* ---- floats to integers ---- */

/* Of two numbers that are no NaN, by the one instruction that the processor has for it. */
#if defined(__aarch64__)
#define SX_LESSER(S, a, b) __builtin_fmin##S(a, b)
#define SX_GREATER(S, a, b) __builtin_fmax##S(a, b)
#else
#define SX_LESSER(S, a, b) ((a) < (b) ? (a) : (b))
#define SX_GREATER(S, a, b) ((a) > (b) ? (a) : (b))
#endif

/* BELOW is the first float above the range: of 32 and 64 bits, the largest integer is no float. */
#define SX_SATURATE(f, F, S, t, T, LOW, HIGH, BELOW)               \
    static inline T sx_cast_##f##_##t(F x) {                       \
        const F number = x < (F)(BELOW) ? x : 0;                   \
        const T value = (T)SX_GREATER(S, number, (F)(LOW));        \
        return x >= (F)(BELOW) ? HIGH : value;                     \
    }
/* Of 8 and 16 bits, through 32, which every vector unit converts. */
#define SX_CLAMP(f, F, S, t, T, LOW, HIGH)                         \
    static inline T sx_cast_##f##_##t(F x) {                       \
        const F number = x == x ? x : 0;                           \
        const F above = SX_GREATER(S, number, (F)(LOW));           \
        return (T)(int32_t)SX_LESSER(S, above, (F)(HIGH));         \
    }
#define SX_FLOAT_TO_INTEGERS(f, F, S)                                           \
    SX_CLAMP(f, F, S, i8, int8_t, INT8_MIN, INT8_MAX)                           \
    SX_CLAMP(f, F, S, i16, int16_t, INT16_MIN, INT16_MAX)                       \
    SX_CLAMP(f, F, S, u8, uint8_t, 0, UINT8_MAX)                                \
    SX_CLAMP(f, F, S, u16, uint16_t, 0, UINT16_MAX)                             \
    SX_SATURATE(f, F, S, i32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)            \
    SX_SATURATE(f, F, S, i64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)            \
    SX_SATURATE(f, F, S, u32, uint32_t, 0, UINT32_MAX, 0x1p32)                  \
    SX_SATURATE(f, F, S, u64, uint64_t, 0, UINT64_MAX, 0x1p64)                  \
    static inline sx_bool sx_cast_##f##_bool(F x) { return x != 0; }

SX_FLOAT_TO_INTEGERS(f32, float, f)
SX_FLOAT_TO_INTEGERS(f64, double, )

/* Of at most 2^22, to the nearest integer, half to even, and back: from 1.5 * 2^23 on, the last bit of a float stands for 1.
 * An addition takes a fourth of the time of a conversion. */
static inline int32_t sx_cast_f32_i32_near(float x) {
    return (int32_t)(sx_bits_f32(x + 0x1.8p23f) - sx_bits_f32(0x1.8p23f));
}
/* The same of at most 32000, and a number added, by an operation of 16 bits: compilers would go back to 32 else, where a register
 * holds half as many. Those for Arm do not, and an even number leaves what is half as it is. */
static inline int16_t sx_near_plus_i16(float x, int16_t more) {
#if defined(__aarch64__) && defined(__clang__)
    if (more % 2 == 0) /* a constant */
        return (int16_t)sx_bits_f32(x + (0x1.8p23f + more));
#endif
    const int16_t near = (int16_t)sx_bits_f32(x + 0x1.8p23f);
#if __has_builtin(__builtin_elementwise_add_sat)
    return __builtin_elementwise_add_sat(near, more);
#else
    const int16_t lowest = (int16_t)(INT16_MIN - (more < 0 ? more : 0)), highest = (int16_t)(INT16_MAX - (more > 0 ? more : 0));
    return (int16_t)(near < lowest ? INT16_MIN : near > highest ? INT16_MAX : near + more);
#endif
}
/* With nothing to add, 256 is put on before and taken off. */
static inline int16_t sx_cast_f32_i16_near(float x) {
    const int16_t above = (int16_t)sx_bits_f32(x + (0x1.8p23f + 256.0f));
#if __has_builtin(__builtin_elementwise_add_sat)
    return __builtin_elementwise_add_sat(above, (int16_t)-256);
#else
    return (int16_t)(above < INT16_MIN + 256 ? INT16_MIN : above - 256);
#endif
}
#define SX_NARROW(t, T, LOW, HIGH)                           \
    static inline T sx_cast_i16_##t##_saturate(int16_t x) {  \
        const int16_t above = x < LOW ? LOW : x;             \
        return (T)(above > HIGH ? HIGH : above);             \
    }
SX_NARROW(i8, int8_t, INT8_MIN, INT8_MAX)
SX_NARROW(u8, uint8_t, 0, UINT8_MAX)
static inline float sx_cast_i32_f32_small(int32_t n) {
    return sx_from_bits_f32((uint32_t)n + sx_bits_f32(0x1.8p23f)) - 0x1.8p23f;
}

#define SX_THROUGH_F32(f, F, t, T) \
    static inline T sx_cast_##f##_##t(F x) { return sx_cast_f32_##t(sx_cast_##f##_f32(x)); }
#define SX_SHORT_FLOAT_TO_INTEGERS(f, F) \
    SX_THROUGH_F32(f, F, i8, int8_t)     \
    SX_THROUGH_F32(f, F, i16, int16_t)   \
    SX_THROUGH_F32(f, F, i32, int32_t)   \
    SX_THROUGH_F32(f, F, i64, int64_t)   \
    SX_THROUGH_F32(f, F, u8, uint8_t)    \
    SX_THROUGH_F32(f, F, u16, uint16_t)  \
    SX_THROUGH_F32(f, F, u32, uint32_t)  \
    SX_THROUGH_F32(f, F, u64, uint64_t)  \
    SX_THROUGH_F32(f, F, bool, sx_bool)

SX_SHORT_FLOAT_TO_INTEGERS(f16, sx_f16)
SX_SHORT_FLOAT_TO_INTEGERS(bf16, sx_bf16)

/* ---- integers to everything ---- */

/* Past 2^24 a float rounds, but there a half is infinite already. */
#define SX_INTEGER_TO_ALL(t, T)                                                                  \
    static inline int8_t sx_cast_##t##_i8(T x) { return (int8_t)x; }                             \
    static inline int16_t sx_cast_##t##_i16(T x) { return (int16_t)x; }                          \
    static inline int32_t sx_cast_##t##_i32(T x) { return (int32_t)x; }                          \
    static inline int64_t sx_cast_##t##_i64(T x) { return (int64_t)x; }                          \
    static inline uint8_t sx_cast_##t##_u8(T x) { return (uint8_t)x; }                           \
    static inline uint16_t sx_cast_##t##_u16(T x) { return (uint16_t)x; }                        \
    static inline uint32_t sx_cast_##t##_u32(T x) { return (uint32_t)x; }                        \
    static inline uint64_t sx_cast_##t##_u64(T x) { return (uint64_t)x; }                        \
    static inline sx_bool sx_cast_##t##_bool(T x) { return x != 0; }                             \
    static inline float sx_cast_##t##_f32(T x) { return (float)x; }                              \
    static inline double sx_cast_##t##_f64(T x) { return (double)x; }                            \
    static inline sx_f16 sx_cast_##t##_f16(T x) { return sx_cast_f32_f16((float)x); }

SX_INTEGER_TO_ALL(i8, int8_t)
SX_INTEGER_TO_ALL(i16, int16_t)
SX_INTEGER_TO_ALL(i32, int32_t)
SX_INTEGER_TO_ALL(i64, int64_t)
SX_INTEGER_TO_ALL(u8, uint8_t)
SX_INTEGER_TO_ALL(u16, uint16_t)
SX_INTEGER_TO_ALL(u32, uint32_t)
SX_INTEGER_TO_ALL(u64, uint64_t)

static inline sx_bf16 sx_cast_i8_bf16(int8_t x) { return sx_cast_f32_bf16((float)x); }
static inline sx_bf16 sx_cast_i16_bf16(int16_t x) { return sx_cast_f32_bf16((float)x); }
static inline sx_bf16 sx_cast_u8_bf16(uint8_t x) { return sx_cast_f32_bf16((float)x); }
static inline sx_bf16 sx_cast_u16_bf16(uint16_t x) { return sx_cast_f32_bf16((float)x); }
static inline sx_bf16 sx_cast_i32_bf16(int32_t x) { return sx_cast_f64_bf16((double)x); }
static inline sx_bf16 sx_cast_u32_bf16(uint32_t x) { return sx_cast_f64_bf16((double)x); }

/* Eleven bits go into one that says whether any was set: what is left fits a double. */
static inline sx_bf16 sx_cast_i64_bf16(int64_t x) {
    double high = (double)(x >> 11 | ((x & 2047) != 0)) * 2048.0;
    return sx_cast_f64_bf16(x > -(1ll << 53) && x < 1ll << 53 ? (double)x : high);
}

static inline sx_bf16 sx_cast_u64_bf16(uint64_t x) {
    double high = (double)(x >> 11 | ((x & 2047) != 0)) * 2048.0;
    return sx_cast_f64_bf16(x < 1ull << 53 ? (double)x : high);
}

/* ---- booleans to everything; any byte but 0 is true ---- */

#define SX_BOOL_TO(t, T) \
    static inline T sx_cast_bool_##t(sx_bool x) { return sx_cast_u8_##t(x != 0); }

SX_BOOL_TO(i8, int8_t)
SX_BOOL_TO(i16, int16_t)
SX_BOOL_TO(i32, int32_t)
SX_BOOL_TO(i64, int64_t)
SX_BOOL_TO(u8, uint8_t)
SX_BOOL_TO(u16, uint16_t)
SX_BOOL_TO(u32, uint32_t)
SX_BOOL_TO(u64, uint64_t)
SX_BOOL_TO(f16, sx_f16)
SX_BOOL_TO(bf16, sx_bf16)
SX_BOOL_TO(f32, float)
SX_BOOL_TO(f64, double)
SX_BOOL_TO(bool, sx_bool)

#undef SX_SATURATE
#undef SX_CLAMP
#undef SX_FLOAT_TO_INTEGERS
#undef SX_LESSER
#undef SX_GREATER
#undef SX_THROUGH_F32
#undef SX_SHORT_FLOAT_TO_INTEGERS
#undef SX_INTEGER_TO_ALL
#undef SX_BOOL_TO

#endif
