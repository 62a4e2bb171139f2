"""Regions between transposes: turned where that saves bytes, left where it does not."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, same, text

CONSTANTS = "float[8] row = {1., 2., 3., 4., 5., 6., 7., 8.}, float two = {2.0}, int64[1] n1 = {1}, int64[1] n3 = {3}"
CONSTANTS += ", int64[8] pads = {0, 1, 0, 2, 0, 0, 1, 0}, float[4] scales = {1., 2., 3., 1.}"
IN, OUT = "<perm = [0, 2, 3, 1]>", "<perm = [0, 3, 1, 2]>"  # NCHW to NHWC, and back

TABLE = {
    "pointwise with constants": (
        f"a = Transpose {IN} (x) b = Add (a, row) c = Relu (b) d = Mul (two, c) y = Transpose {OUT} (d)",
        ["Add", "Relu", "Mul"],
    ),
    "two branches": (
        f"a = Transpose {IN} (x) b = Transpose {IN} (z) c = Add (a, b) y = Transpose {OUT} (c)",
        ["Add"],
    ),
    "concat": (
        f"a = Transpose {IN} (x) b = Transpose {IN} (z) c = Concat <axis = -1> (a, b) y = Transpose {OUT} (c)",
        ["Concat"],
    ),
    "pad": (f"a = Transpose {IN} (x) b = Pad (a, pads) y = Transpose {OUT} (b)", ["Pad"]),
    "slice": (
        f"a = Transpose {IN} (x) b = Slice (a, n1, n3, n3) y = Transpose {OUT} (b)",
        ["Slice"],
    ),
    "resize": (
        f"a = Transpose {IN} (x) b = Resize (a, , scales) y = Transpose {OUT} (b)",
        ["Resize"],
    ),
    "softmax": (
        f"a = Transpose {IN} (x) b = Softmax <axis = -1> (a) y = Transpose {OUT} (b)",
        ["Softmax"],
    ),
    "split": (
        f"a = Transpose {IN} (x) b, c = Split <axis = 3> (a) d = Mul (b, c) y = Transpose {OUT} (d)",
        ["Split", "Mul"],
    ),
    "reduction that keeps its axes": (
        f"a = Transpose {IN} (x) m = ReduceMean <axes = [1, 2]> (a) b = Sub (a, m) y = Transpose {OUT} (b)",
        ["ReduceMean", "Sub"],
    ),
    "another branch reads it": (
        f"a = Transpose {IN} (x) b = Relu (a) c = Transpose {OUT} (b) d = ReduceMax <axes = [1, 2], keepdims = 0> (b) "
        "e = Unsqueeze (d, n1) f = Unsqueeze (e, n1) g = Transpose <perm = [0, 3, 1, 2]> (f) y = Add (c, g)",
        ["Relu", "ReduceMax", "Reshape", "Add"],
    ),
    "nothing is won": (
        f"a = Transpose {IN} (x) b = Relu (a) c = Softmax <axis = 2> (b) d = Tanh (c) y = Add (d, row)",
        ["Transpose", "Relu", "Softmax", "Tanh", "Add"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_regions(name: str) -> None:
    nodes, expected = TABLE[name]
    source = text(
        f"(float[2, 8, 4, 6] x, float[2, 8, 4, 6] z) => (float[P, Q, R, S] y) <{CONSTANTS}> {{ {nodes} }}"
    )
    result = optimized(source)
    assert operators(result) == expected
    same(source, result, steps=8)


def test_residual_blocks_as_tensorflow_exports_them() -> None:
    """Every convolution between two transposes; sums and activations in the other order of axes."""
    kernel = ", ".join(f"{n % 5 - 2}.0" for n in range(64))
    nodes = [f"h0 = Transpose {IN} (x)"]
    for n in range(3):
        nodes += [
            f"a{n} = Transpose {OUT} (h{n})",
            f"b{n} = Conv (a{n}, K)",
            f"c{n} = Transpose {IN} (b{n})",
            f"d{n} = Add (c{n}, row)",
            f"e{n} = Add (d{n}, h{n})",
            f"h{n + 1} = Relu (e{n})",
        ]
    nodes += ["m = ReduceMean <axes = [1, 2], keepdims = 0> (h3)", "y = Neg (m)"]
    source = text(
        f"(float[N, 8, 4, 6] x) => (float[N, 8] y) <{CONSTANTS}, float[8, 8, 1, 1] K = {{{kernel}}}> "
        f"{{ {' '.join(nodes)} }}"
    )
    result = optimized(source)
    assert "Transpose" not in operators(result)
    assert operators(result).count("Conv") == 3
    same(source, result, steps=4096)


def test_output_of_the_model_in_the_region() -> None:
    """The value that is given out keeps its order of axes and its name."""
    source = text(
        "(float[N, 8, 4, 6] x) => (float[N, 4, 6, 8] b, float[N, 8, 4, 6] y) "
        f"{{ a = Transpose {IN} (x) b = Relu (a) c = Sigmoid (b) y = Transpose {OUT} (c) }}"
    )
    result = optimized(source)
    assert [value.name for value in result.model.graph.outputs] == ["b", "y"]
    assert sorted(operators(result)) == ["Relu", "Sigmoid", "Transpose"]
    same(source, result)


def test_values_that_move_the_other_way_stay() -> None:
    """A transpose is never moved to where more bytes would be transposed."""
    source = text(
        "(float[N, 8, 1, 1] x, float[N, 4, 6, 8] z) => (float[N, 4, 6, 8] y) "
        f"{{ a = Transpose {IN} (x) y = Add (a, z) }}"
    )
    assert sorted(operators(optimized(source))) in (["Add", "Reshape"], ["Add", "Transpose"])
