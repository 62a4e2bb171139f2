"""Functions that decide by tensors run as they did after rewriting, and as a graph."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from sardonyx.conversion.torch import control_flow
from sardonyx.conversion.torch.branches import Point
from sardonyx.conversion.torch.decisions import decisions_of, function_of
from sardonyx.conversion.torch.rewriting import rewritten
from sardonyx.errors import ConvertError


def sign(x):
    if x.sum() > 0:
        return x
    if x.sum() < 0:
        return -x
    return x * 0


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return n * 0 + steps


def first_over(x, limit):
    found = -1
    for i in range(8):
        if x[i] > limit:
            found = i
            break
    return x[0] * 0 + found


def skip_odd(x):
    total = x[0] * 0
    for i in range(5):
        if x[i] % 2 == 1:
            continue
        total = total + x[i]
    return total


def chained(x):
    y = x
    if 0 < x.sum() < 10 and not x.max() > 4:
        y = x + 1
    return y


def clamp_number(x):
    level = float(x.max())
    if level > 2:
        x = x * (2 / level)
    return x


def in_place(x):
    y = x.clone()
    if x[0] > 0:
        y.mul_(2)
        y += 1
    return y, x


def checked(x):
    assert x.min() > -100, "too small"
    if x.max() > 100:
        raise ValueError("too large")
    return x + 1


def _points(function: Callable[..., Any]) -> set[Point]:
    """Every line as one at which data were read: the helpers leave Python's own values to Python."""
    lines, start = inspect.getsourcelines(function)
    return {(function.__code__, start + i) for i in range(len(lines))}


T = torch.tensor
CASES: list[tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]] = [
    (sign, [(T([1.0, 2.0]),), (T([-1.0, -2.0]),), (T([1.0, -1.0]),)]),
    (collatz, [(T(1),), (T(6),), (T(27),)]),
    (first_over, [(torch.arange(8.0), T(v)) for v in (-1.0, 3.5, 99.0)]),
    (skip_odd, [(T([1, 2, 3, 4, 5]),), (T([2, 2, 2, 2, 2]),)]),
    (chained, [(T([1.0, 2.0]),), (T([5.0, 2.0]),), (T([-5.0, 2.0]),)]),
    (clamp_number, [(T([1.0, 0.5]),), (T([4.0, 1.0]),)]),
    (in_place, [(T([1.0, 2.0]),), (T([-1.0, 2.0]),)]),
    (checked, [(T([1.0, 2.0]),)]),
]


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_graph_answers_as_the_function(
    function: Callable[..., Any], inputs: list[tuple[torch.Tensor, ...]]
) -> None:
    class Module(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> Any:
            return function(*args)

    expected = [function(*args) for args in inputs]
    code = function.__code__
    with rewritten(_points(function)), torch.no_grad():
        assert function.__code__ is not code
        program = torch.export.export(Module(), inputs[0], strict=False).module()
    assert function.__code__ is code
    for args, answers in zip(inputs, expected, strict=True):
        found = program(*args)
        for ours, theirs in zip(
            torch.utils._pytree.tree_leaves(found),
            torch.utils._pytree.tree_leaves(answers),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, check_dtype=False)


def test_python_values_are_decided_by_python() -> None:
    with rewritten(_points(collatz)):
        assert collatz(6) == 8
    assert control_flow.both(0, lambda: 1 / 0) == 0
    assert control_flow.either(5, lambda: 1 / 0) == 5
    assert control_flow.negated([]) is True
    assert control_flow.number("int", 2.7) == 2
    assert math.isclose(control_flow.number("item", T([2.5])).item(), 2.5)


def appends(x):
    parts = [x]
    while x.sum() > 1:
        x = x / 2
        parts.append(x)
    return parts


class Stateful(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            self.last = x
        return x


def returns_inside(x):
    for i in range(5):
        if x[i] > 0:
            return x[i]
    return x[0]


@pytest.mark.parametrize(
    ("function", "line", "why"),
    [
        (appends, 4, "append"),
        (Stateful.forward, 2, "attribute 'last'"),
        (returns_inside, 1, "returns from inside"),
    ],
    ids=["append", "attribute", "return"],
)
def test_what_a_graph_cannot_say_is_refused_with_its_line(
    function: Callable[..., Any], line: int, why: str
) -> None:
    start = function.__code__.co_firstlineno
    with pytest.raises(ConvertError, match=why) as refused, rewritten(_points(function)):
        pass
    assert refused.value.source == f"test_rewriting.py:{start + line}"
    assert "torch.where" in str(refused.value)


def test_no_source_is_said() -> None:
    space: dict[str, Any] = {}
    exec("def made(x):\n    if x > 0:\n        return x\n    return -x\n", space)
    with (
        pytest.raises(ConvertError, match="source cannot be read"),
        rewritten({(space["made"].__code__, 2)}),
    ):
        pass


def test_decisions_are_those_that_read_data() -> None:
    def mixed(x, flag, mask=None):
        n = int(x.sum())
        if flag:
            x = x + 1
        if mask is None:
            x = x + 2
        if x.shape[0] > 3:
            x = x + 3
        while n > 0:
            n -= 1
        return x if n == 0 else -x

    function = function_of(mixed.__code__)
    assert function is not None
    first = mixed.__code__.co_firstlineno
    found = decisions_of(function, [first + 1])
    assert [type(d.statement) for d in found] == [ast.While, ast.IfExp]
    assert [d.first - first for d in found] == [8, 10]
