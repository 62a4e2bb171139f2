/* Elements of 8 bits and less, one to a byte, to and from f32. Wider integers and halves are exact
 * in f32 as far as these types reach; a double goes through sx_f64_to_odd_f32.
 *
 *   sx_cast_f32_f8e5m2(x)         what is too large becomes the largest number (saturate = 1)
 *   sx_cast_f32_f8e5m2_nosat(x)   or infinity, or NaN where the type has none (saturate = 0)
 */
#ifndef SX_SMALL_FLOATS_H
#define SX_SMALL_FLOATS_H

#include "conversions.h"
#include "types.h"

/* The magnitude of x as exponent and mantissa of a small type, to nearest even, without an upper
 * end. `mantissa` and `bias` are constants at every call. */
static inline uint32_t sx_small_code(float x, int mantissa, int bias) {
    uint32_t magnitude = sx_bits_f32(x) & 0x7fffffff;
    int cut = 23 - mantissa;
    uint32_t rounded = magnitude + ((1u << (cut - 1)) - 1) + (magnitude >> cut & 1);
    uint32_t normal = (rounded >> cut) - ((uint32_t)(127 - bias) << mantissa);
    /* A float whose own last bit is the last bit of the type's subnormals. */
    float grid = sx_from_bits_f32((uint32_t)(127 + cut + 1 - bias) << 23);
    uint32_t subnormal = sx_bits_f32(sx_from_bits_f32(magnitude) + grid) - sx_bits_f32(grid);
    return magnitude < (uint32_t)(128 - bias) << 23 ? subnormal : normal;
}

/* The float of an exponent and mantissa; NaN and infinity are the caller's. */
static inline float sx_small_value(uint32_t code, int mantissa, int bias) {
    uint32_t magnitude = code << (23 - mantissa);
    float normal = sx_from_bits_f32(magnitude + ((uint32_t)(127 - bias) << 23));
    float least = sx_from_bits_f32((uint32_t)(128 - bias) << 23); /* the smallest normal */
    float subnormal = sx_from_bits_f32(magnitude + ((uint32_t)(128 - bias) << 23)) - least;
    return magnitude < 1u << 23 ? subnormal : normal;
}

/* With a sign bit and -0. MOST is the code of the largest number, OVER of what lies above it. */
#define SX_SIGNED_SMALL(t, MANTISSA, BIAS, MOST, OVER, NOT_A_NUMBER)                              \
    static inline uint8_t sx_encode_##t(float x, uint32_t over) {                                 \
        uint32_t code = sx_small_code(x, MANTISSA, BIAS);                                         \
        code = code > MOST ? over : code; /* an infinity too */                                   \
        code = x == x ? code : NOT_A_NUMBER;                                                      \
        return (uint8_t)(code | (sx_bits_f32(x) >> 24 & 0x80));                                   \
    }                                                                                             \
    static inline sx_##t sx_cast_f32_##t(float x) { return sx_encode_##t(x, MOST); }              \
    static inline sx_##t sx_cast_f32_##t##_nosat(float x) { return sx_encode_##t(x, OVER); }

SX_SIGNED_SMALL(f8e4m3fn, 3, 7, 0x7e, 0x7f, 0x7f)
SX_SIGNED_SMALL(f8e5m2, 2, 15, 0x7b, 0x7c, 0x7e)

static inline float sx_cast_f8e4m3fn_f32(sx_f8e4m3fn x) {
    float value = (x & 0x7f) == 0x7f ? __builtin_nanf("") : sx_small_value(x & 0x7f, 3, 7);
    return x & 0x80 ? -value : value;
}

static inline float sx_cast_f8e5m2_f32(sx_f8e5m2 x) {
    float value = sx_small_value(x & 0x7f, 2, 15);
    value = (x & 0x7f) == 0x7c ? __builtin_inff() : value;
    value = (x & 0x7f) > 0x7c ? __builtin_nanf("") : value;
    return x & 0x80 ? -value : value;
}

/* Without -0: its code, 0x80, is the only NaN, and what lies above the largest number, 0x7f. */
#define SX_UNSIGNED_ZERO_SMALL(t, MANTISSA, BIAS)                                                 \
    static inline uint8_t sx_encode_##t(float x, int saturate) {                                  \
        uint32_t code = sx_small_code(x, MANTISSA, BIAS), sign = sx_bits_f32(x) >> 24 & 0x80;     \
                uint32_t finite = code == 0 ? 0 : code | sign;                                            \
        uint32_t bits = code > 0x7f ? saturate ? 0x7f | sign : 0x80 : finite;                           \
        return (uint8_t)(x == x ? bits : 0x80);                                                   \
    }                                                                                             \
    static inline sx_##t sx_cast_f32_##t(float x) { return sx_encode_##t(x, 1); }                 \
    static inline sx_##t sx_cast_f32_##t##_nosat(float x) { return sx_encode_##t(x, 0); }         \
    static inline float sx_cast_##t##_f32(sx_##t x) {                                             \
        float value = sx_small_value(x & 0x7f, MANTISSA, BIAS);                                   \
        return x == 0x80 ? __builtin_nanf("") : x & 0x80 ? -value : value;                        \
    }

