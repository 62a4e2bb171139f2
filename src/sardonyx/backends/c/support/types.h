/* The element types of the kernel language in C, and their bits.
 *
 * f16, bf16 and everything smaller are storage: they are converted to float, computed, and rounded
 * once when stored. `sx_f16` is the compiler's half type where the CPU converts it in one
 * instruction, else its bits; only the functions of conversions.h look inside.
 */
#ifndef SX_TYPES_H
#define SX_TYPES_H

#include <stdint.h>
#include <string.h>

#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

#ifndef SX_HARDWARE_F16
#if defined(__aarch64__) || (defined(__F16C__) && defined(__FLT16_MAX__))
#define SX_HARDWARE_F16 1
#else
#define SX_HARDWARE_F16 0
#endif
#endif

#if SX_HARDWARE_F16
__extension__ typedef _Float16 sx_f16;
#else
typedef uint16_t sx_f16;
#endif

typedef uint16_t sx_bf16;
typedef uint8_t sx_bool; /* 0 or 1; not _Bool, where loading any other byte is undefined */

typedef uint8_t sx_f8e4m3fn, sx_f8e4m3fnuz, sx_f8e5m2, sx_f8e5m2fnuz, sx_f8e8m0;
typedef uint8_t sx_f4e2m1, sx_u4, sx_u2; /* one element a byte, in its low bits */
typedef int8_t sx_i4, sx_i2;             /* likewise; sign-extended where we write them */

static inline uint32_t sx_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float sx_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t sx_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double sx_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
