"""Contractions of bytes become kernels of the backend, exactly.

    sum (x - zx) (w - zw)  =  sum x' w'  +  (shift - zx) sum w'        w' = w - zw, x' = x - shift

w' is packed beforehand, so the weights are constants and every w' fits a byte with a sign. x' is what a processor
multiplies: bytes of the sign that it wants, which a turned highest bit gives; shift is what that moves them by. The
sums of the columns of w' are a constant, and what the sums begin with; where only a run knows zx, the epilogue adds them.
A kernel that splits bytes takes off any shift: one near zx, for most numbers are near 0. Its weights are raised by 128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from sardonyx.loops.build import cast
from sardonyx.loops.fused import fuse_products
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Dtype, Expr, Kernel, Load, const
from sardonyx.loops.ranges import SMALL, Range, apply_ranges, range_of
from sardonyx.loops.steps import count_gelus
from sardonyx.ops.lowering import (
    Bytes,
    Contraction,
    IntegerConvolution,
    IntegerProduct,
    Position,
    Site,
    Window,
)
from sardonyx.plan.amx import with_byte_tiles
from sardonyx.plan.choice import (
    choose,
    convolution_problem,
    convolution_variants,
    expected_sizes,
    product_problem,
    product_variants,
    with_suitable_tile,
)
from sardonyx.plan.contract import INNER, complete, matrix_of, merge_rows, row_epilogue
from sardonyx.plan.convolve import Phase, channels_last_input, pixel_loop, with_room
from sardonyx.plan.graph import Array
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import (
    BATCH,
    COLUMN,
    ROW,
    SUMS,
    Begin,
    ConvolutionKernel,
    Matrix,
    ProductKernel,
)
from sardonyx.plan.origins import Packing
from sardonyx.plan.target import Target
from sardonyx.plan.winograd import BYTES, integer_winograd_is_possible, winograd_pays
from sardonyx.plan.write import NeedsBytes, PackedConstant, Writer, Written
from sardonyx.sizes import Size, ceil_div, product, symbol, symbols

__all__ = ["SPLIT", "is_whole_quads", "write_integer_convolution", "write_integer_product"]

_BYTES = ("u8", "i8")
SPLIT = ("gemm split", "direct split")
_SPLIT_PAYS = (
    12288  # products of a run of a row, and more: to split it takes longer than to widen it
)
_SPLIT_COLUMNS = 64  # and more of them, likewise
_SPLIT_CHANNELS = 16  # and more of them: images, of which little is near 0, have fewer
_CHANNELS = 16  # a register of bytes
_NEAREST = 64  # to the least and the largest byte, of a shift: then two bytes beyond it on the near side are never too large
_MOST_TERMS = 1 << 15  # products of two such numbers whose sum fits into 32 bits
_WHOLE_BITS = 0x4B400000  # of 1.5 * 2^23: from there on, the last bit of a float32 stands for 1
_MOST_WEIGHTS = 1 << 24  # whose sums are worth a bound
_MOST_LOOKED_AT = 1 << 16  # numbers of a constant that are looked at for their range


@dataclass(frozen=True)
class _Factors:
    """The weights, and what becomes of zero points.

    Attributes:
        zero: of the weights.
        lowest: of the bytes x'.
        moved: what the sums of the weights are multiplied with: shift - zx, as it is known before the run; None
            where only a run knows zx.
    """

    weights: ir.Value
    zero: int
    lowest: int
    shift: int
    moved: int | None

    @property
    def split(self) -> _Factors:
        """The same for a kernel that splits bytes, where x' has a sign."""
        first = self.lowest + self.shift  # of the bytes themselves
        at = 128 if self.moved is None else self.shift - self.moved - first
        shift = first + min(max(at, _NEAREST), 256 - _NEAREST)
        moved = None if self.moved is None else self.moved + shift - self.shift
        return replace(self, lowest=first - shift, shift=shift, moved=moved)


