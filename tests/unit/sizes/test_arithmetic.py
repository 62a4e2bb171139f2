from __future__ import annotations

import pytest

from sardonyx.errors import ShapeError
from sardonyx.sizes import (
    Size,
    broadcast_of,
    ceil_div,
    evaluate,
    exact_div,
    max_of,
    min_of,
    quotient,
    substitute,
    symbol,
)

B, S, H = symbol("b"), symbol("s"), symbol("h")


@pytest.mark.parametrize(
    ("size", "simple"),
    [
        ((6 * B + S + 5) // 3, 2 * B + 1 + (S + 2) // 3),
        ((2 * S + 1) // 4, S // 2),
        ((S // 2 + 1) // 3, (S + 2) // 6),
        ((4 * S + 3) // 4, S),
        ((B * S * 768) // (B * 12), 64 * S),
        ((S % 4) // 4, 0),
        (S // -2, (-S) // 2),
        (S // S, 1),
        (S // (S + 1), 0),
        ((H - 16) // 16 + 1, H // 16),
        ((4 * S + 6) % 4, 2),
        ((6 * S + 3) % 9, 3 * ((2 * S + 1) % 3)),
        ((S % 4) % 4, S % 4),
        ((B * S) % S, 0),
        (S % (S + 1), S),
        (ceil_div(S, 2), (S + 1) // 2),
    ],
)
def test_divisions_simplify(size: Size, simple: Size) -> None:
    assert size == simple


@pytest.mark.parametrize(
    ("size", "simple"),
    [
        (max_of(S, 0), S),
        (max_of(S, -3, S - 1), S),
        (max_of(3, 5), 5),
        (min_of(S, S + 1), S),
        (min_of(0, S), 0),
        (max_of(S, max_of(B, S)), max_of(B, S)),
        (min_of(min_of(B, 4), 9), min_of(4, B)),
        (max_of(S // 2, S), S),
        (max_of(S - 2 * (S // 2), 0), S - 2 * (S // 2)),
        (min_of(S, min_of(S, 5)), min_of(S, 5)),
        (max_of(S % 8, 8), 8),
    ],
)
def test_extremes_drop_what_cannot_win(size: Size, simple: Size) -> None:
    assert size == simple


@pytest.mark.parametrize(
    ("sizes", "result"),
    [
        ((1, S), S),
        ((S, S), S),
        ((S, 7), 7),
        ((S, 0), 0),
        ((1, 1), 1),
        ((S, S + 2), S + 2),
        ((S, min_of(S, 512)), S),
        ((broadcast_of(B, S), B), broadcast_of(B, S)),
    ],
)
def test_broadcast_picks_whoever_is_not_one(sizes: tuple[Size, ...], result: Size) -> None:
    assert broadcast_of(*sizes) == result


def test_two_symbols_broadcast_to_neither() -> None:
    both = broadcast_of(B, S)
    assert str(both) == "broadcast(b, s)"
    assert evaluate(both, {"b": 1, "s": 5}) == 5
    assert evaluate(both, {"b": 5, "s": 1}) == 5
    assert evaluate(both, {"b": 0, "s": 1}) == 0
    assert evaluate(both, {"b": 4, "s": 4}) == 4
    with pytest.raises(ShapeError, match="3, 5, which do not broadcast"):
        evaluate(both, {"b": 3, "s": 5})


def test_quotients_are_exact_or_none() -> None:
    assert quotient(B * (S + B) * 64, S + B) == 64 * B
    assert quotient(B * S, B * S) == 1
    assert quotient(0, B) == 0
    assert quotient(B + 1, B) is None
    assert quotient(3 * B, 2) is None
    assert quotient(6, 0) is None
    assert exact_div(3 * B, 2) == (3 * B) // 2


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        S // 0
    with pytest.raises(ZeroDivisionError):
        S % 0
    with pytest.raises(ShapeError, match="divides by zero for b=0"):
        evaluate(S // B, {"s": 4, "b": 0})


def test_evaluate_names_what_nothing_binds() -> None:
    assert evaluate(7, {}) == 7
    with pytest.raises(ShapeError, match=r"depends on b, which nothing binds"):
        evaluate(S + B, {"s": 1})


def test_substitute_replaces_some_symbols() -> None:
    assert substitute(S * B + S // 2, {"s": 4}) == 4 * B + 2
    assert substitute(S * B, {"s": B + 1}) == B * B + B
    assert substitute(max_of(B, S), {"b": S}) == S
