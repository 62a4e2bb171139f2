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
        SX_VECTOR
        for (int64_t i1 = 0; i1 < n0; i1++) {
            const float t0 = in0[i0 * n0 + i1];
            v0 = sx_max_f32(v0, t0);
        }
        }
        float a0[4096];
        if (((int64_t)(n0)) <= 4096) {
            float v1 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i2 = 0; i2 < n0; i2++) {
                const float t1 = in0[i0 * n0 + i2];
                const float t2 = sx_exp_f32(t1 - v0);
                a0[i2] = t2;
                v1 = v1 + t2;
            }
            }
            float v2 = 1.0f / v1;
            SX_VECTOR
            for (int64_t i3 = 0; i3 < n0; i3++) {
                out1[i0 * n0 + i3] = a0[i3] * v2;
            }
        } else {
            float v3 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i4 = 0; i4 < n0; i4++) {
                const float t3 = in0[i0 * n0 + i4];
                const float t4 = sx_exp_f32(t3 - v0);
                v3 = v3 + t4;
            }
            }
            float v4 = 1.0f / v3;
            SX_VECTOR
            for (int64_t i5 = 0; i5 < n0; i5++) {
                const float t5 = in0[i0 * n0 + i5];
                out1[i0 * n0 + i5] = sx_exp_f32(t5 - v0) * v4;
            }
        }
    }
}

int32_t k_825d576e3341dd480954(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    run->parallel(run, n1, sx_larger((16384 / sx_larger(16 * n0, 1)), 1), part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