def write_integer_product(writer: Writer, group: Group, target: Target) -> Written | None:
    """The product by a kernel of the backend; None where it has none for it."""
    lowering = group.root.lowering
    assert isinstance(lowering, IntegerProduct)
    second = group.root.node.inputs[lowering.operands.b]
    if second is not None and second not in writer.graph.constants:
        return _write_of_runs(writer, group, lowering, target)
    factors = _factors(writer, group, lowering.operands, target)
    if factors is None:
        return None
    site = writer.site(group)
    contraction = replace(lowering.describe(site), dtype="i32")
    inner, columns = contraction.inner, contraction.columns
    if not isinstance(inner, int) or not isinstance(columns, int) or inner > _MOST_TERMS:
        return None
    batch, operands = product(contraction.batch), lowering.operands
    matrices = _matrices(writer, group, contraction, operands)
    if matrices is None:
        return None
    a, b = matrices
    numbers = (b.offset, b.by_row, b.by_column)
    if not all(isinstance(number, int) for number in numbers):
        return None
    whole = merge_rows(a, b, contraction.rows, batch)
    merged, a = whole is not None, whole or a
    rows = batch * contraction.rows if merged else contraction.rows
    expected = expected_sizes(target, writer.graph.definitions)
    problem = product_problem(
        1 if merged else batch,
        rows,
        columns,
        inner,
        a,
        b,
        packed=True,
        dtype="i32",
        expected=expected,
    )
    variants = product_variants(target, "i32", rows, inner, expected)
    variants = with_suitable_tile(target, variants, "i32", columns)
    if target.splits_bytes and variants[0] != "gemv":
        variants = _with_split(variants, "gemm split", inner, columns)
    variants = with_byte_tiles(target, variants, rows, inner, columns)
    choice = choose(target, problem, variants)
    if choice.variant in SPLIT:
        factors = factors.split
    panel = target.panel_of(choice.variant, "i32")
    plain = tuple(n for n in (*numbers, inner, columns) if isinstance(n, int))
    name = "quads-raised" if choice.variant in SPLIT else "quads"
    packing = Packing(name, (*plain, panel, factors.zero))
    packed = writer.extra(PackedConstant(factors.weights, packing), "i32", "in")
    weights = _rows_of(writer.graph.constants[factors.weights], plain)
    packed_sums = Packing("quad-sums", (*plain, panel, factors.zero))
    sums = _sums(writer, factors, weights, packed_sums, panel)
    writer.b.reset()
    corrected = _corrected(writer, site, factors, operands, sums)
    described = contraction.finish
    contraction = replace(
        contraction, finish=lambda at, m, n, total: described(at, m, n, corrected(n, total))
    )
    kernel = ProductKernel(
        1 if merged else batch,
        rows,
        columns,
        inner,
        a,
        None,
        writer.b.number_of(packed),
        panel,
        choice,
        "i32",
        _narrowed(writer, row_epilogue(writer, group, contraction, merged), sums),
        writer.b.number_of(sums.buffer) if sums.begun and sums.buffer else None,
        origin=factors.shift % 256 if choice.variant in SPLIT else 0,
    )
    sizes: tuple[Size, ...] = (kernel.batch, rows, a.offset, a.by_row, a.by_column)
    return writer.done(complete(kernel, sizes))


def _matrices(
    writer: Writer, group: Group, contraction: Contraction, operands: Bytes
) -> tuple[Matrix, Matrix] | None:
    """Both factors as they lie in memory; None where one is no matrix there."""
    ranges = writer.b.ranges
    ranges |= {BATCH: product(contraction.batch), ROW: contraction.rows}
    ranges |= {INNER: contraction.inner, COLUMN: contraction.columns}
    at = unflatten(symbol(BATCH), contraction.batch, ranges)
    first = contraction.a(at, symbol(ROW), symbol(INNER))
    a = matrix_of(writer, group, operands.a, first, ROW, INNER)
    second = contraction.b(at, symbol(INNER), symbol(COLUMN))
    b = matrix_of(writer, group, operands.b, second, INNER, COLUMN)
    return None if a is None or b is None else (a, b)


