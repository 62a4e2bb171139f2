"""Which products move into the sums that they are for."""

from __future__ import annotations

from sardonyx.loops.build import Builder
from sardonyx.loops.fused import fuse_products
from sardonyx.loops.nodes import Apply, Kernel, Let
from sardonyx.loops.walk import expressions, statements


def sums_of_products(kernel: Kernel) -> int:
    found = 0
    for one in statements(kernel.body):
        for part in expressions(one):
            if isinstance(part, Apply) and part.op == "add":
                found += any(isinstance(a, Apply) and a.op == "mul" for a in part.args)
    return found


def kernel_of(*, twice: bool = False, loads: bool = False, changes: bool = False) -> Kernel:
    """y = x * 2 + 1, of an x that is read before or in the product."""
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")
    with b.loop(8, "vector") as i:
        given = b.load(x, i) if loads else b.let(b.load(x, i))
        given = b.local(given) if changes else given
        product = b.let(given * 2.0)
        total = b.let(product + 1.0)
        b.store(y, i, total * product if twice else total)
    return b.kernel()


def test_a_product_moves_into_its_sum() -> None:
    fused = fuse_products(kernel_of())
    assert sums_of_products(kernel_of()) == 0
    assert sums_of_products(fused) == 1
    lets = [one for one in statements(fused.body) if isinstance(one, Let)]
    assert len(lets) == 2  # the load and the sum


def test_a_product_that_others_need_stays() -> None:
    assert sums_of_products(fuse_products(kernel_of(twice=True))) == 0


def test_what_may_change_in_between_stays() -> None:
    assert sums_of_products(fuse_products(kernel_of(loads=True))) == 0
    assert sums_of_products(fuse_products(kernel_of(changes=True))) == 0
