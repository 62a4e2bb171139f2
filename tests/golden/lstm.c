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
        float a0[64];
        float a1[64];
        SX_REGISTERS
        for (int64_t i1 = 0; i1 < 64; i1++) {
            a1[i1] = 0.0f;
        }
        for (int64_t i2 = 0; i2 < 8; i2++) {
            const float t12 = in3[8 * t1 * n0 + i2 + 8 * t2];
            const float t13 = in3[8 * t4 * n0 + i2 + 8 * t5];
            const float t14 = in3[8 * t7 * n0 + i2 + 8 * t8];
            const float t15 = in3[8 * t10 * n0 + i2 + 8 * t11];
            SX_REGISTERS
            for (int64_t i3 = 0; i3 < 16; i3++) {
                const float t16 = in0[16 * i2 + i3];
                a1[i3] = a1[i3] + (t12 * t16);
                a1[i3 + 16] = a1[i3 + 16] + (t13 * t16);
                a1[i3 + 32] = a1[i3 + 32] + (t14 * t16);
                a1[i3 + 48] = a1[i3 + 48] + (t15 * t16);
            }
        }
        SX_REGISTERS
        for (int64_t i4 = 0; i4 < 16; i4++) {
            a0[i4] = a1[i4];
            a0[i4 + 16] = a1[i4 + 16];
            a0[i4 + 32] = a1[i4 + 32];
            a0[i4 + 48] = a1[i4 + 48];
        }
        SX_VECTOR
        for (int64_t i5 = 0; i5 < 16; i5++) {
            scratch1[16 * t1 * n0 + i5 + 16 * t2] = a0[i5];
            scratch1[16 * t4 * n0 + i5 + 16 * t5] = a0[i5 + 16];
            scratch1[16 * t7 * n0 + i5 + 16 * t8] = a0[i5 + 32];
            scratch1[16 * t10 * n0 + i5 + 16 * t11] = a0[i5 + 48];
        }
    }
}

struct part1 { sx_run *run; void *const *p; const int64_t *n; };
static void part1(void *arg, int64_t begin, int64_t end) {
    const struct part1 *c = arg;
    float *scratch2 = c->p[2];
    for (int64_t i6 = begin; i6 < end; i6++) {
        SX_VECTOR
        for (int64_t i7 = 0; i7 < 4; i7++) {
            scratch2[4 * i6 + i7] = 0.0f;
        }
    }
}

struct part2 { sx_run *run; void *const *p; const int64_t *n; };
static void part2(void *arg, int64_t begin, int64_t end) {
    const struct part2 *c = arg;
    float *scratch4 = c->p[4];
    for (int64_t i8 = begin; i8 < end; i8++) {
        SX_VECTOR
        for (int64_t i9 = 0; i9 < 4; i9++) {
            scratch4[4 * i8 + i9] = 0.0f;
        }
    }
}

