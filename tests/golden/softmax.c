#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *out1 = c->p[1];
    const int64_t n0 = c->n[0];
    for (int64_t i0 = begin; i0 < end; i0++) {
        float v0 = -__builtin_inff();
        { SX_REASSOCIATE
        SX_INTERLEAVED
        for (int64_t i1 = 0; i1 < n0; i1++) {
            const float t0 = in0[i0 * n0 + i1];
            v0 = sx_max_f32(v0, t0);
        }
        }
        float a0[4096];
        if (((int64_t)(n0)) <= 4096) {
            float v1 = 0.0f;
            float v2 = 0.0f;
            for (int64_t i2 = 0; i2 < ((n0 + 1023) / 1024); i2++) {
                v2 = 0.0f;
                { SX_REASSOCIATE
                SX_INTERLEAVED
                for (int64_t i3 = 0; i3 < sx_smaller(-1024 * i2 + n0, 1024); i3++) {
                    const float t1 = in0[i0 * n0 + 1024 * i2 + i3];
                    const float t2 = sx_exp_weight_f32(t1 - v0);
                    a0[1024 * i2 + i3] = t2;
                    v2 = v2 + t2;
                }
                }
                v1 = v1 + v2;
            }
            float v3 = 1.0f / v1;
            SX_VECTORS
            for (int64_t i4 = 0; i4 < n0; i4++) {
                out1[i0 * n0 + i4] = a0[i4] * v3;
            }
        } else {
            float v4 = 0.0f;
            float v5 = 0.0f;
            for (int64_t i5 = 0; i5 < ((n0 + 1023) / 1024); i5++) {
                v5 = 0.0f;
                { SX_REASSOCIATE
                SX_INTERLEAVED
                for (int64_t i6 = 0; i6 < sx_smaller(-1024 * i5 + n0, 1024); i6++) {
                    const float t3 = in0[i0 * n0 + 1024 * i5 + i6];
                    const float t4 = sx_exp_weight_f32(t3 - v0);
                    v5 = v5 + t4;
                }
                }
                v4 = v4 + v5;
            }
            float v6 = 1.0f / v4;
            SX_VECTORS
            for (int64_t i7 = 0; i7 < n0; i7++) {
                const float t5 = in0[i0 * n0 + i7];
                out1[i0 * n0 + i7] = sx_exp_weight_f32(t5 - v0) * v6;
            }
        }
    }
}

int32_t k_193d3cd56560c5bf67d0(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    run->parallel(run, n1, sx_larger((16384 / sx_larger(16 * n0, 1)), 1), part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
