"""Exact fractions of sizes: what a float holds while shape arithmetic passes through it.

Cast(h, float) → Div 2.0 → Floor → Cast(int64)     is     Ratio(h).divided_by(2).floor()
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from sardonyx.sizes.arithmetic import ceil_div
from sardonyx.sizes.expr import Size, terms_of

__all__ = ["Ratio"]


@dataclass(frozen=True)
class Ratio:
    """numerator / denominator in lowest terms; the denominator is a positive int."""

    numerator: Size
    denominator: int = 1

    def __post_init__(self) -> None:
        shared = gcd(self.denominator, *(c for _, c in terms_of(self.numerator)))
        if shared > 1:
            object.__setattr__(self, "numerator", self.numerator // shared)
            object.__setattr__(self, "denominator", self.denominator // shared)

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(
            self.numerator * other.denominator + other.numerator * self.denominator,
            self.denominator * other.denominator,
        )

    def __sub__(self, other: Ratio) -> Ratio:
        return self + other * Ratio(-1)

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)

    def divided_by(self, divisor: int) -> Ratio:
        """self / divisor; the divisor is any int but 0."""
        if divisor == 0:
            raise ZeroDivisionError(f"{self.numerator} / 0")
        sign = 1 if divisor > 0 else -1
        return Ratio(self.numerator * sign, self.denominator * divisor * sign)

    def floor(self) -> Size:
        return self.numerator // self.denominator

    def ceil(self) -> Size:
        return ceil_div(self.numerator, self.denominator)
