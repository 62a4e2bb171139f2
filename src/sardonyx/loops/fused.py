"""Products where they are added, so that a compiler makes one operation of both.

    t0: f32 = x[i] * 0.5
    t1: f32 = t0 + y[i]          ->        t1: f32 = x[i] * 0.5 + y[i]

Compilers fuse within an expression, and not across them. One rounding takes the place of two: a result may have other bits, and is
nearer to the truth.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import Apply, Expr, Kernel, Let, Load, Local, Var
from sardonyx.loops.walk import Names, expressions, statements, with_values

__all__ = ["fuse_products"]


def fuse_products(kernel: Kernel) -> Kernel:
    """The kernel with every float32 product that is used once, in a sum, written there."""
    every, uses = list(statements(kernel.body)), Names(kernel.body).uses
    changing = {one.name for one in every if isinstance(one, Local)}
    products = {
        one.name: one.value
        for one in every
        if isinstance(one, Let)
        and uses[one.name] == 1
        and _is_product(one.value)
        and not any(_may_change(part, changing) for part in expressions(one))
    }
    body = with_values(kernel.body, partial(_with_products, products=products))
    return replace(kernel, body=without_dead(body, set()))


def _is_product(value: Expr) -> bool:
    return isinstance(value, Apply) and value.op == "mul" and value.dtype == "f32"


def _may_change(value: Expr, changing: set[str]) -> bool:
    """Whether it may be another number where the sum is."""
    return isinstance(value, Load) or (isinstance(value, Var) and value.name in changing)


def _with_products(value: Expr, products: dict[str, Expr]) -> Expr:
    """A sum, with the products that it is of; a product of sums has its own Let."""
    if not isinstance(value, Apply) or value.op not in ("add", "sub") or value.dtype != "f32":
        return value
    args = tuple(products.get(a.name, a) if isinstance(a, Var) else a for a in value.args)
    return replace(value, args=args)
