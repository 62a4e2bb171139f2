#include "abi.h"
#include "index.h"
#include "scalar.h"
#include "denormals.h"

struct env { sx_run *run; void *p[5]; const int64_t *n; };

static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count,
                             const float *sums) {
    (void)env, (void)b, (void)m, (void)n;
    const float *in2 = env->p[2];
    const float *in3 = env->p[3];
    float *out4 = env->p[4];
    SX_VECTORS
    for (int64_t i0 = 0; i0 < count; i0++) {
        const int64_t t0 = (int64_t)(i0 + n);
        const float t1 = sums[i0];
        const float t2 = in2[t0];
        const float t3 = t1 + t2;
        const float t4 = in3[3136 * b + m + 49 * t0];
        const float t5 = t3 + t4;
        const float t6 = sx_max_f32(t5, 0.0f);
        out4[3136 * b + m + 49 * t0] = t6;
    }
}

static const int32_t contract_steps0[] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
static const int32_t contract_steps1[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
static const float contract_zeros[32];

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
            const int64_t last = sx_least(segments, s + 4);
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
            const int64_t last = sx_least(segments, s + 4);
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
    const void *a, *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
};

static void contract_blocks(void *arg, int64_t begin, int64_t end) {
    const struct contract_job *job = arg;
    /* A copy of its own: what is written to results might change another, as far as a compiler knows. */
    const struct env env = *job->env;
    const int64_t *n = job->n;
    const int64_t height = 49, width = 64, depth = 32;
    const int64_t tiles = sx_pieces(height, 5), panels = sx_pieces(width, 16);
    const int64_t shortest = height / tiles, taller = height % tiles;
    const int64_t stride = 9 * depth * 16;
    const float *rows[9][5];
    const int64_t size0 = 14;
    const int64_t size1 = 14;
    const int64_t out1 = 7;
    int64_t offsets[9];
    for (int64_t s = 0; s < 9; s++)
        offsets[s] = (contract_steps0[s] * size1 + contract_steps1[s]) * 32;
    __attribute__((aligned(64))) float acc[320];
    (void)n;
    for (int64_t task = begin; task < end; task++) {
        const int64_t row_block = task % job->row_blocks;
        const int64_t column_block = task / job->row_blocks % job->column_blocks;
        const int64_t b = task / (job->row_blocks * job->column_blocks);
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t column = first_panel * 16;
        const int64_t count = sx_least(width, last_panel * 16) - column;
        const int64_t top = first_tile * shortest + sx_least(first_tile, taller);
        const float *panel = (const float *)job->b + (b % 1 * panels * stride) + first_panel * stride;
        (void)b, (void)top;
        for (int64_t s0 = 0; s0 < 9; s0 += 9) {
            const int64_t segments = sx_least(9 - s0, 9);
            for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += 32) {
                const int64_t kc = sx_least(depth - k0, 32);
                const int32_t last = s0 + segments == 9 && k0 + kc == depth;
                for (int64_t tile = first_tile; tile < last_tile; tile++) {
                    const int64_t m = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
                    float *sums = acc;
                    {
                        int32_t in_line;
                        {
                            int64_t pixel = m;
                            const int64_t p1 = pixel % out1 * 2 - 1;
                            pixel /= out1;
                            const int64_t p0 = pixel * 2 - 1;
                            in_line = (m % out1 + taken <= out1) & (p1 >= 0) & (p1 + (taken - 1) * 2 + 3 <= size1);
                            if (in_line) {
                                const float *image = (const float *)job->a + b / 1 * (size0 * size1) * 32 + b % 1 * 32;
                                for (int64_t s = 0; s < segments; s++) {
                                    const int64_t i0 = p0 + contract_steps0[s0 + s]; const int64_t i1 = p1 + contract_steps1[s0 + s];
                                    const int32_t inside = ((uint64_t)i0 < (uint64_t)size0);
                                    const float *from = inside ? image + (i0 * size1 + i1) * 32 + k0 : contract_zeros;
                                    const int64_t apart = inside ? 64 : 0;
                                    for (int64_t r = 0; r < (int64_t)(sizeof *rows / sizeof **rows); r++)
                                        rows[s][r] = from + sx_least(r, taken - 1) * (apart);
                                }
                            }
                        }
                        if (!in_line) {
                            const float *image = (const float *)job->a + b / 1 * (size0 * size1) * 32 + b % 1 * 32;
                            for (int64_t r = 0; r < taken; r++) {
                                int64_t pixel = m + r;
                                const int64_t p1 = pixel % out1 * 2 - 1;
                                pixel /= out1;
                                const int64_t p0 = pixel * 2 - 1;
                                if ((p0 >= 0) & (p0 + 2 < size0) & (p1 >= 0) & (p1 + 2 < size1)) {
                                    const float *from = image + (p0 * size1 + p1) * 32 + k0;
                                    for (int64_t s = 0; s < segments; s++)
                                        rows[s][r] = from + offsets[s0 + s];
                                    continue;
                                }
                                for (int64_t s = 0; s < segments; s++) {
                                    const int64_t i0 = p0 + contract_steps0[s0 + s]; const int64_t i1 = p1 + contract_steps1[s0 + s];
                                    const int32_t inside = ((uint64_t)i0 < (uint64_t)size0) & ((uint64_t)i1 < (uint64_t)size1);
                                    rows[s][r] = inside ? image + (i0 * size1 + i1) * 32 + k0 : contract_zeros;
                                }
                            }
                        }
                    }
                    switch (taken) {
                    case 4: contract_rows_4(rows, 9, 32, panel + (s0 * depth + k0) * 16, stride, last_panel - first_panel, sums, 64, 1); break;
                    case 5: contract_rows_5(rows, 9, 32, panel + (s0 * depth + k0) * 16, stride, last_panel - first_panel, sums, 64, 1); break;
                    }
                    if (last)
                        for (int64_t r = 0; r < taken; r++)
                            store_row(&env, b / 1, m + r, b % 1 * 64 + column, count, sums + r * 64);
                }
            }
        }
    }
}

