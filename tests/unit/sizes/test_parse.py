from __future__ import annotations

import pytest

from sardonyx.sizes import Ratio, Size, broadcast_of, max_of, min_of, parse, symbol

A, B, S = symbol("a"), symbol("b"), symbol("s")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("a", A),
        ("12", 12),
        ("past_sequence_length + 1", symbol("past_sequence_length") + 1),
        ("2*a+ b", 2 * A + B),
        ("a - 1", A - 1),
        ("a-1", A - 1),
        ("-a + 5", 5 - A),
        ("((s - 1)//2) + 1", (S + 1) // 2),
        ("floor(s/2 - 1/2) + 1", (S + 1) // 2),
        ("ceiling(s/2)", (S + 1) // 2),
        ("FloorDiv(s, 2)", S // 2),
        ("Mod(s, 3)", S % 3),
        ("s % 3", S % 3),
        ("-s//2", (-S) // 2),
        ("Max(1, s)", max_of(1, S)),
        ("min(a, b, 4)", min_of(A, B, 4)),
        ("broadcast(a, b)", broadcast_of(A, B)),
        ("s**2", S * S),
        ("'weird name' + 1", symbol("weird name") + 1),
        ("x.0", symbol("x.0")),
        ("max", symbol("max")),
    ],
)
def test_arithmetic_over_names(text: str, size: Size) -> None:
    assert parse(text) == size


@pytest.mark.parametrize(
    "text",
    ["?", "batch-size", "batch size", "N/A", "a +", "1a", "a/b", "a//0", "", "a$", "s**99", "f(x)",
     "unk__12:0", "(" * 200 + "a" + ")" * 200, "a" * 70_000, "9" * 500, "'open", "a b"],
)  # fmt: skip
def test_anything_else_is_one_name(text: str) -> None:
    assert parse(text) == symbol(text)


def test_ratios_are_exact() -> None:
    half = Ratio(S).divided_by(2)
    assert (half + half).numerator == S
    assert (half + half).denominator == 1
    assert half.floor() == S // 2
    assert half.ceil() == (S + 1) // 2
    assert (half * Ratio(3)).floor() == (3 * S) // 2
    assert half.divided_by(-2) == Ratio(-S, 4)
    assert (half - half) == Ratio(0)
    with pytest.raises(ZeroDivisionError):
        half.divided_by(0)
