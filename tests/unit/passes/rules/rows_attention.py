"""Rules about attention and rotary embeddings: an example for each, in which it applies."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.passes.rules.row import Row

__all__ = ["ROWS"]

HEADS = "float[B, 2, S, 4] q, float[B, 2, S, 4] k, float[B, 2, S, 4] v => float[B, 2, S, 4] y"
KEYS = "t = Transpose <perm = [0, 1, 3, 2]> (k)"
SPREAD = "{0}1 = Unsqueeze ({0}, two) {0}2 = Expand ({0}1, times) {0}3 = Reshape ({0}2, heads)"
ANGLES = "w = Concat <axis = -1> (t, t) c = Cos (w) d = Sin (w)"
TURN = "a, b = Split <axis = -1> ({0}, both) n = Neg (b) r = Concat <axis = -1> (n, a) e = Mul ({0}, c) g = Mul (r, d)"
TURNED = "float[B, 2, S, 8] x, float[B, 1, S, 4] t => float[B, 2, S, 8] y"
BOTH = "int64[2] both = {4, 4}"

ROWS: Mapping[str, Row] = {
    # attention
    "attention-of-rows": Row(
        "float[B, S, 8] q, float[B, S, 8] k, float[B, S, 8] v => float[B, S, 8] y",
        "qh = Reshape (q, h) kh = Reshape (k, h) vh = Reshape (v, h) qt = Transpose <perm = [0, 2, 1, 3]> (qh) "
        "kt = Transpose <perm = [0, 2, 1, 3]> (kh) vt = Transpose <perm = [0, 2, 1, 3]> (vh) "
        "o = Attention (qt, kt, vt) ot = Transpose <perm = [0, 2, 1, 3]> (o) y = Reshape (ot, w)",
        "Attention",
        "int64[4] h = {0, 0, 2, 4}, int64[3] w = {0, 0, 8}",
        23,
    ),
    "attention": Row(
        HEADS, f"{KEYS} s = MatMul (q, t) p = Softmax <axis = -1> (s) y = MatMul (p, v)", "Attention", opset=23
    ),
    "attention-with-mask": Row(
        HEADS.replace(" =>", ", bool[B, 1, S, S] w =>"),
        f"{KEYS} a = MatMul (q, t) m = Where (w, none, low) s = Add (a, m) p = Softmax <axis = -1> (s) "
        "y = MatMul (p, v)",
        "Where Attention",
        "float none = {0.0}, float low = {-1e30}",
        23,
    ),
    "attention-with-softcap": Row(
        HEADS,
        f"{KEYS} a = MatMul (q, t) b = Div (a, cap) c = Tanh (b) s = Mul (c, cap) p = Softmax <axis = -1> (s) "
        "y = MatMul (p, v)",
        "Attention",
        "float cap = {2.0}",
        23,
    ),
    "attention-of-groups": Row(
        "float[B, 4, S, 4] q, float[B, 2, S, 4] k, float[B, 2, S, 4] v => float[B, 4, S, 4] y",
        f"{SPREAD.format('k')} {SPREAD.format('v')} y = Attention (q, k3, v3)",
        "Attention",
        "int64[1] two = {2}, int64[5] times = {1, 1, 2, 1, 1}, int64[4] heads = {0, 4, -1, 4}",
        23,
    ),
    "attention-with-causal-mask": Row(
        HEADS.replace("S,", "3,"),
        "y = Attention (q, k, v, w)",
        "Attention",
        "bool[3, 3] w = {1, 0, 0, 1, 1, 0, 1, 1, 1}",
        23,
    ),
    # rotary embeddings
    "rotary-embedding": Row(
        TURNED, f"{ANGLES} {TURN.format('x')} y = Add (e, g)", "Cos Sin Squeeze Squeeze RotaryEmbedding", BOTH, 23
    ),
    "rotary-embedding-of-parts": Row(
        TURNED,
        "c = Cos (t) d = Sin (t) a, b = Split <axis = -1> (x, both) ac = Mul (a, c) bd = Mul (b, d) "
        "bc = Mul (c, b) ad = Mul (a, d) f = Sub (ac, bd) s = Add (ad, bc) y = Concat <axis = -1> (f, s)",
        "Cos Sin Squeeze Squeeze RotaryEmbedding",
        BOTH,
        23,
    ),
    "rotary-embedding-of-first-columns": Row(
        "float[B, 2, S, 11] x, float[B, S, 4] c, float[B, S, 4] d => float[B, 2, S, 11] y",
        "i, k = Split <axis = -1> (x, some) j = RotaryEmbedding (i, c, d) y = Concat <axis = -1> (j, k)",
        "RotaryEmbedding",
        "int64[2] some = {8, 3}",
        23,
    ),
}  # fmt: skip
