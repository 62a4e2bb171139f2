#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    float *scratch0 = c->p[0];
    int64_t *scratch1 = c->p[1];
    const float *in2 = c->p[2];
    float *out3 = c->p[3];
    int64_t *out4 = c->p[4];
    for (int64_t i0 = begin; i0 < end; i0++) {
        for (int64_t i1 = 0; i1 < 5; i1++) {
            const float t0 = in2[50 * i0 + i1];
            scratch0[5 * i0 + i1] = t0;
            scratch1[5 * i0 + i1] = (int64_t)(i1);
        }
        for (int64_t i2 = 0; i2 < 2; i2++) {
            const float t1 = scratch0[5 * i0 - i2 + 1];
            const int64_t t2 = scratch1[5 * i0 - i2 + 1];
            int64_t v0 = (int64_t)(-i2 + 1);
            uint8_t v1 = 1;
            while (v1) {
                int64_t v2 = sx_add_i64(sx_mul_i64(v0, 2), 1);
                v1 = v2 < 5;
                if (v1) {
                    const int64_t t3 = v2;
                    if (sx_add_i64(v2, 1) < 5) {
                        const float t4 = scratch0[5 * i0 + t3 + 1];
                        const int64_t t5 = scratch1[5 * i0 + t3 + 1];
                        const float t6 = scratch0[5 * i0 + t3];
                        const int64_t t7 = scratch1[5 * i0 + t3];
                        if (((t6 > t4) | (sx_isnan_f32(t6) & (!sx_isnan_f32(t4)))) | ((!((t4 > t6) | (sx_isnan_f32(t4) & (!sx_isnan_f32(t6))))) & (t5 > t7))) {
                            v2 = sx_add_i64(v2, 1);
                        }
                    }
                    const int64_t t8 = v2;
                    const float t9 = scratch0[5 * i0 + t8];
                    const int64_t t10 = scratch1[5 * i0 + t8];
                    v1 = ((t1 > t9) | (sx_isnan_f32(t1) & (!sx_isnan_f32(t9)))) | ((!((t9 > t1) | (sx_isnan_f32(t9) & (!sx_isnan_f32(t1))))) & (t10 > t2));
                    if (v1) {
                        const int64_t t11 = v0;
                        scratch0[5 * i0 + t11] = t9;
                        scratch1[5 * i0 + t11] = t10;
                        v0 = v2;
                    }
                }
            }
            const int64_t t12 = v0;
            scratch0[5 * i0 + t12] = t1;
            scratch1[5 * i0 + t12] = t2;
        }
        for (int64_t i3 = 0; i3 < 45; i3++) {
            const float t13 = in2[50 * i0 + i3 + 5];
            const float t14 = scratch0[5 * i0];
            const int64_t t15 = scratch1[5 * i0];
            if ((t13 > t14) | (sx_isnan_f32(t13) & (!sx_isnan_f32(t14)))) {
                int64_t v3 = 0;
                uint8_t v4 = 1;
                while (v4) {
                    int64_t v5 = sx_add_i64(sx_mul_i64(v3, 2), 1);
                    v4 = v5 < 5;
                    if (v4) {
                        const int64_t t16 = v5;
                        if (sx_add_i64(v5, 1) < 5) {
                            const float t17 = scratch0[5 * i0 + t16 + 1];
                            const int64_t t18 = scratch1[5 * i0 + t16 + 1];
                            const float t19 = scratch0[5 * i0 + t16];
                            const int64_t t20 = scratch1[5 * i0 + t16];
                            if (((t19 > t17) | (sx_isnan_f32(t19) & (!sx_isnan_f32(t17)))) | ((!((t17 > t19) | (sx_isnan_f32(t17) & (!sx_isnan_f32(t19))))) & (t18 > t20))) {
                                v5 = sx_add_i64(v5, 1);
                            }
                        }
                        const int64_t t21 = v5;
                        const float t22 = scratch0[5 * i0 + t21];
                        const int64_t t23 = scratch1[5 * i0 + t21];
                        v4 = ((t13 > t22) | (sx_isnan_f32(t13) & (!sx_isnan_f32(t22)))) | ((!((t22 > t13) | (sx_isnan_f32(t22) & (!sx_isnan_f32(t13))))) & (t23 > ((int64_t)(i3 + 5))));
                        if (v4) {
                            const int64_t t24 = v3;
                            scratch0[5 * i0 + t24] = t22;
                            scratch1[5 * i0 + t24] = t23;
                            v3 = v5;
                        }
                    }
                }
                const int64_t t25 = v3;
                scratch0[5 * i0 + t25] = t13;
                scratch1[5 * i0 + t25] = (int64_t)(i3 + 5);
            }
        }
        for (int64_t i4 = 0; i4 < 5; i4++) {
            const float t26 = scratch0[5 * i0];
            const int64_t t27 = scratch1[5 * i0];
            const float t28 = scratch0[5 * i0 - i4 + 4];
            const int64_t t29 = scratch1[5 * i0 - i4 + 4];
            out3[5 * i0 - i4 + 4] = t26;
            out4[5 * i0 - i4 + 4] = t27;
            int64_t v6 = 0;
            uint8_t v7 = 1;
            while (v7) {
                int64_t v8 = sx_add_i64(sx_mul_i64(v6, 2), 1);
                v7 = v8 < ((int64_t)(-i4 + 4));
                if (v7) {
                    const int64_t t30 = v8;
                    if (sx_add_i64(v8, 1) < ((int64_t)(-i4 + 4))) {
                        const float t31 = scratch0[5 * i0 + t30 + 1];
                        const int64_t t32 = scratch1[5 * i0 + t30 + 1];
                        const float t33 = scratch0[5 * i0 + t30];
                        const int64_t t34 = scratch1[5 * i0 + t30];
                        if (((t33 > t31) | (sx_isnan_f32(t33) & (!sx_isnan_f32(t31)))) | ((!((t31 > t33) | (sx_isnan_f32(t31) & (!sx_isnan_f32(t33))))) & (t32 > t34))) {
                            v8 = sx_add_i64(v8, 1);
                        }
                    }
                    const int64_t t35 = v8;
                    const float t36 = scratch0[5 * i0 + t35];
                    const int64_t t37 = scratch1[5 * i0 + t35];
                    v7 = ((t28 > t36) | (sx_isnan_f32(t28) & (!sx_isnan_f32(t36)))) | ((!((t36 > t28) | (sx_isnan_f32(t36) & (!sx_isnan_f32(t28))))) & (t37 > t29));
                    if (v7) {
                        const int64_t t38 = v6;
                        scratch0[5 * i0 + t38] = t36;
                        scratch1[5 * i0 + t38] = t37;
                        v6 = v8;
                    }
                }
            }
            const int64_t t39 = v6;
            scratch0[5 * i0 + t39] = t28;
            scratch1[5 * i0 + t39] = t29;
        }
    }
}

int32_t k_5c83e0374e2cf7e7e196(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 81, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
