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
        float a0[129];
        const int64_t t4 = (int64_t)(sx_smaller(-64 * t3 + ((n2 + 1) / 2), 64));
        const int64_t t5 = (int64_t)(sx_larger(-128 * t3 + 1, 0));
        const int64_t t6 = (int64_t)(sx_smaller(2 * t4 + 1, sx_larger(t5, n2 * sx_smaller(n0, 1) - 128 * t3 + 1)));
        const int64_t t7 = (int64_t)(sx_larger(sx_smaller(2 * t2 - 1, sx_larger(n0 - 1, 0)), 0));
        const int64_t t8 = (int64_t)(sx_smaller(2 * t2, sx_larger(n0 - 1, 0)));
        const int64_t t9 = (int64_t)(sx_smaller(2 * t2 + 1, sx_larger(n0 - 1, 0)));
        SX_VECTORS
        for (int64_t i1 = 0; i1 < t5; i1++) {
            a0[i1] = -__builtin_inff();
        }
        SX_VECTORS
        for (int64_t i2 = 0; i2 < -t5 + t6; i2++) {
            const int64_t t10 = (int64_t)(i2 + 128 * t3 + t5 - 1);
            const float t11 = in0[16 * t0 * n0 * n2 + t1 * n0 * n2 + t7 * n2 + t10];
            const float t12 = in0[16 * t0 * n0 * n2 + t1 * n0 * n2 + t8 * n2 + t10];
            const float t13 = in0[16 * t0 * n0 * n2 + t1 * n0 * n2 + t9 * n2 + t10];
            a0[i2 + t5] = sx_max_f32(sx_max_f32(t11, t12), t13);
        }
        SX_VECTORS
        for (int64_t i3 = 0; i3 < 2 * t4 - t6 + 1; i3++) {
            a0[i3 + t6] = -__builtin_inff();
        }
        SX_VECTORS
        for (int64_t i4 = 0; i4 < t4; i4++) {
            const int64_t t14 = (int64_t)(i4 + 64 * t3);
            out1[16 * t0 * ((n0 + 1) / 2) * ((n2 + 1) / 2) + t1 * ((n0 + 1) / 2) * ((n2 + 1) / 2) + t2 * ((n2 + 1) / 2) + t14] = sx_max_f32(sx_max_f32(a0[2 * i4], a0[2 * i4 + 1]), a0[2 * i4 + 2]);
        }
    }
}

int32_t k_f1cbedcfbab35a3699ce(sx_run *run, void *const *p, const int64_t *n) {
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
