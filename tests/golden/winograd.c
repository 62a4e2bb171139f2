#include "abi.h"
#include "index.h"
#include "scalar.h"
#include "denormals.h"

struct env { sx_run *run; void *p[4]; const int64_t *n; };

static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count,
                             const float *sums) {
    (void)env, (void)b, (void)m, (void)n;
    const float *in2 = env->p[2];
    float *out3 = env->p[3];
    SX_VECTORS
    for (int64_t i0 = 0; i0 < count; i0++) {
        const int64_t t0 = (int64_t)(i0 + n);
        const float t1 = sums[i0];
        const float t2 = in2[t0];
        const float t3 = t1 + t2;
        const float t4 = sx_max_f32(t3, 0.0f);
        out3[12544 * b + m + 196 * t0] = t4;
    }
}

#ifndef SX_CONTRACTION
#define SX_CONTRACTION
static inline int64_t sx_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t sx_pieces(int64_t total, int64_t size) { return (total + size - 1) / size; }
/* Where piece `index` begins when `total` is dealt out evenly over `pieces`, the larger ones among the others: threads take
 * neighbours. */
static inline int64_t sx_border(int64_t total, int64_t pieces, int64_t index) { return index * total / pieces; }
#endif

typedef float contract_a_v __attribute__((vector_size(16)));
typedef float contract_a_m __attribute__((vector_size(16), aligned(4), may_alias));
static inline contract_a_v contract_a_load(const float *p) { return *(const contract_a_m *)p; }

typedef float contract_b_v __attribute__((vector_size(16)));
typedef float contract_b_m __attribute__((vector_size(16), aligned(4), may_alias));
static inline contract_b_v contract_b_load(const float *p) { return *(const contract_b_m *)p; }

