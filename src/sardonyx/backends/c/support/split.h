/* Exact products of bytes on x86 without VNNI.
 *
 * Its instruction for bytes multiplies those without a sign by those with one, and its sum of two products stops at 16 bits.
 * It is exact where the bytes of a that have the same sign add up to no more than 127, or 128 below zero. Most do: activations
 * are near 0 once their zero point is taken off. What is too large is taken in two or more turns:
 *
 *     sx_split(rows, r, to, from, count, at, turned, less)    quads of row r less a number: the first turns to `to`, the others
 *                                                             to the extras of the row
 *     sums = sx_bytes_8(sums, a, b, ones)                     quads of a row times quads of b, which have no sign; sx_bytes_16
 *
 * Where too much is too large, pairs of 16 bits are multiplied:
 *
 *     sx_widen(to, from, count, turned, less)                 the evens and the odds of every quad, less a number
 *     sums = sx_pairs_8(sums, evens, sx_unsigned_evens_8(b))  bytes 0 and 2 of every lane; sx_pairs_16
 *     sums = sx_pairs_8(sums, odds, sx_unsigned_odds_8(b))    bytes 1 and 3
 *
 * The bits of `turned` are turned over first: then bytes have no sign. */
#ifndef SX_SPLIT_H
#define SX_SPLIT_H

#include "dot.h"

#if defined(__AVX2__)
typedef uint16_t sx_u16x16 __attribute__((vector_size(32)));
typedef uint16_t sx_u16x32 __attribute__((vector_size(64)));

static inline sx_i32x8 sx_unsigned_evens_8(sx_i32x8 quads) { return quads & 0x00ff00ff; }
static inline sx_i32x8 sx_unsigned_odds_8(sx_i32x8 quads) { return (sx_i32x8)((sx_u16x16)quads >> 8); }
static inline sx_i32x8 sx_bytes_8(sx_i32x8 sums, sx_i32x8 a, sx_i32x8 b, sx_i32x8 ones) {
    sx_i32x8 products;
    __asm__("vpmaddubsw %2, %3, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
            : "+x"(sums), "=&x"(products) : "x"(a), "x"(b), "xm"(ones));
    return sums;
}

#if defined(__AVX512BW__)
static inline sx_i32x16 sx_unsigned_evens_16(sx_i32x16 quads) { return quads & 0x00ff00ff; }
static inline sx_i32x16 sx_unsigned_odds_16(sx_i32x16 quads) { return (sx_i32x16)((sx_u16x32)quads >> 8); }
static inline sx_i32x16 sx_bytes_16(sx_i32x16 sums, sx_i32x16 a, sx_i32x16 b, sx_i32x16 ones) {
    sx_i32x16 products;
    __asm__("vpmaddubsw %2, %3, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
            : "+v"(sums), "=&v"(products) : "v"(a), "v"(b), "vm"(ones));
    return sums;
}
#endif

/* What is left of a quad after its first turn: which quad of its row, and four bytes of it. */
struct sx_extra { int32_t at, quad; };

/* The rows of a tile. */
struct sx_rows {
    int32_t sums[16];    /* of the bytes of each row, less what was taken off */
    int64_t ends[16];    /* the extras of row r end here, those of the next one begin */
    int64_t count, room; /* of extras; those that there is no room for are only counted */
    struct sx_extra *extras;
};

static __attribute__((noinline)) int32_t sx_split_quad(struct sx_rows *rows, int32_t quad, int64_t at, int32_t less) {
    int32_t left[4], kept = 0;
    for (int32_t i = 0; i < 4; i++)
        left[i] = (int32_t)((uint32_t)quad >> 8 * i & 255) - less;
    for (int32_t turn = 0; turn == 0 || left[0] | left[1] | left[2] | left[3]; turn++) {
        uint32_t taken = 0;
        for (int32_t i = 0; i < 4; i += 2) {
            const int32_t low = left[i] < -128 ? -128 : left[i], first = low > 127 ? 127 : low;
            const int32_t least = first < 0 ? -128 - first : -128, most = first > 0 ? 127 - first : 127;
            const int32_t high = left[i + 1] < least ? least : left[i + 1], second = high > most ? most : high;
            left[i] -= first, left[i + 1] -= second;
            taken |= ((uint32_t)first & 255) << 8 * i | ((uint32_t)second & 255) << (8 * i + 8);
        }
        if (turn == 0)
            kept = (int32_t)taken;
        else if (rows->count++ < rows->room)
            rows->extras[rows->count - 1] = (struct sx_extra){(int32_t)at, (int32_t)taken};
    }
    return kept;
}

