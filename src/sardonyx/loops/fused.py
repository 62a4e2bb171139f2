"""Products where they are added, so that a compiler makes one operation of both.

    t0: f32 = x[i] * 0.5
    t1: f32 = t0 + y[i]          ->        t1: f32 = x[i] * 0.5 + y[i]

Compilers fuse within an expression, and not across them. One rounding takes the place of two: a result may have other bits, and is
nearer to the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import (
    Apply,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Set,
    Statement,
    Store,
    Var,
    While,
)
from sardonyx.loops.walk import expressions, statements

__all__ = ["fuse_products"]


def fuse_products(kernel: Kernel) -> Kernel:
    """The kernel with every float32 product that is used once, in a sum, written there."""
    every = list(statements(kernel.body))
    uses = Counter(p.name for one in every for p in expressions(one) if isinstance(p, Var))
    changing = {one.name for one in every if isinstance(one, Local)}
    products = {
        one.name: one.value
        for one in every
        if isinstance(one, Let)
        and uses[one.name] == 1
        and _is_product(one.value)
        and not any(_may_change(part, changing) for part in expressions(one))
    }
    return replace(kernel, body=without_dead(_block(kernel.body, products), set()))


def _is_product(value: Expr) -> bool:
    return isinstance(value, Apply) and value.op == "mul" and value.dtype == "f32"


def _may_change(value: Expr, changing: set[str]) -> bool:
    """Whether it may be another number where the sum is."""
    return isinstance(value, Load) or (isinstance(value, Var) and value.name in changing)


def _block(body: Iterable[Statement], products: dict[str, Expr]) -> tuple[Statement, ...]:
    return tuple(_statement(one, products) for one in body)


def _statement(one: Statement, products: dict[str, Expr]) -> Statement:
    if isinstance(one, (For, While)):
        return replace(one, body=_block(one.body, products))
    if isinstance(one, If):
        return replace(one, then=_block(one.then, products), other=_block(one.other, products))
    if isinstance(one, (Let, Local, Set, Store)):
        return replace(one, value=_with_products(one.value, products))
    return one


def _with_products(value: Expr, products: dict[str, Expr]) -> Expr:
    """A sum, with the products that it is of; a product of sums has its own Let."""
    if not isinstance(value, Apply) or value.op not in ("add", "sub") or value.dtype != "f32":
        return value
    args = tuple(products.get(a.name, a) if isinstance(a, Var) else a for a in value.args)
    return replace(value, args=args)