struct part3 { sx_run *run; void *const *p; const int64_t *n; int64_t i10; };
static void part3(void *arg, int64_t begin, int64_t end) {
    const struct part3 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i10 = c->i10;
    for (int64_t i11 = begin; i11 < end; i11++) {
        const int64_t t17 = (int64_t)(sx_smaller(i11, n0 - 1));
        float a2[16];
        for (int64_t i12 = 0; i12 < 4; i12++) {
            float v0 = 0.0f;
            float v1 = 0.0f;
            float v2 = 0.0f;
            float v3 = 0.0f;
            { SX_REASSOCIATE
            SX_INTERLEAVED
            for (int64_t i13 = 0; i13 < 4; i13++) {
                const float t18 = in5[4 * i12 + i13];
                const float t19 = in5[4 * i12 + i13 + 16];
                const float t20 = in5[4 * i12 + i13 + 32];
                const float t21 = in5[4 * i12 + i13 + 48];
                v0 = v0 + (scratch2[4 * n0 * (i10 % 2) + i13 + 4 * t17] * t18);
                v1 = v1 + (scratch2[4 * n0 * (i10 % 2) + i13 + 4 * t17] * t19);
                v2 = v2 + (scratch2[4 * n0 * (i10 % 2) + i13 + 4 * t17] * t20);
                v3 = v3 + (scratch2[4 * n0 * (i10 % 2) + i13 + 4 * t17] * t21);
            }
            }
            a2[i12] = v0;
            a2[i12 + 4] = v1;
            a2[i12 + 8] = v2;
            a2[i12 + 12] = v3;
        }
        if (((int64_t)(i11)) < ((int64_t)(n0))) {
            const int64_t t22 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i10));
            SX_VECTOR
            for (int64_t i14 = 0; i14 < 4; i14++) {
                const float t23 = a2[i14];
                const float t24 = a2[i14 + 4];
                const float t25 = a2[i14 + 8];
                const float t26 = a2[i14 + 12];
                const float t27 = scratch4[i14 + 4 * t17];
                const float t28 = scratch1[16 * i10 * n0 + i14 + 16 * t17] + t23;
                const float t29 = scratch1[16 * i10 * n0 + i14 + 16 * t17 + 4] + t24;
                const float t30 = scratch1[16 * i10 * n0 + i14 + 16 * t17 + 8] + t25;
                const float t31 = scratch1[16 * i10 * n0 + i14 + 16 * t17 + 12] + t26;
                const float t32 = sx_sigmoid_f32(t28);
                const float t33 = sx_sigmoid_f32(t30);
                const float t34 = sx_tanh_f32(t31);
                const float t35 = (t33 * t27) + (t32 * t34);
                const float t36 = sx_sigmoid_f32(t29);
                const float t37 = sx_tanh_f32(t35);
                const float t38 = t36 * t37;
                out6[4 * i10 * n0 + i14 + 4 * t17] = t38;
                scratch2[4 * n0 * ((i10 + 1) % 2) + i14 + 4 * t17] = t38;
                scratch4[i14 + 4 * t17] = t35;
            }
        }
    }
}

