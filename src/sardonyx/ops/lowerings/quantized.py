"""Between real numbers and the integers that stand for them, and products of such integers.

q = clip(round(x / scale) + zero)        x = (q - zero) * scale
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from sardonyx.loops.build import Builder, cast, maximum, minimum, where
from sardonyx.loops.index import divide, unflatten
from sardonyx.loops.nodes import Apply, Dtype, Expr, Var, apply, const
from sardonyx.loops.operations import FLOAT8, FLOATS, INTEGERS, NARROW, SMALL_FLOATS
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import (
    Bytes,
    Contraction,
    Element,
    IntegerProduct,
    Nest,
    Position,
    Site,
    computed,
    loop_dtype,
)
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.products import describe_matmul
from sardonyx.ops.lowerings.windows import place_at
from sardonyx.sizes import Size, ceil_div, min_of, product

__all__ = [
    "DEQUANTIZE",
    "DYNAMIC_QUANTIZE",
    "MATMUL_INTEGER",
    "QLINEAR_MATMUL",
    "QUANTIZE",
]

RANGES: dict[Dtype, tuple[int, int]] = {
    "i8": (-128, 127),
    "u8": (0, 255),
    "i16": (-(1 << 15), (1 << 15) - 1),
    "u16": (0, (1 << 16) - 1),
    "i4": (-8, 7),
    "u4": (0, 15),
    "i2": (-2, 1),
    "u2": (0, 3),
}
EXACT_IN_32_BITS = 1 << 15  # products of two 9-bit integers whose sum fits into 32 bits
ROWS = 4  # of an integer product: they share each load of the other factor
LANES = 16  # its columns whose sums lie in the registers
BLOCK = 4096  # elements whose extremes one thread finds at a time


def saturated(b: Builder, quotient: Expr, zero: Expr | None, dtype: Dtype) -> Expr:
    """Rounded half to even, moved by the zero point, clipped; NaN lands on the zero point."""
    rounded = b.let(apply("round", quotient))
    moved = where(apply("isnan", rounded), 0.0, rounded)
    if zero is not None:
        moved = moved + cast(zero, quotient.dtype)
    if dtype not in NARROW:
        return cast(moved, dtype)  # which clips
    low, high = RANGES[dtype]
    return cast(minimum(maximum(moved, low), high), dtype)


def stepped(b: Builder, x: Expr, by: float, zero: int, dtype: Dtype) -> Expr:
    """The same of x / by, where scale and zero point are known.

    What is clipped is x, at the numbers nearest to the outermost steps: divided by the scale again, these round to those
    steps, and rounding keeps the order of numbers. So the quotient is small.
    """
    low, high = (end - zero for end in RANGES[dtype])
    given = b.let(x)
    if low == 0 and _is_result(b, given):
        inside = where(
            given > 0.0, given, 0.0
        )  # one instruction, for every NaN that arithmetic makes
    else:
        number = where(apply("isnan", given), 0.0, given)
        inside = maximum(number, _nearest(low * by))
    inside = b.let(minimum(inside, _nearest(high * by)))
    quotient = inside if by == 1.0 else apply("over", inside, const(by, "f32"))
    steps = cast(quotient, "i32", "near")
    return cast(steps + zero if zero else steps, dtype)


def _is_result(b: Builder, value: Expr) -> bool:
    """Whether arithmetic made it, and not a load of what may be any bits."""
    found: Expr | None = value
    while isinstance(found, Var):
        found = b.bound(found.name)
    return isinstance(found, Apply) and found.op in ("add", "sub", "mul", "div")


def _nearest(x: float) -> float:
    """The float32 nearest to a number."""
    return float(np.float32(x))


def _spread(site: Site, index: int, position: Position) -> Expr:
    """The scale or zero point of an element: of the tensor, of its slice, or of its block."""
    shape, parameter = site.shape(0), site.shape(index)
    if not parameter or parameter == (1,):
        return site.read(index, (0,) * len(parameter))
    axis = site.call.int_attr("axis", 1)
    if not -len(shape) <= axis < len(shape):
        site.refuse(f"axis {axis} is outside the rank {len(shape)}")
    axis %= len(shape)
    block = site.call.int_attr("block_size")
    if block:
        return _of_block(site, index, position, axis, block)
    if len(parameter) != 1:
        site.refuse("scales of several dimensions need a block_size")
    return site.read(index, site.spread(parameter, (position[axis],), (shape[axis],)))


def _of_block(site: Site, index: int, position: Position, axis: int, block: int) -> Expr:
    shape, parameter = site.shape(0), site.shape(index)
    if len(parameter) != len(shape):
        site.refuse("scales of blocks have another rank than the input")
    with site.b.once():
        for at, (size, count) in enumerate(zip(shape, parameter, strict=True)):
            needed = ceil_div(size, block) if at == axis else size
            require_equal(site, count, needed, f"scales and blocks along axis {at}")
    where_from = list(position)
    where_from[axis] = divide(position[axis], block, site.b.ranges)
    return site.read(index, where_from)


def _quantize(site: Site, position: Position) -> Expr:
    dtype, call = site.out_dtype(), site.call
    narrow = dtype in FLOAT8 or dtype == "f4e2m1"
    if dtype not in RANGES and not narrow:
        site.refuse(f"quantizing to {dtype} has no native code")
    if call.has(2) and site.dtype(2) != dtype:
        site.refuse("output_dtype is not the zero point's type")
    kind = _division_type(site)
    # Each operand, and the quotient, is rounded to the type of the division.
    x, scale = (
        computed(cast(v, kind)) for v in (site.read(0, position), _spread(site, 1, position))
    )
    by, offset = _known(site, 1), _known(site, 2) if call.has(2) else 0.0
    plain = by is not None and kind == "f32" and 2.0**-60 < by < 2.0**60 and dtype in INTEGERS
    if by is not None and offset is not None and plain:
        return stepped(site.b, x, by, int(offset), dtype)
    quotient = computed(cast(x / scale, kind))
    zero = _spread(site, 2, position) if call.has(2) else None
    if not narrow:
        return saturated(site.b, quotient, zero, dtype)
    moved = cast(quotient, "f32")
    if zero is not None:
        moved = moved + cast(zero, "f32")
    saturate = dtype == "f4e2m1" or call.int_attr("saturate", 1)
    return cast(moved, dtype, "" if saturate else "nosat")


def _known(site: Site, index: int) -> float | None:
    """The one number that an input is; None where it has several, or only a run knows it."""
    found = site.constant(index)
    return float(found.reshape(-1)[0]) if found is not None and found.size == 1 else None


def _division_type(site: Site) -> Dtype:
    """What `precision` asks for, else the scale's type, else float32."""
    asked = site.call.dtype_attr("precision") if site.call.int_attr("precision") else None
    kind = loop_dtype(asked) if asked is not None else site.dtype(1)
    return kind if kind in FLOATS | SMALL_FLOATS else "f32"


