#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    float *scratch0 = c->p[0];
    const float *in2 = c->p[2];
    const float *in3 = c->p[3];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    for (int64_t i0 = begin; i0 < end; i0++) {
        const int64_t t0 = (int64_t)(sx_smaller(4 * i0, n0 * n1 - 1));
        const int64_t t1 = (int64_t)((t0 / n0));
        const int64_t t2 = (int64_t)((t0 % n0));
        const int64_t t3 = (int64_t)(sx_smaller(4 * i0 + 1, n0 * n1 - 1));
        const int64_t t4 = (int64_t)((t3 / n0));
        const int64_t t5 = (int64_t)((t3 % n0));
        const int64_t t6 = (int64_t)(sx_smaller(4 * i0 + 2, n0 * n1 - 1));
        const int64_t t7 = (int64_t)((t6 / n0));
        const int64_t t8 = (int64_t)((t6 % n0));
        const int64_t t9 = (int64_t)(sx_smaller(4 * i0 + 3, n0 * n1 - 1));
        const int64_t t10 = (int64_t)((t9 / n0));
        const int64_t t11 = (int64_t)((t9 % n0));
        for (int64_t i1 = 0; i1 < 4; i1++) {
            float v0 = 0.0f;
            float v1 = 0.0f;
            float v2 = 0.0f;
            float v3 = 0.0f;
            float v4 = 0.0f;
            float v5 = 0.0f;
            float v6 = 0.0f;
            float v7 = 0.0f;
            float v8 = 0.0f;
            float v9 = 0.0f;
            float v10 = 0.0f;
            float v11 = 0.0f;
            float v12 = 0.0f;
            float v13 = 0.0f;
            float v14 = 0.0f;
            float v15 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i2 = 0; i2 < 8; i2++) {
                const float t12 = in2[8 * t1 * n0 + i2 + 8 * t2];
                const float t13 = in2[8 * t4 * n0 + i2 + 8 * t5];
                const float t14 = in2[8 * t7 * n0 + i2 + 8 * t8];
                const float t15 = in2[8 * t10 * n0 + i2 + 8 * t11];
                const float t16 = in3[32 * i1 + i2];
                const float t17 = in3[32 * i1 + i2 + 8];
                const float t18 = in3[32 * i1 + i2 + 16];
                const float t19 = in3[32 * i1 + i2 + 24];
                v0 = v0 + (t12 * t16);
                v1 = v1 + (t12 * t17);
                v2 = v2 + (t12 * t18);
                v3 = v3 + (t12 * t19);
                v4 = v4 + (t13 * t16);
                v5 = v5 + (t13 * t17);
                v6 = v6 + (t13 * t18);
                v7 = v7 + (t13 * t19);
                v8 = v8 + (t14 * t16);
                v9 = v9 + (t14 * t17);
                v10 = v10 + (t14 * t18);
                v11 = v11 + (t14 * t19);
                v12 = v12 + (t15 * t16);
                v13 = v13 + (t15 * t17);
                v14 = v14 + (t15 * t18);
                v15 = v15 + (t15 * t19);
            }
            }
            scratch0[16 * t1 * n0 + 4 * i1 + 16 * t2] = v0;
            scratch0[16 * t1 * n0 + 4 * i1 + 16 * t2 + 1] = v1;
            scratch0[16 * t1 * n0 + 4 * i1 + 16 * t2 + 2] = v2;
            scratch0[16 * t1 * n0 + 4 * i1 + 16 * t2 + 3] = v3;
            scratch0[16 * t4 * n0 + 4 * i1 + 16 * t5] = v4;
            scratch0[16 * t4 * n0 + 4 * i1 + 16 * t5 + 1] = v5;
            scratch0[16 * t4 * n0 + 4 * i1 + 16 * t5 + 2] = v6;
            scratch0[16 * t4 * n0 + 4 * i1 + 16 * t5 + 3] = v7;
            scratch0[16 * t7 * n0 + 4 * i1 + 16 * t8] = v8;
            scratch0[16 * t7 * n0 + 4 * i1 + 16 * t8 + 1] = v9;
            scratch0[16 * t7 * n0 + 4 * i1 + 16 * t8 + 2] = v10;
            scratch0[16 * t7 * n0 + 4 * i1 + 16 * t8 + 3] = v11;
            scratch0[16 * t10 * n0 + 4 * i1 + 16 * t11] = v12;
            scratch0[16 * t10 * n0 + 4 * i1 + 16 * t11 + 1] = v13;
            scratch0[16 * t10 * n0 + 4 * i1 + 16 * t11 + 2] = v14;
            scratch0[16 * t10 * n0 + 4 * i1 + 16 * t11 + 3] = v15;
        }
    }
}

