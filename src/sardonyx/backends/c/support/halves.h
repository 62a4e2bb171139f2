/* Vectors of eight float16 in registers, on CPUs that multiply them: one strip of rows and one panel of columns.
 *
 *     sx_half_lane(sums, x, 2, y)     sums += lane 2 of x times every lane of y, rounded once
 *     sx_half_low(x), sx_half_high(x) the first four, and the last, as float32
 *     sx_half_strip(rows, …)          up to eight rows of float32 as packed[k][8], each scaled to what float16 holds
 *     sx_half_rows(rows, …)           the same of rows that are float16 already, as they are
 *     sx_half_scale(row, …)           what brings a row to where float16 holds it
 *
 * Instructions are written out, so that no compiler's headers are needed, and all compilers take a lane as it is. */
#ifndef SX_HALVES_H
#define SX_HALVES_H

#include "float_math.h"
#include "types.h"

typedef _Float16 sx_h4 __attribute__((vector_size(8)));
typedef _Float16 sx_h8 __attribute__((vector_size(16)));
typedef _Float16 sx_h8m __attribute__((vector_size(16), aligned(2), may_alias));
typedef int16_t sx_i16x8 __attribute__((vector_size(16)));
typedef float sx_f4 __attribute__((vector_size(16)));
typedef float sx_f4m __attribute__((vector_size(16), aligned(4), may_alias));

