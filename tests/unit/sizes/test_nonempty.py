"""Sizes that are the same wherever a tensor has elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sardonyx.sizes import Size, equal_where_elements, evaluate, max_of, symbol

N, S = symbol("n"), symbol("s")


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        (S, S, ()),
        (max_of(S - 1, 0) // 8 + 1, (S + 7) // 8, (N, (S + 7) // 8)),
        (max_of(S - 2, 0) // 32 + 1, (S + 30) // 32, (N, (S + 30) // 32)),
        (4 * (max_of(S - 2, 0) // 32) + 4, 4 * ((S + 30) // 32), (4 * ((S + 30) // 32),)),
        (max_of(S, 1), S, (S, 3)),
        (max_of(S - 40, 0), S - 40, ((S - 30) // 10,)),
    ],
)
def test_equal(a: Size, b: Size, shape: tuple[Size, ...]) -> None:
    assert equal_where_elements(a, b, shape)
    assert equal_where_elements(b, a, shape)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        (max_of(S - 1, 0) // 8 + 1, (S + 7) // 8, (N, (S + 8) // 8)),  # never empty
        (max_of(S - 1, 0) // 8 + 1, (S + 7) // 8, (N, 3)),
        (max_of(S - 2, 0) // 32 + 1, (S + 30) // 32, (S,)),
        (S, N, (S, N)),
        (S // N, 1, (S,)),
        (S, S + 1, (S,)),
    ],
)
def test_not_known_to_be_equal(a: Size, b: Size, shape: tuple[Size, ...]) -> None:
    assert not equal_where_elements(a, b, shape)


@given(
    less=st.integers(0, 9), by=st.integers(1, 9), more=st.integers(-3, 9), value=st.integers(0, 60)
)
def test_what_is_said_is_so(less: int, by: int, more: int, value: int) -> None:
    a, b = max_of(S - less, 0) // by + 1, (S + more) // by
    shape = (N, b)
    if equal_where_elements(a, b, shape) and evaluate(b, {"s": value}) > 0:
        assert evaluate(a, {"s": value}) == evaluate(b, {"s": value})