struct part4 { sx_run *run; void *const *p; const int64_t *n; int64_t i15; };
static void part4(void *arg, int64_t begin, int64_t end) {
    const struct part4 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i15 = c->i15;
    for (int64_t i16 = begin; i16 < end; i16++) {
        const int64_t t39 = (int64_t)(sx_smaller(2 * i16, n0 - 1));
        const int64_t t40 = (int64_t)(sx_smaller(2 * i16 + 1, n0 - 1));
        float a3[32];
        for (int64_t i17 = 0; i17 < 4; i17++) {
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
            for (int64_t i18 = 0; i18 < 4; i18++) {
                const float t41 = in5[4 * i17 + i18];
                const float t42 = in5[4 * i17 + i18 + 16];
                const float t43 = in5[4 * i17 + i18 + 32];
                const float t44 = in5[4 * i17 + i18 + 48];
                v4 = v4 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t41);
                v5 = v5 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t42);
                v6 = v6 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t43);
                v7 = v7 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t44);
                v8 = v8 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t41);
                v9 = v9 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t42);
                v10 = v10 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t43);
                v11 = v11 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t44);
            }
            }
            a3[i17] = v4;
            a3[i17 + 4] = v5;
            a3[i17 + 8] = v6;
            a3[i17 + 12] = v7;
            a3[i17 + 16] = v8;
            a3[i17 + 20] = v9;
            a3[i17 + 24] = v10;
            a3[i17 + 28] = v11;
        }
        if (((int64_t)(2 * i16)) < ((int64_t)(n0))) {
            const int64_t t45 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i19 = 0; i19 < 4; i19++) {
                const float t46 = a3[i19];
                const float t47 = a3[i19 + 4];
                const float t48 = a3[i19 + 8];
                const float t49 = a3[i19 + 12];
                const float t50 = scratch4[i19 + 4 * t39];
                const float t51 = scratch1[16 * i15 * n0 + i19 + 16 * t39] + t46;
                const float t52 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 4] + t47;
                const float t53 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 8] + t48;
                const float t54 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 12] + t49;
                const float t55 = sx_sigmoid_f32(t51);
                const float t56 = sx_sigmoid_f32(t53);
                const float t57 = sx_tanh_f32(t54);
                const float t58 = (t56 * t50) + (t55 * t57);
                const float t59 = sx_sigmoid_f32(t52);
                const float t60 = sx_tanh_f32(t58);
                const float t61 = t59 * t60;
                out6[4 * i15 * n0 + i19 + 4 * t39] = t61;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i19 + 4 * t39] = t61;
                scratch4[i19 + 4 * t39] = t58;
            }
        }
        if (((int64_t)(2 * i16 + 1)) < ((int64_t)(n0))) {
            const int64_t t62 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i20 = 0; i20 < 4; i20++) {
                const float t63 = a3[i20 + 16];
                const float t64 = a3[i20 + 20];
                const float t65 = a3[i20 + 24];
                const float t66 = a3[i20 + 28];
                const float t67 = scratch4[i20 + 4 * t40];
                const float t68 = scratch1[16 * i15 * n0 + i20 + 16 * t40] + t63;
                const float t69 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 4] + t64;
                const float t70 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 8] + t65;
                const float t71 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 12] + t66;
                const float t72 = sx_sigmoid_f32(t68);
                const float t73 = sx_sigmoid_f32(t70);
                const float t74 = sx_tanh_f32(t71);
                const float t75 = (t73 * t67) + (t72 * t74);
                const float t76 = sx_sigmoid_f32(t69);
                const float t77 = sx_tanh_f32(t75);
                const float t78 = t76 * t77;
                out6[4 * i15 * n0 + i20 + 4 * t40] = t78;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i20 + 4 * t40] = t78;
                scratch4[i20 + 4 * t40] = t75;
            }
        }
    }
}

