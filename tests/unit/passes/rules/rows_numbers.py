"""Rules about numbers and truth values: an example for each, in which it applies."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.passes.rules.row import Row

__all__ = ["ROWS"]

X = "float[N, 4] x => float[N, 4] y"
XZ = "float[N, 4] x, float[N, 4] z => float[N, 4] y"
CD = "bool[N] c, bool[N] d => bool[N] y"
CX = "bool[N] c, float[N] x, float[N] z => float[N] y"
TRUTHS = "bool t = {1}, bool f = {0}"
LOOP = "(int64 i, bool go, float[N, 4] s) => (bool again, float[N, 4] t) { again = Identity (go) t = Neg (s) }"

ROWS: Mapping[str, Row] = {
    # constants
    "constant-to-initializer": Row(X, "c = Constant <value_float = 2.0> () y = Mul (x, c)", "Mul"),
    "known-loop": Row(
        X, f"l = Loop <body = b {LOOP}> (one, , x) y = Relu (l)", "Neg Relu", "int64 one = {1}"
    ),
    "fold-constants": Row(X, "c = Exp (two) y = Mul (x, c)", "Mul", "float two = {2.0}"),
    # no-ops
    "identity": Row(X, "a = Identity (x) y = Neg (a)", "Neg"),
    "dropout-in-inference": Row(X, "a = Dropout (x) y = Neg (a)", "Neg"),
    "cast-to-same-type": Row(X, "a = Cast <to = 1> (x) y = Neg (a)", "Neg"),
    "of-one-input": Row(X, "a = Max (x) y = Neg (a)", "Neg"),
    "unread-outputs": Row(X, "a, mask = Dropout (x) y = Neg (a)", "Dropout Neg"),
    # pointwise
    "already-nonnegative": Row(X, "a = Sigmoid (x) y = Relu (a)", "Sigmoid"),
    "abs-of-neg": Row(X, "a = Neg (x) y = Abs (a)", "Abs"),
    "negated-operands": Row(XZ, "a = Neg (z) y = Add (x, a)", "Sub"),
    "neg-of-sub": Row(
        "int32[N, 4] x, int32[N, 4] z => int32[N, 4] y", "a = Sub (x, z) y = Neg (a)", "Sub"
    ),
    "limit-by-constant": Row(
        X, "a = Max (x, low) y = Min (a, high)", "Clip", "float low = {-1.0}, float high = {2.0}"
    ),
    "idempotent": Row(X, "a = Floor (x) y = Floor (a)", "Floor"),
    "undone": Row(X, "a = Neg (x) b = Neg (a) y = Tanh (b)", "Tanh"),
    "neutral-operand": Row(X, "a = Add (x, none) y = Neg (a)", "Neg", "float none = {-0.0}"),
    "annihilated": Row(
        "int64[2] x, int64[2] z => int64[2] y",
        "a = Mul (x, none) y = Add (a, z)",
        "Add",
        "int64 none = {0}",
    ),
    "clip-of-clip": Row(X, "a = Relu (x) y = Clip (a, , six)", "Clip", "float six = {6.0}"),
    "cast-of-cast": Row(
        "float[N] x => int64[N] y", "a = Cast <to = 11> (x) y = Cast <to = 7> (a)", "Cast"
    ),
    # conditions
    "where-known": Row(CX, "a = Where (t, x, z) y = Neg (a)", "Neg", TRUTHS),
    "where-of-truths": Row(CD, "a = Where (c, t, f) y = And (a, d)", "And", TRUTHS),
    "where-of-not": Row(CX, "n = Not (c) y = Where (n, x, z)", "Where"),
    "not-of-comparison": Row(
        "int64[N] i, int64[N] j => bool[N] y", "l = Less (i, j) y = Not (l)", "GreaterOrEqual"
    ),
    "truth-with-constant": Row(CD, "a = And (c, t) y = Or (a, d)", "Or", TRUTHS),
    "compared-with-itself": Row(CD, "a = And (c, c) y = Or (a, d)", "Or"),
    "both-negated": Row(CD, "a = Not (c) b = Not (d) y = And (a, b)", "Or Not"),
    # chains
    "integer-chain": Row(
        "int64[N] x => int64[N] y",
        "a = Add (x, two) b = Mul (a, two) y = Sub (b, two)",
        "Mul Add",
        "int64 two = {2}",
    ),
    "float-chain": Row(
        X, "a = Add (x, two) y = Add (a, three)", "Add", "float two = {2.0}, float three = {3.0}"
    ),
    "extreme-of-extremes": Row(
        "float[2, 3, 4] x => float[2, 1, 1] y",
        "a = ReduceMax <axes = [1]> (x) y = ReduceMax <axes = [-1]> (a)",
        "ReduceMax",
    ),
    "sum-of-sums": Row(
        "float[2, 3, 4] x => float[2, 1, 1] y",
        "a = ReduceMean <axes = [1]> (x) y = ReduceMean <axes = [-1]> (a)",
        "ReduceMean",
    ),
    # written out
    "softmax-written-out": Row(
        X,
        "m = ReduceMax <axes = [-1]> (x) s = Sub (x, m) e = Exp (s) t = ReduceSum (e, last) y = Div (e, t)",
        "Softmax",
        "int64[1] last = {-1}",
    ),
    "log-softmax-written-out": Row(
        X,
        "m = ReduceMax <axes = [-1]> (x) s = Sub (x, m) e = Exp (s) t = ReduceSum (e, last) l = Log (t) "
        "y = Sub (s, l)",
        "LogSoftmax",
        "int64[1] last = {-1}",
    ),
    "power-as-operator": Row(X, "y = Pow (x, minus)", "Reciprocal", "float minus = {-1.0}"),
}
