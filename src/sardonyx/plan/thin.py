"""Products of few rows with a matrix that only a run knows: it is read once, where it lies, and not packed for so little.

rows of B are runs                          columns of B are runs
for every block of columns                  for every column
    for every piece of k                        sum over k of a[m, k] * b[k, n]
        for four of k
            part[j] += a[m, k] * b[k, j]
        sums[j] += part[j]
"""

from __future__ import annotations

from functools import reduce
from operator import add

from sardonyx.loops.nodes import Expr, const
from sardonyx.ops.lowering import Contraction, Position, Product, Site
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import Matrix
from sardonyx.plan.write import Writer, Written
from sardonyx.sizes import Size, ceil_div, min_of, product

__all__ = ["is_thin", "write_thin_product"]

ROWS = 4  # at most: a packed matrix has paid for itself with more
BLOCK = 256  # columns whose sums are at hand together
PIECE = (
    192  # terms that are summed in one go: the shorter the sums, the smaller their rounding errors
)
TOGETHER = 4  # of k: their rows of B are read side by side, and sums wait in memory less often
LEAST = 1 << 12  # elements of B that are worth it


def is_thin(rows: Size, inner: Size, columns: Size, b: Matrix) -> bool:
    """Whether a product had better read its second operand in place; b's strides are those of (k, n)."""
    few = isinstance(rows, int) and rows <= ROWS
    small = isinstance(inner, int) and isinstance(columns, int) and inner * columns < LEAST
    return few and not small and 1 in (b.by_row, b.by_column) and b.dtype in ("f32", "f64")


def write_thin_product(writer: Writer, group: Group, b: Matrix) -> Written | None:
    """The product with B as it lies; None where the definition, a sum for every element, reads it so."""
    if b.by_column != 1:
        return None
    lowering = group.root.lowering
    assert isinstance(lowering, Product)
    site = writer.site(group)
    contraction = lowering.describe(site)
    _block_loops(writer, site, contraction)
    return writer.done()


def _block_loops(writer: Writer, site: Site, into: Contraction) -> None:
    b, rows = writer.b, into.rows
    assert isinstance(rows, int)
    blocks = ceil_div(into.columns, BLOCK)
    work = product((rows, into.inner, BLOCK))
    with b.parallel((*into.batch, blocks), work) as (*batch, block):
        at, first = tuple(batch), BLOCK * block
        width = min_of(BLOCK, into.columns - first)
        sums, part = (b.array(into.dtype, rows * BLOCK) for _ in range(2))
        _clear(writer, sums, into, width)
        with b.loop(ceil_div(into.inner, PIECE)) as piece:
            begin = PIECE * piece
            terms = min_of(PIECE, into.inner - begin)
            _clear(writer, part, into, width)
            with b.loop(terms // TOGETHER) as several:
                ks = [begin + TOGETHER * several + one for one in range(TOGETHER)]
                _add(writer, part, into, at, ks, first, width)
            with b.loop(terms % TOGETHER) as left:
                k = begin + terms // TOGETHER * TOGETHER + left
                _add(writer, part, into, at, [k], first, width)
            with b.loop(width, "vector") as j:
                for place in (m * BLOCK + j for m in range(rows)):
                    b.put(sums, place, b.element(sums, place) + b.element(part, place))
        for m in range(rows):
            with b.loop(width, "vector") as j:
                n = b.named(first + j, into.columns)
                total = b.let(b.element(sums, m * BLOCK + j))
                site.store(into.out(at, m, n), into.finish(at, m, n, total))


def _clear(writer: Writer, array: str, into: Contraction, width: Size) -> None:
    assert isinstance(into.rows, int)
    with writer.b.loop(width, "vector") as j:
        for m in range(into.rows):
            writer.b.put(array, m * BLOCK + j, const(0, into.dtype))


def _add(
    writer: Writer,
    part: str,
    into: Contraction,
    at: Position,
    ks: list[Size],
    first: Size,
    width: Size,
) -> None:
    """The terms of these k, for a block of columns."""
    b = writer.b
    assert isinstance(into.rows, int)
    factors = [[b.let(into.a(at, m, k)) for k in ks] for m in range(into.rows)]
    with b.loop(width, "vector") as j:
        values = [b.let(into.b(at, k, first + j)) for k in ks]
        for m, row in enumerate(factors):
            terms: list[Expr] = [x * y for x, y in zip(row, values, strict=True)]
            place = m * BLOCK + j
            b.put(part, place, reduce(add, terms, b.element(part, place)))