def _dequantize(site: Site, position: Position) -> Expr:
    dtype = site.out_dtype()
    wide: Dtype = "f64" if dtype == "f64" else "f32"
    source = site.dtype(0)
    if source not in INTEGERS | NARROW:
        site.refuse(f"dequantizing {source} has no native code")
    # Differences of short integers are exact in 32 bits; those of long ones need float64.
    exact: Dtype = "i32" if source in RANGES else "f32" if source in NARROW else "f64"
    centred = cast(site.read(0, position), exact)
    if site.call.has(2):
        centred = centred - cast(_spread(site, 2, position), exact)
    mode = "small" if exact == "i32" and wide == "f32" else ""
    return cast(centred, wide, mode) * cast(computed(_spread(site, 1, position)), wide)


def _dynamic_quantize(site: Site) -> None:
    """The extremes of blocks, then of all, then every element by the scale they give."""
    b, shape = site.b, site.shape(0)
    count = product(shape)
    blocks = ceil_div(count, BLOCK)
    lows, highs = (site.scratch("f32", blocks) for _ in range(2))

    @contextmanager
    def elements(block: Size) -> Iterator[Position]:
        start = block * BLOCK
        here = b.index(b.size(min_of(count - start, BLOCK)), BLOCK + 1)
        with b.loop(here, "vector") as turn:
            yield unflatten(place_at(b, start + turn, count), shape, b.ranges)

    with b.parallel((blocks,), BLOCK) as (block,):
        low, high = b.local(const(0, "f32")), b.local(const(0, "f32"))
        with elements(block) as at:
            b.set(low, minimum(low, site.operand(0, at)))
            b.set(high, maximum(high, site.operand(0, at)))
        b.store(lows, block, low)
        b.store(highs, block, high)
    scale, zero = _scale_of(b, blocks, lows, highs)
    site.store((), scale, 1)
    site.store((), zero, 2)
    with b.parallel((blocks,), 4 * BLOCK) as (block,), elements(block) as at:
        site.store(at, saturated(b, site.operand(0, at) / scale, zero, "u8"))


