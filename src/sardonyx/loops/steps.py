"""A Gelu that is rounded to bytes, computed as finely as bytes need it.

    t1: f32 = gelu(t0)
    t2: i32 = near(over(min(max(t1, -0.2), 4), 0.02))      ->      t2: i32 = near(min(max(gelu_coarse(t0) * 50, -10), 200))

"gelu_coarse", and "gelu_tanh_coarse" for the Gelu by tanh, are within 2^-16.8 of the truth, a thousandth of a step or so at
most; the others are longer polynomials, for bits that rounding drops.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import Apply, Cast, Const, Expr, Kernel, Select, const
from sardonyx.loops.operations import GELUS
from sardonyx.loops.walk import Names, with_values

__all__ = ["count_gelus"]

_SMALLEST = 2.0**-7  # step


def count_gelus(kernel: Kernel) -> Kernel:
    """The kernel with such Gelus counted in steps of what they are rounded to."""
    body = with_values(kernel.body, _Counter(kernel.body).expression)
    return replace(kernel, body=without_dead(body, set()))


class _Counter(Names):
    def expression(self, value: Expr) -> Expr:
        if isinstance(value, Cast):
            counted = self.counted(value.value) if value.mode == "near" else None
            return replace(value, value=counted or self.expression(value.value))
        if isinstance(value, Apply):
            return replace(value, args=tuple(self.expression(arg) for arg in value.args))
        if isinstance(value, Select):
            parts = (value.condition, value.then, value.other)
            return Select(*(self.expression(part) for part in parts))
        return value

    def counted(self, value: Expr) -> Expr | None:
        """A quotient of a Gelu, clipped or not, by a known step; None where it is anything else."""
        quotient = self.alone(value)
        if not isinstance(quotient, Apply) or quotient.op != "over" or quotient.dtype != "f32":
            return None
        inside, step = quotient.args
        if not isinstance(step, Const) or float(step.value) < _SMALLEST:
            return None
        clips: list[tuple[str, float]] = []
        found = self.alone(inside)
        while isinstance(found, Apply) and found.op in ("max", "min"):
            first, limit = found.args
            if not isinstance(limit, Const):
                return None
            clips.append((found.op, _in_steps(float(limit.value), float(step.value))))
            found = self.alone(first)
        if not isinstance(found, Apply) or found.op not in GELUS:
            return None
        counted: Expr = Apply(GELUS[found.op], found.args, "f32") * float(
            np.float32(1.0 / float(step.value))
        )
        for op, number in reversed(clips):
            counted = Apply(op, (counted, const(number, "f32")), "f32")
        return counted


def _in_steps(limit: float, step: float) -> float:
    """A limit over a step: a whole number where the limit is that of a byte, rounded to float32."""
    whole = float(round(limit / step))
    return whole if float(np.float32(whole * step)) == limit else float(np.float32(limit / step))
