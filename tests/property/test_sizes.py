"""What must hold of every expression: it means what Python's own arithmetic means."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.errors import ShapeError
from sardonyx.sizes import (
    Size,
    at_least,
    ceil_div,
    evaluate,
    lower_bound,
    max_of,
    min_of,
    parse,
    product,
    quotient,
    substitute,
    symbol,
    symbols,
    upper_bound,
)

NAMES = ("a", "b", "c-d", "x.0", "odd name")
Bindings = dict[str, int]

OPERATIONS: dict[str, Callable[[Size, Size], Size]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max_of,
    "min": min_of,
}
NUMERIC: dict[str, Callable[[int, int], int]] = {
    **{name: OPERATIONS[name] for name in "+-*"},  # type: ignore[dict-item]
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


def sizes(depth: int = 3) -> st.SearchStrategy[Size]:
    leaves = st.one_of(st.integers(-6, 12), st.sampled_from(NAMES).map(symbol))
    if depth == 0:
        return leaves
    inner = sizes(depth - 1)

    def combine(parts: tuple[str, Size, Size]) -> Size:
        op, left, right = parts
        try:
            return OPERATIONS[op](left, right)
        except ZeroDivisionError:
            return left

    return st.one_of(
        leaves, st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner).map(combine)
    )


bindings = st.fixed_dictionaries({name: st.integers(0, 30) for name in NAMES})


def value_of(size: Size, values: Bindings) -> int | None:
    """The number, or None where the expression divides by zero."""
    try:
        return evaluate(size, values)
    except ShapeError:
        return None


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(OPERATIONS)), sizes(), sizes(), bindings)
def test_an_operation_means_what_python_means(op: str, a: Size, b: Size, values: Bindings) -> None:
    x, y = value_of(a, values), value_of(b, values)
    if x is None or y is None or (op in ("//", "%") and y == 0):
        return
    assert value_of(OPERATIONS[op](a, b), values) == NUMERIC[op](x, y)


@settings(max_examples=400, deadline=None)
@given(sizes())
def test_text_comes_back_as_the_same_size(size: Size) -> None:
    assert parse(str(size)) == size


@settings(max_examples=300, deadline=None)
@given(sizes(2), sizes(2), sizes(2))
def test_equal_polynomials_have_one_form(a: Size, b: Size, c: Size) -> None:
    assert (a + b) * c == b * c + a * c
    assert a + b - b == a
    assert hash(a * b + c) == hash(c + b * a)


@settings(max_examples=400, deadline=None)
@given(sizes(), bindings)
def test_bounds_hold(size: Size, values: Bindings) -> None:
    value = value_of(size, values)
    if value is None:
        return
    low, high = lower_bound(size), upper_bound(size)
    assert low is None or low <= value
    assert high is None or value <= high


@settings(max_examples=300, deadline=None)
@given(sizes(2), sizes(2), bindings)
def test_what_is_certain_is_true(a: Size, b: Size, values: Bindings) -> None:
    x, y = value_of(a, values), value_of(b, values)
    if x is not None and y is not None and at_least(a, b):
        assert x >= y


@settings(max_examples=300, deadline=None)
@given(sizes(2), sizes(2), bindings)
def test_quotients_multiply_back(a: Size, b: Size, values: Bindings) -> None:
    exact = quotient(a * b, b)
    if b != 0:
        assert exact == a
    found = quotient(a, b)
    if found is not None:
        assert found * b == a


@settings(max_examples=200, deadline=None)
@given(sizes(2), st.integers(1, 9), bindings)
def test_ceil_div_rounds_up(a: Size, divisor: int, values: Bindings) -> None:
    x = value_of(a, values)
    if x is not None:
        assert value_of(ceil_div(a, divisor), values) == -(-x // divisor)


@settings(max_examples=200, deadline=None)
@given(sizes(), bindings)
def test_substituting_step_by_step_is_evaluating(size: Size, values: Bindings) -> None:
    expected = value_of(size, values)
    if expected is None:
        return
    for name, value in values.items():
        size = substitute(size, {name: value})
    assert size == expected
    assert symbols(size) == frozenset()


@pytest.mark.parametrize("count", [50, 500, 2000])
def test_work_is_bounded(count: int) -> None:
    """Sums and products of many symbols end as small expressions, and always the same ones."""

    def build() -> Size:
        total: Size = 0
        for index in range(count):
            total = total * symbol(f"p{index % 7}") + symbol(f"s{index}") // (index + 2)
        return product([total, total])

    assert len(str(build())) < 1 << 18
    assert build() == build()
