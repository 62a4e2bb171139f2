/* Dot products of bytes: each lane of 32 bits holds four of them, and adds up the four products with those of another.
 *
 *     sums = sx_dot_4(sums, a, b)         lanes of a times lanes of b; sx_dot_8, sx_dot_16
 *     sums = sx_dot_lane(sums, a, 2, b)   lane 2 of a times every lane of b; where there are four lanes
 *
 * b is signed. a is signed too, unless SX_DOT_UNSIGNED is 1: then it is unsigned, for so the processor has it.
 * Sums wrap. Instructions are written out, so that no compiler's headers are needed.
 *
 * x86 without VNNI multiplies pairs of 16 bits (those of bytes saturate), so that bytes are widened first. What is multiplied
 * often is widened once:
 *
 *     sums = sx_pairs_8(sums, sx_evens_8(a), sx_evens_8(b))      bytes 0 and 2 of every lane; sx_pairs_16
 *     sums = sx_pairs_8(sums, sx_odds_8(a), sx_odds_8(b))        bytes 1 and 3
 *     sx_widen(to, from, count, turned)    the evens and the odds of every quad, after the bits of `turned` were turned over */
#ifndef SX_DOT_H
#define SX_DOT_H

typedef int32_t sx_i32x4 __attribute__((vector_size(16)));
typedef int32_t sx_i32x8 __attribute__((vector_size(32)));
typedef int32_t sx_i32x16 __attribute__((vector_size(64)));

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define SX_DOT_UNSIGNED 1
#else
#define SX_DOT_UNSIGNED 0
#endif

#if defined(__ARM_FEATURE_DOTPROD)
static inline sx_i32x4 sx_dot_4(sx_i32x4 sums, sx_i32x4 a, sx_i32x4 b) {
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(b), "w"(a));
    return sums;
}
#define sx_dot_lane(sums, a, lane, b) \
    __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(sums) : "w"(b), "w"(a))
#else

#if defined(__SSE2__)
typedef int16_t sx_i16x8 __attribute__((vector_size(16)));
#endif

/* Without such an instruction: even and odd bytes apart, as numbers of 16 bits, two products at a time where there is
 * an instruction for that. */
static inline sx_i32x4 sx_dot_4(sx_i32x4 sums, sx_i32x4 a, sx_i32x4 b) {
#if defined(__SSE2__) && !SX_DOT_UNSIGNED
    const sx_i16x8 even_a = ((sx_i16x8)a << 8) >> 8, odd_a = (sx_i16x8)a >> 8;
    const sx_i16x8 even_b = ((sx_i16x8)b << 8) >> 8, odd_b = (sx_i16x8)b >> 8;
    sums += (sx_i32x4)__builtin_ia32_pmaddwd128(even_a, even_b);
    sums += (sx_i32x4)__builtin_ia32_pmaddwd128(odd_a, odd_b);
#else
    for (int32_t at = 24; at >= 0; at -= 8)
#if SX_DOT_UNSIGNED
        sums += (a >> at & 255) * ((b << (24 - at)) >> 24);
#else
        sums += ((a << (24 - at)) >> 24) * ((b << (24 - at)) >> 24);
#endif
#endif
    return sums;
}
#define sx_dot_lane(sums, a, lane, b) \
    (sums) = sx_dot_4(sums, __builtin_shufflevector(a, a, lane, lane, lane, lane), b)
#endif

#if defined(__AVX2__)
typedef int16_t sx_i16x16 __attribute__((vector_size(32)));
typedef int16_t sx_i16x32 __attribute__((vector_size(64)));

static inline sx_i32x4 sx_evens_4(sx_i32x4 quads) { return (sx_i32x4)(((sx_i16x8)quads << 8) >> 8); }
static inline sx_i32x4 sx_odds_4(sx_i32x4 quads) { return (sx_i32x4)((sx_i16x8)quads >> 8); }
static inline sx_i32x8 sx_evens_8(sx_i32x8 quads) { return (sx_i32x8)(((sx_i16x16)quads << 8) >> 8); }
static inline sx_i32x8 sx_odds_8(sx_i32x8 quads) { return (sx_i32x8)((sx_i16x16)quads >> 8); }
/* Both instructions in one piece: otherwise compilers let products wait for their sums, in more registers than there are. */
static inline sx_i32x8 sx_pairs_8(sx_i32x8 sums, sx_i32x8 a, sx_i32x8 b) {
    sx_i32x8 products;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sums), "=x"(products) : "x"(a), "x"(b));
    return sums;
}

#if defined(__AVX512BW__)
static inline sx_i32x16 sx_evens_16(sx_i32x16 quads) { return (sx_i32x16)(((sx_i16x32)quads << 8) >> 8); }
static inline sx_i32x16 sx_odds_16(sx_i32x16 quads) { return (sx_i32x16)((sx_i16x32)quads >> 8); }
static inline sx_i32x16 sx_pairs_16(sx_i32x16 sums, sx_i32x16 a, sx_i32x16 b) {
    sx_i32x16 products;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(sums), "=v"(products) : "v"(a), "v"(b));
    return sums;
}
#endif

/* Vectors overlap those before them rather than run over the end. */
static inline void sx_widen(int32_t *restrict to, const int32_t *restrict from, int64_t count, int32_t turned) {
    typedef int32_t some __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t many __attribute__((vector_size(32), aligned(4), may_alias));
    for (int64_t next = 0; count >= 8 && next < count; next += 8) {
        const int64_t k = next < count - 8 ? next : count - 8;
        const sx_i32x8 quads = *(const many *)(from + k) ^ turned;
        const sx_i32x8 evens = sx_evens_8(quads), odds = sx_odds_8(quads);
        *(many *)(to + 2 * k) = __builtin_shufflevector(evens, odds, 0, 8, 1, 9, 2, 10, 3, 11);
        *(many *)(to + 2 * k + 8) = __builtin_shufflevector(evens, odds, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int64_t next = 0; count >= 4 && count < 8 && next < count; next += 4) {
        const int64_t k = next < count - 4 ? next : count - 4;
        const sx_i32x4 quads = *(const some *)(from + k) ^ turned;
        const sx_i32x4 evens = sx_evens_4(quads), odds = sx_odds_4(quads);
        *(some *)(to + 2 * k) = __builtin_shufflevector(evens, odds, 0, 4, 1, 5);
        *(some *)(to + 2 * k + 4) = __builtin_shufflevector(evens, odds, 2, 6, 3, 7);
    }
    for (int64_t k = 0; count < 4 && k < count; k++) {
        const sx_i32x4 quads = {from[k] ^ turned};
        to[2 * k] = sx_evens_4(quads)[0];
        to[2 * k + 1] = sx_odds_4(quads)[0];
    }
}

static inline sx_i32x8 sx_dot_8(sx_i32x8 sums, sx_i32x8 a, sx_i32x8 b) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
#elif defined(__AVXVNNI__)
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(a), "x"(b));
    return sums;
#else
    return sx_pairs_8(sx_pairs_8(sums, sx_evens_8(a), sx_evens_8(b)), sx_odds_8(a), sx_odds_8(b));
#endif
}
#endif

#if defined(__AVX512BW__)
static inline sx_i32x16 sx_dot_16(sx_i32x16 sums, sx_i32x16 a, sx_i32x16 b) {
#if defined(__AVX512VNNI__)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
#else
    return sx_pairs_16(sx_pairs_16(sums, sx_evens_16(a), sx_evens_16(b)), sx_odds_16(a), sx_odds_16(b));
#endif
}
#endif

#endif
