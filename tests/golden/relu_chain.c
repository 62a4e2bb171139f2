#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    const float *in1 = c->p[1];
    float *out2 = c->p[2];
    for (int64_t i0 = begin; i0 < end; i0++) {
        SX_VECTORS
        for (int64_t i1 = 0; i1 < 64; i1++) {
            const float t0 = in0[64 * i0 + i1];
            const float t1 = in1[i1];
            const float t2 = t0 + t1;
            const float t3 = sx_max_f32(t2, 0.0f);
            out2[64 * i0 + i1] = t3 * t3;
        }
    }
}

int32_t k_e06929bf6c0c13bea840(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 64, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