def _write_of_runs(
    writer: Writer, group: Group, lowering: IntegerProduct, target: Target
) -> Written | None:
    """The product of bytes that only a run knows, both of them; None where no kernel multiplies them.

    sum (x - zx) (y - zy)  =  sum x' y'  -  dx sum y'  +  K dx dy  -  dy sum x'        dx = zx - shift of x, dy likewise

    The kernel finds the sums of the columns as it packs y'; those of the rows, if any are needed, the epilogue.
    """
    operands = lowering.operands
    found = _both_zeros(writer, group, operands, target)
    if found is None:
        return None
    (shift, dx), dy = found
    contraction = lowering.describe(writer.site(group))
    inner, columns, batch = contraction.inner, contraction.columns, product(contraction.batch)
    if 0 in (inner, columns) or (isinstance(inner, int) and inner > _MOST_TERMS):
        return None
    if contraction.dtype != "i32":
        return None  # there may be more terms than fit into 32 bits
    matrices = _matrices(writer, group, contraction, operands)
    if matrices is None:
        return None
    x, y = matrices
    whole = merge_rows(x, y, contraction.rows, batch)
    merged, x = whole is not None, whole or x
    rows = batch * contraction.rows if merged else contraction.rows
    expected = expected_sizes(target, writer.graph.definitions)
    variants = product_variants(target, "i32", rows, inner, expected)
    if variants[0] == "gemv":
        return None  # to pack y takes longer than to multiply it
    variants = with_suitable_tile(target, variants, "i32", columns)
    count = 1 if merged else batch
    problem = product_problem(
        count, rows, columns, inner, x, y, packed=False, dtype="i32", expected=expected
    )
    choice = choose(target, problem, variants)
    panel = target.panel_of(choice.variant, "i32")
    wide = ceil_div(columns, panel) * panel
    copies = batch if BATCH in symbols(y.offset) else 1
    scratch = writer.scratch("i32", copies * wide * (ceil_div(inner, 4) + 1))
    sums = _sums_of_runs(x.dtype, y.dtype, inner, (shift, dx), dy)
    writer.b.reset()
    described, read = contraction.finish, contraction.a

    def finish(at: Position, m: Size, n: Size, total: Expr) -> Expr:
        total = total - sums.offset if sums.offset else total
        if dy:
            with writer.b.once():  # in front of the loop over columns
                row = writer.b.local(const(0, "i32"))
                with writer.b.loop(inner, "vector") as k:
                    writer.b.set(row, row + cast(read(at, m, k), "i32"))
                moved = writer.b.let((row - cast(writer.b.size(inner * shift), "i32")) * dy)
            total = total - moved
        return described(at, m, n, total)

    contraction = replace(contraction, finish=finish)
    kernel = ProductKernel(
        count,
        rows,
        columns,
        inner,
        x,
        y,
        writer.b.number_of(scratch),
        panel,
        choice,
        "i32",
        _narrowed(writer, row_epilogue(writer, group, contraction, merged), sums),
        begin=Begin(-dx, dy, sums.offset),
    )
    sizes = [count, rows, columns, inner]
    sizes += [size for one in (x, y) for size in (one.offset, one.by_row, one.by_column)]
    return writer.done(complete(kernel, tuple(sizes)))


def _both_zeros(
    writer: Writer, group: Group, operands: Bytes, target: Target
) -> tuple[tuple[int, int], int] | None:
    """(shift of x, dx), dy as of `_write_of_runs`; None where they are not known, or no kernel multiplies such bytes."""
    graph, inputs = writer.graph, group.root.node.inputs
    held = [graph.dtype(value) for n in (operands.a, operands.b) if (value := inputs[n])]
    if not set(held) <= set(_BYTES) or target.panel("i32", few=False) is None:
        return None
    zeros = [_constant(writer, group, n) for n in (operands.a_zero, operands.b_zero)]
    known = [
        0 if zero.size == 0 else int(zero.flat[0])
        for zero in zeros
        if zero is not None and zero.size <= 1
    ]
    if len(known) < 2:
        return None
    turned = (held[0] == "u8") != target.unsigned_bytes
    shift = (128 if held[0] == "u8" else -128) if turned else 0
    return (shift, known[0] - shift), known[1] - (128 if held[1] == "u8" else 0)