/* 4 rows: rows[s][r] points at the first of `depth` values; panels are `stride` values apart. */
static __attribute__((noinline)) void contract_rows_4(
    const float *(*rows)[5], int64_t segments, int64_t depth,
    const float *b, int64_t stride, int64_t panels, float *acc, int64_t pitch, int32_t fresh) {
    int64_t panel = 0;
    for (; panel + 1 <= panels; panel += 1) {
        const contract_a_v zero = {0};
        const float *b0 = b + 0 * stride;
        int32_t first = fresh;
        for (int64_t s = 0; s < segments;) {
            contract_a_v c0_0_0 = zero;
            contract_a_v c0_0_1 = zero;
            contract_a_v c0_0_2 = zero;
            contract_a_v c0_0_3 = zero;
            contract_a_v c1_0_0 = zero;
            contract_a_v c1_0_1 = zero;
            contract_a_v c1_0_2 = zero;
            contract_a_v c1_0_3 = zero;
            contract_a_v c2_0_0 = zero;
            contract_a_v c2_0_1 = zero;
            contract_a_v c2_0_2 = zero;
            contract_a_v c2_0_3 = zero;
            contract_a_v c3_0_0 = zero;
            contract_a_v c3_0_1 = zero;
            contract_a_v c3_0_2 = zero;
            contract_a_v c3_0_3 = zero;
            const int64_t last = sx_least(segments, s + 1);
            for (; s < last; s++) {
                const float *a0 = rows[s][0];
                const float *a1 = rows[s][1];
                const float *a2 = rows[s][2];
                const float *a3 = rows[s][3];
                int64_t k = 0;
                const int64_t end = depth;
                for (; k + 4 <= end; k += 4) {
                    const contract_a_v x0 = contract_a_load(a0 + k);
                    const contract_a_v x1 = contract_a_load(a1 + k);
                    const contract_a_v x2 = contract_a_load(a2 + k);
                    const contract_a_v x3 = contract_a_load(a3 + k);
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 0);
                        __builtin_prefetch(b0 + 128);
                        const contract_a_v y0_1 = contract_b_load(b0 + 4);
                        const contract_a_v y0_2 = contract_b_load(b0 + 8);
                        const contract_a_v y0_3 = contract_b_load(b0 + 12);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 16);
                        __builtin_prefetch(b0 + 144);
                        const contract_a_v y0_1 = contract_b_load(b0 + 20);
                        const contract_a_v y0_2 = contract_b_load(b0 + 24);
                        const contract_a_v y0_3 = contract_b_load(b0 + 28);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 32);
                        __builtin_prefetch(b0 + 160);
                        const contract_a_v y0_1 = contract_b_load(b0 + 36);
                        const contract_a_v y0_2 = contract_b_load(b0 + 40);
                        const contract_a_v y0_3 = contract_b_load(b0 + 44);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 48);
                        __builtin_prefetch(b0 + 176);
                        const contract_a_v y0_1 = contract_b_load(b0 + 52);
                        const contract_a_v y0_2 = contract_b_load(b0 + 56);
                        const contract_a_v y0_3 = contract_b_load(b0 + 60);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_3;
                    }
                    b0 += 64;
                }
                for (; k < end; k++) {
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 0);
                        __builtin_prefetch(b0 + 128);
                        const contract_a_v y0_1 = contract_b_load(b0 + 4);
                        const contract_a_v y0_2 = contract_b_load(b0 + 8);
                        const contract_a_v y0_3 = contract_b_load(b0 + 12);
                        c0_0_0 += a0[k] * y0_0;
                        c0_0_1 += a0[k] * y0_1;
                        c0_0_2 += a0[k] * y0_2;
                        c0_0_3 += a0[k] * y0_3;
                        c1_0_0 += a1[k] * y0_0;
                        c1_0_1 += a1[k] * y0_1;
                        c1_0_2 += a1[k] * y0_2;
                        c1_0_3 += a1[k] * y0_3;
                        c2_0_0 += a2[k] * y0_0;
                        c2_0_1 += a2[k] * y0_1;
                        c2_0_2 += a2[k] * y0_2;
                        c2_0_3 += a2[k] * y0_3;
                        c3_0_0 += a3[k] * y0_0;
                        c3_0_1 += a3[k] * y0_1;
                        c3_0_2 += a3[k] * y0_2;
                        c3_0_3 += a3[k] * y0_3;
                    }
                    b0 += 16;
                }
            }
            if (!first) {
                c0_0_0 += contract_a_load(acc + 0 * pitch + 0);
                c0_0_1 += contract_a_load(acc + 0 * pitch + 4);
                c0_0_2 += contract_a_load(acc + 0 * pitch + 8);
                c0_0_3 += contract_a_load(acc + 0 * pitch + 12);
                c1_0_0 += contract_a_load(acc + 1 * pitch + 0);
                c1_0_1 += contract_a_load(acc + 1 * pitch + 4);
                c1_0_2 += contract_a_load(acc + 1 * pitch + 8);
                c1_0_3 += contract_a_load(acc + 1 * pitch + 12);
                c2_0_0 += contract_a_load(acc + 2 * pitch + 0);
                c2_0_1 += contract_a_load(acc + 2 * pitch + 4);
                c2_0_2 += contract_a_load(acc + 2 * pitch + 8);
                c2_0_3 += contract_a_load(acc + 2 * pitch + 12);
                c3_0_0 += contract_a_load(acc + 3 * pitch + 0);
                c3_0_1 += contract_a_load(acc + 3 * pitch + 4);
                c3_0_2 += contract_a_load(acc + 3 * pitch + 8);
                c3_0_3 += contract_a_load(acc + 3 * pitch + 12);
            }
            first = 0;
            *(contract_a_m *)(acc + 0 * pitch + 0) = c0_0_0;
            *(contract_a_m *)(acc + 0 * pitch + 4) = c0_0_1;
            *(contract_a_m *)(acc + 0 * pitch + 8) = c0_0_2;
            *(contract_a_m *)(acc + 0 * pitch + 12) = c0_0_3;
            *(contract_a_m *)(acc + 1 * pitch + 0) = c1_0_0;
            *(contract_a_m *)(acc + 1 * pitch + 4) = c1_0_1;
            *(contract_a_m *)(acc + 1 * pitch + 8) = c1_0_2;
            *(contract_a_m *)(acc + 1 * pitch + 12) = c1_0_3;
            *(contract_a_m *)(acc + 2 * pitch + 0) = c2_0_0;
            *(contract_a_m *)(acc + 2 * pitch + 4) = c2_0_1;
            *(contract_a_m *)(acc + 2 * pitch + 8) = c2_0_2;
            *(contract_a_m *)(acc + 2 * pitch + 12) = c2_0_3;
            *(contract_a_m *)(acc + 3 * pitch + 0) = c3_0_0;
            *(contract_a_m *)(acc + 3 * pitch + 4) = c3_0_1;
            *(contract_a_m *)(acc + 3 * pitch + 8) = c3_0_2;
            *(contract_a_m *)(acc + 3 * pitch + 12) = c3_0_3;
            __asm__ volatile("" : : : "memory");
        }
        b += 1 * stride;
        acc += 16;
    }
}

