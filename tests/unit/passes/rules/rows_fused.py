"""Rules about products, convolutions and what is one operator written out: an example for each, in which it applies."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.passes.rules.row import Row

__all__ = ["ROWS"]

X = "float[N, 4] x => float[N, 4] y"
IMAGE = "float[1, 2, 4, 4] x => float[P, Q, R, S] y"
K = "float[2, 2, 1, 2] k = {1., -2., 3., 4., -1., 2., 3., 5.}"
CHANNELS = "float[2] a = {1., -2.}, float[2] b = {3., 0.5}, float[2] v = {1., 2.}"
W = "float[4, 2] w = {1., 2., -3., 4., 5., 6., -7., 8.}"
GATES = "float[2, 4] w = {0.5, -1., 0.25, 1.5, 0.75, -0.5, 1., -0.25}, float[1, 4] r = {0.5, -0.25, 1., -1.}, float[4] v = {0.5, -0.5, 0.25, 1.}"
NORM = "m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) s = Mul (d, d)"

ROWS: Mapping[str, Row] = {
    # convolutions
    "conv-then-normalization": Row(
        IMAGE, "c = Conv (x, k) y = BatchNormalization (c, a, b, b, v)", "Conv", f"{K}, {CHANNELS}"
    ),
    "conv-then-scale": Row(
        IMAGE, "c = Conv (x, k) y = Mul (c, s)", "Conv", f"{K}, float[2, 1, 1] s = {{2., -3.}}"
    ),
    "scale-before-conv": Row(
        IMAGE, "c = Mul (x, s) y = Conv (c, k)", "Conv", f"{K}, float[2, 1, 1] s = {{2., -3.}}"
    ),
    "pad-before-conv": Row(
        IMAGE, "p = Pad (x, n) y = Conv (p, k)", "Conv", f"{K}, int64[8] n = {{0, 0, 1, 0, 0, 0, 1, 2}}"
    ),
    "pad-before-transposed-conv": Row(
        IMAGE,
        "p = Pad (x, n) y = ConvTranspose <pads = [1, 1, 1, 1]> (p, k)",
        "ConvTranspose",
        f"{K}, int64[8] n = {{0, 0, 1, 1, 0, 0, 1, 1}}",
    ),
    # products
    "product-and-bias": Row(
        "float[N, 4] x => float[N, 2] y", "p = MatMul (x, w) y = Add (p, b)", "Gemm", f"{W}, {CHANNELS}"
    ),
    "gemm-factors": Row(
        "float[N, 4] x => float[N, 2] y", "y = Gemm <alpha = 2.0> (x, w, b)", "Gemm", f"{W}, {CHANNELS}"
    ),
    "product-of-constants": Row(
        "float[N, 2] x => float[N, 2] y",
        "h = Tanh (x) p = MatMul (h, m) y = MatMul (p, w)",
        "Tanh MatMul",
        f"{W}, float[2, 4] m = {{1., 2., 3., 4., -5., 6., 7., 8.}}",
    ),
    "product-chain": Row(
        "float[6, 2] x, float[2, 6] z => float[6, 2] y",
        "a = Tanh (x) b = Sigmoid (z) p = MatMul (a, b) y = MatMul (p, a)",
        "Tanh Sigmoid MatMul MatMul",
    ),
    "product-then-scale": Row(
        "float[N, 4] x => float[N, 2] y", "p = MatMul (x, w) y = Mul (p, b)", "MatMul", f"{W}, {CHANNELS}"
    ),
    "scale-then-product": Row(
        "float[N, 4] x => float[N, 2] y", "p = Mul (x, c) y = MatMul (p, w)", "MatMul", f"{W}, float c = {{3.}}"
    ),
    "gemm-then-normalization": Row(
        "float[N, 4] x => float[N, 2] y",
        "p = Gemm (x, w, b) y = BatchNormalization (p, a, b, b, v)",
        "Gemm",
        f"{W}, {CHANNELS}",
    ),
    "einsum-as-product": Row(
        "float[B, 3, 4] x, float[B, 4, 5] z => float[B, 3, 5] y",
        'y = Einsum <equation = "bij,bjk->bik"> (x, z)',
        "MatMul",
    ),
    # recurrent
    "zero-state": Row(
        "float[3, 2, 1] x => float[3, 1, 2, 1] y",
        "y = RNN <hidden_size = 1> (x, w, w, , , h)",
        "RNN",
        "float[1, 1, 1] w = {0.5}, float[1, 2, 1] h = {0., 0.}",
    ),
    "unrolled-lstm": Row(
        "float[N, 2] a, float[N, 2] b, float[N, 1] h0, float[N, 1] c0 => float[N, 1] h1, float[N, 1] h2, float[N, 1] c2",
        """g1 = Gemm (a, w, v) k1 = MatMul (h0, r) s1 = Add (g1, k1) i1, f1, n1, o1 = Split <axis = 1> (s1, ones)
        si1 = Sigmoid (i1) sf1 = Sigmoid (f1) tn1 = Tanh (n1) so1 = Sigmoid (o1)
        p1 = Mul (sf1, c0) q1 = Mul (tn1, si1) c1 = Add (q1, p1) t1 = Tanh (c1) h1 = Mul (t1, so1)
        g2 = Gemm (b, w, v) k2 = MatMul (h1, r) s2 = Add (k2, g2) i2, f2, n2, o2 = Split <axis = 1> (s2, ones)
        si2 = Sigmoid (i2) sf2 = Sigmoid (f2) tn2 = Tanh (n2) so2 = Sigmoid (o2)
        p2 = Mul (sf2, c1) q2 = Mul (si2, tn2) c2 = Add (p2, q2) t2 = Tanh (c2) h2 = Mul (so2, t2)""",
        "Unsqueeze Unsqueeze Concat Unsqueeze Unsqueeze LSTM Squeeze Gather Gather Squeeze",
        f"{GATES}, int64[4] ones = {{1, 1, 1, 1}}",
    ),
    "unrolled-gru": Row(
        "float[3, N, 2] x, float[N, 1] h0 => float[N, 1] y",
        """a = Gather <axis = 0> (x, n0) b = Gather <axis = 0> (x, n1)
        g1 = Gemm (a, u, w3) k1 = Gemm (h0, m, w3) ra1, za1, na1 = Split <axis = 1> (g1, ones)
        rb1, zb1, nb1 = Split <axis = 1> (k1, ones) rs1 = Add (ra1, rb1) zs1 = Add (zb1, za1)
        r1 = Sigmoid (rs1) z1 = Sigmoid (zs1) p1 = Mul (r1, nb1) s1 = Add (na1, p1) t1 = Tanh (s1)
        d1 = Sub (h0, t1) e1 = Mul (d1, z1) h1 = Add (e1, t1)
        g2 = Gemm (b, u, w3) k2 = Gemm (h1, m, w3) ra2, za2, na2 = Split <axis = 1> (g2, ones)
        rb2, zb2, nb2 = Split <axis = 1> (k2, ones) rs2 = Add (ra2, rb2) zs2 = Add (zb2, za2)
        r2 = Sigmoid (rs2) z2 = Sigmoid (zs2) p2 = Mul (r2, nb2) s2 = Add (na2, p2) t2 = Tanh (s2)
        d2 = Sub (h1, t2) e2 = Mul (d2, z2) y = Add (e2, t2)""",
        "Gather Unsqueeze GRU Squeeze",
        """float[2, 3] u = {0.5, -1., 0.25, 1.5, 0.75, -0.5}, float[1, 3] m = {0.5, -0.25, 1.}, int64[3] ones = {1, 1, 1},
        float[3] w3 = {0.125, -0.5, 0.25}, int64 n0 = {0}, int64 n1 = {1}""",
    ),
    "unrolled-rnn": Row(
        "float[N, 2, 3] x, float[N, 2] h0 => float[N, 2] y",
        """a = Gather <axis = 1> (x, n0) b = Gather <axis = 1> (x, n1)
        g1 = Gemm (a, u, v) k1 = Gemm (h0, m, v) s1 = Add (g1, k1) h1 = Relu (s1)
        g2 = Gemm (b, u, v) k2 = Gemm (h1, m, v) s2 = Add (g2, k2) y = Relu (s2)""",
        "Transpose Unsqueeze RNN Squeeze",
        """float[3, 2] u = {0.5, -1., 0.25, 1.5, 0.75, -0.5}, float[2, 2] m = {0.5, -0.25, 1., -1.},
        float[2] v = {0.125, -0.5}, int64 n0 = {0}, int64 n1 = {1}""",
    ),
    # activations
    "hard-swish-written-out": Row(
        X,
        "a = Add (x, three) b = Clip (a, none, six) c = Mul (x, b) y = Div (c, six)",
        "HardSwish",
        "float three = {3.}, float six = {6.}, float none = {0.}",
    ),
    "hard-swish": Row(
        X, "a = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, a)", "HardSwish"
    ),
    "hard-sigmoid": Row(
        X,
        "a = Add (x, three) b = Clip (a, none, six) y = Div (b, six)",
        "HardSigmoid",
        "float three = {3.}, float six = {6.}, float none = {0.}",
    ),
    "gelu": Row(
        X,
        "a = Div (x, root) b = Erf (a) c = Add (b, one) d = Mul (x, c) y = Mul (d, half)",
        "Gelu",
        "float root = {1.4142135}, float one = {1.}, float half = {0.5}",
        20,
    ),
    "swish": Row(X, "a = Sigmoid (x) y = Mul (x, a)", "Swish", opset=24),
    "mish": Row(X, "a = Softplus (x) b = Tanh (a) y = Mul (x, b)", "Mish", opset=18),
    "softplus": Row(
        X, "t = Tanh (x) a = Exp (t) b = Add (a, one) y = Log (b)", "Tanh Softplus", "float one = {1.}"
    ),
    # normalisations
    "layer-normalization": Row(
        X,
        f"{NORM} v = ReduceMean <axes = [-1]> (s) e = Add (v, eps) r = Sqrt (e) y = Div (d, r)",
        "LayerNormalization",
        "float eps = {0.001}",
    ),
    "rms-normalization": Row(
        X,
        "s = Mul (x, x) m = ReduceMean (s, last) e = Add (m, eps) r = Sqrt (e) y = Div (x, r)",
        "RMSNormalization",
        "float eps = {0.001}, int64[1] last = {-1}",
        23,
    ),
    "normalization-parameters": Row(
        X,
        "n = LayerNormalization (x, ones) y = Mul (n, f)",
        "LayerNormalization",
        "float[4] ones = {1., 1., 1., 1.}, float[4] f = {1., 2., -3., 4.}",
    ),
    "normalization-of-small-floats": Row(
        "float16[N, 4] x => float16[N, 4] y",
        "c = Cast <to = 1> (x) n = RMSNormalization (c, ones) y = Cast <to = 10> (n)",
        "RMSNormalization",
        "float[4] ones = {1., 1., 1., 1.}",
        23,
    ),
    "instance-normalization": Row(
        IMAGE,
        "m = ReduceMean (x, space) d = Sub (x, m) q = Mul (d, d) w = ReduceMean (q, space) e = Add (w, eps) "
        "r = Sqrt (e) y = Div (d, r)",
        "InstanceNormalization",
        "float eps = {0.001}, int64[2] space = {2, 3}",
        23,
    ),
    "group-normalization": Row(
        "float[N, 6, 3, 4] x => float[P, Q, R, S] y",
        "r = Reshape (x, parts) n = InstanceNormalization (r, one, none) y = Reshape (n, whole)",
        "GroupNormalization",
        "int64[3] parts = {0, 2, -1}, int64[4] whole = {0, 6, 3, 4}, float[2] one = {1., 1.}, float[2] none = {0., 0.}",
        23,
    ),
    "channel-parameters": Row(
        IMAGE,
        "n = InstanceNormalization (x, one, none) y = Mul (n, f)",
        "InstanceNormalization",
        "float[2] one = {1., 1.}, float[2] none = {0., 0.}, float[2, 1, 1] f = {2., -3.}",
    ),
    # last
    "products-of-rows": Row(
        "float[2, 3, 4] x => float[2, 3, 2, 1] y, float[6, 2] z",
        "a = MatMul (x, w) b = Add (a, c) y = Reshape (b, four) d = MatMul (x, w) e = Add (c, d) z = Reshape (e, two)",
        "Reshape Gemm Reshape Gemm Reshape",
        f"{W}, float[2] c = {{1., -2.}}, int64[4] four = {{0, 0, 2, 1}}, int64[2] two = {{6, 2}}",
    ),
}  # fmt: skip
