"""Gelus that a model writes out, operator by operator, as the one operation that they are.

    t1: f32 = t0 * 0.5
    t2: f32 = erf(t0 * 0.70710677) + 1.0
    t3: f32 = t1 * t2                        ->       t3: f32 = gelu(t0 + min(t0, 0.0) * 0.0)

The same for tanh of sqrt(2/π) (x + 0.044715 x³). It takes half the time, and is as near to the truth. What is added
is a zero, but NaN for -∞, as -∞ · 0 is where it is written out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import Apply, Const, Expr, Kernel, Var, const
from sardonyx.loops.walk import Names, expressions, statements, with_values

__all__ = ["find_gelus"]

_CLOSE = 4e-7  # what rounding two factors to float32 leaves
_DEEP = 6  # operations on the way to x, at most
_SLOPE = math.sqrt(2 / math.pi)
# By the function that bends them: the operation, and the polynomial of x inside.
_KINDS = {
    "erf": ("gelu", {1: math.sqrt(0.5)}),
    "tanh": ("gelu_tanh", {1: _SLOPE, 3: 0.044715 * _SLOPE}),
}
_Polynomial: TypeAlias = "dict[int, float]"


def find_gelus(kernel: Kernel) -> Kernel:
    """The kernel with every Gelu of float32 in one operation."""
    if not any(_bends(part) for one in statements(kernel.body) for part in expressions(one)):
        return kernel
    body = with_values(kernel.body, _Finder(kernel.body).expression)
    return kernel if body == kernel.body else replace(kernel, body=without_dead(body, set()))


def _bends(value: Expr) -> bool:
    return isinstance(value, Apply) and value.op in _KINDS and value.dtype == "f32"


class _Finder(Names):
    def expression(self, value: Expr) -> Expr:
        return self.gelu(value) or value

    def gelu(self, value: Expr) -> Expr | None:
        """The operation that a product stands for; None where it is anything else."""
        for whole, number in self.unscaled(value):
            if not isinstance(whole, Apply) or whole.op != "mul" or whole.dtype != "f32":
                continue
            for one, other in (whole.args, whole.args[::-1]):
                for gate, by in self.unscaled(one):
                    found = self.gated(gate, other, number * by)
                    if found is not None:
                        return found
        return None

    def gated(self, gate: Expr, other: Expr, number: float) -> Expr | None:
        """The operation, where `number` times the gate is that of the other factor, or of what that is a multiple of."""
        bent = self.bent(gate)
        if bent is None:
            return None
        function, slope = bent
        op, inside = _KINDS[function.op]
        for x, factor in self.unscaled(other):
            # What has a name from the beginning is the same here as where the gate was computed.
            if not isinstance(x, Var) or x.name not in self.values:
                continue
            if not _is(slope * number * factor, 0.5):
                continue
            if _same(self.powers(function.args[0], x), inside):
                return Apply(op, (x + _least(x) * 0.0,), "f32")
        return None

    def unscaled(self, value: Expr) -> Iterator[tuple[Expr, float]]:
        """The value and, without the numbers that it is multiplied by, what is left, with their product."""
        number = 1.0
        for _ in range(_DEEP):
            yield value, number
            seen = self.alone(value)
            if seen is not value:
                yield seen, number
            if not isinstance(seen, Apply) or seen.op not in ("mul", "div") or seen.dtype != "f32":
                return
            first, second = seen.args
            if seen.op == "mul" and isinstance(first, Const):
                first, second = second, first
            if not isinstance(second, Const) or not second.value:
                return
            value = first
            number *= float(second.value) if seen.op == "mul" else 1 / float(second.value)

    def bent(self, gate: Expr) -> tuple[Apply, float] | None:
        """From a·f(…) + a: f(…) and a. Nobody else reads it."""
        gate = self.alone(gate)
        if not isinstance(gate, Apply) or gate.op != "add" or gate.dtype != "f32":
            return None
        first, second = gate.args
        if isinstance(first, Const):
            first, second = second, first
        if not isinstance(second, Const):
            return None
        for value, slope in self.unscaled(first):
            if isinstance(value, Apply) and _bends(value) and _is(float(second.value), slope):
                return value, slope
        return None

    def powers(self, value: Expr, x: Expr, depth: int = _DEEP) -> _Polynomial | None:
        """The coefficients of a value by powers of x; None where it is no polynomial of degree 3 at most."""
        if value == x:
            return {1: 1.0}
        if isinstance(value, Var) and value.name in self.values:
            return self.powers(self.values[value.name], x, depth)
        if isinstance(value, Const):
            return {0: float(value.value)}
        if not isinstance(value, Apply) or value.op not in ("add", "mul", "div") or not depth:
            return None
        first, second = (self.powers(one, x, depth - 1) for one in value.args)
        if first is None or second is None:
            return None
        if value.op == "add":
            return {n: first.get(n, 0.0) + second.get(n, 0.0) for n in {*first, *second}}
        if value.op == "div":
            if second.keys() != {0} or not second[0]:
                return None
            second = {0: 1 / second[0]}
        return _times(first, second)


def _times(first: _Polynomial, second: _Polynomial) -> _Polynomial | None:
    product: _Polynomial = {}
    for a, left in first.items():
        for b, right in second.items():
            product[a + b] = product.get(a + b, 0.0) + left * right
    return product if max(product) <= 3 else None


def _same(found: _Polynomial | None, wanted: _Polynomial) -> bool:
    if found is None or found.keys() != wanted.keys():
        return False
    return all(_is(found[power], wanted[power]) for power in wanted)


def _is(number: float, wanted: float) -> bool:
    return math.isclose(number, wanted, rel_tol=_CLOSE)


def _least(x: Expr) -> Expr:
    """x where it is negative, else 0."""
    return Apply("min", (x, const(0.0, "f32")), "f32")
