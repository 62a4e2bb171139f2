#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *out1 = c->p[1];
    for (int64_t i0 = begin; i0 < end; i0++) {
        float v0 = 0.0f;
        { SX_REASSOCIATE
        SX_SIXTEENS(2, SX_INTERLEAVED)
        for (int64_t i1 = 0; i1 < 100; i1++) {
            const float t0 = in0[100 * i0 + i1];
            v0 = v0 + t0;
        }
        }
        out1[i0] = v0 / 100.0f;
    }
}

int32_t k_f3612dab0c6b0f6e1f99(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 163, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