def _scale_of(b: Builder, blocks: Size, lows: str, highs: str) -> tuple[Expr, Expr]:
    """Scale and zero point of what lies between the extremes and 0; NaN is no extreme."""
    low, high = b.local(const(0, "f32")), b.local(const(0, "f32"))
    with b.loop(blocks, "vector") as block:
        b.set(low, minimum(low, b.load(lows, block)))
        b.set(high, maximum(high, b.load(highs, block)))
    bottom, top = (b.let(where(apply("isnan", v), 0.0, v)) for v in (low, high))
    scale = b.let(where(apply("eq", top, bottom), 1.0, (top - bottom) / 255.0))
    first = apply("round", minimum(maximum(0.0 - bottom / scale, 0), 255))
    return scale, b.let(cast(first, "u8"))


# Products


def _parameter(
    site: Site, index: int, factor: Shape, batch: Shape, at: Position, m: Size, n: Size, by: str
) -> Expr:
    """A scale or zero point: one for all, one a row of A or column of B, or shaped as the factor."""
    shape = site.shape(index)
    if product(shape) == 1:
        return site.read(index, (0,) * len(shape))
    if len(factor) < 2:
        site.refuse("one scale or zero point an element of a vector has no native code")
    place = m if by == "row" else n
    size = factor[-2] if by == "row" else factor[-1]
    if len(shape) == 1:
        with site.b.once():
            require_equal(site, shape[0], size, f"parameters and a factor's {by}s")
        return site.read(index, (place,))
    pair = ((m, 0), (factor[-2], 1)) if by == "row" else ((0, n), (1, factor[-1]))
    return site.read(index, site.spread(shape, (*at, *pair[0]), (*batch, *pair[1])))


def _moved(site: Site, contraction: Contraction, zeros: tuple[int, int], right: int) -> Contraction:
    """The factors less their zero points, in 16 bits: processors multiply those into 32 at once."""
    left_shape, right_shape, batch = site.shape(0), site.shape(right), contraction.batch

    def read_a(at: Position, m: Size, k: Size) -> Expr:
        value = cast(contraction.a(at, m, k), "i16")
        if not site.call.has(zeros[0]):
            return value
        zero = _parameter(site, zeros[0], left_shape, batch, at, m, 0, "row")
        return value - cast(zero, "i16")

    def read_b(at: Position, k: Size, n: Size) -> Expr:
        value = cast(contraction.b(at, k, n), "i16")
        if not site.call.has(zeros[1]):
            return value
        zero = _parameter(site, zeros[1], right_shape, batch, at, 0, n, "column")
        return value - cast(zero, "i16")

    return replace(contraction, a=read_a, b=read_b)


def _integer_sum(site: Site, inner: Size) -> Dtype:
    short = isinstance(inner, int) and inner <= EXACT_IN_32_BITS
    return "i32" if short else "i64"


