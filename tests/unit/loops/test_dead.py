"""Which statements go because nothing uses them."""

from __future__ import annotations

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import (
    Array,
    Cast,
    Const,
    For,
    If,
    Let,
    Load,
    Statement,
    Store,
    Var,
    While,
    apply,
)
from sardonyx.sizes import symbol

N, T = symbol("n"), symbol("%t")
X, ONE = Load("x", 0, "f32"), Const(1.0, "f32")
STORE = Store("y", 0, ONE)


def alive(*body: Statement) -> tuple[Statement, ...]:
    return without_dead(body, set())


def test_names_that_nothing_uses_are_dropped() -> None:
    chain = (Let("a", X), Let("b", Var("a", "f32") + 1.0), Let("c", Var("b", "f32") * 2.0))
    assert alive(*chain, STORE) == (STORE,)
    used = (*chain, Store("y", 0, Var("b", "f32")))
    assert alive(*used) == (*chain[:2], used[-1])
    index = (Let("%t", Cast(X, "i64")), Store("y", T, ONE))
    assert alive(*index) == index
    grain = (Let("%t", Cast(X, "i64")), For("%i", N, (STORE,), "parallel", T))
    assert alive(*grain) == grain
    # Used in a loop and in a condition that stand above nothing else.
    looped = (Let("a", X), While(apply("lt", Var("a", "f32"), 1.0), (STORE,)))
    assert alive(*looped) == looped


def test_blocks_that_do_nothing_are_dropped() -> None:
    assert alive(For("%i", N, (Let("a", X),))) == ()
    less = apply("lt", X, 0.0)
    assert alive(If(less, (Let("a", X),))) == ()
    assert alive(If(less, (Let("a", X),), (STORE,))) == (If(less, (), (STORE,)),)


def test_arrays_stay() -> None:
    body = (Array("a", "f32", 2), Store("a", 0, ONE))
    assert alive(*body) == body
