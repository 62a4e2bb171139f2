"""Every rule of the language, broken once; the message has the statement and the rule."""

from __future__ import annotations

import pytest

from sardonyx.loops.nodes import (
    Apply,
    Array,
    Buffer,
    Cast,
    Const,
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
)
from sardonyx.loops.verify import KernelError, verify
from sardonyx.sizes import symbol

BUFFERS = (
    Buffer("x", "f32", "in"),
    Buffer("h", "f16", "in"),
    Buffer("y", "f32", "out"),
    Buffer("g", "f16", "out"),
    Buffer("s", "f32", "scratch"),
)
ONE, ZERO, YES = Const(1.0, "f32"), Const(0, "i64"), Const(True, "bool")
X, H = Load("x", 0, "f32"), Load("h", 0, "f16")
AT, T = symbol("%i"), symbol("%t")


def kernel(*body: Statement) -> Kernel:
    return Kernel(BUFFERS, ("n",), body, ("too large",))


GOOD: dict[str, tuple[Statement, ...]] = {
    "stores to outputs and scratch": (Store("y", 0, X), Store("s", 0, X)),
    "loads from anything": (Store("y", 0, Load("y", 1, "f32")), Store("y", 0, Load("s", 0, "f32"))),
    "a name after its block, in another": (
        If(YES, (Let("t0", X),), (Let("t1", X), Store("y", 0, Var("t1", "f32")))),
    ),
    "an index from a Let": (Let("%t", ZERO), Store("y", T + symbol("n"), ONE)),
    "a parallel loop with what it made itself": (
        For(
            "%i",
            symbol("n"),
            (
                Local("v", X),
                Array("a", "f32", 2),
                Set("v", ONE),
                Store("a", 0, X),
                Store("y", AT, X),
            ),
            "parallel",
            symbol("n"),
        ),
    ),
    "an outer variable in a vector loop": (
        Local("v", X),
        For("%i", 4, (Set("v", Var("v", "f32")),), "vector"),
    ),
    "vector loops in parallel loops": (
        For("%i", 4, (For("%j", 4, (Store("y", AT, X),), "vector"),), "parallel"),
    ),
    "storage types on the way": (
        Let("t", H),
        Store("g", 0, Var("t", "f16")),
        Store("y", 0, Cast(Var("t", "f16"), "f32")),
        Store("g", 1, Cast(X, "f16")),
    ),
    "a check": (If(YES, (Fail(0, Index(symbol("n")), ZERO),)),),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_what_the_rules_allow(body: tuple[Statement, ...]) -> None:
    verify(kernel(*body))


BAD: dict[str, tuple[tuple[Statement, ...], str]] = {
    "unbound": ((Store("y", 0, Var("t", "f32")),), r"y\[0\] = t: 't' is not bound"),
    "unbound in a size": ((Store("y", AT, X),), "'%i' is not bound"),
    "undeclared symbol": ((Store("y", symbol("m"), X),), "'m' is not bound"),
    "after its block": (
        (If(YES, (Let("t", X),)), Store("y", 0, Var("t", "f32"))),
        "'t' is bound in another block",
    ),
    "a loop variable after its loop": (
        (For("%i", 3, ()), Store("y", AT, X)),
        "'%i' is bound in another block",
    ),
    "in its own extent": ((For("%i", AT, ()),), "'%i' is not bound"),
    "twice": ((Let("t", X), Let("t", X)), "t: f32 = .*: the name 't' is bound twice"),
    "twice in two blocks": ((If(YES, (Let("t", X),), (Let("t", X),)),), "bound twice"),
    "the name of a symbol": ((Let("n", ZERO),), "the name 'n' is bound twice"),
    "the name of a buffer": ((For("x", 3, ()),), "the name 'x' is bound twice"),
    "another type than the name's": (
        (Let("t", X), Store("y", 0, Cast(Var("t", "f64"), "f32"))),
        "a value of type f64 where f32 is due",
    ),
    "another type than the buffer's": (
        (Let("t", Load("x", 0, "i8")),),
        "a value of type i8 where f32 is due",
    ),
    "stored with another type": ((Store("y", 0, ZERO),), "a value of type i64 where f32 is due"),
    "stored to an input": ((Store("x", 0, X),), "a store to 'x', which is of kind in"),
    "stored to a variable": ((Local("v", X), Store("v", 0, X)), "which is of kind local"),
    "loaded from a value": ((Let("t", X), Let("u", Load("t", 0, "f32"))), "of kind value"),
    "a buffer as a value": ((Let("t", Var("x", "f32")),), "'x' is no value"),
    "set a Let": ((Let("t", X), Set("t", ONE)), "'t' is no variable"),
    "set with another type": ((Local("v", X), Set("v", ZERO)), "type i64 where f32 is due"),
    "a float as an index": ((Let("%t", X), Store("y", T, X)), "type f32, in index arithmetic"),
    "a variable as an index": ((Local("%t", ZERO), Store("y", T, X)), "of kind local"),
    "an unknown operation": ((Let("t", Apply("cbrt", (X,), "f32")),), "'cbrt' is no operation"),
    "too many operands": ((Let("t", Apply("exp", (X, X), "f32")),), "exp takes 1 operands, not 2"),
    "operands of two types": (
        (Let("t", Apply("add", (X, ZERO), "f32")),),
        "add takes operands of one type, not f32 and i64",
    ),
    "a type it does not take": ((Let("t", Apply("and", (X, X), "f32")),), "and does not take f32"),
    "an answer of another type": ((Let("t", Apply("lt", (X, X), "f32")),), "where bool is due"),
    "arithmetic in f16": ((Let("t", Apply("add", (H, H), "f16")),), "add does not take f16"),
    "a selection of f16": ((Let("t", Select(YES, H, H)),), "where does not take f16"),
    "a variable of f16": ((Local("v", H),), "no variable has the storage type f16"),
    "a constant of f16": ((Store("g", 0, Const(1.0, "f16")),), "1.0 is no constant of type f16"),
    "a condition that is a number": ((If(ZERO, ()),), "type i64 where bool is due"),
    "a repeated condition that is a number": ((While(X, ()),), "type f32 where bool is due"),
    "a selection by a number": ((Let("t", Select(X, X, X)),), "type f32 where bool is due"),
    "branches of two types": ((Let("t", Select(YES, X, ZERO)),), "type i64 where f32 is due"),
    "a constant past its type": ((Let("t", Const(256, "u8")),), "256 is no constant of type u8"),
    "an integer as a float": ((Let("t", Const(1, "f32")),), "1 is no constant of type f32"),
    "a truth value as an integer": ((Let("t", Const(True, "i8")),), "True is no constant"),
    "a number as a truth value": ((Let("t", Const(1, "bool")),), "1 is no constant of type bool"),
    "an unknown reason": ((Fail(1, ZERO, ZERO),), "fail 1: 0, 0: reason 1 of 1 does not exist"),
    "a check of floats": ((Fail(0, X, ZERO),), "type f32 where i64 is due"),
    "an empty array": ((Array("a", "f32", 0),), "the array has 0 elements"),
    "parallel in parallel": (
        (For("%i", 4, (For("%j", 4, (), "parallel"),), "parallel"),),
        "parallel %j < 4: a parallel loop inside a parallel loop",
    ),
    "parallel in vector": (
        (For("%i", 4, (If(YES, (For("%j", 4, (), "parallel"),)),), "vector"),),
        "a parallel loop inside a vector loop",
    ),
    "a parallel loop that sets an outer variable": (
        (Local("v", X), For("%i", 4, (For("%j", 2, (Set("v", X),)),), "parallel")),
        "a parallel loop changes 'v', which was made outside it",
    ),
    "a parallel loop that stores into an outer array": (
        (Array("a", "f32", 4), For("%i", 4, (Store("a", AT, X),), "parallel")),
        "a parallel loop changes 'a'",
    ),
}


@pytest.mark.parametrize(("body", "complaint"), BAD.values(), ids=BAD)
def test_what_the_rules_forbid(body: tuple[Statement, ...], complaint: str) -> None:
    with pytest.raises(KernelError, match=complaint):
        verify(kernel(*body))


def test_declarations_are_checked_too() -> None:
    with pytest.raises(KernelError, match="kernel: the name 'x' is bound twice"):
        verify(Kernel((BUFFERS[0], BUFFERS[0]), (), ()))
    with pytest.raises(KernelError, match="'inout' is no role"):
        verify(Kernel((Buffer("x", "f32", "inout"),), (), ()))  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="'f8' is no type"):
        verify(Kernel((Buffer("x", "f8", "in"),), (), ()))  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="'tiled' is no kind of loop"):
        verify(kernel(For("%i", 2, (), "tiled")))  # type: ignore[arg-type]