/* 5 rows: rows[s][r] points at the first of `depth` values; panels are `stride` values apart. */
static __attribute__((noinline)) void contract_rows_5(
    const float *(*rows)[5], int64_t segments, int64_t depth,
    const float *b, int64_t stride, int64_t panels, float *acc, int64_t pitch, int32_t fresh) {
    int64_t panel = 0;
    for (; panel + 1 <= panels; panel += 1) {
        const contract_a_v zero = {0};
        const float *b0 = b + 0 * stride;
        int32_t first = fresh;
        for (int64_t s = 0; s < segments;) {
            contract_a_v c0_0_0 = zero;
            contract_a_v c0_0_1 = zero;
            contract_a_v c0_0_2 = zero;
            contract_a_v c0_0_3 = zero;
            contract_a_v c1_0_0 = zero;
            contract_a_v c1_0_1 = zero;
            contract_a_v c1_0_2 = zero;
            contract_a_v c1_0_3 = zero;
            contract_a_v c2_0_0 = zero;
            contract_a_v c2_0_1 = zero;
            contract_a_v c2_0_2 = zero;
            contract_a_v c2_0_3 = zero;
            contract_a_v c3_0_0 = zero;
            contract_a_v c3_0_1 = zero;
            contract_a_v c3_0_2 = zero;
            contract_a_v c3_0_3 = zero;
            contract_a_v c4_0_0 = zero;
            contract_a_v c4_0_1 = zero;
            contract_a_v c4_0_2 = zero;
            contract_a_v c4_0_3 = zero;
            const int64_t last = sx_least(segments, s + 1);
            for (; s < last; s++) {
                const float *a0 = rows[s][0];
                const float *a1 = rows[s][1];
                const float *a2 = rows[s][2];
                const float *a3 = rows[s][3];
                const float *a4 = rows[s][4];
                int64_t k = 0;
                const int64_t end = depth;
                for (; k + 4 <= end; k += 4) {
                    const contract_a_v x0 = contract_a_load(a0 + k);
                    const contract_a_v x1 = contract_a_load(a1 + k);
                    const contract_a_v x2 = contract_a_load(a2 + k);
                    const contract_a_v x3 = contract_a_load(a3 + k);
                    const contract_a_v x4 = contract_a_load(a4 + k);
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 0);
                        __builtin_prefetch(b0 + 128);
                        const contract_a_v y0_1 = contract_b_load(b0 + 4);
                        const contract_a_v y0_2 = contract_b_load(b0 + 8);
                        const contract_a_v y0_3 = contract_b_load(b0 + 12);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 0, 0, 0, 0) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 0, 0, 0, 0) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 0, 0, 0, 0) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 0, 0, 0, 0) * y0_3;
                        c4_0_0 += __builtin_shufflevector(x4, x4, 0, 0, 0, 0) * y0_0;
                        c4_0_1 += __builtin_shufflevector(x4, x4, 0, 0, 0, 0) * y0_1;
                        c4_0_2 += __builtin_shufflevector(x4, x4, 0, 0, 0, 0) * y0_2;
                        c4_0_3 += __builtin_shufflevector(x4, x4, 0, 0, 0, 0) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 16);
                        __builtin_prefetch(b0 + 144);
                        const contract_a_v y0_1 = contract_b_load(b0 + 20);
                        const contract_a_v y0_2 = contract_b_load(b0 + 24);
                        const contract_a_v y0_3 = contract_b_load(b0 + 28);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 1, 1, 1, 1) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 1, 1, 1, 1) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 1, 1, 1, 1) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 1, 1, 1, 1) * y0_3;
                        c4_0_0 += __builtin_shufflevector(x4, x4, 1, 1, 1, 1) * y0_0;
                        c4_0_1 += __builtin_shufflevector(x4, x4, 1, 1, 1, 1) * y0_1;
                        c4_0_2 += __builtin_shufflevector(x4, x4, 1, 1, 1, 1) * y0_2;
                        c4_0_3 += __builtin_shufflevector(x4, x4, 1, 1, 1, 1) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 32);
                        __builtin_prefetch(b0 + 160);
                        const contract_a_v y0_1 = contract_b_load(b0 + 36);
                        const contract_a_v y0_2 = contract_b_load(b0 + 40);
                        const contract_a_v y0_3 = contract_b_load(b0 + 44);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 2, 2, 2, 2) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 2, 2, 2, 2) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 2, 2, 2, 2) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 2, 2, 2, 2) * y0_3;
                        c4_0_0 += __builtin_shufflevector(x4, x4, 2, 2, 2, 2) * y0_0;
                        c4_0_1 += __builtin_shufflevector(x4, x4, 2, 2, 2, 2) * y0_1;
                        c4_0_2 += __builtin_shufflevector(x4, x4, 2, 2, 2, 2) * y0_2;
                        c4_0_3 += __builtin_shufflevector(x4, x4, 2, 2, 2, 2) * y0_3;
                    }
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 48);
                        __builtin_prefetch(b0 + 176);
                        const contract_a_v y0_1 = contract_b_load(b0 + 52);
                        const contract_a_v y0_2 = contract_b_load(b0 + 56);
                        const contract_a_v y0_3 = contract_b_load(b0 + 60);
                        c0_0_0 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_0;
                        c0_0_1 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_1;
                        c0_0_2 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_2;
                        c0_0_3 += __builtin_shufflevector(x0, x0, 3, 3, 3, 3) * y0_3;
                        c1_0_0 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_0;
                        c1_0_1 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_1;
                        c1_0_2 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_2;
                        c1_0_3 += __builtin_shufflevector(x1, x1, 3, 3, 3, 3) * y0_3;
                        c2_0_0 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_0;
                        c2_0_1 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_1;
                        c2_0_2 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_2;
                        c2_0_3 += __builtin_shufflevector(x2, x2, 3, 3, 3, 3) * y0_3;
                        c3_0_0 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_0;
                        c3_0_1 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_1;
                        c3_0_2 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_2;
                        c3_0_3 += __builtin_shufflevector(x3, x3, 3, 3, 3, 3) * y0_3;
                        c4_0_0 += __builtin_shufflevector(x4, x4, 3, 3, 3, 3) * y0_0;
                        c4_0_1 += __builtin_shufflevector(x4, x4, 3, 3, 3, 3) * y0_1;
                        c4_0_2 += __builtin_shufflevector(x4, x4, 3, 3, 3, 3) * y0_2;
                        c4_0_3 += __builtin_shufflevector(x4, x4, 3, 3, 3, 3) * y0_3;
                    }
                    b0 += 64;
                }
                for (; k < end; k++) {
                    {
                        const contract_a_v y0_0 = contract_b_load(b0 + 0);
                        __builtin_prefetch(b0 + 128);
                        const contract_a_v y0_1 = contract_b_load(b0 + 4);
                        const contract_a_v y0_2 = contract_b_load(b0 + 8);
                        const contract_a_v y0_3 = contract_b_load(b0 + 12);
                        c0_0_0 += a0[k] * y0_0;
                        c0_0_1 += a0[k] * y0_1;
                        c0_0_2 += a0[k] * y0_2;
                        c0_0_3 += a0[k] * y0_3;
                        c1_0_0 += a1[k] * y0_0;
                        c1_0_1 += a1[k] * y0_1;
                        c1_0_2 += a1[k] * y0_2;
                        c1_0_3 += a1[k] * y0_3;
                        c2_0_0 += a2[k] * y0_0;
                        c2_0_1 += a2[k] * y0_1;
                        c2_0_2 += a2[k] * y0_2;
                        c2_0_3 += a2[k] * y0_3;
                        c3_0_0 += a3[k] * y0_0;
                        c3_0_1 += a3[k] * y0_1;
                        c3_0_2 += a3[k] * y0_2;
                        c3_0_3 += a3[k] * y0_3;
                        c4_0_0 += a4[k] * y0_0;
                        c4_0_1 += a4[k] * y0_1;
                        c4_0_2 += a4[k] * y0_2;
                        c4_0_3 += a4[k] * y0_3;
                    }
                    b0 += 16;
                }
            }
            if (!first) {
                c0_0_0 += contract_a_load(acc + 0 * pitch + 0);
                c0_0_1 += contract_a_load(acc + 0 * pitch + 4);
                c0_0_2 += contract_a_load(acc + 0 * pitch + 8);
                c0_0_3 += contract_a_load(acc + 0 * pitch + 12);
                c1_0_0 += contract_a_load(acc + 1 * pitch + 0);
                c1_0_1 += contract_a_load(acc + 1 * pitch + 4);
                c1_0_2 += contract_a_load(acc + 1 * pitch + 8);
                c1_0_3 += contract_a_load(acc + 1 * pitch + 12);
                c2_0_0 += contract_a_load(acc + 2 * pitch + 0);
                c2_0_1 += contract_a_load(acc + 2 * pitch + 4);
                c2_0_2 += contract_a_load(acc + 2 * pitch + 8);
                c2_0_3 += contract_a_load(acc + 2 * pitch + 12);
                c3_0_0 += contract_a_load(acc + 3 * pitch + 0);
                c3_0_1 += contract_a_load(acc + 3 * pitch + 4);
                c3_0_2 += contract_a_load(acc + 3 * pitch + 8);
                c3_0_3 += contract_a_load(acc + 3 * pitch + 12);
                c4_0_0 += contract_a_load(acc + 4 * pitch + 0);
                c4_0_1 += contract_a_load(acc + 4 * pitch + 4);
                c4_0_2 += contract_a_load(acc + 4 * pitch + 8);
                c4_0_3 += contract_a_load(acc + 4 * pitch + 12);
            }
            first = 0;
            *(contract_a_m *)(acc + 0 * pitch + 0) = c0_0_0;
            *(contract_a_m *)(acc + 0 * pitch + 4) = c0_0_1;
            *(contract_a_m *)(acc + 0 * pitch + 8) = c0_0_2;
            *(contract_a_m *)(acc + 0 * pitch + 12) = c0_0_3;
            *(contract_a_m *)(acc + 1 * pitch + 0) = c1_0_0;
            *(contract_a_m *)(acc + 1 * pitch + 4) = c1_0_1;
            *(contract_a_m *)(acc + 1 * pitch + 8) = c1_0_2;
            *(contract_a_m *)(acc + 1 * pitch + 12) = c1_0_3;
            *(contract_a_m *)(acc + 2 * pitch + 0) = c2_0_0;
            *(contract_a_m *)(acc + 2 * pitch + 4) = c2_0_1;
            *(contract_a_m *)(acc + 2 * pitch + 8) = c2_0_2;
            *(contract_a_m *)(acc + 2 * pitch + 12) = c2_0_3;
            *(contract_a_m *)(acc + 3 * pitch + 0) = c3_0_0;
            *(contract_a_m *)(acc + 3 * pitch + 4) = c3_0_1;
            *(contract_a_m *)(acc + 3 * pitch + 8) = c3_0_2;
            *(contract_a_m *)(acc + 3 * pitch + 12) = c3_0_3;
            *(contract_a_m *)(acc + 4 * pitch + 0) = c4_0_0;
            *(contract_a_m *)(acc + 4 * pitch + 4) = c4_0_1;
            *(contract_a_m *)(acc + 4 * pitch + 8) = c4_0_2;
            *(contract_a_m *)(acc + 4 * pitch + 12) = c4_0_3;
            __asm__ volatile("" : : : "memory");
        }
        b += 1 * stride;
        acc += 16;
    }
}

