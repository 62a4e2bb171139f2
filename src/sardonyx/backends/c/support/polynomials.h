/* Minimax polynomials, printed by tools/fit_polynomials.py. Do not edit. */
#ifndef SX_POLYNOMIALS_H
#define SX_POLYNOMIALS_H

/* e^r = 1 + r + r²·P(r), |r| <= ln2/2; error 2^-28.3 */
static inline float sx_poly_exp(float x) {
    const float x2 = x * x;
    return 0x1.fffffcp-2f + x * 0x1.555492p-3f
        + x2 * (0x1.5558f2p-5f + x * 0x1.1239e2p-7f
        + x2 * (0x1.6a243p-10f));
}

/* log(1 + f) = f - f²/2 + f³·P(f), sqrt(1/2) <= 1 + f <= sqrt(2); error 2^-30.3 */
static inline float sx_poly_log(float x) {
    return 0x1.555548p-2f
        + x * (-0x1.000006p-2f
        + x * (0x1.99a4b6p-3f
        + x * (-0x1.555c4ep-3f
        + x * (0x1.233768p-3f
        + x * (-0x1.fc220ap-4f
        + x * (0x1.e6f06cp-4f
        + x * (-0x1.de3c04p-4f + x * 0x1.14579p-4f)))))));
}

/* (e^2r - 1)/2 = r + r²·P(r), |r| <= ln2/4; error in tanh; error 2^-26.7 */
static inline float sx_poly_tanh(float x) {
    const float x2 = x * x;
    return 0x1.000002p+0f + x * 0x1.555496p-1f
        + x2 * (0x1.5553d8p-2f + x * 0x1.12376cp-3f
        + x2 * (0x1.6d49acp-5f));
}

/* erf x = x + x·P(x²), |x| <= 0.92; error 2^-27.2 */
static inline float sx_poly_erf(float x) {
    return 0x1.06eba8p-3f
        + x * (-0x1.812742p-2f
        + x * (0x1.ce2dfcp-4f
        + x * (-0x1.b80f6ap-6f
        + x * (0x1.54dceep-8f
        + x * (-0x1.ab489ap-11f + x * 0x1.610122p-14f)))));
}

/* 1 - erf x = e^-P(x), 0.92 <= x <= 3.95; error 2^-34.5 */
static inline float sx_poly_erfc(float x) {
    return -0x1.704944p-13f
        + x * (0x1.212832p+0f
        + x * (0x1.4444c6p-1f
        + x * (0x1.bb8f84p-4f
        + x * (-0x1.9bad9p-6f
        + x * (0x1.118b7ap-8f
        + x * (-0x1.c83698p-12f + x * 0x1.62d5c8p-16f))))));
}

/* (1 - erf(t/sqrt(2)))/2 = (1 - t/6)^4·P((t - 1.5)/2), 0 <= t <= 6; error over t where t > 0.7; error 2^-26.8 */
static inline float sx_poly_gelu(float x) {
    const float x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    return 0x1.b06c2p-3f + x * -0x1.c5f3a8p-2f + x2 * 0x1.846efp-3f + x3 * 0x1.0499e4p-2f
        + x4 * (-0x1.f23f56p-3f + x * -0x1.cf6762p-5f + x2 * 0x1.17dcd8p-3f + x3 * -0x1.7a9e5ap-7f
        + x4 * (-0x1.9d6bf6p-5f + x * 0x1.fc502cp-7f + x2 * 0x1.a658fap-7f + x3 * -0x1.026c76p-7f
        + x4 * (-0x1.271876p-10f + x * 0x1.2146b2p-9f + x2 * -0x1.7e070ap-11f + x3 * 0x1.5bc376p-14f)));
}

/* t·(1 - erf(t/sqrt(2)))/2 = P(t/2.5 - 1), 0 <= t <= 5; error 2^-16.8 */
static inline float sx_poly_gelu_coarse(float x) {
    const float x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    return 0x1.fcb0b6p-7f + x * -0x1.80ae5ep-4f + x2 * 0x1.dcc974p-3f + x3 * -0x1.0a080ap-2f
        + x4 * (-0x1.3d24f4p-6f + x * 0x1.c320fcp-2f + x2 * -0x1.ec9d6ap-2f + x3 * 0x1.b80d94p-8f
        + x4 * (0x1.4c21acp-2f + x * -0x1.1cb54ap-3f + x2 * -0x1.27f926p-4f + x3 * 0x1.746a28p-5f));
}

/* 1/(1 + e^(sqrt(8/pi)·(t + 0.044715·t³))) = (1 - t/6)^4·P((t - 1.5)/2), 0 <= t <= 6; error over t where t > 0.7; error 2^-25.0 */
static inline float sx_poly_gelu_tanh(float x) {
    const float x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    return 0x1.b15c9p-3f + x * -0x1.c6c942p-2f + x2 * 0x1.74b9aep-3f + x3 * 0x1.fd0e9cp-3f
        + x4 * (-0x1.d3328ep-3f + x * -0x1.511db8p-5f + x2 * 0x1.e6a7ep-4f + x3 * -0x1.db84ccp-6f
        + x4 * (-0x1.13e1f4p-5f + x * 0x1.a43966p-6f + x2 * 0x1.06c53cp-11f + x3 * -0x1.17934cp-7f
        + x4 * (0x1.c84438p-9f + x * 0x1.f68122p-13f + x2 * -0x1.d1f962p-12f + x3 * 0x1.460998p-14f)));
}