struct part1 { sx_run *run; void *const *p; const int64_t *n; };
static void part1(void *arg, int64_t begin, int64_t end) {
    const struct part1 *c = arg;
    float *scratch1 = c->p[1];
    for (int64_t i3 = begin; i3 < end; i3++) {
        SX_VECTOR
        for (int64_t i4 = 0; i4 < 4; i4++) {
            scratch1[4 * i3 + i4] = 0.0f;
        }
    }
}

struct part2 { sx_run *run; void *const *p; const int64_t *n; };
static void part2(void *arg, int64_t begin, int64_t end) {
    const struct part2 *c = arg;
    float *scratch4 = c->p[4];
    for (int64_t i5 = begin; i5 < end; i5++) {
        SX_VECTOR
        for (int64_t i6 = 0; i6 < 4; i6++) {
            scratch4[4 * i5 + i6] = 0.0f;
        }
    }
}

struct part3 { sx_run *run; void *const *p; const int64_t *n; int64_t i7; };
static void part3(void *arg, int64_t begin, int64_t end) {
    const struct part3 *c = arg;
    float *scratch0 = c->p[0];
    float *scratch1 = c->p[1];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i7 = c->i7;
    for (int64_t i8 = begin; i8 < end; i8++) {
        const int64_t t20 = (int64_t)(sx_smaller(i8, n0 - 1));
        float a0[16];
        for (int64_t i9 = 0; i9 < 4; i9++) {
            float v16 = 0.0f;
            float v17 = 0.0f;
            float v18 = 0.0f;
            float v19 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i10 = 0; i10 < 4; i10++) {
                const float t21 = in5[4 * i9 + i10];
                const float t22 = in5[4 * i9 + i10 + 16];
                const float t23 = in5[4 * i9 + i10 + 32];
                const float t24 = in5[4 * i9 + i10 + 48];
                v16 = v16 + (scratch1[4 * n0 * (i7 % 2) + i10 + 4 * t20] * t21);
                v17 = v17 + (scratch1[4 * n0 * (i7 % 2) + i10 + 4 * t20] * t22);
                v18 = v18 + (scratch1[4 * n0 * (i7 % 2) + i10 + 4 * t20] * t23);
                v19 = v19 + (scratch1[4 * n0 * (i7 % 2) + i10 + 4 * t20] * t24);
            }
            }
            a0[i9] = v16;
            a0[i9 + 4] = v17;
            a0[i9 + 8] = v18;
            a0[i9 + 12] = v19;
        }
        if (((int64_t)(i8)) < ((int64_t)(n0))) {
            const int64_t t25 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i7));
            SX_VECTOR
            for (int64_t i11 = 0; i11 < 4; i11++) {
                const float t26 = a0[i11];
                const float t27 = a0[i11 + 4];
                const float t28 = a0[i11 + 8];
                const float t29 = a0[i11 + 12];
                const float t30 = scratch4[i11 + 4 * t20];
                const float t31 = scratch0[16 * i7 * n0 + i11 + 16 * t20] + t26;
                const float t32 = scratch0[16 * i7 * n0 + i11 + 16 * t20 + 4] + t27;
                const float t33 = scratch0[16 * i7 * n0 + i11 + 16 * t20 + 8] + t28;
                const float t34 = scratch0[16 * i7 * n0 + i11 + 16 * t20 + 12] + t29;
                const float t35 = sx_sigmoid_f32(t31);
                const float t36 = sx_sigmoid_f32(t33);
                const float t37 = sx_tanh_f32(t34);
                const float t38 = (t36 * t30) + (t35 * t37);
                const float t39 = sx_sigmoid_f32(t32);
                const float t40 = sx_tanh_f32(t38);
                const float t41 = t39 * t40;
                out6[4 * i7 * n0 + i11 + 4 * t20] = t41;
                scratch1[4 * n0 * ((i7 + 1) % 2) + i11 + 4 * t20] = t41;
                scratch4[i11 + 4 * t20] = t38;
            }
        }
    }
}