struct contract_job {
    const struct env *env;
    const float *a, *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
};

static const float contract_zeros[32];
static const int64_t contract_depths[] = {32};

/* The last vector may begin before the end of the one before: it stores the same again. */
static inline void contract_input(const float *d, int64_t by_row, int64_t by_column, int64_t count, float *v) {
    for (int64_t at = 0; at < count; at += 4) {
        const int64_t c = sx_least(at, count - 4);
        const contract_a_v d00 = contract_a_load(d + 0 * by_row + 0 * by_column + c);
        const contract_a_v d01 = contract_a_load(d + 0 * by_row + 1 * by_column + c);
        const contract_a_v d02 = contract_a_load(d + 0 * by_row + 2 * by_column + c);
        const contract_a_v d03 = contract_a_load(d + 0 * by_row + 3 * by_column + c);
        const contract_a_v d10 = contract_a_load(d + 1 * by_row + 0 * by_column + c);
        const contract_a_v d11 = contract_a_load(d + 1 * by_row + 1 * by_column + c);
        const contract_a_v d12 = contract_a_load(d + 1 * by_row + 2 * by_column + c);
        const contract_a_v d13 = contract_a_load(d + 1 * by_row + 3 * by_column + c);
        const contract_a_v d20 = contract_a_load(d + 2 * by_row + 0 * by_column + c);
        const contract_a_v d21 = contract_a_load(d + 2 * by_row + 1 * by_column + c);
        const contract_a_v d22 = contract_a_load(d + 2 * by_row + 2 * by_column + c);
        const contract_a_v d23 = contract_a_load(d + 2 * by_row + 3 * by_column + c);
        const contract_a_v d30 = contract_a_load(d + 3 * by_row + 0 * by_column + c);
        const contract_a_v d31 = contract_a_load(d + 3 * by_row + 1 * by_column + c);
        const contract_a_v d32 = contract_a_load(d + 3 * by_row + 2 * by_column + c);
        const contract_a_v d33 = contract_a_load(d + 3 * by_row + 3 * by_column + c);
        const contract_a_v t00 = d00 - d20;
        const contract_a_v t10 = d10 + d20;
        const contract_a_v t20 = d20 - d10;
        const contract_a_v t30 = d10 - d30;
        const contract_a_v t01 = d01 - d21;
        const contract_a_v t11 = d11 + d21;
        const contract_a_v t21 = d21 - d11;
        const contract_a_v t31 = d11 - d31;
        const contract_a_v t02 = d02 - d22;
        const contract_a_v t12 = d12 + d22;
        const contract_a_v t22 = d22 - d12;
        const contract_a_v t32 = d12 - d32;
        const contract_a_v t03 = d03 - d23;
        const contract_a_v t13 = d13 + d23;
        const contract_a_v t23 = d23 - d13;
        const contract_a_v t33 = d13 - d33;
        const contract_a_v v00 = t00 - t02;
        const contract_a_v v01 = t01 + t02;
        const contract_a_v v02 = t02 - t01;
        const contract_a_v v03 = t01 - t03;
        const contract_a_v v10 = t10 - t12;
        const contract_a_v v11 = t11 + t12;
        const contract_a_v v12 = t12 - t11;
        const contract_a_v v13 = t11 - t13;
        const contract_a_v v20 = t20 - t22;
        const contract_a_v v21 = t21 + t22;
        const contract_a_v v22 = t22 - t21;
        const contract_a_v v23 = t21 - t23;
        const contract_a_v v30 = t30 - t32;
        const contract_a_v v31 = t31 + t32;
        const contract_a_v v32 = t32 - t31;
        const contract_a_v v33 = t31 - t33;
        *(contract_a_m *)(v + 0 + c) = v00;
        *(contract_a_m *)(v + 32 + c) = v01;
        *(contract_a_m *)(v + 64 + c) = v02;
        *(contract_a_m *)(v + 96 + c) = v03;
        *(contract_a_m *)(v + 128 + c) = v10;
        *(contract_a_m *)(v + 160 + c) = v11;
        *(contract_a_m *)(v + 192 + c) = v12;
        *(contract_a_m *)(v + 224 + c) = v13;
        *(contract_a_m *)(v + 256 + c) = v20;
        *(contract_a_m *)(v + 288 + c) = v21;
        *(contract_a_m *)(v + 320 + c) = v22;
        *(contract_a_m *)(v + 352 + c) = v23;
        *(contract_a_m *)(v + 384 + c) = v30;
        *(contract_a_m *)(v + 416 + c) = v31;
        *(contract_a_m *)(v + 448 + c) = v32;
        *(contract_a_m *)(v + 480 + c) = v33;
    }
}