/* Eight quads, as if all were small enough. Two sums of bytes for each are added to `sums`; four bits for each say whether
 * it was too large. */
static inline uint32_t sx_split_8(sx_i32x8 *quads, int32_t less, sx_i16x16 *sums) {
    typedef uint8_t octets __attribute__((vector_size(32)));
    typedef char bytes __attribute__((vector_size(32)));
    const octets none = (octets){0} + (uint8_t)less, x = (octets)*quads, larger = (octets)(x > none);
    const octets above = (x - none) & larger, below = (none - x) & ~larger;
    const sx_i16x16 up = (sx_i16x16)__builtin_ia32_pmaddubsw256((bytes)above, (bytes){0} + 1);
    const sx_i16x16 down = (sx_i16x16)__builtin_ia32_pmaddubsw256((bytes)below, (bytes){0} + 1);
    *sums += up - down;
    *quads = (sx_i32x8)(above - below);
    return (uint32_t)__builtin_ia32_pmovmskb256((bytes)((up > 127) | (down > 128)));
}

static inline void sx_split(
    struct sx_rows *rows, int64_t r, int32_t *restrict to, const int32_t *restrict from, int64_t count, int64_t at,
    int32_t turned, int32_t less) {
    sx_i32x8 total = {0};
    for (int64_t k = 0; k < count; k += 64) {
        const int64_t some = count - k < 64 ? count - k : 64, whole = some / 8;
        uint32_t over[8] = {0}, any = 0;
        sx_i16x16 sums = {0};
        sx_i32x8 quads;
        for (int64_t i = 0; i < whole; i++) {
            __builtin_memcpy(&quads, from + k + 8 * i, sizeof quads);
            quads ^= turned;
            any |= over[i] = sx_split_8(&quads, less, &sums);
            __builtin_memcpy(to + k + 8 * i, &quads, sizeof quads);
        }
        if (some % 8) {
            const size_t rest = (size_t)(some % 8) * sizeof *to;
            quads = ((sx_i32x8){0} + (int32_t)((uint32_t)less * 0x1010101u)) ^ turned;
            __builtin_memcpy(&quads, from + k + 8 * whole, rest);
            quads ^= turned;
            any |= over[whole] = sx_split_8(&quads, less, &sums);
            __builtin_memcpy(to + k + 8 * whole, &quads, rest);
        }
        total += (sx_i32x8)__builtin_ia32_pmaddwd256(sums, (sx_i16x16){0} + 1);
        for (int64_t i = 0; any && i < 8; i++)
            for (; over[i]; over[i] &= ~(15u << __builtin_ctz(over[i]) / 4 * 4)) {
                const int64_t quad = k + 8 * i + __builtin_ctz(over[i]) / 4;
                to[quad] = sx_split_quad(rows, from[quad] ^ turned, at + quad, less);
            }
    }
    total += __builtin_shufflevector(total, total, 4, 5, 6, 7, 0, 1, 2, 3);
    total += __builtin_shufflevector(total, total, 2, 3, 0, 1, 6, 7, 4, 5);
    rows->sums[r] += total[0] + total[1];
}

/* Vectors overlap those before them rather than run over the end. */
static inline void sx_widen(
    int32_t *restrict to, const int32_t *restrict from, int64_t count, int32_t turned, int32_t less) {
    typedef int32_t many __attribute__((vector_size(32), aligned(4), may_alias));
    for (int64_t next = 0; count >= 8 && next < count; next += 8) {
        const int64_t k = next < count - 8 ? next : count - 8;
        const sx_i32x8 quads = *(const many *)(from + k) ^ turned;
        const sx_i32x8 evens = (sx_i32x8)((sx_i16x16)sx_unsigned_evens_8(quads) - (int16_t)less);
        const sx_i32x8 odds = (sx_i32x8)((sx_i16x16)sx_unsigned_odds_8(quads) - (int16_t)less);
        *(many *)(to + 2 * k) = __builtin_shufflevector(evens, odds, 0, 8, 1, 9, 2, 10, 3, 11);
        *(many *)(to + 2 * k + 8) = __builtin_shufflevector(evens, odds, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int64_t k = 0; count < 8 && k < count; k++) {
        const uint32_t quad = (uint32_t)(from[k] ^ turned);
        for (int32_t odd = 0; odd < 2; odd++) {
            const uint32_t pair = quad >> 8 * odd;
            const int32_t low = (int32_t)(pair & 255) - less, high = (int32_t)(pair >> 16 & 255) - less;
            to[2 * k + odd] = (int32_t)((uint32_t)low & 0xffff) | (int32_t)((uint32_t)high << 16);
        }
    }
}
#endif

#endif
