"""Gelus that are written out: which are found, and that their answers stay."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.loops.build import Builder
from sardonyx.loops.gelus import find_gelus
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Apply, Expr, Kernel, apply
from sardonyx.loops.verify import verify
from sardonyx.loops.walk import expressions, statements

Form = Callable[[Builder, Expr], Expr]
X = np.concatenate([np.linspace(-9, 9, 999), [-np.inf, np.inf, np.nan, -0.0]]).astype(np.float32)
ROOT = math.sqrt(0.5)
SLOPE = math.sqrt(2 / math.pi)


def kernel_of(form: Form, spare: bool = False) -> Kernel:
    b = Builder()
    x, y, z = b.buffer("f32", "in"), b.buffer("f32", "out"), b.buffer("f32", "out")
    with b.loop(len(X), "vector") as i:
        given = b.let(b.load(x, i))
        b.store(y, i, form(b, given))
        if spare:
            b.store(z, i, given * 2.0)
    return b.kernel()


def operations(kernel: Kernel) -> set[str]:
    found = [part for one in statements(kernel.body) for part in expressions(one)]
    return {part.op for part in found if isinstance(part, Apply)}


def run(kernel: Kernel) -> np.ndarray:
    y, z = np.zeros_like(X), np.zeros_like(X)
    with np.errstate(all="ignore"):
        interpret(kernel, [X, y, z], {})
    return y


def by_erf(b: Builder, x: Expr) -> Expr:
    bent = b.let(apply("erf", b.let(x / math.sqrt(2))))
    return b.let(b.let(x * b.let(bent + 1.0)) * 0.5)


def by_erf_halved(b: Builder, x: Expr) -> Expr:
    half = b.let(0.5 * x)
    return half * b.let(1.0 + b.let(apply("erf", x * ROOT)))


def by_half_an_erf(b: Builder, x: Expr) -> Expr:
    gate = b.let(b.let(apply("erf", b.let(x * ROOT))) * 0.5)
    return x * b.let(gate + 0.5)


def cubic(b: Builder, x: Expr) -> Expr:
    cube = b.let(b.let(x * x) * x)
    return b.let(b.let(x + b.let(cube * 0.044715)) * SLOPE)


def by_tanh(b: Builder, x: Expr) -> Expr:
    return b.let(x * 0.5) * b.let(b.let(apply("tanh", cubic(b, x))) + 1.0)


def by_tanh_factored(b: Builder, x: Expr) -> Expr:
    inside = b.let(b.let(x * SLOPE) * b.let(1.0 + b.let(b.let(x * 0.044715) * x)))
    return b.let(x * b.let(1.0 + apply("tanh", inside))) * 0.5


def of_a_multiple(b: Builder, x: Expr) -> Expr:
    return by_erf(b, b.let(x * 3.0))


@pytest.mark.parametrize("spare", [False, True])
@pytest.mark.parametrize(
    ("form", "op"),
    [
        (by_erf, "gelu"),
        (by_erf_halved, "gelu"),
        (by_half_an_erf, "gelu"),
        (of_a_multiple, "gelu"),
        (by_tanh, "gelu_tanh"),
        (by_tanh_factored, "gelu_tanh"),
    ],
)
def test_is_one_operation_with_the_same_answers(form: Form, op: str, spare: bool) -> None:
    kernel = kernel_of(form, spare)
    found = find_gelus(kernel)
    verify(found)
    assert op in operations(found)
    assert {"erf", "tanh"}.isdisjoint(operations(found))
    np.testing.assert_allclose(run(found), run(kernel), rtol=0, atol=2e-6)


def another_slope(b: Builder, x: Expr) -> Expr:
    return x * b.let(0.5 + b.let(0.5 * apply("erf", x * 0.7)))


def another_offset(b: Builder, x: Expr) -> Expr:
    return b.let(x * 0.5) * b.let(apply("erf", x * ROOT) + 0.5)


def another_factor(b: Builder, x: Expr) -> Expr:
    return x * b.let(apply("erf", x * ROOT) + 1.0)


def of_another_value(b: Builder, x: Expr) -> Expr:
    return b.let(b.let(apply("exp", x)) * 0.5) * b.let(apply("erf", x * ROOT) + 1.0)


def read_twice(b: Builder, x: Expr) -> Expr:
    bent = b.let(apply("erf", b.let(x * ROOT)))
    return b.let(b.let(x * b.let(bent + 1.0)) * 0.5) + bent


def a_fourth_power(b: Builder, x: Expr) -> Expr:
    square = b.let(x * x)
    inside = b.let(b.let(x + b.let(b.let(square * square) * 0.044715)) * SLOPE)
    return b.let(x * 0.5) * b.let(apply("tanh", inside) + 1.0)


@pytest.mark.parametrize(
    "form",
    [
        another_slope,
        another_offset,
        another_factor,
        of_another_value,
        read_twice,
        a_fourth_power,
    ],
)
def test_what_is_none_is_left_alone(form: Form) -> None:
    kernel = kernel_of(form)
    assert operations(find_gelus(kernel)) == operations(kernel)


def test_a_number_that_may_have_changed_is_none() -> None:
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")
    with b.loop(len(X), "serial") as i:
        total = b.local(b.load(x, i))
        gate = b.let(apply("erf", total * ROOT) + 1.0)
        b.set(total, total + 1.0)
        b.store(y, i, b.let(total * 0.5) * gate)
    kernel = b.kernel()
    assert find_gelus(kernel) == kernel