static __attribute__((noinline)) void contract_patch(
    const float *image, int64_t height, int64_t width, int64_t top, int64_t left, int64_t count, float *v) {
    float patch[512];
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++) {
            float *to = patch + (4 * i + j) * 32;
            if (((uint64_t)(top + i) < (uint64_t)height) & ((uint64_t)(left + j) < (uint64_t)width))
                __builtin_memcpy(to, image + ((top + i) * width + left + j) * 32, count * sizeof *to);
            else
                __builtin_memset(to, 0, count * sizeof *to);
        }
    contract_input(patch, 128, 32, count, v);
}

typedef int32_t contract_mask __attribute__((vector_size(16)));

static inline int32_t contract_output(float *m, int64_t count) {
    contract_mask good = (contract_mask){0} - 1;
    contract_a_v spoilt = {0};
    for (int64_t f = 0; f < count; f += 4) {
        const contract_a_v m00 = contract_a_load(m + 0 + f);
        const contract_a_v m01 = contract_a_load(m + 64 + f);
        const contract_a_v m02 = contract_a_load(m + 128 + f);
        const contract_a_v m03 = contract_a_load(m + 192 + f);
        const contract_a_v m10 = contract_a_load(m + 256 + f);
        const contract_a_v m11 = contract_a_load(m + 320 + f);
        const contract_a_v m12 = contract_a_load(m + 384 + f);
        const contract_a_v m13 = contract_a_load(m + 448 + f);
        const contract_a_v m20 = contract_a_load(m + 512 + f);
        const contract_a_v m21 = contract_a_load(m + 576 + f);
        const contract_a_v m22 = contract_a_load(m + 640 + f);
        const contract_a_v m23 = contract_a_load(m + 704 + f);
        const contract_a_v m30 = contract_a_load(m + 768 + f);
        const contract_a_v m31 = contract_a_load(m + 832 + f);
        const contract_a_v m32 = contract_a_load(m + 896 + f);
        const contract_a_v m33 = contract_a_load(m + 960 + f);
        const contract_a_v s00 = m00 + m10 + m20;
        const contract_a_v s10 = m10 - m20 - m30;
        const contract_a_v s01 = m01 + m11 + m21;
        const contract_a_v s11 = m11 - m21 - m31;
        const contract_a_v s02 = m02 + m12 + m22;
        const contract_a_v s12 = m12 - m22 - m32;
        const contract_a_v s03 = m03 + m13 + m23;
        const contract_a_v s13 = m13 - m23 - m33;
        const contract_a_v y00 = s00 + s01 + s02;
        const contract_a_v y01 = s01 - s02 - s03;
        const contract_a_v y10 = s10 + s11 + s12;
        const contract_a_v y11 = s11 - s12 - s13;
        *(contract_a_m *)(m + 0 + f) = y00;
        *(contract_a_m *)(m + 64 + f) = y01;
        *(contract_a_m *)(m + 128 + f) = y10;
        *(contract_a_m *)(m + 192 + f) = y11;
        const contract_a_v q0 = y00 * y00;
        const contract_a_v q1 = y01 * y01;
        const contract_a_v q2 = y10 * y10;
        const contract_a_v q3 = y11 * y11;
        const contract_a_v first = q0 + q1;
        const contract_a_v second = q2 + q3;
        const contract_a_v total = first + second;
        const contract_a_v least = total * 0x1p-28f;
        good &= (contract_mask)(q0 >= least) & (contract_mask)(q1 >= least) & (contract_mask)(q2 >= least) & (contract_mask)(q3 >= least);
        spoilt += total * 0;
    }
    good &= (contract_mask)(spoilt == 0);
    int32_t all = -1;
    for (int64_t lane = 0; lane < 4; lane++)
        all &= good[lane];
    return all;
}