struct part4 { sx_run *run; void *const *p; const int64_t *n; int64_t i12; };
static void part4(void *arg, int64_t begin, int64_t end) {
    const struct part4 *c = arg;
    float *scratch0 = c->p[0];
    float *scratch1 = c->p[1];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i12 = c->i12;
    for (int64_t i13 = begin; i13 < end; i13++) {
        const int64_t t42 = (int64_t)(sx_smaller(4 * i13, n0 - 1));
        const int64_t t43 = (int64_t)(sx_smaller(4 * i13 + 1, n0 - 1));
        const int64_t t44 = (int64_t)(sx_smaller(4 * i13 + 2, n0 - 1));
        const int64_t t45 = (int64_t)(sx_smaller(4 * i13 + 3, n0 - 1));
        float a1[64];
        for (int64_t i14 = 0; i14 < 4; i14++) {
            float v20 = 0.0f;
            float v21 = 0.0f;
            float v22 = 0.0f;
            float v23 = 0.0f;
            float v24 = 0.0f;
            float v25 = 0.0f;
            float v26 = 0.0f;
            float v27 = 0.0f;
            float v28 = 0.0f;
            float v29 = 0.0f;
            float v30 = 0.0f;
            float v31 = 0.0f;
            float v32 = 0.0f;
            float v33 = 0.0f;
            float v34 = 0.0f;
            float v35 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i15 = 0; i15 < 4; i15++) {
                const float t46 = in5[4 * i14 + i15];
                const float t47 = in5[4 * i14 + i15 + 16];
                const float t48 = in5[4 * i14 + i15 + 32];
                const float t49 = in5[4 * i14 + i15 + 48];
                v20 = v20 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t42] * t46);
                v21 = v21 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t42] * t47);
                v22 = v22 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t42] * t48);
                v23 = v23 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t42] * t49);
                v24 = v24 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t43] * t46);
                v25 = v25 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t43] * t47);
                v26 = v26 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t43] * t48);
                v27 = v27 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t43] * t49);
                v28 = v28 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t44] * t46);
                v29 = v29 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t44] * t47);
                v30 = v30 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t44] * t48);
                v31 = v31 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t44] * t49);
                v32 = v32 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t45] * t46);
                v33 = v33 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t45] * t47);
                v34 = v34 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t45] * t48);
                v35 = v35 + (scratch1[4 * n0 * (i12 % 2) + i15 + 4 * t45] * t49);
            }
            }
            a1[i14] = v20;
            a1[i14 + 4] = v21;
            a1[i14 + 8] = v22;
            a1[i14 + 12] = v23;
            a1[i14 + 16] = v24;
            a1[i14 + 20] = v25;
            a1[i14 + 24] = v26;
            a1[i14 + 28] = v27;
            a1[i14 + 32] = v28;
            a1[i14 + 36] = v29;
            a1[i14 + 40] = v30;
            a1[i14 + 44] = v31;
            a1[i14 + 48] = v32;
            a1[i14 + 52] = v33;
            a1[i14 + 56] = v34;
            a1[i14 + 60] = v35;
        }
        if (((int64_t)(4 * i13)) < ((int64_t)(n0))) {
            const int64_t t50 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i12));
            SX_VECTOR
            for (int64_t i16 = 0; i16 < 4; i16++) {
                const float t51 = a1[i16];
                const float t52 = a1[i16 + 4];
                const float t53 = a1[i16 + 8];
                const float t54 = a1[i16 + 12];
                const float t55 = scratch4[i16 + 4 * t42];
                const float t56 = scratch0[16 * i12 * n0 + i16 + 16 * t42] + t51;
                const float t57 = scratch0[16 * i12 * n0 + i16 + 16 * t42 + 4] + t52;
                const float t58 = scratch0[16 * i12 * n0 + i16 + 16 * t42 + 8] + t53;
                const float t59 = scratch0[16 * i12 * n0 + i16 + 16 * t42 + 12] + t54;
                const float t60 = sx_sigmoid_f32(t56);
                const float t61 = sx_sigmoid_f32(t58);
                const float t62 = sx_tanh_f32(t59);
                const float t63 = (t61 * t55) + (t60 * t62);
                const float t64 = sx_sigmoid_f32(t57);
                const float t65 = sx_tanh_f32(t63);
                const float t66 = t64 * t65;
                out6[4 * i12 * n0 + i16 + 4 * t42] = t66;
                scratch1[4 * n0 * ((i12 + 1) % 2) + i16 + 4 * t42] = t66;
                scratch4[i16 + 4 * t42] = t63;
            }
        }
        if (((int64_t)(4 * i13 + 1)) < ((int64_t)(n0))) {
            const int64_t t67 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i12));
            SX_VECTOR
            for (int64_t i17 = 0; i17 < 4; i17++) {
                const float t68 = a1[i17 + 16];
                const float t69 = a1[i17 + 20];
                const float t70 = a1[i17 + 24];
                const float t71 = a1[i17 + 28];
                const float t72 = scratch4[i17 + 4 * t43];
                const float t73 = scratch0[16 * i12 * n0 + i17 + 16 * t43] + t68;
                const float t74 = scratch0[16 * i12 * n0 + i17 + 16 * t43 + 4] + t69;
                const float t75 = scratch0[16 * i12 * n0 + i17 + 16 * t43 + 8] + t70;
                const float t76 = scratch0[16 * i12 * n0 + i17 + 16 * t43 + 12] + t71;
                const float t77 = sx_sigmoid_f32(t73);
                const float t78 = sx_sigmoid_f32(t75);
                const float t79 = sx_tanh_f32(t76);
                const float t80 = (t78 * t72) + (t77 * t79);
                const float t81 = sx_sigmoid_f32(t74);
                const float t82 = sx_tanh_f32(t80);
                const float t83 = t81 * t82;
                out6[4 * i12 * n0 + i17 + 4 * t43] = t83;
                scratch1[4 * n0 * ((i12 + 1) % 2) + i17 + 4 * t43] = t83;
                scratch4[i17 + 4 * t43] = t80;
            }
        }
        if (((int64_t)(4 * i13 + 2)) < ((int64_t)(n0))) {
            const int64_t t84 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i12));
            SX_VECTOR
            for (int64_t i18 = 0; i18 < 4; i18++) {
                const float t85 = a1[i18 + 32];
                const float t86 = a1[i18 + 36];
                const float t87 = a1[i18 + 40];
                const float t88 = a1[i18 + 44];
                const float t89 = scratch4[i18 + 4 * t44];
                const float t90 = scratch0[16 * i12 * n0 + i18 + 16 * t44] + t85;
                const float t91 = scratch0[16 * i12 * n0 + i18 + 16 * t44 + 4] + t86;
                const float t92 = scratch0[16 * i12 * n0 + i18 + 16 * t44 + 8] + t87;
                const float t93 = scratch0[16 * i12 * n0 + i18 + 16 * t44 + 12] + t88;
                const float t94 = sx_sigmoid_f32(t90);
                const float t95 = sx_sigmoid_f32(t92);
                const float t96 = sx_tanh_f32(t93);
                const float t97 = (t95 * t89) + (t94 * t96);
                const float t98 = sx_sigmoid_f32(t91);
                const float t99 = sx_tanh_f32(t97);
                const float t100 = t98 * t99;
                out6[4 * i12 * n0 + i18 + 4 * t44] = t100;
                scratch1[4 * n0 * ((i12 + 1) % 2) + i18 + 4 * t44] = t100;
                scratch4[i18 + 4 * t44] = t97;
            }
        }
        if (((int64_t)(4 * i13 + 3)) < ((int64_t)(n0))) {
            const int64_t t101 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i12));
            SX_VECTOR
            for (int64_t i19 = 0; i19 < 4; i19++) {
                const float t102 = a1[i19 + 48];
                const float t103 = a1[i19 + 52];
                const float t104 = a1[i19 + 56];
                const float t105 = a1[i19 + 60];
                const float t106 = scratch4[i19 + 4 * t45];
                const float t107 = scratch0[16 * i12 * n0 + i19 + 16 * t45] + t102;
                const float t108 = scratch0[16 * i12 * n0 + i19 + 16 * t45 + 4] + t103;
                const float t109 = scratch0[16 * i12 * n0 + i19 + 16 * t45 + 8] + t104;
                const float t110 = scratch0[16 * i12 * n0 + i19 + 16 * t45 + 12] + t105;
                const float t111 = sx_sigmoid_f32(t107);
                const float t112 = sx_sigmoid_f32(t109);
                const float t113 = sx_tanh_f32(t110);
                const float t114 = (t112 * t106) + (t111 * t113);
                const float t115 = sx_sigmoid_f32(t108);
                const float t116 = sx_tanh_f32(t114);
                const float t117 = t115 * t116;
                out6[4 * i12 * n0 + i19 + 4 * t45] = t117;
                scratch1[4 * n0 * ((i12 + 1) % 2) + i19 + 4 * t45] = t117;
                scratch4[i19 + 4 * t45] = t114;
            }
        }
    }
}

int32_t k_17f725d818088ba02462(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    run->parallel(run, ((n0 * n1 + 3) / 4), 8, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    run->parallel(run, n0, 4096, part1, &(struct part1){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    run->parallel(run, n0, 4096, part2, &(struct part2){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    if (((int64_t)(n0)) == 1) {
        for (int64_t i7 = 0; i7 < n1; i7++) {
            run->parallel(run, n0, 256, part3, &(struct part3){run, p, n, i7});
            if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
        }
    } else {
        for (int64_t i12 = 0; i12 < n1; i12++) {
            run->parallel(run, ((n0 + 3) / 4), 64, part4, &(struct part4){run, p, n, i12});
            if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
        }
    }
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
