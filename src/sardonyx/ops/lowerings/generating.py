"""Operators that make elements from positions, attributes and a few numbers."""

from __future__ import annotations

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.nodes import Const, Dtype, Expr, apply, const
from sardonyx.loops.operations import FLOATS, SMALL_FLOATS
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.copying import COST
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.sizes import Expr as SizeExpr
from sardonyx.sizes import at_least, product

__all__ = ["CONSTANT_OF_SHAPE", "EYE_LIKE", "ONE_HOT", "RANGE", "TRILU", "number"]


def number(value: object, dtype: Dtype) -> Const:
    """A number in the type that arithmetic uses for elements of `dtype`."""
    return const(value, "f32" if dtype in SMALL_FLOATS else dtype)


def _constant_of_shape(site: Site, position: Position) -> Expr:
    for axis, size in enumerate(site.out_shape()):
        require_size(site, whole(site, 0, axis), size, f"axis {axis} of the shape")
    fill = site.call.attr("value")
    element = 0.0 if fill is None else fill.numpy().reshape(-1)[0].item()
    return number(element, site.out_dtype())


def _eye_like(site: Site, position: Position) -> Expr:
    row, column = position
    on_diagonal = apply("eq", site.b.size(column - row), site.call.int_attr("k"))
    dtype = site.out_dtype()
    return where(on_diagonal, number(1, dtype), number(0, dtype))


def _range(site: Site, position: Position) -> Expr:
    start, limit, delta = (site.call.scalar(index) for index in range(3))
    if start is None or limit is None or delta is None:
        _check_range(site)
    sizes = isinstance(start, (int, SizeExpr)) and isinstance(delta, (int, SizeExpr))
    if sizes and site.out_dtype() == "i64":
        return site.b.size(start + delta * position[0])
    first, step = _scalar(site, 0), _scalar(site, 2)
    return first + cast(site.b.size(position[0]), first.dtype) * step


def _scalar(site: Site, index: int) -> Expr:
    with site.b.once():
        return site.operand(index, (0,) * len(site.shape(index)))


def _check_range(site: Site) -> None:
    """How many steps it is from start to limit, compared with the output's shape."""
    b = site.b
    start, limit, delta = (_scalar(site, index) for index in range(3))
    with b.once():
        if start.dtype in FLOATS:
            start, limit, delta = (cast(value, "f64") for value in (start, limit, delta))
            steps = b.let((limit - start) / delta)  # NaN and infinities where one of them is such
            finite = apply("eq", steps - steps, 0.0) & apply("eq", delta - delta, 0.0)
            count = cast(apply("ceil", steps), "i64")
        else:
            start, limit, delta = (b.let(cast(v, "i64")) for v in (start, limit, delta))
            finite = apply("ne", delta, 0)
        b.fail_if(~finite, "start, limit and delta make no range", b.size(0))
        if start.dtype not in FLOATS:
            rest = apply("mod", limit - start, delta)  # of the sign of delta: rounded down so far
            count = (limit - start - rest) / delta + where(apply("ne", rest, 0), b.size(1), 0)
        count = b.let(maximum(count, 0))
        require_size(site, count, site.out_shape()[0], "the length of the range")


def _trilu(site: Site, position: Position) -> Expr:
    """Kept on and above diagonal k, or on and below it."""
    row, column = position[-2:]
    offset = site.b.size(column - row)
    k = site.read(1, (0,) * len(site.shape(1))) if site.call.has(1) else site.b.size(0)
    kept = offset >= k if site.call.int_attr("upper", 1) else offset <= k
    return where(kept, site.operand(0, position), 0)


def _one_hot(site: Site) -> None:
    b, out = site.b, site.out_shape()
    axis = site.call.axis(site.call.int_attr("axis", -1), len(out))
    require_equal(site, product(site.shape(2)), 2, "the elements of values and off and on")
    depth = b.size(out[axis])
    require_size(site, whole(site, 1), out[axis], "depth")
    if not at_least(out[axis], 1):
        b.fail_if(depth < 1, "depth is {value}; one class or more is needed", depth)

    def chosen(at: Position) -> Expr:
        index = b.let(cast(site.operand(0, (*at[:axis], *at[axis + 1 :])), "i64"))
        return b.let(where(index < 0, index + depth, index))

    with b.parallel(out[:-1], out[-1] * COST) as rows:
        off, on = (site.operand(2, (at,)) for at in (0, 1))
        row_index = chosen((*rows, 0)) if axis == len(out) - 1 else None
        with b.loop(out[-1], "vector") as column:
            at = (*rows, column)
            index = row_index or chosen(at)
            site.store(at, where(apply("eq", index, b.size(at[axis])), on, off))


CONSTANT_OF_SHAPE = Element(_constant_of_shape, weight=0)
# Cheaper to make than to load.
EYE_LIKE = Element(_eye_like, weight=0)
RANGE = Element(_range, weight=0)
TRILU = Element(_trilu, weight=1, pointwise=True)
ONE_HOT = Nest(_one_hot)
