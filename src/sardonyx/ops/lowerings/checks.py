"""What kernels check while they run: indices inside their axis, sizes that must be equal."""

from __future__ import annotations

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import provably_below
from sardonyx.loops.nodes import Const, Expr, Index, apply
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size, at_least

__all__ = ["checked_index", "require_at_most", "require_equal"]

OUTSIDE = "index {value} is outside an axis of {limit}"


def checked_index(site: Site, index: Expr, size: Size) -> Size:
    """An index into an axis; negative ones count from the end, others outside stop the run."""
    b = site.b
    at = b.let(cast(index, "i64"))
    if isinstance(at, Const) and isinstance(size, int) and -size <= at.value < size:
        return int(at.value) % size
    if isinstance(at, Index) and provably_below(at.size, size, b.ranges):
        return at.size
    limit = b.size(size)
    b.fail_if((at < b.size(-size)) | (at >= limit), OUTSIDE, at, limit)
    return b.index(where(at < 0, at + limit, at), size)


def require_equal(site: Site, a: Size, b: Size, what: str) -> None:
    """Stop the run where the sizes differ; to be said outside of loops. `what` says whose they are."""
    if a != b:
        value, limit = site.b.size(a), site.b.size(b)
        reason = f"{what} must be equal, but are {{value}} and {{limit}}"
        site.b.fail_if(apply("ne", value, limit), reason, value, limit)


def require_at_most(site: Site, a: Size, b: Size, what: str) -> None:
    """Stop the run where a is above b; to be said outside of loops."""
    if not at_least(b, a):
        value, limit = site.b.size(a), site.b.size(b)
        site.b.fail_if(value > limit, f"{what} is {{value}}, above {{limit}}", value, limit)
