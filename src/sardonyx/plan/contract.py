"""Contractions become kernels of the backend, where it has one that suits.

A matrix product's operands may be views: their elements are asked for at symbolic positions, and what
comes back is a buffer with strides, or else the value has to be stored first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sardonyx.loops.index import coefficient, flatten, unflatten
from sardonyx.loops.nodes import Cast, Dtype, Expr, Kernel, Load, Var
from sardonyx.loops.walk import is_variable
from sardonyx.ops.lowering import Contraction, Position, Product
from sardonyx.plan.amx import AMX_PANEL, AMX_PARTS, parts_beforehand
from sardonyx.plan.choice import (
    HALF_WEIGHTS,
    choose,
    expected_sizes,
    product_problem,
    product_variants,
    with_amx,
    with_half_weights,
    with_suitable_tile,
)
from sardonyx.plan.group import Group
from sardonyx.plan.halves import HALF_ARITHMETIC, HALF_PANEL, halves_pay, with_halves
from sardonyx.plan.kernels import (
    BATCH,
    COLUMN,
    COUNT,
    ROW,
    SUMS,
    Choice,
    ConvolutionKernel,
    Matrix,
    ProductKernel,
)
from sardonyx.plan.laid import lay_operand, worth_laying
from sardonyx.plan.origins import Packing
from sardonyx.plan.target import Target
from sardonyx.plan.thin import is_thin, write_thin_product
from sardonyx.plan.write import NeedsBytes, PackedConstant, Writer, Written
from sardonyx.sizes import Size, ceil_div, product, symbol, symbols

__all__ = [
    "INNER",
    "as_one_matrix",
    "complete",
    "matrix_of",
    "merge_rows",
    "row_epilogue",
    "write_matrix_product",
]

INNER = "%k"


def write_matrix_product(writer: Writer, group: Group, target: Target) -> Written | None:
    """The product by a kernel of the backend; None where it has none for it."""
    lowering = group.root.lowering
    assert isinstance(lowering, Product)
    site = writer.site(group)
    contraction = lowering.describe(site)
    if contraction.dtype not in ("f32", "f64") or len(group.root.node.inputs) < 2:
        return None
    batch = product(contraction.batch)
    if 0 in (batch, contraction.rows, contraction.columns):
        return None  # nothing to compute
    writer.b.ranges.update({BATCH: batch, ROW: contraction.rows, INNER: contraction.inner})
    writer.b.ranges[COLUMN] = contraction.columns
    at = unflatten(symbol(BATCH), contraction.batch, writer.b.ranges)
    turned = _had_better_turn(writer, group, contraction)
    if turned:
        contraction = contraction.turned()
        writer.b.ranges.update({ROW: contraction.rows, COLUMN: contraction.columns})
    element = contraction.a(at, symbol(ROW), symbol(INNER))
    other = contraction.b(at, symbol(INNER), symbol(COLUMN))
    b, b_laid = _operand(writer, group, contraction, 1, other, turned)
    if contraction.columns == 1 and _is_looked_up(writer, element):
        return None  # the definition reads each element once, wherever it is
    a, a_laid = _operand(writer, group, contraction, 0, element, turned)
    if a is None or b is None or a.dtype != b.dtype:
        return None
    whole = merge_rows(a, b, contraction.rows, batch)
    merged, a = whole is not None, whole or a
    rows = batch * contraction.rows if merged else contraction.rows
    if target.panel(contraction.dtype, few=False) is None:
        return None
    thin = is_thin(rows, contraction.inner, contraction.columns, b)
    if thin and not turned and not _is_packed(writer, b, contraction):
        return write_thin_product(Writer(writer.graph, writer.stored, writer.orders), group, b)
    choice = _choice(writer, target, a, b, contraction, 1 if merged else batch, rows)
    panel = _panel(target, choice.variant, contraction)
    few = isinstance(rows, int) and rows <= target.few_rows
    fixed = isinstance(rows, int) and _is_packed(writer, b, contraction)
    widened = target.widens_halves and b.dtype == "f16" and fixed and not few
    held = contraction.dtype if widened else None
    packed, operand = _packed(writer, b, contraction, batch, panel, choice.variant, held)
    parts = parts_beforehand(
        choice.variant, 1 if merged else batch, rows, contraction.inner, contraction.columns
    )
    split = None if parts is None else writer.b.number_of(writer.scratch("bf16", parts))
    writer.b.reset()
    epilogue = row_epilogue(writer, group, contraction, merged)
    kernel = ProductKernel(
        1 if merged else batch,
        rows,
        contraction.columns,
        contraction.inner,
        a,
        operand,
        packed,
        panel,
        choice,
        contraction.dtype,
        epilogue,
        widened=widened,
        split=split,
    )
    sizes: list[Size] = [kernel.batch, rows, kernel.columns, kernel.inner]
    for matrix in (a, operand):
        if matrix is not None:
            sizes += [matrix.offset, matrix.by_row, matrix.by_column]
    before = [one for one in (a_laid, b_laid) if one is not None]
    return _behind(before, writer.done(complete(kernel, tuple(sizes))))


def _behind(before: Sequence[Written], last: Written) -> Written:
    """All of them in this order, as one."""
    if not before:
        return last
    first, *rest = before
    return replace(first, more=(*rest, last))


def _had_better_turn(writer: Writer, group: Group, contraction: Contraction) -> bool:
    """Whether neighbours in memory are of one column of the result, and not of one row.

    Where `b` is a constant it stays `b`, which is packed before the run.
    """
    value = group.root.node.inputs[contraction.operands[1]]
    worth = all(worth_laying(writer, group, contraction, side) for side in (0, 1))
    if value in writer.graph.constants or not worth:
        return False
    shape, order = writer.graph.shape(group.root.node.outputs[0]), writer.order(group.result)
    if order != tuple(range(len(order))):
        return False
    at = unflatten(symbol(BATCH), contraction.batch, writer.b.ranges)
    place = flatten(contraction.out(at, symbol(ROW), symbol(COLUMN)), shape)
    down, along = coefficient(place, ROW)[0], coefficient(place, COLUMN)[0]
    return down == 1 and along != 1


def _operand(
    writer: Writer,
    group: Group,
    contraction: Contraction,
    side: int,
    element: Expr,
    turned: bool,
) -> tuple[Matrix | None, Written | None]:
    """An operand as it lies or, where that is no matrix and worth it, as a kernel lays it out."""
    row, column = (INNER, COLUMN) if side else (ROW, INNER)
    worth = worth_laying(writer, group, contraction, side)
    try:
        found = matrix_of(writer, group, contraction.operands[side], element, row, column)
    except NeedsBytes:
        if not worth:
            raise
        found = None
    if found is not None or not worth:
        return found, None
    laid = lay_operand(writer, group, contraction, side, turned=turned)
    return laid.matrix, laid.written


def _is_looked_up(writer: Writer, element: Expr) -> bool:
    """Whether an operand's rows are runs that begin where only data says."""
    found = _load(writer, element)
    if found is None:
        return False
    along, rest = coefficient(found.offset, INNER)
    down, offset = coefficient(rest, ROW)
    names = {name for name in symbols(offset) if is_variable(name)} - {BATCH}
    return along == 1 and bool(names) and not any(map(is_variable, symbols(down)))


