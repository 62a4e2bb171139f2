"""Text to size: the arithmetic that exporters write into dim_param.

    "batch"  "2*batch + 1"  "past + seq"  "(h - 1)//2 + 1"  "max(1, n)"  "floor(h/2)"  "s**2"

A name is a word, with dots or inner hyphens, or anything at all between single quotes. A text that
is not arithmetic over names is itself one name: "?", "batch size", "N/A".
"""

from __future__ import annotations

import re

from sardonyx.sizes.arithmetic import broadcast_of, max_of, min_of
from sardonyx.sizes.expr import HYPHENATED_NAME, MAX_DEGREE, Size, symbol
from sardonyx.sizes.ratio import Ratio

__all__ = ["parse"]

MAX_CHARACTERS = 1 << 16
MAX_NESTING = 80
MAX_DIGITS = 80

TOKEN = re.compile(
    rf"\s*(?:(?P<number>\d+)|(?P<name>{HYPHENATED_NAME.pattern})"
    r"|(?P<quoted>'(?:[^'\\]|\\.)*')|(?P<op>//|\*\*|[-+*/%(),]))",
    re.DOTALL,
)
FUNCTIONS = {"max", "min", "broadcast", "floor", "ceiling", "mod", "floordiv"}


class _NotArithmeticError(Exception):
    """The text is a name."""


def parse(text: str) -> Size:
    """The size that `text` spells; `parse(str(size)) == size` for every size."""
    try:
        return _Parser(_tokens(text)).whole()
    except (_NotArithmeticError, ZeroDivisionError):
        return symbol(text)


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > MAX_CHARACTERS:
        raise _NotArithmeticError
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotArithmeticError
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


class _Parser:
    """Precedence climbing, by Python's rules, over exact ratios so that floor(h/2) works."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def whole(self) -> Size:
        result = self.sum()
        if self.at != len(self.tokens):
            raise _NotArithmeticError
        return _integer(result)

    def take(self, *expected: str) -> str | None:
        if self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            if kind == "op" and text in expected:
                self.at += 1
                return text
        return None

    def demand(self, expected: str) -> None:
        if self.take(expected) is None:
            raise _NotArithmeticError

    def sum(self) -> Ratio:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise _NotArithmeticError
        result = self.product()
        while op := self.take("+", "-"):
            right = self.product()
            result = result + right if op == "+" else result - right
        self.depth -= 1
        return result

    def product(self) -> Ratio:
        result = self.unary()
        while op := self.take("*", "//", "/", "%"):
            right = self.unary()
            if op == "*":
                result = result * right
            elif op == "/":
                result = _divide(result, right)
            elif op == "//":
                result = Ratio(_integer(result) // _integer(right))
            else:
                result = Ratio(_integer(result) % _integer(right))
        return result

    def unary(self) -> Ratio:
        negative = False
        while op := self.take("-", "+"):
            negative ^= op == "-"
        result = self.power()
        return Ratio(0) - result if negative else result

    def power(self) -> Ratio:
        base = self.primary()
        if not self.take("**"):
            return base
        exponent = _integer(self.primary())
        if not isinstance(exponent, int) or not 0 <= exponent <= MAX_DEGREE:
            raise _NotArithmeticError
        result = Ratio(1)
        for _ in range(exponent):
            result = result * base
        return result

    def primary(self) -> Ratio:
        if self.take("("):
            inner = self.sum()
            self.demand(")")
            return inner
        if self.at >= len(self.tokens):
            raise _NotArithmeticError
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number" and len(text) <= MAX_DIGITS:
            return Ratio(int(text))
        if kind == "quoted":
            return Ratio(symbol(re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)))
        if kind == "name":
            if text.lower() in FUNCTIONS and self.take("("):
                return self.call(text.lower())
            return Ratio(symbol(text))
        raise _NotArithmeticError

    def call(self, name: str) -> Ratio:
        args = [self.sum()]
        while self.take(","):
            args.append(self.sum())
        self.demand(")")
        if name in ("floor", "ceiling") and len(args) == 1:
            return Ratio(args[0].floor() if name == "floor" else args[0].ceil())
        whole = [_integer(arg) for arg in args]
        if name in ("mod", "floordiv") and len(args) == 2:
            return Ratio(whole[0] % whole[1] if name == "mod" else whole[0] // whole[1])
        if name in ("max", "min", "broadcast"):
            fold = {"max": max_of, "min": min_of, "broadcast": broadcast_of}[name]
            return Ratio(fold(*whole))
        raise _NotArithmeticError


def _integer(ratio: Ratio) -> Size:
    if ratio.denominator != 1:
        raise _NotArithmeticError
    return ratio.numerator


def _divide(left: Ratio, right: Ratio) -> Ratio:
    if right.denominator != 1 or not isinstance(right.numerator, int):
        raise _NotArithmeticError
    return left.divided_by(right.numerator)