static __attribute__((noinline, cold)) void contract_repair(
    const float *image, int64_t height, int64_t width, int64_t top, int64_t left,
    const float *weights, int64_t panels, float *y) {
    const float *rows[9][5];
    for (int64_t tap = 0; tap < 9; tap++)
        for (int64_t pixel = 0; pixel < 4; pixel++) {
            const int64_t i = top + tap / 3 + pixel / 2, j = left + tap % 3 + pixel % 2;
            const int32_t inside = ((uint64_t)i < (uint64_t)height) & ((uint64_t)j < (uint64_t)width);
            rows[tap][pixel] = inside ? image + (i * width + j) * 32 : contract_zeros;
        }
    for (int64_t panel = 0; panel < panels; panel++) {
        const float *at = y + panel * 16;
        int32_t good = 1;
        for (int64_t f = 0; f < 16; f++) {
            const float q0 = at[f + 0] * at[f + 0];
            const float q1 = at[f + 64] * at[f + 64];
            const float q2 = at[f + 128] * at[f + 128];
            const float q3 = at[f + 192] * at[f + 192];
            const float first = q0 + q1;
            const float second = q2 + q3;
            const float total = first + second;
            const float least = total * 0x1p-28f;
            good &= (q0 >= least) & (q1 >= least) & (q2 >= least) & (q3 >= least) & (total * 0 == 0);
        }
        if (!good)
            contract_rows_4(
                rows, 9, 32, weights + panel * 4608, 4608, 1, y + panel * 16, 64, 1);
    }
}

