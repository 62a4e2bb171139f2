/* sx_cast_<from>_<to>_bits: the same bits, read as another type of the same width. */
#ifndef SX_BITS_H
#define SX_BITS_H

#include "types.h"

#define SX_BITS(f, F, t, T)                                                                       \
    static inline T sx_cast_##f##_##t##_bits(F x) {                                               \
        T y;                                                                                      \
        memcpy(&y, &x, sizeof y);                                                                 \
        return y;                                                                                 \
    }
#define SX_BITS_BOTH(f, F, t, T) SX_BITS(f, F, t, T) SX_BITS(t, T, f, F)
#define SX_BITS_WHOLE(f, F, BITS)                                                                 \
    SX_BITS_BOTH(f, F, i##BITS, int##BITS##_t)                                                    \
    SX_BITS_BOTH(f, F, u##BITS, uint##BITS##_t)

SX_BITS_WHOLE(f32, float, 32)
SX_BITS_WHOLE(f64, double, 64)
SX_BITS_WHOLE(f16, sx_f16, 16)
SX_BITS_WHOLE(bf16, sx_bf16, 16)
SX_BITS_BOTH(f16, sx_f16, bf16, sx_bf16)
SX_BITS_BOTH(i8, int8_t, u8, uint8_t)
SX_BITS_BOTH(i16, int16_t, u16, uint16_t)
SX_BITS_BOTH(i32, int32_t, u32, uint32_t)
SX_BITS_BOTH(i64, int64_t, u64, uint64_t)

/* Types of one byte: i8, u8 and the float8. */
#define SX_BITS_FLOAT8(t) SX_BITS_WHOLE(t, sx_##t, 8)
#define SX_BITS_AMONG(t, a, b, c, d)                                                              \
    SX_BITS(t, sx_##t, a, sx_##a)                                                                 \
    SX_BITS(t, sx_##t, b, sx_##b)                                                                 \
    SX_BITS(t, sx_##t, c, sx_##c)                                                                 \
    SX_BITS(t, sx_##t, d, sx_##d)

SX_BITS_FLOAT8(f8e4m3fn)
SX_BITS_FLOAT8(f8e4m3fnuz)
SX_BITS_FLOAT8(f8e5m2)
SX_BITS_FLOAT8(f8e5m2fnuz)
SX_BITS_FLOAT8(f8e8m0)
SX_BITS_AMONG(f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0)
SX_BITS_AMONG(f8e4m3fnuz, f8e4m3fn, f8e5m2, f8e5m2fnuz, f8e8m0)
SX_BITS_AMONG(f8e5m2, f8e4m3fn, f8e4m3fnuz, f8e5m2fnuz, f8e8m0)
SX_BITS_AMONG(f8e5m2fnuz, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e8m0)
SX_BITS_AMONG(f8e8m0, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz)

#undef SX_BITS
#undef SX_BITS_BOTH
#undef SX_BITS_WHOLE
#undef SX_BITS_FLOAT8
#undef SX_BITS_AMONG

#endif
