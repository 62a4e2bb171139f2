"""Rules about views, orders of axes, parts and quantized values: an example for each, in which it applies."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.passes.rules.row import Row

__all__ = ["ROWS"]

X = "float[2, 3, 4] x => float[P, Q, R] y"
CUTS = "int64[1] n0 = {0}, int64[1] n1 = {1}, int64[1] n2 = {2}, int64[1] n3 = {3}"
GRID = "float s = {0.1}, uint8 z = {3}"
Q = "uint8[2, 3, 4] q => uint8[P, Q, R] y"

ROWS: Mapping[str, Row] = {
    # no-ops
    "same-shape": Row(X, "a = Reshape (x, s) y = Neg (a)", "Neg", "int64[3] s = {2, -1, 4}"),
    "transpose-in-order": Row(X, "a = Transpose <perm = [0, 1, 2]> (x) y = Neg (a)", "Neg"),
    "empty-parts": Row(
        "float[2, 3] x, float[2, 0] e, float[2, 1] z => float[2, 4] y",
        "y = Concat <axis = 1> (x, e, z)",
        "Concat",
    ),
    "split-in-one": Row(X, "a = Split <axis = 1> (x) y = Neg (a)", "Neg"),
    "pad-by-nothing": Row(X, "a = Pad (x, p) y = Neg (a)", "Neg", "int64[6] p = {0, 0, 0, 0, 0, 0}"),
    "slice-of-all": Row(
        X, "a = Slice (x, n0, big, n1) y = Neg (a)", "Neg", f"{CUTS}, int64[1] big = {{99}}"
    ),
    "resize-by-one": Row(X, "a = Resize (x, , s) y = Neg (a)", "Neg", "float[3] s = {1., 1., 1.}"),
    # views
    "constant-target": Row(
        "float[N, 3, 4] x => float[N, 12] y",
        "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (s, rest) y = Reshape (x, t)",
        "Reshape",
        "int64[1] rest = {12}",
    ),
    "view-of-view": Row(
        "float[N, 3, 4] x => float[N, 3, 2, 2] y",
        "a = Flatten <axis = 1> (x) y = Reshape (a, s)",
        "Reshape",
        "int64[4] s = {-1, 3, 2, 2}",
    ),
    "reshape-of-view": Row(
        "float[N, 3, 4] x => float[P, 6] y",
        "a = Flatten <axis = 1> (x) y = Reshape (a, s)",
        "Reshape",
        "int64[2] s = {-1, 6}",
    ),
    "axes-together": Row(
        "float[2, 3] x => float[1, 2, 1, 3] y",
        "a = Unsqueeze (x, n1) y = Unsqueeze (a, n0)",
        "Unsqueeze",
        CUTS,
    ),
    "tile-by-ones": Row(X, "a = Tile (x, s) y = Neg (a)", "Neg", "int64[3] s = {1, 1, 1}"),
    "constant-expand": Row(
        "float[N, 1] x, float[5, 3] z => float[N, 3] y",
        "s = Shape <start = 1> (z) y = Expand (x, s)",
        "Expand",
    ),
    "expand-before-broadcast": Row(
        "float[1, 3] x, float[2, 3] z => float[2, 3] y",
        "e = Expand (x, s) y = Add (e, z)",
        "Add",
        "int64[2] s = {2, 3}",
    ),
    # transposes
    "transpose-between-reshapes": Row(
        "float[2, 5, 3, 4] x => float[2, 5, 4, 3] y",
        "a = Reshape (x, s) b = Transpose <perm = [0, 2, 1]> (a) y = Reshape (b, t)",
        "Transpose",
        "int64[3] s = {10, 3, 4}, int64[4] t = {2, 5, 4, 3}",
    ),
    "transpose-of-transpose": Row(
        X, "a = Transpose <perm = [1, 0, 2]> (x) y = Transpose <perm = [0, 2, 1]> (a)", "Transpose"
    ),
    "transpose-of-ones": Row(
        "float[1, N, 4] x => float[N, 1, 4] y", "y = Transpose <perm = [1, 0, 2]> (x)", "Reshape"
    ),
    "gemm-of-transpose": Row(
        "float[4, 3] x, float[4, 5] w => float[3, 5] y",
        "a = Transpose <perm = [1, 0]> (x) y = Gemm (a, w)",
        "Gemm",
    ),
    "transpose-through-pointwise": Row(
        X,
        "a = Transpose <perm = [1, 2, 0]> (x) b = Relu (a) y = Transpose <perm = [2, 0, 1]> (b)",
        "Relu",
    ),
    # parts
    "slice-of-slice": Row(
        X, "a = Slice (x, n1, n3, n1) y = Slice (a, n0, n1, n1)", "Slice", CUTS
    ),
    "slices-that-tile": Row(
        X,
        "a = Slice (x, n0, n1, n1) b = Slice (x, n1, n3, n1) c = Neg (b) y = Concat <axis = 1> (c, a)",
        "Split Neg Concat",
        CUTS,
    ),
    "concat-of-concat": Row(
        X, "a = Concat <axis = 1> (x, x) y = Concat <axis = -2> (a, x)", "Concat"
    ),
    "concat-of-neighbours": Row(
        X,
        "a = Slice (x, n0, n1, n1) b = Slice (x, n1, n2, n1) y = Concat <axis = 1> (a, b)",
        "Slice",
        CUTS,
    ),
    "stack-of-rows": Row(
        "float[2, N, 3] x => float[N, 2, 3] y",
        """a = Gather <axis = 0> (x, i0) b = Gather <axis = 0> (x, i1)
        c = Unsqueeze (a, one) d = Unsqueeze (b, one) y = Concat <axis = 1> (c, d)""",
        "Transpose",
        "int64 i0 = {0}, int64 i1 = {-1}, int64[1] one = {1}",
    ),
    "part-of-shape": Row(
        "float[N, M, 4] x => int64[2] y", "s = Shape (x) y = Gather (s, i)", "Shape", "int64[2] i = {0, 1}"
    ),
    "gather-in-order": Row(X, "y = Gather <axis = 1> (x, i)", "Slice", "int64[2] i = {1, 2}"),
    # quantized
    "quantized-again": Row(
        Q,
        "f = DequantizeLinear (q, s, z) g = QuantizeLinear (f, s, z) y = Transpose (g)",
        "Transpose",
        GRID,
    ),
    "moved-while-quantized": Row(
        Q,
        "f = DequantizeLinear (q, s, z) t = Transpose (f) y = QuantizeLinear (t, s, z)",
        "Transpose",
        GRID,
    ),
    "concat-of-dequantized": Row(
        "uint8[2, 3, 4] q, uint8[2, 1, 4] r => float[P, Q, R] y",
        "f = DequantizeLinear (q, s, z) g = DequantizeLinear (r, s, z) y = Concat <axis = 1> (f, g)",
        "Concat DequantizeLinear",
        GRID,
    ),
    "dequantized-later": Row(
        "uint8[2, 3, 4] q => float[P, Q, R] y",
        "f = DequantizeLinear (q, s, z) y = Transpose (f)",
        "Transpose DequantizeLinear",
        GRID,
    ),
    "quantized-earlier": Row(
        "float[2, 3, 4] x => uint8[2, 12] y",
        "f = Flatten (x) y = QuantizeLinear (f, s, z)",
        "QuantizeLinear Flatten",
        GRID,
    ),
    "saturated-anyway": Row(
        "float[N] x => uint8[N] y",
        "r = Relu (x) y = QuantizeLinear (r, s, z)",
        "QuantizeLinear",
        "float s = {0.1}, uint8 z = {0}",
    ),
}  # fmt: skip