static void contract_tasks(void *arg, int64_t begin, int64_t end) {
    const struct contract_job *job = arg;
    const int64_t *n = job->n;
    const int64_t height = 14, width = 14;
    const int64_t out_height = 14, out_width = 14;
    const int64_t across = (out_width + 1) / 2, of_image = (out_height + 1) / 2 * across;
    const int64_t all = 49;
    const int64_t tiles = sx_pieces(all, 5), panels = 4;
    const int64_t shortest = all / tiles, taller = all % tiles;
    const float *rows[1][5];
    __attribute__((aligned(64))) float v[21120], m[41600];
    (void)n;
    for (int64_t task = begin; task < end; task++) {
        const int64_t row_block = task % job->row_blocks, column_block = task / job->row_blocks;
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t top = first_tile * shortest + sx_least(first_tile, taller);
        const int64_t bottom = last_tile * shortest + sx_least(last_tile, taller);
        const int64_t column = first_panel * 16;
        const int64_t count = sx_least(64, last_panel * 16) - column;
        const float *plain = job->b + (16 * panels + 9 * first_panel) * 512;
        for (int64_t block = 0, k0 = 0; block < 1; k0 += contract_depths[block++]) {
            const int64_t kc = contract_depths[block];
            const float *u = job->b + 256 * panels * k0;
            for (int64_t at = top; at < bottom; at++) {
                const float *image = job->a + at / of_image * height * width * 32 + k0;
                const int64_t i = at % of_image / across * 2 - 1;
                const int64_t j = at % of_image % across * 2 - 1;
                float *to = v + (at - top) * 528;
                if ((i >= 0) & (j >= 0) & (i + 4 <= height) & (j + 4 <= width))
                    contract_input(image + (i * width + j) * 32, width * 32, 32, kc, to);
                else
                    contract_patch(image, height, width, i, j, kc, to);
            }
            for (int64_t point = 0; point < 16; point++)
                for (int64_t tile = first_tile; tile < last_tile; tile++) {
                    const int64_t begins = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
                    /* The segments of equal length, then what is left of the channels. */
                    for (int64_t done = 0, segments, length; done < kc; done += segments * length) {
                        segments = done > 0 || kc < 64 ? 1 : kc / 64;
                        length = done > 0 || kc < 64 ? kc - done : 64;
                        for (int64_t s = 0; s < segments; s++)
                            for (int64_t r = 0; r < (int64_t)(sizeof *rows / sizeof **rows); r++)
                                rows[s][r] = v + (begins - top) * 528 + point * 32 + done + s * 64 + sx_least(r, taken - 1) * (528);
                        switch (taken) {
case 4: contract_rows_4(rows, segments, length, u + (point * panels + first_panel) * 16 * kc + done * 16, 16 * kc, last_panel - first_panel, m + (begins - top) * 1040 + point * 64, 1040, k0 + done == 0); break;
case 5: contract_rows_5(rows, segments, length, u + (point * panels + first_panel) * 16 * kc + done * 16, 16 * kc, last_panel - first_panel, m + (begins - top) * 1040 + point * 64, 1040, k0 + done == 0); break;
}
                    }
                }
        }
        for (int64_t at = top; at < bottom; at++) {
            const int64_t b = at / of_image, i = at % of_image / across * 2, j = at % of_image % across * 2;
            float *y = m + (at - top) * 1040;
            if (!contract_output(y, (last_panel - first_panel) * 16))
                contract_repair(
                    job->a + b * height * width * 32, height, width,
                    i - 1, j - 1, plain, last_panel - first_panel, y);
            for (int64_t pixel = 0; pixel < 4; pixel++)
                if ((i + pixel / 2 < out_height) & (j + pixel % 2 < out_width))
                    store_row(
                        job->env, b, (i + pixel / 2) * out_width + j + pixel % 2, column, count, y + pixel * 64);
        }
    }
}

