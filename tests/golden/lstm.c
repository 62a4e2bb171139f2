#include "abi.h"
#include "index.h"
#include "scalar.h"

struct part0 { sx_run *run; void *const *p; const int64_t *n; };
static void part0(void *arg, int64_t begin, int64_t end) {
    const struct part0 *c = arg;
    const float *in0 = c->p[0];
    float *scratch1 = c->p[1];
    const float *in3 = c->p[3];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    for (int64_t i0 = begin; i0 < end; i0++) {
        for (int64_t i1 = 0; i1 < sx_smaller(-8 * i0 + ((n0 * n1 + 5) / 6), 8); i1++) {
            const int64_t t0 = (int64_t)(sx_smaller(48 * i0 + 6 * i1, n0 * n1 - 1));
            const int64_t t1 = (int64_t)((t0 / n0));
            const int64_t t2 = (int64_t)((t0 % n0));
            const int64_t t3 = (int64_t)(sx_smaller(48 * i0 + 6 * i1 + 1, n0 * n1 - 1));
            const int64_t t4 = (int64_t)((t3 / n0));
            const int64_t t5 = (int64_t)((t3 % n0));
            const int64_t t6 = (int64_t)(sx_smaller(48 * i0 + 6 * i1 + 2, n0 * n1 - 1));
            const int64_t t7 = (int64_t)((t6 / n0));
            const int64_t t8 = (int64_t)((t6 % n0));
            const int64_t t9 = (int64_t)(sx_smaller(48 * i0 + 6 * i1 + 3, n0 * n1 - 1));
            const int64_t t10 = (int64_t)((t9 / n0));
            const int64_t t11 = (int64_t)((t9 % n0));
            const int64_t t12 = (int64_t)(sx_smaller(48 * i0 + 6 * i1 + 4, n0 * n1 - 1));
            const int64_t t13 = (int64_t)((t12 / n0));
            const int64_t t14 = (int64_t)((t12 % n0));
            const int64_t t15 = (int64_t)(sx_smaller(48 * i0 + 6 * i1 + 5, n0 * n1 - 1));
            const int64_t t16 = (int64_t)((t15 / n0));
            const int64_t t17 = (int64_t)((t15 % n0));
            float a0[96];
            float a1[96];
            SX_VECTORS
            for (int64_t i2 = 0; i2 < 96; i2++) {
                a1[i2] = 0.0f;
            }
            for (int64_t i3 = 0; i3 < 8; i3++) {
                const float t18 = in3[8 * t1 * n0 + i3 + 8 * t2];
                const float t19 = in3[8 * t4 * n0 + i3 + 8 * t5];
                const float t20 = in3[8 * t7 * n0 + i3 + 8 * t8];
                const float t21 = in3[8 * t10 * n0 + i3 + 8 * t11];
                const float t22 = in3[8 * t13 * n0 + i3 + 8 * t14];
                const float t23 = in3[8 * t16 * n0 + i3 + 8 * t17];
                SX_REGISTERS
                for (int64_t i4 = 0; i4 < 16; i4++) {
                    const float t24 = in0[16 * i3 + i4];
                    a1[i4] = a1[i4] + (t18 * t24);
                    a1[i4 + 16] = a1[i4 + 16] + (t19 * t24);
                    a1[i4 + 32] = a1[i4 + 32] + (t20 * t24);
                    a1[i4 + 48] = a1[i4 + 48] + (t21 * t24);
                    a1[i4 + 64] = a1[i4 + 64] + (t22 * t24);
                    a1[i4 + 80] = a1[i4 + 80] + (t23 * t24);
                }
            }
            SX_REGISTERS
            for (int64_t i5 = 0; i5 < 16; i5++) {
                a0[i5] = a1[i5];
                a0[i5 + 16] = a1[i5 + 16];
                a0[i5 + 32] = a1[i5 + 32];
                a0[i5 + 48] = a1[i5 + 48];
                a0[i5 + 64] = a1[i5 + 64];
                a0[i5 + 80] = a1[i5 + 80];
            }
            SX_VECTOR
            for (int64_t i6 = 0; i6 < 16; i6++) {
                scratch1[16 * t1 * n0 + i6 + 16 * t2] = a0[i6];
                scratch1[16 * t4 * n0 + i6 + 16 * t5] = a0[i6 + 16];
                scratch1[16 * t7 * n0 + i6 + 16 * t8] = a0[i6 + 32];
                scratch1[16 * t10 * n0 + i6 + 16 * t11] = a0[i6 + 48];
                scratch1[16 * t13 * n0 + i6 + 16 * t14] = a0[i6 + 64];
                scratch1[16 * t16 * n0 + i6 + 16 * t17] = a0[i6 + 80];
            }
        }
    }
}

