"""What simplify finds out, rule by rule."""

from __future__ import annotations

import math

import pytest

from sardonyx.loops.nodes import (
    Apply,
    Array,
    Buffer,
    Cast,
    Const,
    Expr,
    Fail,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Local,
    Select,
    Set,
    Statement,
    Store,
    Var,
    While,
    apply,
)
from sardonyx.loops.simplify import simplify
from sardonyx.sizes import Size, symbol

N, AT, T = symbol("n"), symbol("%i"), symbol("%t")
BUFFERS = (Buffer("x", "f32", "in"), Buffer("y", "f32", "out"))
X, ONE = Load("x", 0, "f32"), Const(1.0, "f32")
YES, NO = Const(True, "bool"), Const(False, "bool")
UNKNOWN = apply("lt", X, 0.0)
STORE, OTHER = Store("y", 0, ONE), Store("y", 1, ONE)


def simple(*body: Statement) -> tuple[Statement, ...]:
    kernel = Kernel(BUFFERS, ("n",), body, ("why",))
    result = simplify(kernel)
    assert (result.buffers, result.symbols, result.reasons) == (BUFFERS, ("n",), ("why",))
    return result.body


def value(expression: Expr) -> Expr:
    (local,) = simple(Local("v", expression))
    assert isinstance(local, Local)
    return local.value


def number(a: int, dtype: str = "i64") -> Const:
    return Const(a, dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (number(3) + number(4), number(7)),
        (number(127, "i8") + number(1, "i8"), number(-128, "i8")),
        (number(-7) / number(2), number(-3)),
        (apply("lt", number(3), number(4)), YES),
        (apply("gt", ONE, Const(math.nan, "f32")), NO),
        (apply("and", UNKNOWN, YES), UNKNOWN),
        (apply("and", NO, UNKNOWN), NO),
        (apply("or", UNKNOWN, NO), UNKNOWN),
        (apply("or", UNKNOWN, YES), YES),
        (apply("and", UNKNOWN, UNKNOWN), apply("and", UNKNOWN, UNKNOWN)),
        (Select(YES, X, ONE), X),
        (Select(NO, X, ONE), ONE),
        (Cast(X, "f32"), X),
        (Cast(Cast(X, "f32"), "i8"), Cast(X, "i8")),
        (Cast(number(300), "u8"), number(44, "u8")),
        (Cast(Const(3.9, "f32"), "i64"), number(3)),
        (Index(5), number(5)),
        # Floats are not computed.
        (ONE + ONE, ONE + ONE),
        (X * 1.0, X * 1.0),
        (X + 0.0, X + 0.0),
        (Cast(number(3), "f32"), Cast(number(3), "f32")),
    ],
)
def test_expressions(expression: Expr, expected: Expr) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("lt", AT, N, True),
        ("ge", AT, N, False),
        ("ge", AT, 0, True),
        ("lt", AT, 0, False),
        ("le", AT, N - 1, True),
        ("gt", N, AT, True),
        ("ge", N - 1 - AT, 0, True),
        ("lt", N - 1 - AT, N, True),
        ("eq", AT, AT + 1, False),
        ("ne", AT, N, True),
        ("eq", AT + 1, 1 + AT, True),
        ("ne", AT, AT, False),
        ("lt", AT + 1, N, None),
        ("eq", AT, 0, None),
        ("ge", AT - 1, 0, None),
        ("le", AT, N - 2, None),
        ("lt", symbol("#%s"), N, None),
        ("ge", symbol("#%s"), 0, None),
    ],
)
def test_comparisons_that_ranges_decide(
    op: str, left: Size, right: Size, expected: bool | None
) -> None:
    test = apply(op, Index(left), Index(right))
    signed = Let("#%s", Cast(X, "i64"))
    loop = For("%i", N, (Local("v", test), Store("y", symbol("#%s"), X)))
    _, after = simple(signed, loop)
    assert isinstance(after, For)
    assert isinstance(after.body[0], Local)
    found = after.body[0].value
    assert (found.value if isinstance(found, Const) else None) == expected
    if expected is None:
        assert isinstance(found, Apply)


def test_branches() -> None:
    assert simple(If(YES, (STORE,), (OTHER,))) == (STORE,)
    assert simple(If(NO, (STORE,), (OTHER,))) == (OTHER,)
    assert simple(If(NO, (STORE,))) == ()
    assert simple(If(UNKNOWN, (If(NO, (STORE,)),), ())) == ()
    kept = If(UNKNOWN, (STORE,), (OTHER,))
    assert simple(kept) == (kept,)


def test_loops() -> None:
    assert simple(For("%i", 0, (STORE,))) == ()
    assert simple(For("%i", -2, (STORE,))) == ()
    assert simple(For("%i", N, ())) == ()
    turn = Store("y", 3 * AT + N, Cast(Index(AT), "f32"))
    assert simple(For("%i", 1, (turn,), "parallel")) == (Store("y", N, Cast(number(0), "f32")),)
    assert simple(For("%i", N, (turn,), "parallel", 8)) == (For("%i", N, (turn,), "parallel", 8),)


def test_while() -> None:
    assert simple(While(NO, (STORE,))) == ()
    assert simple(While(UNKNOWN, (If(YES, (STORE,)),))) == (While(UNKNOWN, (STORE,)),)


def test_constant_names_go_where_they_are_used() -> None:
    body = (
        Let("%t", number(2) + number(3)),
        Let("u", ONE),
        Local("v", Var("u", "f32")),
        For("%i", T, (Store("y", AT + T, Load("x", 2 * T, "f32")), Set("v", Var("u", "f32")))),
        If(UNKNOWN, (Fail(0, Var("%t", "i64"), Index(T)),)),
    )
    assert simple(*body) == (
        Local("v", ONE),
        For("%i", 5, (Store("y", AT + 5, Load("x", 10, "f32")), Set("v", ONE))),
        If(UNKNOWN, (Fail(0, number(5), number(5)),)),
    )


def test_names_that_nothing_uses_are_dropped() -> None:
    chain = (Let("a", X), Let("b", Var("a", "f32") + 1.0), Let("c", Var("b", "f32") * 2.0))
    assert simple(*chain, STORE) == (STORE,)
    used = (*chain, Store("y", 0, Var("b", "f32")))
    assert simple(*used) == (*chain[:2], used[-1])
    index = (Let("%t", Cast(X, "i64")), Store("y", T, ONE))
    assert simple(*index) == index
    grain = (Let("%t", Cast(X, "i64")), For("%i", N, (STORE,), "parallel", T))
    assert simple(*grain) == grain
    # Used in a loop and in a condition that stand above nothing else.
    looped = (Let("a", X), While(apply("lt", Var("a", "f32"), 1.0), (STORE,)))
    assert simple(*looped) == looped
    assert simple(For("%i", N, (Let("a", X),))) == ()


def test_arrays_stay() -> None:
    body = (Array("a", "f32", 2), Store("a", 0, ONE))
    assert simple(*body) == body