def _multiply(site: Site, contraction: Contraction) -> None:
    """A few rows of A by a block of columns of B, whose sums lie side by side in the registers."""
    b, dtype = site.b, contraction.dtype
    rows, columns = contraction.rows, contraction.columns
    tile = min(ROWS, max(rows, 1)) if isinstance(rows, int) else ROWS
    width = min(LANES, max(columns, 1)) if isinstance(columns, int) else LANES
    extents = (*contraction.batch, ceil_div(rows, tile), ceil_div(columns, width))
    with b.parallel(extents, contraction.inner * tile * width) as (*batch, block, strip):
        at, first, start = tuple(batch), block * tile, strip * width
        here: Size = width
        if not (isinstance(columns, int) and columns % width == 0):
            here = b.index(b.size(min_of(columns - start, width)), width + 1)
        exact = isinstance(rows, int) and rows % tile == 0
        # A row past the end is the last one again; it is not stored.
        chosen = [
            first + n if exact else b.index(b.size(min_of(first + n, rows - 1)), rows)
            for n in range(tile)
        ]
        sums = [b.array(dtype, width) for _ in chosen]
        for total in sums:
            with b.loop(here, "vector") as lane:
                b.put(total, lane, const(0, dtype))
        with b.loop(contraction.inner) as k:
            factors = [b.let(contraction.a(at, m, k)) for m in chosen]
            with b.loop(here, "vector") as lane:
                other = b.let(contraction.b(at, k, place_at(b, start + lane, columns)))
                for total, factor in zip(sums, factors, strict=True):
                    term = cast(factor, dtype) * cast(other, dtype)
                    b.put(total, lane, b.element(total, lane) + term)
        for number, (m, total) in enumerate(zip(chosen, sums, strict=True)):
            inside = b.size(first + number) < b.size(rows)
            with nullcontext() if exact else b.when(inside), b.loop(here, "vector") as lane:
                n = place_at(b, start + lane, columns)
                value = b.let(b.element(total, lane))
                site.store(contraction.out(at, m, n), contraction.finish(at, m, n, value))


def _describe_integer(site: Site) -> Contraction:
    return replace(describe_matmul(site, 0, 1), dtype="i32")  # the result wraps, too


def _matmul_integer(site: Site) -> None:
    _multiply(site, _moved(site, _describe_integer(site), (2, 3), 1))


def _describe_qlinear(site: Site) -> Contraction:
    dtype = site.out_dtype()
    if not {dtype, site.dtype(0), site.dtype(3)} <= {"i8", "u8"}:
        site.refuse(f"QLinearMatMul of {site.dtype(0)} and {site.dtype(3)} has no native code")
    plain = describe_matmul(site, 0, 3)
    a, b = site.shape(0), site.shape(3)

    def finish(at: Position, m: Size, n: Size, total: Expr) -> Expr:
        def of_row(index: int) -> Expr:
            return _parameter(site, index, a, plain.batch, at, m, n, "row")

        column = _parameter(site, 4, b, plain.batch, at, m, n, "column")
        scale, by, y_scale = (cast(computed(v), "f32") for v in (of_row(1), column, of_row(6)))
        exact = cast(plain.finish(at, m, n, total), "f32") * ((scale * by) / y_scale)
        return saturated(site.b, exact, of_row(7), dtype)

    return replace(plain, dtype=_integer_sum(site, plain.inner), finish=finish)


def _qlinear_matmul(site: Site) -> None:
    _multiply(site, _moved(site, _describe_qlinear(site), (2, 5), 3))


QUANTIZE = Element(_quantize, weight=2, pointwise=True, narrow=True)
DEQUANTIZE = Element(_dequantize, pointwise=True, narrow=True, widens=True)
DYNAMIC_QUANTIZE = Nest(_dynamic_quantize)
MATMUL_INTEGER = IntegerProduct(Bytes(0, 2, 1, 3), _describe_integer, Nest(_matmul_integer))
QLINEAR_MATMUL = IntegerProduct(Bytes(0, 2, 3, 5), _describe_qlinear, Nest(_qlinear_matmul))
