/* Dot products of bytes: each lane of 32 bits holds four of them, and adds up the four products with those of another.
 *
 *     sums = sx_dot_4(sums, a, b)         lanes of a times lanes of b; sx_dot_8, sx_dot_16
 *     sums = sx_dot_lane(sums, a, 2, b)   lane 2 of a times every lane of b; where there are four lanes
 *
 * b is signed. a is signed too, unless SX_DOT_UNSIGNED is 1: then it is unsigned, for so the processor has it.
 * Sums wrap. Instructions are written out, so that no compiler's headers are needed.
 *
 * x86 without VNNI multiplies pairs of 16 bits (those of bytes saturate), so that bytes are widened first; `split.h` has
 * another way. */
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

/* A sum is what it is here, neither before nor after: compilers that move what is added to it about run out of registers. */
#if defined(__aarch64__)
#define SX_HERE(sums) __asm__ volatile("" : "+w"(sums))
#else
#define SX_HERE(sums) (void)(sums)
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
