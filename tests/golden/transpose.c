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
        SX_VECTORS
        for (int64_t i1 = 0; i1 < n0 * n1; i1++) {
            const float t0 = in0[i1 * n2 + i0];
            out1[i0 * n0 * n1 + i1] = t0;
        }
    }
}

int32_t k_a2997e6595848a48ee74(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    const int64_t n2 = n[2];
    run->parallel(run, n2, sx_larger((16384 / sx_larger(4 * n0 * n1, 1)), 1), part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