struct part1 { sx_run *run; void *const *p; const int64_t *n; };
static void part1(void *arg, int64_t begin, int64_t end) {
    const struct part1 *c = arg;
    float *scratch2 = c->p[2];
    for (int64_t i7 = begin; i7 < end; i7++) {
        SX_VECTOR
        for (int64_t i8 = 0; i8 < 4; i8++) {
            scratch2[4 * i7 + i8] = 0.0f;
        }
    }
}

struct part2 { sx_run *run; void *const *p; const int64_t *n; };
static void part2(void *arg, int64_t begin, int64_t end) {
    const struct part2 *c = arg;
    float *scratch4 = c->p[4];
    for (int64_t i9 = begin; i9 < end; i9++) {
        SX_VECTOR
        for (int64_t i10 = 0; i10 < 4; i10++) {
            scratch4[4 * i9 + i10] = 0.0f;
        }
    }
}

struct part3 { sx_run *run; void *const *p; const int64_t *n; int64_t i11; };
static void part3(void *arg, int64_t begin, int64_t end) {
    const struct part3 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i11 = c->i11;
    for (int64_t i12 = begin; i12 < end; i12++) {
        const int64_t t25 = (int64_t)(sx_smaller(i12, n0 - 1));
        float a2[16];
        for (int64_t i13 = 0; i13 < 4; i13++) {
            float v0 = 0.0f;
            float v1 = 0.0f;
            float v2 = 0.0f;
            float v3 = 0.0f;
            { SX_REASSOCIATE
            SX_INTERLEAVED
            for (int64_t i14 = 0; i14 < 4; i14++) {
                const float t26 = in5[4 * i13 + i14];
                const float t27 = in5[4 * i13 + i14 + 16];
                const float t28 = in5[4 * i13 + i14 + 32];
                const float t29 = in5[4 * i13 + i14 + 48];
                v0 = v0 + (scratch2[4 * n0 * (i11 % 2) + i14 + 4 * t25] * t26);
                v1 = v1 + (scratch2[4 * n0 * (i11 % 2) + i14 + 4 * t25] * t27);
                v2 = v2 + (scratch2[4 * n0 * (i11 % 2) + i14 + 4 * t25] * t28);
                v3 = v3 + (scratch2[4 * n0 * (i11 % 2) + i14 + 4 * t25] * t29);
            }
            }
            a2[i13] = v0;
            a2[i13 + 4] = v1;
            a2[i13 + 8] = v2;
            a2[i13 + 12] = v3;
        }
        if (((int64_t)(i12)) < ((int64_t)(n0))) {
            const int64_t t30 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i11));
            SX_VECTOR
            for (int64_t i15 = 0; i15 < 4; i15++) {
                const float t31 = a2[i15];
                const float t32 = a2[i15 + 4];
                const float t33 = a2[i15 + 8];
                const float t34 = a2[i15 + 12];
                const float t35 = scratch4[i15 + 4 * t25];
                const float t36 = scratch1[16 * i11 * n0 + i15 + 16 * t25] + t31;
                const float t37 = scratch1[16 * i11 * n0 + i15 + 16 * t25 + 4] + t32;
                const float t38 = scratch1[16 * i11 * n0 + i15 + 16 * t25 + 8] + t33;
                const float t39 = scratch1[16 * i11 * n0 + i15 + 16 * t25 + 12] + t34;
                const float t40 = sx_sigmoid_f32(t36);
                const float t41 = sx_sigmoid_f32(t38);
                const float t42 = sx_tanh_f32(t39);
                const float t43 = (t41 * t35) + (t40 * t42);
                const float t44 = sx_sigmoid_f32(t37);
                const float t45 = sx_tanh_f32(t43);
                const float t46 = t44 * t45;
                out6[4 * i11 * n0 + i15 + 4 * t25] = t46;
                scratch2[4 * n0 * ((i11 + 1) % 2) + i15 + 4 * t25] = t46;
                scratch4[i15 + 4 * t25] = t43;
            }
        }
    }
}

