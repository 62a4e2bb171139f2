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
        SX_REGISTERS
        for (int64_t i1 = 0; i1 < 64; i1++) {
            a0[i1] = 0.0f;
        }
        for (int64_t i2 = 0; i2 < 8; i2++) {
            const float t12 = in3[8 * t1 * n0 + i2 + 8 * t2];
            const float t13 = in3[8 * t4 * n0 + i2 + 8 * t5];
            const float t14 = in3[8 * t7 * n0 + i2 + 8 * t8];
            const float t15 = in3[8 * t10 * n0 + i2 + 8 * t11];
            SX_REGISTERS
            for (int64_t i3 = 0; i3 < 16; i3++) {
                const float t16 = in0[16 * i2 + i3];
                a0[i3] = a0[i3] + (t12 * t16);
                a0[i3 + 16] = a0[i3 + 16] + (t13 * t16);
                a0[i3 + 32] = a0[i3 + 32] + (t14 * t16);
                a0[i3 + 48] = a0[i3 + 48] + (t15 * t16);
            }
        }
        float a1[64];
        SX_REGISTERS
        for (int64_t i4 = 0; i4 < 64; i4++) {
            a1[i4] = a0[i4];
        }
        SX_VECTOR
        for (int64_t i5 = 0; i5 < 16; i5++) {
            scratch1[16 * t1 * n0 + i5 + 16 * t2] = a1[i5];
            scratch1[16 * t4 * n0 + i5 + 16 * t5] = a1[i5 + 16];
            scratch1[16 * t7 * n0 + i5 + 16 * t8] = a1[i5 + 32];
            scratch1[16 * t10 * n0 + i5 + 16 * t11] = a1[i5 + 48];
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
            SX_VECTOR
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
        const int64_t t39 = (int64_t)(sx_smaller(4 * i16, n0 - 1));
        const int64_t t40 = (int64_t)(sx_smaller(4 * i16 + 1, n0 - 1));
        const int64_t t41 = (int64_t)(sx_smaller(4 * i16 + 2, n0 - 1));
        const int64_t t42 = (int64_t)(sx_smaller(4 * i16 + 3, n0 - 1));
        float a3[64];
        for (int64_t i17 = 0; i17 < 4; i17++) {
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
            float v16 = 0.0f;
            float v17 = 0.0f;
            float v18 = 0.0f;
            float v19 = 0.0f;
            { SX_REASSOCIATE
            SX_VECTOR
            for (int64_t i18 = 0; i18 < 4; i18++) {
                const float t43 = in5[4 * i17 + i18];
                const float t44 = in5[4 * i17 + i18 + 16];
                const float t45 = in5[4 * i17 + i18 + 32];
                const float t46 = in5[4 * i17 + i18 + 48];
                v4 = v4 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t43);
                v5 = v5 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t44);
                v6 = v6 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t45);
                v7 = v7 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t39] * t46);
                v8 = v8 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t43);
                v9 = v9 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t44);
                v10 = v10 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t45);
                v11 = v11 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t40] * t46);
                v12 = v12 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t41] * t43);
                v13 = v13 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t41] * t44);
                v14 = v14 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t41] * t45);
                v15 = v15 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t41] * t46);
                v16 = v16 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t42] * t43);
                v17 = v17 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t42] * t44);
                v18 = v18 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t42] * t45);
                v19 = v19 + (scratch2[4 * n0 * (i15 % 2) + i18 + 4 * t42] * t46);
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
            a3[i17 + 32] = v12;
            a3[i17 + 36] = v13;
            a3[i17 + 40] = v14;
            a3[i17 + 44] = v15;
            a3[i17 + 48] = v16;
            a3[i17 + 52] = v17;
            a3[i17 + 56] = v18;
            a3[i17 + 60] = v19;
        }
        if (((int64_t)(4 * i16)) < ((int64_t)(n0))) {
            const int64_t t47 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i19 = 0; i19 < 4; i19++) {
                const float t48 = a3[i19];
                const float t49 = a3[i19 + 4];
                const float t50 = a3[i19 + 8];
                const float t51 = a3[i19 + 12];
                const float t52 = scratch4[i19 + 4 * t39];
                const float t53 = scratch1[16 * i15 * n0 + i19 + 16 * t39] + t48;
                const float t54 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 4] + t49;
                const float t55 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 8] + t50;
                const float t56 = scratch1[16 * i15 * n0 + i19 + 16 * t39 + 12] + t51;
                const float t57 = sx_sigmoid_f32(t53);
                const float t58 = sx_sigmoid_f32(t55);
                const float t59 = sx_tanh_f32(t56);
                const float t60 = (t58 * t52) + (t57 * t59);
                const float t61 = sx_sigmoid_f32(t54);
                const float t62 = sx_tanh_f32(t60);
                const float t63 = t61 * t62;
                out6[4 * i15 * n0 + i19 + 4 * t39] = t63;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i19 + 4 * t39] = t63;
                scratch4[i19 + 4 * t39] = t60;
            }
        }
        if (((int64_t)(4 * i16 + 1)) < ((int64_t)(n0))) {
            const int64_t t64 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i20 = 0; i20 < 4; i20++) {
                const float t65 = a3[i20 + 16];
                const float t66 = a3[i20 + 20];
                const float t67 = a3[i20 + 24];
                const float t68 = a3[i20 + 28];
                const float t69 = scratch4[i20 + 4 * t40];
                const float t70 = scratch1[16 * i15 * n0 + i20 + 16 * t40] + t65;
                const float t71 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 4] + t66;
                const float t72 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 8] + t67;
                const float t73 = scratch1[16 * i15 * n0 + i20 + 16 * t40 + 12] + t68;
                const float t74 = sx_sigmoid_f32(t70);
                const float t75 = sx_sigmoid_f32(t72);
                const float t76 = sx_tanh_f32(t73);
                const float t77 = (t75 * t69) + (t74 * t76);
                const float t78 = sx_sigmoid_f32(t71);
                const float t79 = sx_tanh_f32(t77);
                const float t80 = t78 * t79;
                out6[4 * i15 * n0 + i20 + 4 * t40] = t80;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i20 + 4 * t40] = t80;
                scratch4[i20 + 4 * t40] = t77;
            }
        }
        if (((int64_t)(4 * i16 + 2)) < ((int64_t)(n0))) {
            const int64_t t81 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i21 = 0; i21 < 4; i21++) {
                const float t82 = a3[i21 + 32];
                const float t83 = a3[i21 + 36];
                const float t84 = a3[i21 + 40];
                const float t85 = a3[i21 + 44];
                const float t86 = scratch4[i21 + 4 * t41];
                const float t87 = scratch1[16 * i15 * n0 + i21 + 16 * t41] + t82;
                const float t88 = scratch1[16 * i15 * n0 + i21 + 16 * t41 + 4] + t83;
                const float t89 = scratch1[16 * i15 * n0 + i21 + 16 * t41 + 8] + t84;
                const float t90 = scratch1[16 * i15 * n0 + i21 + 16 * t41 + 12] + t85;
                const float t91 = sx_sigmoid_f32(t87);
                const float t92 = sx_sigmoid_f32(t89);
                const float t93 = sx_tanh_f32(t90);
                const float t94 = (t92 * t86) + (t91 * t93);
                const float t95 = sx_sigmoid_f32(t88);
                const float t96 = sx_tanh_f32(t94);
                const float t97 = t95 * t96;
                out6[4 * i15 * n0 + i21 + 4 * t41] = t97;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i21 + 4 * t41] = t97;
                scratch4[i21 + 4 * t41] = t94;
            }
        }
        if (((int64_t)(4 * i16 + 3)) < ((int64_t)(n0))) {
            const int64_t t98 = sx_sub_i64(sx_sub_i64((int64_t)(n1), 1), (int64_t)(i15));
            SX_VECTOR
            for (int64_t i22 = 0; i22 < 4; i22++) {
                const float t99 = a3[i22 + 48];
                const float t100 = a3[i22 + 52];
                const float t101 = a3[i22 + 56];
                const float t102 = a3[i22 + 60];
                const float t103 = scratch4[i22 + 4 * t42];
                const float t104 = scratch1[16 * i15 * n0 + i22 + 16 * t42] + t99;
                const float t105 = scratch1[16 * i15 * n0 + i22 + 16 * t42 + 4] + t100;
                const float t106 = scratch1[16 * i15 * n0 + i22 + 16 * t42 + 8] + t101;
                const float t107 = scratch1[16 * i15 * n0 + i22 + 16 * t42 + 12] + t102;
                const float t108 = sx_sigmoid_f32(t104);
                const float t109 = sx_sigmoid_f32(t106);
                const float t110 = sx_tanh_f32(t107);
                const float t111 = (t109 * t103) + (t108 * t110);
                const float t112 = sx_sigmoid_f32(t105);
                const float t113 = sx_tanh_f32(t111);
                const float t114 = t112 * t113;
                out6[4 * i15 * n0 + i22 + 4 * t42] = t114;
                scratch2[4 * n0 * ((i15 + 1) % 2) + i22 + 4 * t42] = t114;
                scratch4[i22 + 4 * t42] = t111;
            }
        }
    }
}

int32_t k_4b145eb1befdc438dbe3(sx_run *run, void *const *p, const int64_t *n) {
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
        for (int64_t i15 = 0; i15 < n1; i15++) {
            run->parallel(run, ((n0 + 3) / 4), 64, part4, &(struct part4){run, p, n, i15});
            if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;
        }
    }
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}
