#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    sx_run *run = c->run;
    const int64_t *in0 = c->p[0];
    const float *in1 = c->p[1];
    float *out2 = c->p[2];
    const int64_t n1 = c->n[1];
    for (int64_t i0 = begin; i0 < end; i0++) {
        const int64_t t0 = in0[i0];
        if ((t0 < ((int64_t)(-n1))) | (t0 >= ((int64_t)(n1)))) {
            sx_fail(run, 0, t0, (int64_t)(n1));
            return;
        }
        const int64_t t1 = (t0 < 0) ? sx_add_i64(t0, (int64_t)(n1)) : t0;
        SX_MASKED(1, SX_VECTOR)
        for (int64_t i1 = 0; i1 < 8; i1++) {
            const float t2 = in1[i1 + 8 * t1];
            out2[8 * i0 + i1] = t2;
        }
    }
}

int32_t k_481c18746f4c6f4cbf44(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, n0, 512, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
