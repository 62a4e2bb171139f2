#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    const float *in1 = c->p[1];
    const float *in2 = c->p[2];
    float *out3 = c->p[3];
    for (int64_t i0 = begin; i0 < end; i0++) {
        float v0 = 0.0f;
        { SX_REASSOCIATE
        SX_SHORT_SUMS
        for (int64_t i1 = 0; i1 < 64; i1++) {
            const float t0 = in0[64 * i0 + i1];
            v0 = v0 + t0;
        }
        }
        float v1 = v0 / 64.0f;
        float v2 = 0.0f;
        { SX_REASSOCIATE
        SX_SHORT_SUMS
        for (int64_t i2 = 0; i2 < 64; i2++) {
            const float t1 = in0[64 * i0 + i2];
            const float t2 = t1 - v1;
            v2 = v2 + (t2 * t2);
        }
        }
        float v3 = v2 / 64.0f;
        float v4 = 1.0f / sx_sqrt_f32(v3 + 0x1.4f8b588e368f1p-17f);
        SX_VECTORS
        for (int64_t i3 = 0; i3 < 64; i3++) {
            const float t3 = in0[64 * i0 + i3];
            const float t4 = in1[i3];
            const float t5 = in2[i3];
            out3[64 * i0 + i3] = (((t3 - v1) * v4) * t4) + t5;
        }
    }
}

int32_t k_eea572b1d596fb75815b(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 64, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