static void contract(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {
    (void)scratch, (void)n;
    struct contract_job job = {.env = env, .a = a, .b = b, .n = n};
    const int64_t height = 49, width = 64, batch = (n[0]);
    const int64_t tiles = sx_pieces(height, 5), panels = sx_pieces(width, 16);
    const double work = (double)height * (double)width * (double)batch * (double)(9 * (32));
    const int64_t wanted = work < 2097152.0 ? (int64_t)(work / 131072.0) : 16;
    if (height <= 0 || width <= 0 || batch <= 0)
        return;
    job.row_blocks = sx_pieces(tiles, 32);
    job.column_blocks = sx_pieces(panels, 4);
    if (job.row_blocks * job.column_blocks * batch < wanted)
        job.column_blocks = sx_least(panels, sx_pieces(wanted, job.row_blocks * batch));
    /* Every block of rows reads all of B: no more of them than keep the threads busy. */
    const int64_t busy = sx_least(wanted, 4 * (int64_t)run->threads);
    if (job.row_blocks * job.column_blocks * batch < busy)
        job.row_blocks = sx_least(tiles, sx_pieces(busy, job.column_blocks * batch));
    const int64_t tasks = job.row_blocks * job.column_blocks * batch;
    if (tasks == 1)
        contract_blocks(&job, 0, 1);
    else
        run->parallel(run, tasks, 1, contract_blocks, &job);
}

int32_t k_03a3e0347a1ecec2106c(sx_run *run, void *const *p, const int64_t *n) {
    const struct env env = {run, {p[0], p[1], p[2], p[3], p[4]}, n};
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
        const int64_t t0 = (int64_t)((i0 / 28));
        const int64_t t1 = (int64_t)(((i0 % 28) / 2));
        const int64_t t2 = (int64_t)(((i0 % 28) % 2));
        for (int64_t i1 = 0; i1 < 14; i1++) {
            SX_VECTOR
            for (int64_t i2 = 0; i2 < 16; i2++) {
                const int64_t t3 = (int64_t)(i2 + 16 * t2);
                out1[32 * i1 + 6272 * t0 + 448 * t1 + t3] = in0[i1 + 6272 * t0 + 14 * t1 + 196 * t3];
            }
        }
    }
}

int32_t k_697dff8eb4b738562862(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    run->parallel(run, 28 * n0, 4, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
