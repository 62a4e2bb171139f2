/* Integer and boolean operations, defined for every operand: see docs/numerics.md, Integers.
 *
 * Sums and products wrap: they are computed unsigned, in 32 bits at least, because C promotes
 * uint16_t to int, where a product overflows. Division by zero is refused before a kernel divides;
 * here it gives 0. The divisors -1 and 0 are replaced by 1 so that no quotient traps or overflows,
 * without a branch.
 */
#ifndef SX_INTEGERS_H
#define SX_INTEGERS_H

#include "types.h"

/* What is the same for signed and unsigned. W: unsigned, at least 32 bits, at least as wide as T. */
#define SX_INTEGER(t, T, W)                                                         \
    static inline T sx_add_##t(T a, T b) { return (T)((W)a + (W)b); }               \
    static inline T sx_sub_##t(T a, T b) { return (T)((W)a - (W)b); }               \
    static inline T sx_mul_##t(T a, T b) { return (T)((W)a * (W)b); }               \
    static inline T sx_neg_##t(T x) { return (T)((W)0 - (W)x); }                    \
    static inline T sx_min_##t(T a, T b) { return b < a ? b : a; }                  \
    static inline T sx_max_##t(T a, T b) { return b > a ? b : a; }                  \
    static inline T sx_and_##t(T a, T b) { return (T)(a & b); }                  \
    static inline T sx_or_##t(T a, T b) { return (T)(a | b); }                   \
    static inline T sx_xor_##t(T a, T b) { return (T)(a ^ b); }                  \
    static inline T sx_not_##t(T x) { return (T)~x; }                            \
    static inline T sx_wrapped_power_##t(T x, uint64_t n) {                         \
        uint64_t product = 1, square = (uint64_t)x;                                 \
        for (; n; n >>= 1) {                                                        \
            product *= n & 1 ? square : 1;                                          \
            square *= square;                                                       \
        }                                                                           \
        return (T)product;                                                          \
    }                                                                               \
    static inline T sx_shl_##t(T x, T by) {                                         \
        int inside = (uint64_t)by < 8 * sizeof(T); /* negative ones are huge */     \
        return inside ? (T)((W)x << (inside ? (W)by : 0)) : 0;                      \
    }

/*   div   truncates; INT_MIN / -1 wraps      fmod   the sign of a      mod   the sign of b
 *   pow   wraps; x^-n is 0 unless x is 1 or -1 (0^-n is refused before a kernel asks)
 *   shr   copies the sign; past the width or by a negative number, only the sign is left */
#define SX_SIGNED(t, T, W)                                                          \
    SX_INTEGER(t, T, W)                                                             \
    static inline T sx_abs_##t(T x) { return x < 0 ? sx_neg_##t(x) : x; }           \
    static inline T sx_sign_##t(T x) { return (T)((x > 0) - (x < 0)); }             \
    static inline T sx_div_##t(T a, T b) {                                          \
        T safe = b == 0 || b == -1 ? 1 : b;                                         \
        T quotient = (T)(a / safe);                                                 \
        return b == -1 ? sx_neg_##t(a) : b == 0 ? 0 : quotient;                     \
    }                                                                               \
    static inline T sx_fmod_##t(T a, T b) {                                         \
        return (T)(a % (b == 0 || b == -1 ? 1 : b)); /* x % 1 is 0, as wanted */    \
    }                                                                               \
    static inline T sx_mod_##t(T a, T b) {                                          \
        T rest = sx_fmod_##t(a, b);                                                 \
        return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;           \
    }                                                                               \
    static inline T sx_pow_##t(T x, T n) {                                          \
        T inverse = x == 1 || (x == -1 && n % 2 == 0) ? 1 : x == -1 ? -1 : 0;       \
        return n < 0 ? inverse : sx_wrapped_power_##t(x, n < 0 ? 0 : (uint64_t)n);  \
    }                                                                               \
    static inline T sx_shr_##t(T x, T by) {                                         \
        int inside = (uint64_t)by < 8 * sizeof(T);                                  \
        return (T)(x >> (inside ? (int)by : (int)(8 * sizeof(T) - 1)));             \
    }

#define SX_UNSIGNED(t, T, W)                                                        \
    SX_INTEGER(t, T, W)                                                             \
    static inline T sx_abs_##t(T x) { return x; }                                   \
    static inline T sx_sign_##t(T x) { return x != 0; }                             \
    static inline T sx_div_##t(T a, T b) { return b == 0 ? 0 : (T)(a / (b == 0 ? 1 : b)); } \
    static inline T sx_fmod_##t(T a, T b) { return (T)(a % (b == 0 ? 1 : b)); }     \
    static inline T sx_mod_##t(T a, T b) { return sx_fmod_##t(a, b); }              \
    static inline T sx_pow_##t(T x, T n) { return sx_wrapped_power_##t(x, n); }     \
    static inline T sx_shr_##t(T x, T by) {                                         \
        int inside = by < 8 * sizeof(T);                                            \
        return inside ? (T)(x >> (inside ? by : 0)) : 0;                            \
    }

SX_SIGNED(i8, int8_t, uint32_t)
SX_SIGNED(i16, int16_t, uint32_t)
SX_SIGNED(i32, int32_t, uint32_t)
SX_SIGNED(i64, int64_t, uint64_t)
SX_UNSIGNED(u8, uint8_t, uint32_t)
SX_UNSIGNED(u16, uint16_t, uint32_t)
SX_UNSIGNED(u32, uint32_t, uint32_t)
SX_UNSIGNED(u64, uint64_t, uint64_t)

#undef SX_INTEGER
#undef SX_SIGNED
#undef SX_UNSIGNED

/* Any byte but 0 is true: a caller's array may hold others than 1. */
static inline sx_bool sx_and_bool(sx_bool a, sx_bool b) { return (a != 0) & (b != 0); }
static inline sx_bool sx_or_bool(sx_bool a, sx_bool b) { return (a | b) != 0; }
static inline sx_bool sx_xor_bool(sx_bool a, sx_bool b) { return (a != 0) ^ (b != 0); }
static inline sx_bool sx_not_bool(sx_bool a) { return a == 0; }
static inline sx_bool sx_eq_bool(sx_bool a, sx_bool b) { return (a != 0) == (b != 0); }

#endif