SX_UNSIGNED_ZERO_SMALL(f8e4m3fnuz, 3, 8)
SX_UNSIGNED_ZERO_SMALL(f8e5m2fnuz, 2, 16)

#undef SX_SIGNED_SMALL
#undef SX_UNSIGNED_ZERO_SMALL

/* f8e8m0 is an exponent: 2^(x - 127), 0xff is NaN. The sign of x is lost. `up` is added to the
 * float's bits before its mantissa is cut off. */
static inline uint8_t sx_encode_f8e8m0(float x, uint32_t up, int saturate) {
    uint32_t magnitude = sx_bits_f32(x) & 0x7fffffff;
    uint32_t code = (magnitude + up) >> 23;
    code = saturate && code > 0xfe ? 0xfe : code;
    code = !saturate && magnitude < 0x00400000 ? 0xff : code; /* below 2^-127 */
    return (uint8_t)(x == x ? code : 0xff);
}

/* Half way goes up, except between 0 and 2^-126, where 2^-127 is as near to an even code. */
static inline uint32_t sx_f8e8m0_half(float x) {
    return (sx_bits_f32(x) & 0x7fffffff) > 0x00400000 ? 0x400000 : 0;
}

static inline sx_f8e8m0 sx_cast_f32_f8e8m0_up(float x) { return sx_encode_f8e8m0(x, 0x7fffff, 1); }
static inline sx_f8e8m0 sx_cast_f32_f8e8m0_down(float x) { return sx_encode_f8e8m0(x, 0, 1); }
static inline sx_f8e8m0 sx_cast_f32_f8e8m0_nearest(float x) {
    return sx_encode_f8e8m0(x, sx_f8e8m0_half(x), 1);
}
static inline sx_f8e8m0 sx_cast_f32_f8e8m0_up_nosat(float x) { return sx_encode_f8e8m0(x, 0x7fffff, 0); }
static inline sx_f8e8m0 sx_cast_f32_f8e8m0_down_nosat(float x) { return sx_encode_f8e8m0(x, 0, 0); }
static inline sx_f8e8m0 sx_cast_f32_f8e8m0_nearest_nosat(float x) {
    return sx_encode_f8e8m0(x, sx_f8e8m0_half(x), 0);
}

static inline float sx_cast_f8e8m0_f32(sx_f8e8m0 x) {
    float value = sx_from_bits_f32(x == 0 ? 0x00400000u : (uint32_t)x << 23);
    return x == 0xff ? __builtin_nanf("") : value;
}

/* f4e2m1 has neither infinity nor NaN: too large is 6, NaN is 0. */
static inline sx_f4e2m1 sx_cast_f32_f4e2m1(float x) {
    uint32_t code = sx_small_code(x, 1, 1);
    code = code > 7 ? 7 : code;
    return (sx_f4e2m1)(x == x ? code | (sx_bits_f32(x) >> 28 & 8) : 0);
}

static inline float sx_cast_f4e2m1_f32(sx_f4e2m1 x) {
    float value = sx_small_value(x & 7, 1, 1);
    return x & 8 ? -value : value;
}

/* Integers of 2 and 4 bits: rounded half to even, then the low bits; NaN is 0. From 2^31 on the
 * low bits of a float are 0, and an integer of 64 bits, which stands between, saturates at 2^63. */
static inline uint32_t sx_low_bits(float x) {
    float whole = __builtin_rintf(x);
    float inside = whole > -0x1p31f && whole < 0x1p31f ? whole : 0;
    return whole >= 0x1p63f ? 0xffffffffu : (uint32_t)(int32_t)inside;
}

#define SX_PACKED(BITS)                                                                           \
    static inline sx_i##BITS sx_low_bits_i##BITS(uint32_t bits) { /* of any integer */            \
        uint32_t sign = 1u << (BITS - 1), low = bits & (2 * sign - 1);                            \
        return (sx_i##BITS)((int32_t)(low ^ sign) - (int32_t)sign);                               \
    }                                                                                             \
    static inline sx_u##BITS sx_low_bits_u##BITS(uint32_t bits) { return bits & ((1u << BITS) - 1); } \
    static inline sx_i##BITS sx_cast_u32_i##BITS(uint32_t x) { return sx_low_bits_i##BITS(x); }   \
    static inline sx_u##BITS sx_cast_u32_u##BITS(uint32_t x) { return sx_low_bits_u##BITS(x); }   \
    static inline sx_i##BITS sx_cast_f32_i##BITS(float x) { return sx_low_bits_i##BITS(sx_low_bits(x)); } \
    static inline sx_u##BITS sx_cast_f32_u##BITS(float x) { return sx_low_bits_u##BITS(sx_low_bits(x)); } \
    /* The high bits of a byte may be anything: numpy does not always extend the sign. */         \
    static inline float sx_cast_i##BITS##_f32(sx_i##BITS x) { return (float)sx_low_bits_i##BITS((uint8_t)x); } \
    static inline float sx_cast_u##BITS##_f32(sx_u##BITS x) { return (float)sx_low_bits_u##BITS(x); }

SX_PACKED(4)
SX_PACKED(2)
#undef SX_PACKED

#endif