struct part5 { sx_run *run; void *const *p; const int64_t *n; int64_t i21; };
static void part5(void *arg, int64_t begin, int64_t end) {
    const struct part5 *c = arg;
    float *scratch1 = c->p[1];
    float *scratch2 = c->p[2];
    float *scratch4 = c->p[4];
    const float *in5 = c->p[5];
    float *out6 = c->p[6];
    const int64_t n0 = c->n[0];
    const int64_t n1 = c->n[1];
    const int64_t i21 = c->i21;
    for (int64_t i22 = begin; i22 < end; i22++) {
        const int64_t t79 = (int64_t)(sx_smaller(4 * i22, n0 - 1));
        const int64_t t80 = (int64_t)(sx_smaller(4 * i22 + 1, n0 - 1));
        const int64_t t81 = (int64_t)(sx_smaller(4 * i22 + 2, n0 - 1));
        const int64_t t82 = (int64_t)(sx_smaller(4 * i22 + 3, n0 - 1));
        float a4[64];
        for (int64_t i23 = 0; i23 < 4; i23++) {
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
            for (int64_t i24 = 0; i24 < 4; i24++) {
                const float t83 = in5[4 * i23 + i24];
                const float t84 = in5[4 * i23 + i24 + 16];
                const float t85 = in5[4 * i23 + i24 + 32];
                const float t86 = in5[4 * i23 + i24 + 48];
                v12 = v12 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t79] * t83);
                v13 = v13 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t79] * t84);
                v14 = v14 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t79] * t85);
                v15 = v15 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t79] * t86);
                v16 = v16 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t80] * t83);
                v17 = v17 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t80] * t84);
                v18 = v18 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t80] * t85);
                v19 = v19 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t80] * t86);
                v20 = v20 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t81] * t83);
                v21 = v21 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t81] * t84);
                v22 = v22 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t81] * t85);
                v23 = v23 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t81] * t86);
                v24 = v24 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t82] * t83);
                v25 = v25 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t82] * t84);
                v26 = v26 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t82] * t85);
                v27 = v27 + (scratch2[4 * n0 * (i21 % 2) + i24 + 4 * t82] * t86);
            }
            }
            a4[i23] = v12;
            a4[i23 + 4] = v13;
            a4[i23 + 8] = v14;
            a4[i23 + 12] = v15;
            a4[i23 + 16] = v16;
            a4[i23 + 20] = v17;
            a4[i23 + 24] = v18;
            a4[i23 + 28] = v19;
            a4[i23 + 32] = v20;
            a4[i23 + 36] = v21;
            a4[i23 + 40] = v22;
            a4[i23 + 44] = v23;
            a4[i23 + 48] = v24;
            a4[i23 + 52] = v25;
            a4[i23 + 56] = v26;
            a4[i23 + 60] = v27;
        }
        if (((int64_t)(4 * i22)) < ((int64_t)(n0))) {
            const int64_t t87 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i21));
            SX_VECTOR
            for (int64_t i25 = 0; i25 < 4; i25++) {
                const float t88 = a4[i25];
                const float t89 = a4[i25 + 4];
                const float t90 = a4[i25 + 8];
                const float t91 = a4[i25 + 12];
                const float t92 = scratch4[i25 + 4 * t79];
                const float t93 = scratch1[16 * i21 * n0 + i25 + 16 * t79] + t88;
                const float t94 = scratch1[16 * i21 * n0 + i25 + 16 * t79 + 4] + t89;
                const float t95 = scratch1[16 * i21 * n0 + i25 + 16 * t79 + 8] + t90;
                const float t96 = scratch1[16 * i21 * n0 + i25 + 16 * t79 + 12] + t91;
                const float t97 = sx_sigmoid_f32(t93);
                const float t98 = sx_sigmoid_f32(t95);
                const float t99 = sx_tanh_f32(t96);
                const float t100 = (t98 * t92) + (t97 * t99);
                const float t101 = sx_sigmoid_f32(t94);
                const float t102 = sx_tanh_f32(t100);
                const float t103 = t101 * t102;
                out6[4 * i21 * n0 + i25 + 4 * t79] = t103;
                scratch2[4 * n0 * ((i21 + 1) % 2) + i25 + 4 * t79] = t103;
                scratch4[i25 + 4 * t79] = t100;
            }
        }
        if (((int64_t)(4 * i22 + 1)) < ((int64_t)(n0))) {
            const int64_t t104 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i21));
            SX_VECTOR
            for (int64_t i26 = 0; i26 < 4; i26++) {
                const float t105 = a4[i26 + 16];
                const float t106 = a4[i26 + 20];
                const float t107 = a4[i26 + 24];
                const float t108 = a4[i26 + 28];
                const float t109 = scratch4[i26 + 4 * t80];
                const float t110 = scratch1[16 * i21 * n0 + i26 + 16 * t80] + t105;
                const float t111 = scratch1[16 * i21 * n0 + i26 + 16 * t80 + 4] + t106;
                const float t112 = scratch1[16 * i21 * n0 + i26 + 16 * t80 + 8] + t107;
                const float t113 = scratch1[16 * i21 * n0 + i26 + 16 * t80 + 12] + t108;
                const float t114 = sx_sigmoid_f32(t110);
                const float t115 = sx_sigmoid_f32(t112);
                const float t116 = sx_tanh_f32(t113);
                const float t117 = (t115 * t109) + (t114 * t116);
                const float t118 = sx_sigmoid_f32(t111);
                const float t119 = sx_tanh_f32(t117);
                const float t120 = t118 * t119;
                out6[4 * i21 * n0 + i26 + 4 * t80] = t120;
                scratch2[4 * n0 * ((i21 + 1) % 2) + i26 + 4 * t80] = t120;
                scratch4[i26 + 4 * t80] = t117;
            }
        }
        if (((int64_t)(4 * i22 + 2)) < ((int64_t)(n0))) {
            const int64_t t121 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i21));
            SX_VECTOR
            for (int64_t i27 = 0; i27 < 4; i27++) {
                const float t122 = a4[i27 + 32];
                const float t123 = a4[i27 + 36];
                const float t124 = a4[i27 + 40];
                const float t125 = a4[i27 + 44];
                const float t126 = scratch4[i27 + 4 * t81];
                const float t127 = scratch1[16 * i21 * n0 + i27 + 16 * t81] + t122;
                const float t128 = scratch1[16 * i21 * n0 + i27 + 16 * t81 + 4] + t123;
                const float t129 = scratch1[16 * i21 * n0 + i27 + 16 * t81 + 8] + t124;
                const float t130 = scratch1[16 * i21 * n0 + i27 + 16 * t81 + 12] + t125;
                const float t131 = sx_sigmoid_f32(t127);
                const float t132 = sx_sigmoid_f32(t129);
                const float t133 = sx_tanh_f32(t130);
                const float t134 = (t132 * t126) + (t131 * t133);
                const float t135 = sx_sigmoid_f32(t128);
                const float t136 = sx_tanh_f32(t134);
                const float t137 = t135 * t136;
                out6[4 * i21 * n0 + i27 + 4 * t81] = t137;
                scratch2[4 * n0 * ((i21 + 1) % 2) + i27 + 4 * t81] = t137;
                scratch4[i27 + 4 * t81] = t134;
            }
        }
        if (((int64_t)(4 * i22 + 3)) < ((int64_t)(n0))) {
            const int64_t t138 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i21));
            SX_VECTOR
            for (int64_t i28 = 0; i28 < 4; i28++) {
                const float t139 = a4[i28 + 48];
                const float t140 = a4[i28 + 52];
                const float t141 = a4[i28 + 56];
                const float t142 = a4[i28 + 60];
                const float t143 = scratch4[i28 + 4 * t82];
                const float t144 = scratch1[16 * i21 * n0 + i28 + 16 * t82] + t139;
                const float t145 = scratch1[16 * i21 * n0 + i28 + 16 * t82 + 4] + t140;
                const float t146 = scratch1[16 * i21 * n0 + i28 + 16 * t82 + 8] + t141;
                const float t147 = scratch1[16 * i21 * n0 + i28 + 16 * t82 + 12] + t142;
                const float t148 = sx_sigmoid_f32(t144);
                const float t149 = sx_sigmoid_f32(t146);
                const float t150 = sx_tanh_f32(t147);
                const float t151 = (t149 * t143) + (t148 * t150);
                const float t152 = sx_sigmoid_f32(t145);
                const float t153 = sx_tanh_f32(t151);
                const float t154 = t152 * t153;
                out6[4 * i21 * n0 + i28 + 4 * t82] = t154;
                scratch2[4 * n0 * ((i21 + 1) % 2) + i28 + 4 * t82] = t154;
                scratch4[i28 + 4 * t82] = t151;
            }
        }
    }
}

int32_t k_cf91b63ac454eb881aa2(sx_run *run, void *const *p, const int64_t *n) {
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
        for (int64_t i10 = 0; i10 < n1; i10++) {
            run->parallel(run, n0, 256, part3, &(struct part3){run, p, n, i10});
            if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
        }
    } else {
        if (((int64_t)(n0)) == 2) {
            for (int64_t i15 = 0; i15 < n1; i15++) {
                run->parallel(run, ((n0 + 1) / 2), 128, part4, &(struct part4){run, p, n, i15});
                if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
            }
        } else {
            for (int64_t i21 = 0; i21 < n1; i21++) {
                run->parallel(run, ((n0 + 3) / 4), 64, part5, &(struct part5){run, p, n, i21});
                if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
            }
        }
    }
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
