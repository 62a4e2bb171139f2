"""Integers and expressions over symbolic dimensions.

    batch, seq = symbol("batch"), symbol("seq")
    str(2 * batch + (seq + 3) // 4)           # '2*batch + (seq + 3)//4'
    evaluate(batch * seq, {"batch": 2, "seq": 5})   # 10

A `Size` is an int or an `Expr`; whatever is constant folds to a plain int. Symbols stand for
dimensions, so they are at least zero, and that is what the simplifications rest on.
"""

from __future__ import annotations

from sardonyx.sizes.arithmetic import (
    broadcast_of,
    ceil_div,
    exact_div,
    max_of,
    min_of,
    product,
    quotient,
)
from sardonyx.sizes.bounds import at_least, lower_bound, upper_bound
from sardonyx.sizes.evaluate import evaluate, substitute, symbols
from sardonyx.sizes.expr import Expr, Size, symbol
from sardonyx.sizes.given import check_given
from sardonyx.sizes.nonempty import equal_where_elements
from sardonyx.sizes.parse import parse
from sardonyx.sizes.ratio import Ratio

__all__ = [
    "Expr",
    "Ratio",
    "Size",
    "at_least",
    "broadcast_of",
    "ceil_div",
    "check_given",
    "equal_where_elements",
    "evaluate",
    "exact_div",
    "lower_bound",
    "max_of",
    "min_of",
    "parse",
    "product",
    "quotient",
    "substitute",
    "symbol",
    "symbols",
    "upper_bound",
]