def _panel(target: Target, variant: str, contraction: Contraction) -> int:
    """Columns of the packed operand's panels."""
    if variant in AMX_PARTS:
        return AMX_PANEL
    if variant in HALF_ARITHMETIC:
        return HALF_PANEL
    return target.panel_of(variant, contraction.dtype)


def _choice(
    writer: Writer,
    target: Target,
    a: Matrix,
    b: Matrix,
    contraction: Contraction,
    batch: Size,
    rows: Size,
) -> Choice:
    expected = expected_sizes(target, writer.graph.definitions)
    problem = product_problem(
        batch,
        rows,
        contraction.columns,
        contraction.inner,
        a,
        b,
        packed=_is_packed(writer, b, contraction),
        dtype=contraction.dtype,
        expected=expected,
    )
    inner, columns = contraction.inner, contraction.columns
    variants = product_variants(target, contraction.dtype, rows, inner, expected)
    variants = with_suitable_tile(target, variants, contraction.dtype, columns)
    if a.dtype == "f32" and _is_packed(writer, b, contraction):
        variants = with_amx(target, variants, rows, inner, columns)
        variants = with_half_weights(target, variants, rows)
        pays = halves_pay(rows, inner, columns)
        variants = with_halves(target, variants, "gemm f16", pays=pays)
    return choose(target, problem, variants)


def matrix_of(
    writer: Writer, group: Group, index: int, element: Expr, row: str, column: str
) -> Matrix | None:
    """An operand by the strides of its element (row, column); None where it is no plain load."""
    value = group.root.node.inputs[index]
    assert value is not None
    found = _load(writer, element)
    if found is None:
        if value in writer.graph.producer and not writer.is_stored(value):
            raise NeedsBytes(value)
        return None
    by_row, rest = coefficient(found.offset, row)
    by_column, offset = coefficient(rest, column)
    strides = symbols(by_row) | symbols(by_column)
    # What the loops around an element compute, as an index that is looked up, no kernel of the backend knows.
    inner = {name for name in strides | symbols(offset) if is_variable(name)} - {BATCH}
    if inner or BATCH in strides:
        if value in writer.graph.producer and not writer.is_stored(value):
            raise NeedsBytes(value)
        return None
    return Matrix(writer.b.number_of(found.buffer), offset, by_row, by_column, found.dtype)