def _sums_of_runs(x: Dtype, y: Dtype, inner: Size, moved: tuple[int, int], dy: int) -> _Sums:
    """What is known of the kernel's sums; the epilogue does not need them to be small where it takes off more."""
    lowest = {"u8": 0, "i8": -128}

    def farthest(dtype: Dtype, zero: int) -> int:
        return max(abs(lowest[dtype] - zero), abs(lowest[dtype] + 255 - zero))

    if dy or not isinstance(inner, int):
        return _Sums(None, True, 0, None)
    most = inner * farthest(x, sum(moved)) * farthest(y, 128 if y == "u8" else 0)
    return _Sums(None, True, _WHOLE_BITS if most <= SMALL else 0, most)


def _rows_of(array: Array, numbers: Sequence[int]) -> Array:
    """The columns of a matrix in a constant, as rows."""
    offset, by_k, by_n, inner, columns = numbers
    flat = np.ascontiguousarray(array).reshape(-1)[offset:]
    strides = (by_n * flat.itemsize, by_k * flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (columns, inner), strides, writeable=False)


def is_whole_quads(a: Matrix, inner: Size) -> bool:
    """Whether every four values of K are a word of memory."""
    aligned = all(_by_four(size) for size in (a.offset, a.by_row, inner))
    return a.by_column == 1 and aligned


def _by_four(size: Size) -> bool:
    if isinstance(size, int):
        return size % 4 == 0
    return all(coefficient % 4 == 0 for _, coefficient in size.terms)


def write_integer_convolution(writer: Writer, group: Group, target: Target) -> Written | None:
    """The convolution by a kernel of the backend; None where it has none for it."""
    lowering, graph, node = group.root.lowering, writer.graph, group.root.node
    assert isinstance(lowering, IntegerConvolution)
    operands = lowering.operands
    factors = _factors(writer, group, operands, target)
    if factors is None:
        return None
    site = writer.site(group)
    window = lowering.describe(site)
    source, weights = node.inputs[operands.a], graph.constants[factors.weights]
    assert source is not None
    shape = graph.shape(source)
    pads = tuple(pad for pad in window.pads_begin if isinstance(pad, int))
    channels = weights.shape[1] * window.groups
    if not 3 <= len(shape) <= 5 or len(pads) != len(window.kernel) or shape[1] != channels:
        return None
    if weights[0].size > _MOST_TERMS or factors.moved is None:
        return None
    if not writer.is_stored(source):
        raise NeedsBytes(source)
    return _convolved(writer, group, target, factors, window, site)