#define sx_half_lane(sums, x, lane, y) \
    __asm__("fmla %0.8h, %1.8h, %2.h[" #lane "]" : "+w"(sums) : "w"(y), "x"(x))

static inline sx_f4 sx_half_low(sx_h8 x) {
    sx_f4 wide;
    __asm__("fcvtl %0.4s, %1.4h" : "=w"(wide) : "w"(x));
    return wide;
}

static inline sx_f4 sx_half_high(sx_h8 x) {
    sx_f4 wide;
    __asm__("fcvtl2 %0.4s, %1.8h" : "=w"(wide) : "w"(x));
    return wide;
}

/* Eight floats rounded: four from here, four from there. */
static inline sx_h8 sx_half_of(sx_f4 low, sx_f4 high) {
    sx_h8 x;
    __asm__("fcvtn %0.4h, %1.4s\n\tfcvtn2 %0.8h, %2.4s" : "=&w"(x) : "w"(low), "w"(high));
    return x;
}

static inline sx_h8 sx_half_all(float x) {
    const _Float16 y = (_Float16)x;
    return (sx_h8){y, y, y, y, y, y, y, y};
}

/* Between two limits; a NaN stays one. */
static inline sx_h8 sx_half_between(sx_h8 x, sx_h8 low, sx_h8 high) {
    __asm__("fmax %0.8h, %0.8h, %1.8h\n\tfmin %0.8h, %0.8h, %2.8h" : "+w"(x) : "w"(low), "w"(high));
    return x;
}

/* x · scale + offset, rounded once. */
static inline sx_h8 sx_half_added(sx_h8 x, sx_h8 scale, sx_h8 offset) {
    __asm__("fmla %0.8h, %1.8h, %2.8h" : "+w"(offset) : "w"(x), "w"(scale));
    return offset;
}

static inline sx_i16x8 sx_half_magnitude(sx_h8 x) { return (sx_i16x8)x & 0x7fff; }

/* Of magnitudes, whose bits are in the order of their sizes; a NaN is the largest. */
static inline sx_i16x8 sx_half_larger(sx_i16x8 a, sx_i16x8 b) {
    __asm__("smax %0.8h, %0.8h, %1.8h" : "+w"(a) : "w"(b));
    return a;
}

/* Eight rows of eight become eight columns. */
static inline void sx_half_turn(sx_h8 x[8]) {
    sx_h8 y[8];
    for (int32_t i = 0; i < 4; i++) {
        y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int32_t i = 0; i < 4; i++) {
        x[2 * i] = __builtin_shufflevector(y[i], y[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        x[2 * i + 1] = __builtin_shufflevector(y[i], y[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int32_t i = 0; i < 4; i++) {
        y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int32_t i = 0; i < 8; i++)
        x[i] = y[i];
}

/* Four columns of row r and of row r + 4, for four r, become four columns of eight rows. */
static inline void sx_half_turn_pairs(sx_h8 x[4]) {
    const sx_h8 even = __builtin_shufflevector(x[0], x[1], 0, 8, 2, 10, 4, 12, 6, 14);
    const sx_h8 odd = __builtin_shufflevector(x[0], x[1], 1, 9, 3, 11, 5, 13, 7, 15);
    const sx_h8 even2 = __builtin_shufflevector(x[2], x[3], 0, 8, 2, 10, 4, 12, 6, 14);
    const sx_h8 odd2 = __builtin_shufflevector(x[2], x[3], 1, 9, 3, 11, 5, 13, 7, 15);
    x[0] = __builtin_shufflevector(even, even2, 0, 1, 8, 9, 4, 5, 12, 13);
    x[1] = __builtin_shufflevector(odd, odd2, 0, 1, 8, 9, 4, 5, 12, 13);
    x[2] = __builtin_shufflevector(even, even2, 2, 3, 10, 11, 6, 7, 14, 15);
    x[3] = __builtin_shufflevector(odd, odd2, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* What the strip packs, `factors[r]` times row r; of each row the largest magnitude in float16. */
static inline __attribute__((always_inline)) sx_i16x8 sx_half_pack(
    const float *(*rows)[8], int64_t segments, int64_t depth, int64_t taken, const float *factors,
    _Float16 *packed) {
    sx_i16x8 largest = {0};
    for (int64_t s = 0; s < segments; s++) {
        const float *from[8];
        for (int64_t r = 0; r < 8; r++)
            from[r] = rows[s][r < taken ? r : 0];
        int64_t k = 0;
        for (; k + 4 <= depth; k += 4, packed += 32) {
            sx_h8 x[4];
            for (int32_t r = 0; r < 4; r++) {
                const sx_f4 low = *(const sx_f4m *)(from[r] + k), high = *(const sx_f4m *)(from[r + 4] + k);
                x[r] = factors ? sx_half_of(low * factors[r], high * factors[r + 4]) : sx_half_of(low, high);
            }
            sx_half_turn_pairs(x);
            for (int32_t i = 0; i < 4; i++) {
                largest = sx_half_larger(largest, sx_half_magnitude(x[i]));
                *(sx_h8m *)(packed + 8 * i) = x[i];
            }
        }
        for (; k < depth; k++, packed += 8) {
            sx_h8 x;
            for (int32_t r = 0; r < 8; r++)
                x[r] = (_Float16)(factors ? from[r][k] * factors[r] : from[r][k]);
            largest = sx_half_larger(largest, sx_half_magnitude(x));
            *(sx_h8m *)packed = x;
        }
    }
    return largest;
}

/* The strip again, with powers of two that bring the largest finite number of such a row into [1, 2), or below 4: what
 * float16 holds of it then is as exact as it can be. What is not finite stays so. */
static __attribute__((noinline, cold)) void sx_half_rescale(
    const float *(*rows)[8], int64_t segments, int64_t depth, int64_t taken, const int32_t *wild,
    _Float16 *packed, float *scales) {
    float factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int32_t any = 0;
    for (int64_t r = 0; r < taken; r++) {
        uint32_t largest = 0;
        for (int64_t s = 0; wild[r] && s < segments; s++)
            for (int64_t k = 0; k < depth; k++) {
                const uint32_t bits = sx_bits_f32(rows[s][r][k]) & 0x7fffffffu;
                largest = bits > largest && bits < 0x7f800000u ? bits : largest;
            }
        if (largest == 0)
            continue;
        uint32_t exponent = largest >> 23;
        exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
        scales[r] = sx_from_bits_f32(exponent << 23);
        factors[r] = sx_from_bits_f32((254 - exponent) << 23);
        any = 1;
    }
    if (any)
        sx_half_pack(rows, segments, depth, taken, factors, packed);
}

/* Rows whose largest number is in [2^-3, 2^highest] stay as they are: what is lost below 2^-25 is less than a millionth of
 * the largest. Whether all rows are of that kind: then nothing is infinite in the end, unless a weight is. */
static inline int32_t sx_half_strip(
    const float *(*rows)[8], int64_t segments, int64_t depth, int64_t taken, int32_t highest, _Float16 *packed,
    float *scales) {
    const sx_i16x8 largest = sx_half_pack(rows, segments, depth, taken, 0, packed);
    int32_t wild[8], any = 0;
    for (int64_t r = 0; r < 8; r++) {
        scales[r] = 1.0f;
        wild[r] = (r < taken) & ((largest[r] < 0x3000) | (largest[r] > (15 + highest) << 10));
        any |= wild[r];
    }
    if (any)
        sx_half_rescale(rows, segments, depth, taken, wild, packed, scales);
    return !any;
}

static inline void sx_half_rows(
    const _Float16 *(*rows)[8], int64_t segments, int64_t depth, int64_t taken, _Float16 *packed) {
    for (int64_t s = 0; s < segments; s++) {
        const _Float16 *from[8];
        for (int64_t r = 0; r < 8; r++)
            from[r] = rows[s][r < taken ? r : 0];
        int64_t k = 0;
        for (; k + 8 <= depth; k += 8, packed += 64) {
            sx_h8 x[8];
            for (int32_t r = 0; r < 8; r++)
                x[r] = *(const sx_h8m *)(from[r] + k);
            sx_half_turn(x);
            for (int32_t i = 0; i < 8; i++)
                *(sx_h8m *)(packed + 8 * i) = x[i];
        }
        for (; k < depth; k++, packed += 8)
            for (int32_t r = 0; r < 8; r++)
                packed[r] = from[r][k];
    }
}

/* A power of two that brings the largest finite number of a row into [0.5, 1); 1 where all are finite and the largest
 * is in [2^lowest, 2^highest) already. */
static inline float sx_half_scale(const float *row, int64_t count, int32_t lowest, int32_t highest) {
    uint32_t largest = 0, finite = 0;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t bits = sx_bits_f32(row[k]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    const uint32_t exponent = largest >> 23;
    if (largest == 0 || (exponent >= (uint32_t)(127 + lowest) && exponent < (uint32_t)(127 + highest)))
        return 1;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t bits = sx_bits_f32(row[k]) & 0x7fffffffu;
        finite = bits > finite && bits < 0x7f800000u ? bits : finite;
    }
    uint32_t scale = (finite >> 23) + 1;
    scale = scale < 1 ? 1 : scale > 253 ? 253 : scale;
    return sx_from_bits_f32((scale == 127 ? 128 : scale) << 23);
}

/* Eight rows, `pitch` apart. */
static inline void sx_half_interleave(const _Float16 *rows, int64_t pitch, int64_t depth, _Float16 *packed) {
    const _Float16 *each[1][8];
    for (int32_t r = 0; r < 8; r++)
        each[0][r] = rows + r * pitch;
    sx_half_rows(each, 1, depth, 8, packed);
}

#endif
