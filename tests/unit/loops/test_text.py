"""The printed form, in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sardonyx.loops.build import Builder, cast, maximum, where
from sardonyx.loops.nodes import (
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Local,
    Set,
    Store,
    Var,
    apply,
)
from sardonyx.loops.text import headline, spell_size, text
from sardonyx.sizes import max_of, symbol

N, AT = symbol("n"), symbol("%i")


def everything() -> Kernel:
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("i8", "out")
    batch = symbol("batch")
    with b.loop(batch, "parallel", grain=4) as i:
        total = b.local(cast(b.size(0), "f32"))
        held = b.array("f32", 8)
        with b.loop(768, "vector") as j:
            b.set(total, total + b.load(x, 768 * i + j))
        with b.loop(8, "unroll") as k:
            b.put(held, k, total * 2.0)
        at = b.index(cast(total, "i64"))
        b.fail_if(b.size(at) >= b.size(batch), 'row {value} is not below "{limit}"', b.size(at), 9)
        with b.when(apply("isnan", total)):
            b.store(y, i, b.load(y, i))
        with b.otherwise(), b.repeat(total > 1.0):
            b.set(total, maximum(b.element(held, at // 2 + at % 3), total))
        value = b.let(where(total < 0.0, total, -total))
        b.store(y, i, cast(cast(value, "i8") + 1, "i8"))
    return b.kernel()


def test_every_statement() -> None:
    assert text(everything()) == (
        """\
kernel(in0: f32 in, out1: i8 out; batch)
  parallel i < batch, grain 4
    var v0: f32 = 0.0
    array a0: f32[8]
    vector j < 768
      v0 = v0 + in0[768*i + j]
    unroll k < 8
      a0[k] = v0 * 2.0
    t0: i64 = i64(v0)
    if t0 >= batch
      fail 0: t0, 9
    if isnan(v0)
      out1[i] = out1[i]
    else
      while v0 > 1.0
        v0 = max(a0[(t0 % 3) + (t0//2)], v0)
    t1: f32 = where(v0 < 0.0, v0, neg(v0))
    out1[i] = i8(t1) + 1:i8
  reason 0: "row {value} is not below \\"{limit}\\""
"""
    )


def test_short_names_keep_clear_of_declared_ones() -> None:
    loops = For("%a", symbol("i"), (For("%b", 2, (Let("%c", Const(1, "i64")),)),))
    kernel = Kernel((Buffer("t0", "f32", "in"),), ("i",), (loops,))
    assert text(kernel) == "kernel(t0: f32 in; i)\n  for j < i\n    for k < 2\n      t1: i64 = 1\n"


def test_many_loops_have_many_names() -> None:
    kernel = Kernel((), (), tuple(For(f"%{at}", 2, ()) for at in range(12)))
    found = [line.split()[1] for line in text(kernel).splitlines()[1:]]
    assert found == ["i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "i1", "j1"]


def test_symbols_stay_as_they_are() -> None:
    kernel = Kernel((), ("odd name", "x.0"), (For("%a", symbol("odd name") + symbol("x.0"), ()),))
    assert text(kernel) == "kernel(; 'odd name', x.0)\n  for i < 'odd name' + x.0\n"


def test_headline_keeps_names() -> None:
    assert headline(For("%i", N, (Store("y", AT, Const(1.0, "f32")),), "vector")) == "vector %i < n"
    assert headline(Store("y", AT, Const(True, "bool"))) == "y['%i'] = true"


X, Y = Var("x", "f32"), Var("y", "f32")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (X + Y * X, "x + (y * x)"),
        ((X + Y) * X, "(x + y) * x"),
        (Index(AT + 1) * Index(N), "('%i' + 1) * n"),
        (apply("mod", X, Y), "mod(x, y)"),
        (apply("shl", Var("u", "u8"), 3), "u << 3:u8"),
        (Cast(X, "bf16"), "bf16(x)"),
        (Const(float("-inf"), "f32"), "-inf"),
        (Const(-0.0, "f64"), "-0.0:f64"),
        (Load("b", 3 * AT, "f32"), "b[3*'%i']"),
        (Apply("erf", (X,), "f32"), "erf(x)"),
    ],
)
def test_expressions(expression: Expr, expected: str) -> None:
    assert headline(Set("v", expression)) == f"v = {expected}"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0"),
        (-3, "-3"),
        (1 - N, "-n + 1"),
        (2 * N * N - AT, "2*n*n - i"),
        (-(N // 2) + (AT + 1) % 4, "((i + 1) % 4) - (n//2)"),
        (max_of(N - 3, symbol("#%s")), "max(n - 3, s)"),
    ],
)
def test_sizes(size: Any, expected: str) -> None:
    assert spell_size(size, {"%i": "i", "#%s": "s"}.get) == expected


def test_kernels_that_differ_print_differently() -> None:
    kernel = Kernel(
        (Buffer("x", "f32", "in"),),
        ("n",),
        (For("%i", N, (Local("v", Const(1.0, "f32")),)),),
        ("a",),
    )
    loop = kernel.body[0]
    assert isinstance(loop, For)
    others = [
        kernel,
        replace(kernel, reasons=("b",)),
        replace(kernel, symbols=("n", "m")),
        replace(kernel, buffers=(Buffer("x", "f32", "scratch"),)),
        replace(kernel, body=(replace(loop, kind="vector"),)),
        replace(kernel, body=(replace(loop, grain=2),)),
        replace(kernel, body=(replace(loop, body=(Local("v", Const(1.0, "f64")),)),)),
        replace(kernel, body=(replace(loop, body=(Local("v", Const(1, "i64")),)),)),
        replace(kernel, body=(replace(loop, body=(Let("v", Const(1.0, "f32")),)),)),
        replace(kernel, body=(*kernel.body, *kernel.body)),
    ]
    assert len({text(one) for one in others}) == len(others)
