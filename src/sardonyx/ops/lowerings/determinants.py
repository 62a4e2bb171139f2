"""Det: elimination with the largest pivot of each column, in float64."""

from __future__ import annotations

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.sizes import Size, product

__all__ = ["DET"]


def _det(site: Site) -> None:
    b, (*batch, n, columns) = site.b, site.shape(0)
    require_equal(site, n, columns, "the two sides of the matrices")
    memory = site.scratch("f64", product(batch) * n * n)
    with b.parallel(batch, n * n * n) as at:
        base = flatten(at, batch) * n * n
        with b.loop(n) as i, b.loop(n, "vector") as j:
            b.store(memory, base + i * n + j, cast(site.operand(0, (*at, i, j)), "f64"))
        result = b.local(const(1, "f64"))
        with b.loop(n) as k:
            pivot = _bring_up_pivot(b, memory, base, n, k)
            b.set(result, result * pivot)
            with b.loop(n - k - 1) as below, b.when(apply("ne", pivot, 0)):
                row = base + (k + 1 + below) * n
                factor = b.let(b.load(memory, row + k) / pivot)
                with b.loop(n, "vector") as j:
                    moved = b.load(memory, row + j) - factor * b.load(memory, base + k * n + j)
                    b.store(memory, row + j, moved)
        site.store(at, result)


def _bring_up_pivot(b: Builder, memory: str, base: Size, n: Size, k: Size) -> Expr:
    """The largest of column k from row k on, its row exchanged for row k; its sign says whether it was."""
    best, place = b.local(b.load(memory, base + k * n + k)), b.local(b.size(k))
    with b.loop(n - k) as below:
        here = b.let(b.load(memory, base + (k + below) * n + k))
        with b.when(apply("abs", here) > apply("abs", best)):
            b.set(best, here)
            b.set(place, b.size(k + below))
    with b.when(apply("ne", place, b.size(k))):
        other = base + b.index(place, n) * n
        with b.loop(n, "vector") as j:
            upper = b.let(b.load(memory, base + k * n + j))
            lower = b.let(b.load(memory, other + j))
            b.store(memory, base + k * n + j, -lower)  # the exchange turns the sign of the result
            b.store(memory, other + j, upper)
        b.set(best, -best)
    return best


DET = Nest(_det)