def _load(writer: Writer, element: Expr) -> Load | None:
    """The load that a name stands for; small floats may be widened on the way."""
    while not isinstance(element, Load):
        if isinstance(element, Cast) and element.value.dtype in ("f16", "bf16"):
            element = element.value
        elif isinstance(element, Var):
            bound = writer.b.bound(element.name)
            if bound is None:
                return None
            element = bound
        else:
            return None
    return element


def as_one_matrix(a: Matrix, rows: Size, batch: Size) -> Matrix | None:
    """The rows of all products as those of one matrix; None where they do not follow each other in memory.

    A single row has no distance to a next one: it takes that of the products.
    """
    if batch == 1:
        return a
    distance, offset = coefficient(a.offset, BATCH)
    if BATCH in symbols(offset):
        return None
    if rows == 1:
        return replace(a, offset=offset, by_row=distance)
    return replace(a, offset=offset) if distance == rows * a.by_row else None


def merge_rows(a: Matrix, b: Matrix, rows: Size, batch: Size) -> Matrix | None:
    """`a` as one matrix, where all products share the other operand."""
    shared = batch == 1 or BATCH not in symbols(b.offset)
    return as_one_matrix(a, rows, batch) if shared else None


def _is_packed(writer: Writer, b: Matrix, contraction: Contraction) -> bool:
    """Whether the operand is a constant that can be packed before any run."""
    numbers = (b.offset, b.by_row, b.by_column, contraction.inner, contraction.columns)
    constant = writer.arguments[b.buffer] in writer.graph.constants
    return constant and all(isinstance(number, int) for number in numbers)


def _packed(
    writer: Writer,
    b: Matrix,
    contraction: Contraction,
    batch: Size,
    panel: int,
    variant: str,
    widened: Dtype | None,
) -> tuple[int, Matrix | None]:
    """The buffer of the packed operand: a constant made now, or scratch and what to fill it from."""
    numbers = (b.offset, b.by_row, b.by_column, contraction.inner, contraction.columns)
    if _is_packed(writer, b, contraction):
        value = writer.value_of(b.buffer)
        plain = tuple(n for n in numbers if isinstance(n, int))
        packing = Packing("panels", (*plain, panel), widened)
        if variant == "amx10":
            packing = Packing("digits", plain)
        elif variant in AMX_PARTS:
            packing = Packing("tiles", (*plain, AMX_PARTS[variant]))
        elif variant in HALF_WEIGHTS:
            packing = Packing("panels-bf16", (*plain, panel))
        elif variant in HALF_ARITHMETIC:
            packing = Packing("panels-f16", (*plain, panel))
        buffer = writer.extra(PackedConstant(value, packing), widened or b.dtype, "in")
        return writer.b.number_of(buffer), None
    copies = batch if BATCH in symbols(b.offset) else 1
    size = copies * ceil_div(contraction.columns, panel) * panel * contraction.inner
    return writer.b.number_of(writer.scratch(b.dtype, size)), b


def row_epilogue(writer: Writer, group: Group, contraction: Contraction, merged: bool) -> Kernel:
    """What happens to the sums of a row, `COUNT` columns from `COLUMN` on."""
    b, site = writer.b, writer.site(group)
    if merged:
        ranges = {ROW: product(contraction.batch) * contraction.rows}
        b.ranges.update(ranges)
        *batch, row = unflatten(symbol(ROW), (*contraction.batch, contraction.rows), b.ranges)
        at: Position = tuple(batch)
    else:
        at = unflatten(symbol(BATCH), contraction.batch, b.ranges)
        row = symbol(ROW)
    at = tuple(b.named(size, whole) for size, whole in zip(at, contraction.batch, strict=True))
    row = b.named(row, contraction.rows)
    with b.loop(symbol(COUNT), "vector") as lane:
        column = b.index(b.size(symbol(COLUMN) + lane), contraction.columns)
        total: Expr = b.let(Load(SUMS, lane, contraction.dtype))
        finished = contraction.finish(at, row, column, total)
        site.store(contraction.out(at, row, column), finished)
    return writer.kernel()


def complete(
    kernel: ProductKernel | ConvolutionKernel, sizes: tuple[Size, ...]
) -> ProductKernel | ConvolutionKernel:
    """The kernel with all its symbols, those of its own sizes among them."""
    own = kernel.epilogue
    names = set(own.symbols) | {name for size in sizes for name in symbols(size)}
    listed = tuple(sorted(name for name in names if not is_variable(name)))
    return replace(kernel, epilogue=Kernel(own.buffers, listed, own.body, own.reasons))
