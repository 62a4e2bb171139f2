"""Normalisations written out: over last axes, channel by channel, and group by group."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

NUMBERS = """float e = {1e-5}, float one = {1}, float two = {2}, int64[1] last = {-1}, int64[2] space = {2, 3},
    int64[3] inner = {2, 3, 4}, int64[3] grouped = {0, 2, -1}, int64[4] image = {0, 6, 3, 4},
    int64[5] parted = {0, 2, 3, 3, 4}, float[4] w = {1, -2, 0.5, 3}, float[4] b = {4, 3, 2, 1},
    float[6,1,1] cw = {1, 2, 3, -4, 5, 6}, float[1,6,1,1] cb = {6, 5, 4, 3, 2, 1},
    float[6] ones = {1, 1, 1, 1, 1, 1}, float[6] zeros = {0, 0, 0, 0, 0, 0},
    float[2] gw = {1, 1}, float[2] gb = {0, 0}, float[2] gv = {2, -3}, float[2] gc = {1, 4}"""
IMAGE = "float[N, 6, 3, 4]"


def model(body: str, ports: str = IMAGE, opset: int = 23, result: str = "float[P, Q, R, S]") -> str:
    return text(f"({ports} x) => ({result} y) <{NUMBERS}> {{ {body} }}", opset)


def variance(over: str, of: str = "x") -> str:
    return f"""m = ReduceMean ({of}, {over}) d = Sub ({of}, m) q = Mul (d, d)
    v = ReduceMean (q, {over}) a = Add (v, e) s = Sqrt (a)"""


RMS = "q = Pow (x, two) v = ReduceMean (q, last) a = Add (v, e) s = Sqrt (a)"
TWO_RESHAPES = (
    "r = Reshape (x, grouped) n = InstanceNormalization (r, gw, gb) y = Reshape (n, image)"
)

WRITTEN = {
    "layer": (f"{variance('last')} y = Div (d, s)", ["LayerNormalization"]),
    "layer with parameters": (
        f"{variance('last')} n = Div (d, s) p = Mul (w, n) y = Add (p, b)",
        ["LayerNormalization"],
    ),
    "layer by a reciprocal": (
        f"{variance('last')} i = Reciprocal (s) y = Mul (i, d)",
        ["LayerNormalization"],
    ),
    "rms": (f"{RMS} y = Div (x, s)", ["RMSNormalization"]),
    "rms with a factor": (
        f"{RMS} i = Div (one, s) n = Mul (x, i) y = Mul (n, w)",
        ["RMSNormalization"],
    ),
    "rms with an offset": (
        f"{RMS} n = Div (x, s) p = Mul (n, w) y = Add (p, b)",
        ["RMSNormalization", "Add"],
    ),
    "instance": (f"{variance('space')} y = Div (d, s)", ["InstanceNormalization"]),
    "instance with parameters": (
        f"{variance('space')} n = Div (d, s) p = Mul (n, cw) y = Add (cb, p)",
        ["InstanceNormalization"],
    ),
    "instance, variance without its axes": (
        """m = ReduceMean (x, space) d = Sub (x, m) q = Mul (d, d)
        f = ReduceMean <keepdims = 0> (q, space) v = Unsqueeze (f, space) a = Add (v, e) s = Sqrt (a)
        y = Div (d, s)""",
        ["InstanceNormalization"],
    ),
    "group": (TWO_RESHAPES, ["GroupNormalization"]),
    "group with parameters": (
        TWO_RESHAPES.replace("y =", "z =") + " p = Mul (z, cw) y = Add (p, cb)",
        ["GroupNormalization"],
    ),
    "group with factors of its groups": (
        TWO_RESHAPES.replace("gw, gb", "gv, gc"),
        ["GroupNormalization"],
    ),
    "group by means": (
        f"r = Reshape (x, grouped) {variance('last', 'r')} n = Div (d, s) y = Reshape (n, image)",
        ["GroupNormalization"],
    ),
    "group by means of an image": (
        f"r = Reshape (x, parted) {variance('inner', 'r')} n = Div (d, s) y = Reshape (n, image)",
        ["GroupNormalization"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_out(name: str) -> None:
    body, expected = WRITTEN[name]
    result = optimized(model(body))
    assert operators(result) == expected
    same(model(body), result, steps=64)


def test_space_may_be_unknown() -> None:
    """InstanceNormalization has one factor a channel: it need not know the sizes that it is taken over."""
    body = f"{variance('space')} n = Div (d, s) p = Mul (n, cw) y = Add (p, cb)"
    for opset in (18, 23):
        written = model(body, "float[N, 6, H, W]", opset)
        result = optimized(written)
        assert operators(result) == ["InstanceNormalization"]
        same(written, result, steps=64)


CAST = """c = Cast <to = 1> (x) q = Mul (c, c) v = ReduceMean (q, last) a = Add (v, e) s = Sqrt (a)
    n = Div (c, s) h = Cast <to = 10> (n) y = Mul (h, f)"""


def test_half_precision_between_casts() -> None:
    """As language models write it: the operator computes in float32 by itself."""
    numbers = NUMBERS + ", float16[4] f = {15360, 16384, 16896, 17408}"  # bits of 1 to 4
    ports = "(float16[N, 2, 4] x) => (float16[N, 2, 4] y)"
    written = text(f"{ports} <{numbers}> {{ {CAST} }}", 23)
    result = optimized(written)
    assert operators(result) == ["RMSNormalization"]
    same(written, result, steps=4)


@pytest.mark.parametrize(
    ("body", "ports", "opset", "rule", "reason"),
    [
        (f"{variance('last')} y = Div (d, s)", IMAGE, 13, "layer-normalization", None),
        (f"{variance('last')} y = Div (d, s)", "float[N, 6, 3, W]", 23, "layer-normalization",
         "the sizes of the normalised axes are not known"),
        (f"{RMS} y = Div (x, s)", IMAGE, 18, "rms-normalization", "RMSNormalization came with opset 23"),
        (f"{variance('space')} y = Div (d, s)", "float[N, C, 3, 4]", 23, "instance-normalization",
         "the number of channels is not known"),
        (f"{variance('space').replace('(q, space)', '(q, last)')} y = Div (d, s)", IMAGE, 23,
         "layer-normalization", "the means are not over the same axes"),
        (TWO_RESHAPES, IMAGE, 18, "group-normalization", "GroupNormalization came with opset 21"),
        (TWO_RESHAPES.replace("y =", "z =") + " k = Relu (n) l = Reshape (k, image) y = Add (z, l)",
         IMAGE, 23, "group-normalization", "another node reads what the normalisation gives"),
        ("n = InstanceNormalization (x, ones, zeros) y = Mul (n, w)", IMAGE, 23, "channel-parameters",
         "the constant is not one number a channel"),
    ],
)  # fmt: skip
def test_refusals(body: str, ports: str, opset: int, rule: str, reason: str | None) -> None:
    if opset < 18:
        for name, axes in (("last", "[-1]"), ("space", "[2, 3]")):
            body = body.replace(f"ReduceMean (x, {name})", f"ReduceMean <axes = {axes}> (x)")
            body = body.replace(f"ReduceMean (q, {name})", f"ReduceMean <axes = {axes}> (q)")
        reason = "LayerNormalization came with opset 17"
    result = optimized(model(body, ports, opset))
    assert any(reason in found for found in refusals(result, rule))
    same(model(body, ports, opset), result, steps=64)


def test_float16_written_out_overflows() -> None:
    body = "m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last) a = Add (v, h)"
    ports = "(float16[N, 4] x) => (float16[N, 4] y) <float16 h = {14336}, int64[1] last = {-1}>"
    result = optimized(text(f"{ports} {{ {body} s = Sqrt (a) y = Div (d, s) }}", 23))
    assert "overflow beyond 255" in refusals(result, "layer-normalization")[0]


def test_an_epsilon_that_is_no_float32() -> None:
    body = "m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last) a = Add (v, h)"
    ports = "(double[N, 4] x) => (double[N, 4] y) <double h = {%s}, int64[1] last = {-1}>"
    end = "s = Sqrt (a) y = Div (d, s) }"
    refused = optimized(text(f"{ports % 1e-5} {{ {body} {end}", 23))
    assert "epsilon is a float32" in refusals(refused, "layer-normalization")[0]
    written = text(f"{ports % 0.5} {{ {body} {end}", 23)
    result = optimized(written)
    assert operators(result) == ["LayerNormalization"]
    same(written, result, steps=64)
