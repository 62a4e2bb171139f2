#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *out1 = c->p[1];
    const int64_t n0 = c->n[0];
    const int64_t n2 = c->n[2];
    for (int64_t i0 = begin; i0 < end; i0++) {
        const int64_t t0 = (int64_t)((i0 / (16 * ((n0 + 1) / 2) * ((n2 + 127) / 128))));
        const int64_t t1 = (int64_t)(((i0 % (16 * ((n0 + 1) / 2) * ((n2 + 127) / 128))) / (((n0 + 1) / 2) * ((n2 + 127) / 128))));
        const int64_t t2 = (int64_t)((((i0 % (16 * ((n0 + 1) / 2) * ((n2 + 127) / 128))) % (((n0 + 1) / 2) * ((n2 + 127) / 128))) / ((n2 + 127) / 128)));
        const int64_t t3 = (int64_t)((((i0 % (16 * ((n0 + 1) / 2) * ((n2 + 127) / 128))) % (((n0 + 1) / 2) * ((n2 + 127) / 128))) % ((n2 + 127) / 128)));
        const int64_t t4 = (int64_t)(sx_smaller(-64 * t3 + ((n2 + 1) / 2), 64));
        float a0[64];
        SX_VECTORS
        for (int64_t i1 = 0; i1 < t4; i1++) {
            a0[i1] = -__builtin_inff();
        }
        const int64_t t5 = (int64_t)(sx_larger(-2 * t2 + 1, 0));
        const int64_t t6 = (int64_t)(sx_larger(-t5 + sx_smaller(-2 * t2 + n0 + 1, 3), 0));
        for (int64_t i2 = 0; i2 < t6; i2++) {
            const int64_t t7 = (int64_t)(i2 + 2 * t2 + t5 - 1);
            for (int64_t i3 = 0; i3 < 3; i3++) {
                const int64_t t8 = (int64_t)(sx_smaller(t4, sx_larger(-64 * t3 + ((sx_larger(-i3 + 1, 0) + 1) / 2), 0)));
                const int64_t t9 = (int64_t)(sx_larger(-t8 + sx_smaller(t4, -i3 - 64 * t3 + ((i3 + n2) / 2) + 1), 0));
                SX_VECTORS
                for (int64_t i4 = 0; i4 < t9; i4++) {
                    const int64_t t10 = (int64_t)(i3 + 2 * i4 + 2 * t8 + 128 * t3 - 1);
                    const float t11 = in0[16 * t0 * n0 * n2 + t1 * n0 * n2 + t7 * n2 + t10];
                    a0[i4 + t8] = sx_max_f32(a0[i4 + t8], t11);
                }
            }
        }
        SX_VECTORS
        for (int64_t i5 = 0; i5 < t4; i5++) {
            const int64_t t12 = (int64_t)(i5 + 64 * t3);
            out1[16 * t0 * ((n0 + 1) / 2) * ((n2 + 1) / 2) + t1 * ((n0 + 1) / 2) * ((n2 + 1) / 2) + t2 * ((n2 + 1) / 2) + t12] = a0[i5];
        }
    }
}

int32_t k_0f9682a00ea402471f9c(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    const int64_t n2 = n[2];
    if (((int64_t)(n0 + 2)) < 3) {
        return sx_fail(run, 0, 3, (int64_t)(n0 + 2));
    }
    if (((int64_t)(n2 + 2)) < 3) {
        return sx_fail(run, 0, 3, (int64_t)(n2 + 2));
    }
    run->parallel(run, 16 * n1 * ((n0 + 1) / 2) * ((n2 + 127) / 128), 28, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