static void contract(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {
    struct contract_job job = {env, a, b, n, 1, 1};
    const int64_t all = 49;
    const int64_t tiles = sx_pieces(all, 5);
    const double work = (double)all * 32768.0;
    const int64_t wanted = work < 2097152.0 ? (int64_t)(work / 131072.0) : 16;
    (void)scratch, (void)n;
    if (all <= 0)
        return;
    job.row_blocks = sx_pieces(tiles, 8);
    if (job.row_blocks * job.column_blocks < wanted)
        job.column_blocks = sx_least(1, sx_pieces(wanted, job.row_blocks));
    const int64_t busy = sx_least(wanted, 4 * (int64_t)run->threads);
    if (job.row_blocks * job.column_blocks < busy)
        job.row_blocks = sx_least(tiles, sx_pieces(busy, job.column_blocks));
    const int64_t tasks = job.row_blocks * job.column_blocks;
    if (tasks == 1)
        contract_tasks(&job, 0, 1);
    else
        run->parallel(run, tasks, 1, contract_tasks, &job);
}

int32_t k_737b36ebb9c7dada3ace(sx_run *run, void *const *p, const int64_t *n) {
    const struct env env = {run, {p[0], p[1], p[2], p[3]}, n};
    SX_FLUSHED
    contract(run, &env, p[0], p[1], 0, n);
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}

#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *out1 = c->p[1];
    for (int64_t i0 = begin; i0 < end; i0++) {
        const int64_t t0 = (int64_t)((i0 / 2));
        const int64_t t1 = (int64_t)((i0 % 2));
        for (int64_t i1 = 0; i1 < 14; i1++) {
            SX_VECTOR
            for (int64_t i2 = 0; i2 < 16; i2++) {
                const int64_t t2 = (int64_t)(i2 + 16 * t1);
                out1[32 * i1 + 448 * t0 + t2] = in0[i1 + 14 * t0 + 196 * t2];
            }
        }
    }
}

int32_t k_7c1afc61de6d0b8fb4e0(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    run->parallel(run, 28, 4, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