/* t·1/(1 + e^(sqrt(8/pi)·(t + 0.044715·t³))) = P(t/2.5 - 1), 0 <= t <= 5; error 2^-17.5 */
static inline float sx_poly_gelu_tanh_coarse(float x) {
    const float x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    return 0x1.ee5da6p-7f + x * -0x1.845e0ap-4f + x2 * 0x1.e785e8p-3f + x3 * -0x1.075a16p-2f
        + x4 * (-0x1.43baacp-5f + x * 0x1.c2a7dcp-2f + x2 * -0x1.c8a398p-2f + x3 * 0x1.462f3ap-10f
        + x4 * (0x1.2e9e76p-2f + x * -0x1.0fc0a8p-3f + x2 * -0x1.02eb52p-4f + x3 * 0x1.631f44p-5f));
}

/* sin x = x + x³·P(x²), |x| <= pi/4; error 2^-47.5 */
static inline double sx_poly_sin(double x) {
    return -0x1.5555555552239p-3
        + x * (0x1.1111110c872d1p-7
        + x * (-0x1.a019f939614e8p-13
        + x * (0x1.71d76d12fbb82p-19
        + x * (-0x1.a961a060299a4p-26))));
}

/* cos x = 1 + x²·P(x²), |x| <= pi/4; error 2^-43.6 */
static inline double sx_poly_cos(double x) {
    return -0x1.ffffffffe98b2p-2
        + x * (0x1.55555545c5157p-5
        + x * (-0x1.6c16b348b8d8cp-10
        + x * (0x1.a00eb9ad0f3e3p-16
        + x * (-0x1.23c97dfc670abp-22))));
}

/* 2^f = P(f), |f| <= 1/2; error 2^-13.7 */
static inline float sx_poly_exp2_of_halves(float x) {
    return 0x1.fff692p-1f
        + x * (0x1.62f31ap-1f
        + x * (0x1.f0de1ap-3f + x * 0x1.c3f764p-5f));
}

/* 2^f = 1 + f·P(f), |f| <= 1/2; error 2^-28.9 */
static inline float sx_poly_exp2_of_weights(float x) {
    return 0x1.62e43p-1f
        + x * (0x1.ebfbdcp-3f
        + x * (0x1.c6aee8p-5f
        + x * (0x1.3b2d4ep-7f
        + x * (0x1.5f3e7ep-10f + x * 0x1.41fb94p-13f))));
}

/* 2^f = 1 + f·P(f), |f| <= 1/2; error 2^-40.2 */
static inline double sx_poly_exp2(double x) {
    return 0x1.62e42fef89c7dp-1
        + x * (0x1.ebfbdff8ee3a1p-3
        + x * (0x1.c6b08dceefa76p-5
        + x * (0x1.3b2ab5ed18ab8p-7
        + x * (0x1.5d874ce341366p-10
        + x * (0x1.430aa8dc16464p-13
        + x * (0x1.00d86bc742545p-16 + x * 0x1.61c4d18db039ep-20))))));
}

/* log2((1 + s) / (1 - s)) = s·P(s²), |s| <= 3 - sqrt(8); error 2^-52.4 */
static inline double sx_poly_log2(double x) {
    return 0x1.71547652b82ffp+1
        + x * (0x1.ec709dc39c9e6p-1
        + x * (0x1.2776c516a937p-1
        + x * (0x1.a61756772f047p-2
        + x * (0x1.484fac1cba048p-2
        + x * (0x1.0bb7be499595ap-2 + x * 0x1.f184bdaa510ecp-3)))));
}

/* (e^2r - 1)/2 = r + r²·P(r), |r| <= ln2/4; error in tanh; error 2^-62.4 */
static inline double sx_poly_wide_tanh(double x) {
    const double x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    return 0x1.p+0 + x * 0x1.555555555555bp-1 + x2 * 0x1.55555555555afp-2 + x3 * 0x1.111111110ec24p-3
        + x4 * (0x1.6c16c16c054fp-5 + x * 0x1.a01a01b383515p-7 + x2 * 0x1.a01a01d10fe6cp-9 + x3 * 0x1.71ddf02ef122bp-11
        + x4 * (0x1.27e4b246f9b6ap-13 + x * 0x1.af6bb0fbf2d03p-16 + x2 * 0x1.1f8327815c7e1p-18));
}

/* sinh x = x + x³·P(x²), |x| <= 1; error 2^-43.5 */
static inline double sx_poly_sinh(double x) {
    return 0x1.5555555576d06p-3
        + x * (0x1.111110f2e81a5p-7
        + x * (0x1.a01a24c067268p-13
        + x * (0x1.71cc6fc3f6952p-19 + x * 0x1.b68b5d130a55dp-26)));
}

/* atan x = x + x³·P(x²), |x| <= sqrt(2) - 1; error 2^-40.2 */
static inline double sx_poly_atan(double x) {
    return -0x1.5555554edf6c5p-2
        + x * (0x1.999991fc3a7dap-3
        + x * (-0x1.2490c309f611fp-3
        + x * (0x1.c6d1ec4dc7ecfp-4
        + x * (-0x1.7082bea86d702p-4
        + x * (0x1.1e5c6dc711789p-4
        + x * (-0x1.36add83b1bd7ap-5))))));
}

/* asin x = x + x³·P(x²), |x| <= 1/2; error 2^-39.9 */
static inline double sx_poly_asin(double x) {
    return 0x1.55555547deab8p-3
        + x * (0x1.333340875736fp-4
        + x * (0x1.6db25ce0aa403p-5
        + x * (0x1.f2819fcd3471bp-6
        + x * (0x1.6643d294d410fp-6
        + x * (0x1.522ed3e245908p-6
        + x * (0x1.0541bc0fedbcap-9 + x * 0x1.0d7d2f70b10bdp-5))))));
}

#endif