struct part4 { sx_run *run; void *const *p; const int64_t *n; int64_t i16; };
static void part4(void *arg, int64_t begin, int64_t end) {
    const struct part4 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i16 = c->i16;
    for (int64_t i17 = begin; i17 < end; i17++) {
        const int64_t t47 = (int64_t)(sx_smaller(2 * i17, n0 - 1));
        const int64_t t48 = (int64_t)(sx_smaller(2 * i17 + 1, n0 - 1));
        float a3[32];
        for (int64_t i18 = 0; i18 < 4; i18++) {
            float v4 = 0.0f;
            float v5 = 0.0f;
            float v6 = 0.0f;
            float v7 = 0.0f;
            float v8 = 0.0f;
            float v9 = 0.0f;
            float v10 = 0.0f;
            float v11 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i19 = 0; i19 < 4; i19++) {
                const float t49 = in5[4 * i18 + i19];
                const float t50 = in5[4 * i18 + i19 + 16];
                const float t51 = in5[4 * i18 + i19 + 32];
                const float t52 = in5[4 * i18 + i19 + 48];
                v4 = v4 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t47] * t49);
                v5 = v5 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t47] * t50);
                v6 = v6 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t47] * t51);
                v7 = v7 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t47] * t52);
                v8 = v8 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t48] * t49);
                v9 = v9 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t48] * t50);
                v10 = v10 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t48] * t51);
                v11 = v11 + (scratch2[4 * n0 * (i16 % 2) + i19 + 4 * t48] * t52);
            }
            }
            a3[i18] = v4;
            a3[i18 + 4] = v5;
            a3[i18 + 8] = v6;
            a3[i18 + 12] = v7;
            a3[i18 + 16] = v8;
            a3[i18 + 20] = v9;
            a3[i18 + 24] = v10;
            a3[i18 + 28] = v11;
        }
        if (((int64_t)(2 * i17)) < ((int64_t)(n0))) {
            const int64_t t53 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i16));
            SX_VECTOR
            for (int64_t i20 = 0; i20 < 4; i20++) {
                const float t54 = a3[i20];
                const float t55 = a3[i20 + 4];
                const float t56 = a3[i20 + 8];
                const float t57 = a3[i20 + 12];
                const float t58 = scratch4[i20 + 4 * t47];
                const float t59 = scratch1[16 * i16 * n0 + i20 + 16 * t47] + t54;
                const float t60 = scratch1[16 * i16 * n0 + i20 + 16 * t47 + 4] + t55;
                const float t61 = scratch1[16 * i16 * n0 + i20 + 16 * t47 + 8] + t56;
                const float t62 = scratch1[16 * i16 * n0 + i20 + 16 * t47 + 12] + t57;
                const float t63 = sx_sigmoid_f32(t59);
                const float t64 = sx_sigmoid_f32(t61);
                const float t65 = sx_tanh_f32(t62);
                const float t66 = (t64 * t58) + (t63 * t65);
                const float t67 = sx_sigmoid_f32(t60);
                const float t68 = sx_tanh_f32(t66);
                const float t69 = t67 * t68;
                out6[4 * i16 * n0 + i20 + 4 * t47] = t69;
                scratch2[4 * n0 * ((i16 + 1) % 2) + i20 + 4 * t47] = t69;
                scratch4[i20 + 4 * t47] = t66;
            }
        }
        if (((int64_t)(2 * i17 + 1)) < ((int64_t)(n0))) {
            const int64_t t70 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i16));
            SX_VECTOR
            for (int64_t i21 = 0; i21 < 4; i21++) {
                const float t71 = a3[i21 + 16];
                const float t72 = a3[i21 + 20];
                const float t73 = a3[i21 + 24];
                const float t74 = a3[i21 + 28];
                const float t75 = scratch4[i21 + 4 * t48];
                const float t76 = scratch1[16 * i16 * n0 + i21 + 16 * t48] + t71;
                const float t77 = scratch1[16 * i16 * n0 + i21 + 16 * t48 + 4] + t72;
                const float t78 = scratch1[16 * i16 * n0 + i21 + 16 * t48 + 8] + t73;
                const float t79 = scratch1[16 * i16 * n0 + i21 + 16 * t48 + 12] + t74;
                const float t80 = sx_sigmoid_f32(t76);
                const float t81 = sx_sigmoid_f32(t78);
                const float t82 = sx_tanh_f32(t79);
                const float t83 = (t81 * t75) + (t80 * t82);
                const float t84 = sx_sigmoid_f32(t77);
                const float t85 = sx_tanh_f32(t83);
                const float t86 = t84 * t85;
                out6[4 * i16 * n0 + i21 + 4 * t48] = t86;
                scratch2[4 * n0 * ((i16 + 1) % 2) + i21 + 4 * t48] = t86;
                scratch4[i21 + 4 * t48] = t83;
            }
        }
    }
}