def _convolved(
    writer: Writer,
    group: Group,
    target: Target,
    factors: _Factors,
    window: Window,
    site: Site,
) -> Written:
    lowering, graph, node = group.root.lowering, writer.graph, group.root.node
    assert isinstance(lowering, IntegerConvolution)
    assert factors.moved is not None
    source, weights = node.inputs[lowering.operands.a], graph.constants[factors.weights]
    assert source is not None
    shape, out, held = graph.shape(source), graph.shape(node.outputs[0]), graph.dtype(source)
    channels, filters = weights.shape[1] * window.groups, weights.shape[0]
    phases = [Phase(0, 1, size, 0, ()) for size in out[2:]]
    counts = tuple(phase.count for phase in phases)
    expected = expected_sizes(target, graph.definitions)
    problem = convolution_problem(shape, filters, counts, window, held, expected)
    alone = window.groups > 1 and window.groups == channels
    variants = (
        _depthwise_variants(target, window, channels, filters)
        if alone
        else convolution_variants(target, window, channels, held, "i32")
    )
    each = (channels // window.groups, filters // window.groups)
    variants = with_suitable_tile(target, variants, "i32", each[1])
    if target.splits_bytes and not alone and each[0] >= _SPLIT_CHANNELS:
        variants = _with_split(variants, "direct split", *each)
    variants = with_byte_tiles(target, variants, product(counts), *each)
    if integer_winograd_is_possible(target, window, channels, filters):
        pays = winograd_pays(target, channels, filters, shape[0], counts, BYTES)
        variants = ("winograd", *variants) if pays else (*variants, "winograd")
    choice = choose(target, problem, variants)
    if choice.variant in SPLIT:
        factors = factors.split
    buffer = channels_last_input(writer, source, held)
    assert factors.moved is not None
    zero = factors.shift - factors.moved
    if choice.variant == "depthwise dot":
        zero %= 256
        packing = Packing("depthwise-quads", (factors.zero,))
    elif choice.variant == "winograd":
        zero %= 256
        packing = Packing("winograd-bytes", (target.panel_of("winograd", "i32"), factors.zero))
    elif alone:
        # There are no four channels to multiply at once; zero points are taken off as pixels are read.
        packing, factors = Packing("depthwise-bytes", (factors.zero,)), replace(factors, moved=0)
    else:
        panel, zero = target.panel_of(choice.variant, "i32"), zero % 256
        name = "filter-quads-raised" if choice.variant in SPLIT else "filter-quads"
        packing = Packing(name, (window.groups, panel, factors.zero))
    of_bytes = packing.name == "depthwise-bytes"
    packed = writer.extra(
        PackedConstant(factors.weights, packing), "i8" if of_bytes else "i32", "in"
    )
    beyond = None if of_bytes else 0 if alone else target.panel_of(choice.variant, "i32")
    packed_sums = Packing("filter-sums", (factors.zero,))
    sums = _sums(writer, factors, weights.reshape(filters, -1), packed_sums, beyond)
    corrected = _corrected(writer, site, factors, lowering.operands, sums)
    finish = lowering.finish(site)
    with pixel_loop(writer, out, phases) as (position, lane):
        total: Expr = writer.b.let(Load(SUMS, lane, "i32"))
        site.store(position, finish(position, corrected(position[1], total)))
    epilogue, room = with_room(_narrowed(writer, writer.kernel(), sums), window)
    kernel = ConvolutionKernel(
        writer.b.number_of(buffer),
        writer.b.number_of(packed),
        shape[0],
        channels,
        filters,
        window.groups,
        window.kernel,
        window.strides,
        window.dilations,
        tuple(pad for pad in window.pads_begin if isinstance(pad, int)),
        shape[2:],
        counts,
        held,
        "i32",
        choice,
        epilogue,
        zero,
        writer.b.number_of(sums.buffer) if sums.begun and sums.buffer else None,
        origin=factors.shift % 256 if choice.variant in SPLIT else 0,
        room=room,
    )
    return writer.done(complete(kernel, (*shape, *counts, *(size for size, _, _ in room))))


def _with_split(variants: Sequence[str], name: str, run: int, columns: int) -> tuple[str, ...]:
    """Other kernels, and the one that splits: in front where a rule expects that it pays.

    Args:
        run: bytes of a row that are split at a time.
    """
    pays = columns >= _SPLIT_COLUMNS and run * columns >= _SPLIT_PAYS
    return (name, *variants) if pays else (*variants, name)


def _depthwise_variants(
    target: Target, window: Window, channels: int, filters: int
) -> tuple[str, ...]:
    short = len(window.kernel) == 2 and window.kernel[0] <= 4
    dots = target.column_dots and short and channels == filters and channels >= _CHANNELS
    return ("depthwise dot",) if dots else ("depthwise",)


def _factors(writer: Writer, group: Group, operands: Bytes, target: Target) -> _Factors | None:
    """What is known of the factors; None where no kernel multiplies them."""
    graph, inputs = writer.graph, group.root.node.inputs
    a, b = inputs[operands.a], inputs[operands.b]
    assert a is not None
    assert b is not None
    held = graph.dtype(a)
    if b not in graph.constants or held not in _BYTES or target.panel("i32", few=False) is None:
        return None
    zeros = _constant(writer, group, operands.b_zero)
    if zeros is None or len({int(zero) for zero in zeros.flat}) > 1:
        return None
    zero = int(zeros.flat[0]) if zeros.size else 0
    values = graph.constants[b]
    if values.size and not -128 <= int(values.min()) - zero <= int(values.max()) - zero <= 127:
        return None
    if not _is_one(writer, group, operands.a_zero):
        return None
    known = _constant(writer, group, operands.a_zero)
    at = None if known is None else int(known.flat[0]) if known.size else 0
    flipped = (held == "u8") != target.unsigned_bytes
    shift = (128 if held == "u8" else -128) if flipped else 0
    lowest = 0 if target.unsigned_bytes else -128
    return _Factors(b, zero, lowest, shift, None if at is None else shift - at)


def _constant(
    writer: Writer, group: Group, index: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """A zero point: empty where there is none, None where only a run knows it."""
    inputs = group.root.node.inputs
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        return np.zeros(0, np.int64)
    return writer.graph.constants.get(value)


def _is_one(writer: Writer, group: Group, index: int) -> bool:
    inputs = group.root.node.inputs
    value = inputs[index] if index < len(inputs) else None
    return value is None or product(writer.graph.shape(value)) == 1


@dataclass(frozen=True)
class _Sums:
    """What the sums of a kernel are beside those that were meant.

    Attributes:
        buffer: the sums of the weights; None where they are not needed.
        begun: whether the kernel's sums begin with them, so that they are right when they are done; all but `offset`.
        offset: what is too much in them: a float of so many bits has an integer for its last ones, and need not be
            converted.
        most: the largest magnitude that is possible; None where it is not known.
    """

    buffer: str | None
    begun: bool
    offset: int
    most: int | None


def _sums(
    writer: Writer, factors: _Factors, rows: Array, packing: Packing, beyond: int | None
) -> _Sums:
    """What the kernel's sums begin with, or are corrected by.

    Args:
        rows: the weights, a row for every column of the result.
        packing: of the sums of the weights, but for the factor and the offset.
        beyond: numbers behind them that the kernel may read; None where it begins with 0.
    """
    low = factors.lowest + (factors.moved or 0)
    most = _largest_sum(rows, factors.zero, (low, low + 255) if beyond is not None else (-255, 255))
    begun = beyond is not None and factors.moved is not None
    offset = _WHOLE_BITS if begun and most is not None and most <= SMALL else 0
    if factors.moved == 0 and not offset:
        return _Sums(None, False, 0, most)
    factor = 1 if factors.moved is None else factors.moved
    packing = replace(packing, numbers=(*packing.numbers, factor, offset, beyond or 0))
    buffer = writer.extra(PackedConstant(factors.weights, packing), "i32", "in")
    return _Sums(buffer, begun, offset, most)


def _narrowed(writer: Writer, epilogue: Kernel, sums: _Sums) -> Kernel:
    """The epilogue without what the ranges of constants and of the kernel's sums make superfluous; products fused."""
    known: dict[str, Range] = {}
    constants = writer.graph.constants
    for number, argument in enumerate(writer.arguments):
        array = constants.get(argument) if isinstance(argument, ir.Value) else None
        if array is not None and array.dtype == np.float32 and array.size <= _MOST_LOOKED_AT:
            found = range_of(array)
            known |= {} if found is None else {writer.b.name_of(number): found}
    if sums.most is not None:
        known[SUMS] = Range(float(sums.offset - sums.most), float(sums.offset + sums.most))
    narrow = count_gelus(apply_ranges(epilogue, known))
    return fuse_products(apply_ranges(narrow, known))


def _largest_sum(rows: Array, zero: int, factors: tuple[int, int]) -> int | None:
    """The largest magnitude of a sum over a row of weights, each times a number from the first factor to the second.

    None where there are so many weights that to look at them takes its time.
    """
    if not rows.size or rows.size > _MOST_WEIGHTS:
        return None
    weights = rows.astype(np.int16) - np.int16(zero)
    total = weights.sum(axis=1, dtype=np.int32)
    magnitude = np.abs(weights, out=weights).sum(axis=1, dtype=np.int32)
    above, below = (magnitude + total) // 2, (magnitude - total) // 2
    low, high = factors
    return int(max((high * above - low * below).max(), (high * below - low * above).max()))


def _corrected(
    writer: Writer, site: Site, factors: _Factors, operands: Bytes, sums: _Sums
) -> Callable[[Size, Expr], Expr]:
    """A sum of the kernel as the sum that was meant, for a column."""

    def correct(column: Size, total: Expr) -> Expr:
        if sums.buffer is None or sums.begun:
            return total - sums.offset if sums.offset else total
        zero = site.read(operands.a_zero, (0,) * len(site.shape(operands.a_zero)))
        factor = const(factors.shift, "i32") - cast(zero, "i32")
        return total + factor * writer.b.load(sums.buffer, column)

    return correct
