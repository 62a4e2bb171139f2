"""RotaryEmbedding: pairs of columns turned by the angle of their position."""

from __future__ import annotations

from sardonyx.loops.build import cast
from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.checks import require_at_most, require_equal
from sardonyx.sizes import Size, quotient

__all__ = ["ROTARY"]

X, COSINES, SINES, POSITIONS = range(4)
OUTSIDE = "position {value} is outside a cache of {limit}"


def _rotary(site: Site) -> None:
    """y1 = c x1 - s x2, y2 = s x1 + c x2; columns past the turned ones stay."""
    b, call, shape = site.b, site.call, site.shape(X)
    flat = len(shape) == 3
    heads: Size = call.int_attr("num_heads") if flat else shape[1]
    size = quotient(shape[2], heads) if flat else shape[3]
    if size is None:
        site.refuse(f"{shape[2]} hidden units in {heads} heads: not known before it runs")
    batch, length = shape[0], shape[1] if flat else shape[2]
    turned: Size = call.int_attr("rotary_embedding_dim") or size
    half = site.shape(COSINES)[-1]
    require_equal(site, 2 * half, turned, "twice the cache's width and the turned columns")
    require_at_most(site, turned, size, "the number of turned columns")
    interleaved = bool(call.int_attr("interleaved"))
    if len(site.shape(SINES)) != len(site.shape(COSINES)):
        site.refuse("the caches of sines and cosines differ in rank")
    for axis, sizes in enumerate(zip(site.shape(SINES), site.shape(COSINES), strict=True)):
        require_equal(site, *sizes, f"axis {axis} of the sines and the cosines")

    def place(n: Size, t: Size, head: Size, column: Size) -> tuple[Size, ...]:
        return (n, t, head * size + column) if flat else (n, head, t, column)

    outer = (batch, length, heads) if flat else (batch, heads, length)
    with b.parallel(outer, 4 * size) as (n, second, third):
        t, head = (second, third) if flat else (third, second)
        row = _cache_row(site, n, t, (batch, length))
        with b.loop(half, "vector") as pair:
            first = place(n, t, head, 2 * pair if interleaved else pair)
            other = place(n, t, head, 2 * pair + 1 if interleaved else half + pair)
            cosine, sine = (site.operand(index, (*row, pair)) for index in (COSINES, SINES))
            a, c = site.operand(X, first), site.operand(X, other)
            real, imaginary = b.let(cosine * a - sine * c), b.let(sine * a + cosine * c)
            site.store(first, real)
            site.store(other, imaginary)
        if turned != size:
            with b.loop(size - turned, "vector") as column:
                at = place(n, t, head, turned + column)
                site.store(at, site.read(X, at))


def _cache_row(site: Site, n: Size, t: Size, tokens: tuple[Size, ...]) -> tuple[Size, ...]:
    """Where the angles of a token are: at its position, or one row a token."""
    b, cache = site.b, site.shape(COSINES)
    if not site.call.has(POSITIONS):
        if len(cache) != 3:
            site.refuse(f"a cache of rank {len(cache)} without positions")
        return site.spread(cache[:-1], (n, t), tokens)
    if len(cache) != 2:
        site.refuse(f"a cache of rank {len(cache)} with positions")
    at = site.spread(site.shape(POSITIONS), (n, t), tokens)
    position: Expr = b.let(cast(site.operand(POSITIONS, at), "i64"))
    limit = b.size(cache[0])
    b.fail_if((position < 0) | (position >= limit), OUTSIDE, position, limit)
    return (b.index(position, cache[0]),)


ROTARY = Nest(_rotary)