struct part5 { sx_run *run; void *const *p; const int64_t *n; int64_t i22; };
static void part5(void *arg, int64_t begin, int64_t end) {
    const struct part5 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i22 = c->i22;
    for (int64_t i23 = begin; i23 < end; i23++) {
        const int64_t t87 = (int64_t)(sx_smaller(4 * i23, n0 - 1));
        const int64_t t88 = (int64_t)(sx_smaller(4 * i23 + 1, n0 - 1));
        const int64_t t89 = (int64_t)(sx_smaller(4 * i23 + 2, n0 - 1));
        const int64_t t90 = (int64_t)(sx_smaller(4 * i23 + 3, n0 - 1));
        float a4[64];
        for (int64_t i24 = 0; i24 < 4; i24++) {
            float v12 = 0.0f;
            float v13 = 0.0f;
            float v14 = 0.0f;
            float v15 = 0.0f;
            float v16 = 0.0f;
            float v17 = 0.0f;
            float v18 = 0.0f;
            float v19 = 0.0f;
            float v20 = 0.0f;
            float v21 = 0.0f;
            float v22 = 0.0f;
            float v23 = 0.0f;
            float v24 = 0.0f;
            float v25 = 0.0f;
            float v26 = 0.0f;
            float v27 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i25 = 0; i25 < 4; i25++) {
                const float t91 = in5[4 * i24 + i25];
                const float t92 = in5[4 * i24 + i25 + 16];
                const float t93 = in5[4 * i24 + i25 + 32];
                const float t94 = in5[4 * i24 + i25 + 48];
                v12 = v12 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t87] * t91);
                v13 = v13 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t87] * t92);
                v14 = v14 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t87] * t93);
                v15 = v15 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t87] * t94);
                v16 = v16 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t88] * t91);
                v17 = v17 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t88] * t92);
                v18 = v18 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t88] * t93);
                v19 = v19 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t88] * t94);
                v20 = v20 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t89] * t91);
                v21 = v21 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t89] * t92);
                v22 = v22 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t89] * t93);
                v23 = v23 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t89] * t94);
                v24 = v24 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t90] * t91);
                v25 = v25 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t90] * t92);
                v26 = v26 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t90] * t93);
                v27 = v27 + (scratch2[4 * n0 * (i22 % 2) + i25 + 4 * t90] * t94);
            }
            }
            a4[i24] = v12;
            a4[i24 + 4] = v13;
            a4[i24 + 8] = v14;
            a4[i24 + 12] = v15;
            a4[i24 + 16] = v16;
            a4[i24 + 20] = v17;
            a4[i24 + 24] = v18;
            a4[i24 + 28] = v19;
            a4[i24 + 32] = v20;
            a4[i24 + 36] = v21;
            a4[i24 + 40] = v22;
            a4[i24 + 44] = v23;
            a4[i24 + 48] = v24;
            a4[i24 + 52] = v25;
            a4[i24 + 56] = v26;
            a4[i24 + 60] = v27;
        }
        if (((int64_t)(4 * i23)) < ((int64_t)(n0))) {
            const int64_t t95 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i22));
            SX_VECTOR
            for (int64_t i26 = 0; i26 < 4; i26++) {
                const float t96 = a4[i26];
                const float t97 = a4[i26 + 4];
                const float t98 = a4[i26 + 8];
                const float t99 = a4[i26 + 12];
                const float t100 = scratch4[i26 + 4 * t87];
                const float t101 = scratch1[16 * i22 * n0 + i26 + 16 * t87] + t96;
                const float t102 = scratch1[16 * i22 * n0 + i26 + 16 * t87 + 4] + t97;
                const float t103 = scratch1[16 * i22 * n0 + i26 + 16 * t87 + 8] + t98;
                const float t104 = scratch1[16 * i22 * n0 + i26 + 16 * t87 + 12] + t99;
                const float t105 = sx_sigmoid_f32(t101);
                const float t106 = sx_sigmoid_f32(t103);
                const float t107 = sx_tanh_f32(t104);
                const float t108 = (t106 * t100) + (t105 * t107);
                const float t109 = sx_sigmoid_f32(t102);
                const float t110 = sx_tanh_f32(t108);
                const float t111 = t109 * t110;
                out6[4 * i22 * n0 + i26 + 4 * t87] = t111;
                scratch2[4 * n0 * ((i22 + 1) % 2) + i26 + 4 * t87] = t111;
                scratch4[i26 + 4 * t87] = t108;
            }
        }
        if (((int64_t)(4 * i23 + 1)) < ((int64_t)(n0))) {
            const int64_t t112 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i22));
            SX_VECTOR
            for (int64_t i27 = 0; i27 < 4; i27++) {
                const float t113 = a4[i27 + 16];
                const float t114 = a4[i27 + 20];
                const float t115 = a4[i27 + 24];
                const float t116 = a4[i27 + 28];
                const float t117 = scratch4[i27 + 4 * t88];
                const float t118 = scratch1[16 * i22 * n0 + i27 + 16 * t88] + t113;
                const float t119 = scratch1[16 * i22 * n0 + i27 + 16 * t88 + 4] + t114;
                const float t120 = scratch1[16 * i22 * n0 + i27 + 16 * t88 + 8] + t115;
                const float t121 = scratch1[16 * i22 * n0 + i27 + 16 * t88 + 12] + t116;
                const float t122 = sx_sigmoid_f32(t118);
                const float t123 = sx_sigmoid_f32(t120);
                const float t124 = sx_tanh_f32(t121);
                const float t125 = (t123 * t117) + (t122 * t124);
                const float t126 = sx_sigmoid_f32(t119);
                const float t127 = sx_tanh_f32(t125);
                const float t128 = t126 * t127;
                out6[4 * i22 * n0 + i27 + 4 * t88] = t128;
                scratch2[4 * n0 * ((i22 + 1) % 2) + i27 + 4 * t88] = t128;
                scratch4[i27 + 4 * t88] = t125;
            }
        }
        if (((int64_t)(4 * i23 + 2)) < ((int64_t)(n0))) {
            const int64_t t129 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i22));
            SX_VECTOR
            for (int64_t i28 = 0; i28 < 4; i28++) {
                const float t130 = a4[i28 + 32];
                const float t131 = a4[i28 + 36];
                const float t132 = a4[i28 + 40];
                const float t133 = a4[i28 + 44];
                const float t134 = scratch4[i28 + 4 * t89];
                const float t135 = scratch1[16 * i22 * n0 + i28 + 16 * t89] + t130;
                const float t136 = scratch1[16 * i22 * n0 + i28 + 16 * t89 + 4] + t131;
                const float t137 = scratch1[16 * i22 * n0 + i28 + 16 * t89 + 8] + t132;
                const float t138 = scratch1[16 * i22 * n0 + i28 + 16 * t89 + 12] + t133;
                const float t139 = sx_sigmoid_f32(t135);
                const float t140 = sx_sigmoid_f32(t137);
                const float t141 = sx_tanh_f32(t138);
                const float t142 = (t140 * t134) + (t139 * t141);
                const float t143 = sx_sigmoid_f32(t136);
                const float t144 = sx_tanh_f32(t142);
                const float t145 = t143 * t144;
                out6[4 * i22 * n0 + i28 + 4 * t89] = t145;
                scratch2[4 * n0 * ((i22 + 1) % 2) + i28 + 4 * t89] = t145;
                scratch4[i28 + 4 * t89] = t142;
            }
        }
        if (((int64_t)(4 * i23 + 3)) < ((int64_t)(n0))) {
            const int64_t t146 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i22));
            SX_VECTOR
            for (int64_t i29 = 0; i29 < 4; i29++) {
                const float t147 = a4[i29 + 48];
                const float t148 = a4[i29 + 52];
                const float t149 = a4[i29 + 56];
                const float t150 = a4[i29 + 60];
                const float t151 = scratch4[i29 + 4 * t90];
                const float t152 = scratch1[16 * i22 * n0 + i29 + 16 * t90] + t147;
                const float t153 = scratch1[16 * i22 * n0 + i29 + 16 * t90 + 4] + t148;
                const float t154 = scratch1[16 * i22 * n0 + i29 + 16 * t90 + 8] + t149;
                const float t155 = scratch1[16 * i22 * n0 + i29 + 16 * t90 + 12] + t150;
                const float t156 = sx_sigmoid_f32(t152);
                const float t157 = sx_sigmoid_f32(t154);
                const float t158 = sx_tanh_f32(t155);
                const float t159 = (t157 * t151) + (t156 * t158);
                const float t160 = sx_sigmoid_f32(t153);
                const float t161 = sx_tanh_f32(t159);
                const float t162 = t160 * t161;
                out6[4 * i22 * n0 + i29 + 4 * t90] = t162;
                scratch2[4 * n0 * ((i22 + 1) % 2) + i29 + 4 * t90] = t162;
                scratch4[i29 + 4 * t90] = t159;
            }
        }
    }
}

