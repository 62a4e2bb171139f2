"""Limits in a row: merged to the bit, to the sign of a zero, which a division would make an infinity of."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from tests.unit.passes.rules.table import answers, operators, optimized, refusals, text

from sardonyx.model.save import to_proto

NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42, 5.0], np.float32)
LIMITS = {
    "p": ("0.", "-0.", "1.", "-1."),
    "q": ("0.", "-0.", "2."),
    "s": ("0.", "-0.", "1.", "-1."),
    "t": ("-0.", "2."),
}
FIRST = {
    "Relu": ("a = Relu (x)", ""),
    "Clip": ("a = Clip (x, p, q)", "pq"),
    "Max": ("a = Max (p, x)", "p"),
    "Min": ("a = Min (x, p)", "p"),
}
SECOND = {
    "Relu": ("b = Relu (a)", ""),
    "Clip": ("b = Clip (a, s, t)", "st"),
    "Max": ("b = Max (a, s)", "s"),
    "Min": ("b = Min (t, a)", "t"),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(FIRST, SECOND)))
def test_two_limits_keep_the_sign_of_a_zero(first: str, second: str) -> None:
    (inner, names), (outer, more) = FIRST[first], SECOND[second]
    for limits in itertools.product(*(LIMITS[name] for name in names + more)):
        given = dict(zip(names + more, limits, strict=True))
        constants = ", ".join(f"float {name} = {{{value}}}" for name, value in given.items())
        model = text(
            f"(float[9] x) => (float[9] y) <float one = {{1.}}{', ' * bool(given)}{constants}>"
            f" {{ {inner} {outer} y = Div (one, b) }}"
        )
        result = optimized(model, level=2)
        with warnings.catch_warnings():  # numpy tells of every division by 0
            warnings.simplefilter("ignore", RuntimeWarning)
            (was,), (now,) = (
                answers(one, {"x": NUMBERS}) for one in (model, to_proto(result.model))
            )
        np.testing.assert_array_equal(now, was, err_msg=str(given))


def test_max_with_a_negative_zero_is_no_relu() -> None:
    model = text("(float[N] x) => (float[N] y) <float p = {-0.}> { y = Max (x, p) }")
    result = optimized(model)
    assert operators(result) == ["Max"]
    assert refusals(result, "limit-by-constant") == ["Max(-0, -0) is -0, and Relu(-0) is +0"]


def test_a_limit_at_infinity_is_one() -> None:
    """Everything below it becomes infinite: it cannot be left out."""
    model = text("(float[9] x) => (float[9] y) <float p = {inf}> { a = Clip (x, p) y = Relu (a) }")
    (was,), (now,) = (
        answers(one, {"x": NUMBERS}) for one in (model, to_proto(optimized(model).model))
    )
    np.testing.assert_array_equal(now, was)
    assert np.isinf(now).sum() == 8
