#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *out1 = c->p[1];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t n2 = c->n[2];
    for (int64_t i0 = begin; i0 < end; i0++) {
        const int64_t t0 = (int64_t)((i0 / ((n0 * n1 + 15) / 16)));
        const int64_t t1 = (int64_t)((i0 % ((n0 * n1 + 15) / 16)));
        for (int64_t i1 = 0; i1 < sx_smaller(-64 * t0 + n2, 64); i1++) {
            const int64_t t2 = (int64_t)(i1 + 64 * t0);
            SX_VECTORS
            for (int64_t i2 = 0; i2 < sx_smaller(n0 * n1 - 16 * t1, 16); i2++) {
                const int64_t t3 = (int64_t)(i2 + 16 * t1);
                const float t4 = in0[t3 * n2 + t2];
                out1[t2 * n0 * n1 + t3] = t4;
            }
        }
    }
}

int32_t k_567d7f9ca6e261fcc448(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    const int64_t n2 = n[2];
    run->parallel(run, ((n0 * n1 + 15) / 16) * ((n2 + 63) / 64), 4, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