int32_t k_390c6d9320596b166f40(sx_run *run, void *const *p, const int64_t *n) {
    (void)p, (void)n;
    const int64_t n0 = n[0];
    const int64_t n1 = n[1];
    run->parallel(run, ((n0 * n1 + 47) / 48), 1, part0, &(struct part0){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    run->parallel(run, n0, 4096, part1, &(struct part1){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    run->parallel(run, n0, 4096, part2, &(struct part2){run, p, n});
    if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
    if (((int64_t)(n0)) <= 1) {
        for (int64_t i11 = 0; i11 < n1; i11++) {
            run->parallel(run, n0, -512 * (i11 % 2) + 256, part3, &(struct part3){run, p, n, i11});
            if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
        }
    } else {
        if (((int64_t)(n0)) <= 2) {
            for (int64_t i16 = 0; i16 < n1; i16++) {
                run->parallel(run, ((n0 + 1) / 2), -256 * (i16 % 2) + 128, part4, &(struct part4){run, p, n, i16});
                if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
            }
        } else {
            for (int64_t i22 = 0; i22 < n1; i22++) {
                run->parallel(run, ((n0 + 3) / 4), -128 * (i22 % 2) + 64, part5, &(struct part5){run, p, n, i22});
                if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
            }
        }
    }
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
