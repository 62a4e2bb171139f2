#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    uint64_t *scratch0 = c->p[0];
    const float *in1 = c->p[1];
    float *out2 = c->p[2];
    int64_t *out3 = c->p[3];
    for (int64_t i0 = begin; i0 < end; i0++) {
        SX_VECTOR
        for (int64_t i1 = 0; i1 < 5; i1++) {
            const float t0 = in1[50 * i0 + i1];
            const int32_t t1 = sx_cast_f32_i32_bits(t0);
            const int32_t t2 = t1 & 2147483647;
            const int32_t t3 = (t1 < 0) ? sx_neg_i32(t2) : t2;
            const uint32_t t4 = sx_cast_i32_u32_bits((t2 > 2139095040) ? 2147483647 : t3) ^ UINT32_C(2147483648);
            scratch0[5 * i0 + i1] = sx_not_u64(sx_shl_u64(sx_cast_u32_u64(sx_not_u32(t4)), UINT64_C(32)) | sx_cast_i64_u64_bits((int64_t)(i1)));
        }
        int64_t v0 = sx_div_i64(5, 2);
        while (v0 > 0) {
            v0 = sx_sub_i64(v0, 1);
            const int64_t t5 = v0;
            const uint64_t t6 = scratch0[5 * i0 + t5];
            int64_t v1 = v0;
            int64_t v2 = sx_add_i64(sx_mul_i64(v1, 2), 1);
            uint8_t v3 = v2 < 5;
            while (v3) {
                const int64_t t7 = sx_min_i64(sx_add_i64(v2, 1), sx_sub_i64(5, 1));
                const int64_t t8 = v2;
                const uint64_t t9 = scratch0[5 * i0 + t8];
                const int64_t t10 = t7;
                const uint64_t t11 = scratch0[5 * i0 + t10];
                const uint8_t t12 = t11 < t9;
                const uint64_t t13 = t12 ? t11 : t9;
                v3 = t13 < t6;
                if (v3) {
                    const int64_t t14 = v1;
                    scratch0[5 * i0 + t14] = t13;
                    v1 = t12 ? t7 : v2;
                    v2 = sx_add_i64(sx_mul_i64(v1, 2), 1);
                    v3 = v2 < 5;
                }
            }
            const int64_t t15 = v1;
            scratch0[5 * i0 + t15] = t6;
        }
        const uint64_t t16 = scratch0[5 * i0];
        const int64_t t17 = sx_cast_u64_i64_bits(sx_not_u64(t16) & UINT64_C(4294967295));
        const float t18 = in1[50 * i0 + t17];
        float v4 = t18;
        int32_t v5 = 0;
        { SX_REASSOCIATE
        SX_SHORT_SUMS
        for (int64_t i2 = 0; i2 < 45; i2++) {
            const float t19 = in1[50 * i0 + i2 + 5];
            v5 = v5 | ((!(t19 <= v4)) ? 1 : 0);
        }
        }
        if (v5 != 0) {
            for (int64_t i3 = 0; i3 < 45; i3++) {
                const float t20 = in1[50 * i0 + i3 + 5];
                if (!(t20 <= v4)) {
                    const int32_t t21 = sx_cast_f32_i32_bits(t20);
                    const int32_t t22 = t21 & 2147483647;
                    const int32_t t23 = (t21 < 0) ? sx_neg_i32(t22) : t22;
                    const uint32_t t24 = sx_cast_i32_u32_bits((t22 > 2139095040) ? 2147483647 : t23) ^ UINT32_C(2147483648);
                    const uint64_t t25 = sx_not_u64(sx_shl_u64(sx_cast_u32_u64(sx_not_u32(t24)), UINT64_C(32)) | sx_cast_i64_u64_bits((int64_t)(i3 + 5)));
                    const uint64_t t26 = scratch0[5 * i0];
                    if (t26 < t25) {
                        int64_t v6 = 0;
                        int64_t v7 = sx_add_i64(sx_mul_i64(v6, 2), 1);
                        uint8_t v8 = v7 < 5;
                        while (v8) {
                            const int64_t t27 = sx_min_i64(sx_add_i64(v7, 1), sx_sub_i64(5, 1));
                            const int64_t t28 = v7;
                            const uint64_t t29 = scratch0[5 * i0 + t28];
                            const int64_t t30 = t27;
                            const uint64_t t31 = scratch0[5 * i0 + t30];
                            const uint8_t t32 = t31 < t29;
                            const uint64_t t33 = t32 ? t31 : t29;
                            v8 = t33 < t25;
                            if (v8) {
                                const int64_t t34 = v6;
                                scratch0[5 * i0 + t34] = t33;
                                v6 = t32 ? t27 : v7;
                                v7 = sx_add_i64(sx_mul_i64(v6, 2), 1);
                                v8 = v7 < 5;
                            }
                        }
                        const int64_t t35 = v6;
                        scratch0[5 * i0 + t35] = t25;
                        const uint64_t t36 = scratch0[5 * i0];
                        const int64_t t37 = sx_cast_u64_i64_bits(sx_not_u64(t36) & UINT64_C(4294967295));
                        const float t38 = in1[50 * i0 + t37];
                        v4 = t38;
                    }
                }
            }
        }
        for (int64_t i4 = 0; i4 < 5; i4++) {
            const uint64_t t39 = scratch0[5 * i0];
            const uint64_t t40 = scratch0[5 * i0 - i4 + 4];
            const int64_t t41 = sx_cast_u64_i64_bits(sx_not_u64(t39) & UINT64_C(4294967295));
            const float t42 = in1[50 * i0 + t41];
            out2[5 * i0 - i4 + 4] = t42;
            out3[5 * i0 - i4 + 4] = (int64_t)(t41);
            int64_t v9 = 0;
            int64_t v10 = sx_add_i64(sx_mul_i64(v9, 2), 1);
            uint8_t v11 = v10 < ((int64_t)(-i4 + 4));
            while (v11) {
                const int64_t t43 = sx_min_i64(sx_add_i64(v10, 1), sx_sub_i64((int64_t)(-i4 + 4), 1));
                const int64_t t44 = v10;
                const uint64_t t45 = scratch0[5 * i0 + t44];
                const int64_t t46 = t43;
                const uint64_t t47 = scratch0[5 * i0 + t46];
                const uint8_t t48 = t47 < t45;
                const uint64_t t49 = t48 ? t47 : t45;
                v11 = t49 < t40;
                if (v11) {
                    const int64_t t50 = v9;
                    scratch0[5 * i0 + t50] = t49;
                    v9 = t48 ? t43 : v10;
                    v10 = sx_add_i64(sx_mul_i64(v9, 2), 1);
                    v11 = v10 < ((int64_t)(-i4 + 4));
                }
            }
            const int64_t t51 = v9;
            scratch0[5 * i0 + t51] = t40;
        }
    }
}

int32_t k_e7bcf4a8d1aa846fe5d5(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 81, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
