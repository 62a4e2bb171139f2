"""Contraction kernels of a plan as C: a template of `kernels`, behind the epilogue that it calls.

static inline void store_row(env, b, m, n, count, sums)      from the plan's loops
static inline void store_halves(…)                           the same for sums that are float16, if any are
static void contract(run, env, a, b, scratch, n)             from the template
int32_t k(run, p, n)                                         calls it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sardonyx.backends.c.ahead import render_asking
from sardonyx.backends.c.kernels.amx import VARIANTS, amx
from sardonyx.backends.c.kernels.amx_conv import amx_conv
from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec, depthwise
from sardonyx.backends.c.kernels.digits import DigitSpec, digit_product
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, product
from sardonyx.backends.c.kernels.half import half_convolution, half_product
from sardonyx.backends.c.kernels.half_winograd import half_winograd
from sardonyx.backends.c.kernels.integer_conv import integer_conv
from sardonyx.backends.c.kernels.integer_depthwise import integer_depthwise
from sardonyx.backends.c.kernels.integer_winograd import integer_winograd
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.kernels.winograd import winograd
from sardonyx.backends.c.render import HEADERS, is_short, render_epilogue
from sardonyx.backends.c.sizes import render_size
from sardonyx.backends.c.variants import cut_of, target_of
from sardonyx.plan.amx import BYTE_TILES, depth_of, runs_of
from sardonyx.plan.choice import HALF_WEIGHTS
from sardonyx.plan.coded import FEW_ROWS
from sardonyx.plan.halves import HALF_ARITHMETIC
from sardonyx.plan.integers import SPLIT, is_whole_quads
from sardonyx.plan.kernels import (
    BATCH,
    CodedWeights,
    ConvolutionKernel,
    KernelSource,
    Matrix,
    ProductKernel,
)
from sardonyx.sizes import Size, ceil_div

__all__ = ["extent", "namer", "render_contraction", "target_of", "variant_of"]

_OF_HALVES, _SOON = "store_halves", "store_row_soon"


def render_contraction(kernel: ProductKernel | ConvolutionKernel, name: str, isa: Isa) -> str:
    """The whole translation unit."""
    short = _is_short(kernel, isa)
    epilogue = render_epilogue(kernel.epilogue, "store_row", kernel.dtype, inlined=short)
    if isinstance(kernel, ProductKernel):
        text = _product(kernel, isa)
        buffers = (kernel.a.buffer, kernel.packed if kernel.b is None else kernel.b.buffer)
        scratch = "0" if kernel.b is None else f"p[{kernel.packed}]"
        scratch = scratch if kernel.coded is None else f"p[{kernel.coded.scratch}]"
    else:
        text = _convolution(kernel, isa)
        buffers, scratch = (kernel.input, kernel.weights), "0"
    if kernel.split is not None:
        scratch = f"p[{kernel.split}]"
    if f"{_OF_HALVES}(" in text:
        epilogue += "\n" + render_epilogue(kernel.epilogue, _OF_HALVES, "f16")
    if f"{_SOON}(" in text:
        epilogue += "\n" + render_asking(kernel.epilogue, _SOON, "f32")
    count = len(kernel.epilogue.buffers)
    # Only what is read: a matrix that was packed into another has its place, and need not be there.
    used = (epilogue + text, *(f"p[{number}]" for number in buffers), scratch)
    given = ", ".join(
        f"p[{n}]" if any(f"p[{n}]" in part for part in used) else "0" for n in range(count)
    )
    coarse = "#define SX_COARSE\n" if kernel.choice.variant in HALF_ARITHMETIC else ""
    flushed = kernel.choice.flushes and kernel.dtype == "f32"
    headers = HEADERS + ('#include "denormals.h"\n' if flushed else "")
    flush = "    SX_FLUSHED\n" if flushed else ""
    checks = _checks(kernel) if isinstance(kernel, ConvolutionKernel) else ""
    return f"""\
{coarse}{headers}
struct env {{ sx_run *run; void *p[{count}]; const int64_t *n; }};

{epilogue}
{text}
int32_t {name}(sx_run *run, void *const *p, const int64_t *n) {{
    const struct env env = {{run, {{{given}}}, n}};
{checks}{flush}    contract(run, &env, p[{buffers[0]}], p[{buffers[1]}], {scratch}, n);
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}}
"""


def _checks(kernel: ConvolutionKernel) -> str:
    """C text that refuses images on which no window fits."""
    name_of = namer(kernel.symbols)
    return "".join(
        f"    if ({render_size(size, name_of)} < {span}) "
        f"return sx_fail(run, {reason}, {span}, {render_size(size, name_of)});\n"
        for size, span, reason in kernel.room
    )


def namer(symbols: tuple[str, ...]) -> Callable[[str], str]:
    """How symbols are called in C."""
    numbers = {name: f"n[{number}]" for number, name in enumerate(symbols)}
    return lambda name: "b" if name == BATCH else numbers[name]


def extent(size: Size, name_of: Callable[[str], str]) -> int | str:
    """A size as templates take it: a number, or C text."""
    return size if isinstance(size, int) else f"({render_size(size, name_of)})"


def _product(kernel: ProductKernel, isa: Isa) -> str:
    name_of = namer(kernel.symbols)

    def operand(matrix: Matrix) -> Operand:
        return Operand(
            extent(matrix.by_row, name_of),
            extent(matrix.by_column, name_of),
            render_size(matrix.offset, name_of),
            matrix.dtype,
        )

    if kernel.dtype == "i32":
        return _integer_product(kernel, isa)
    if kernel.coded is not None:
        return _coded_product(kernel, kernel.coded, isa)
    weights = kernel.dtype if kernel.widened else kernel.a.dtype
    weights = "bf16" if kernel.choice.variant in HALF_WEIGHTS else weights
    spec = GemmSpec(
        m=extent(kernel.rows, name_of),
        n=extent(kernel.columns, name_of),
        k=extent(kernel.inner, name_of),
        a=operand(kernel.a),
        b=Packed(dtype=weights) if kernel.b is None else operand(kernel.b),
        batch=extent(kernel.batch, name_of),
    )
    if kernel.choice.variant in VARIANTS:
        split = kernel.split is not None
        return amx("contract", spec, "store_row", kernel.choice.variant, beforehand=split)
    if kernel.choice.variant == "gemm f16":
        return half_product("contract", spec, "store_row", isa, _OF_HALVES)
    cut = cut_of(kernel.choice.variant, isa, kernel.dtype)
    return product(
        "contract",
        spec,
        "store_row",
        isa,
        cut.tile,
        cut.depth,
        in_registers=_is_short(kernel, isa),
        asks=_asks(kernel),
    )


def _coded_product(kernel: ProductKernel, coded: CodedWeights, isa: Isa) -> str:
    name_of = namer(kernel.symbols)
    assert isinstance(kernel.inner, int)
    assert isinstance(kernel.columns, int)
    spec = DigitSpec(
        extent(kernel.rows, name_of),
        kernel.columns,
        kernel.inner,
        render_size(kernel.a.offset, name_of),
        extent(kernel.a.by_row, name_of),
        coded.bits,
        coded.block,
        coded.shared,
        coded.zero,
        coded.digits,
        coded.scales,
        coded.zeros,
        FEW_ROWS,
    )
    return digit_product("contract", spec, "store_row", isa)


def _integer_product(kernel: ProductKernel, isa: Isa) -> str:
    name_of = namer(kernel.symbols)
    split = kernel.choice.variant in SPLIT
    flipped = (kernel.a.dtype == "u8") != (isa.unsigned_bytes or split)
    a, whole = kernel.a, is_whole_quads(kernel.a, kernel.inner)
    unit = 4 if whole else 1

    def cut(size: Size) -> int | str:
        return extent(size if unit == 1 else size // unit, name_of)

    def bytes_of(matrix: Matrix) -> Operand:
        by_row, by_column = extent(matrix.by_row, name_of), extent(matrix.by_column, name_of)
        offset = render_size(matrix.offset, name_of)
        return Operand(by_row, by_column, offset, matrix.dtype, flipped=matrix.dtype == "u8")

    operand = Operand(
        cut(a.by_row),
        extent(a.by_column, name_of),
        render_size(a.offset if unit == 1 else a.offset // unit, name_of),
        "i32" if whole else "u8",
        flipped,
        kernel.origin ^ 0x80 * flipped,
    )
    spec = GemmSpec(
        m=extent(kernel.rows, name_of),
        n=extent(kernel.columns, name_of),
        k=extent(ceil_div(kernel.inner, 4), name_of),
        a=operand,
        b=Packed(dtype="i32") if kernel.b is None else bytes_of(kernel.b),
        batch=extent(kernel.batch, name_of),
        count=extent(kernel.inner, name_of),
        begin=kernel.begin,
    )
    cut_by = cut_of(kernel.choice.variant, isa, "i32")
    tile, depth = cut_by.tile, cut_by.depth
    return product(
        "contract",
        spec,
        "store_row",
        isa,
        tile,
        depth,
        start=_start(kernel),
        split=split,
        in_tiles=kernel.choice.variant in BYTE_TILES,
        in_registers=_is_short(kernel, isa),
    )


def _is_short(kernel: ProductKernel | ConvolutionKernel, isa: Isa) -> bool:
    """Whether the epilogue may take sums out of registers."""
    suits = kernel.dtype == "i32" or (kernel.dtype == "f32" and isa.finishes_floats)
    return suits and is_short(kernel.epilogue)


def _asks(kernel: ProductKernel | ConvolutionKernel) -> str:
    """The function that asks for the memory of a row of results; "" where there is nothing to ask for."""
    floats = kernel.dtype == "f32"
    return _SOON if floats and render_asking(kernel.epilogue, _SOON, "f32") else ""


def _start(kernel: ProductKernel | ConvolutionKernel) -> str:
    """C text of where the numbers are that sums begin with."""
    return "" if kernel.start is None else f"(const int32_t *)job->env->p[{kernel.start}]"


def variant_of(kernel: KernelSource) -> str:
    """Which template a contraction is printed by, for people; "" for plain loops."""
    if isinstance(kernel, ProductKernel):
        return kernel.choice.variant
    if isinstance(kernel, ConvolutionKernel):
        variant = kernel.choice.variant
        said = variant in ("direct wide", "direct narrow") or kernel.dtype == "i32"
        if said or variant.partition(" ")[0] != "direct":
            return variant
        way = "wide" if _conv_spec(kernel, namer(kernel.symbols)).wide else "narrow"
        return variant.replace("direct", f"direct {way}", 1)
    return ""


def _convolution(kernel: ConvolutionKernel, isa: Isa) -> str:
    name_of = namer(kernel.symbols)
    if kernel.choice.variant in VARIANTS:
        tiled = _conv_spec(kernel, name_of)
        split = kernel.split is not None
        variant = kernel.choice.variant
        runs = runs_of(kernel.kernel, kernel.dilations, kernel.channels, depth_of(variant))
        return amx_conv("contract", tiled, "store_row", variant, runs, beforehand=split)
    if kernel.choice.variant == "direct f16":
        spec_of_halves = _conv_spec(kernel, name_of)
        return half_convolution("contract", spec_of_halves, "store_row", isa, _OF_HALVES)
    if kernel.dtype == "i32" and kernel.choice.variant == "winograd":
        return integer_winograd(
            "contract",
            _conv_spec(kernel, name_of),
            "store_row",
            isa,
            padding=kernel.padding,
            flipped=kernel.stored == "u8",
            start=_start(kernel),
        )
    if kernel.dtype == "i32" and not kernel.depthwise:
        cut = cut_of(kernel.choice.variant, isa, "i32")
        split = kernel.choice.variant in SPLIT
        flipped = (kernel.stored == "u8") != (isa.unsigned_bytes or split)
        spec_of_bytes = _conv_spec(kernel, name_of)
        return integer_conv(
            "contract",
            spec_of_bytes,
            "store_row",
            isa,
            cut.tile,
            padding=kernel.padding,
            flipped=flipped,
            less=kernel.origin ^ 0x80 * flipped,
            depth=cut.depth,
            start=_start(kernel),
            split=split,
            in_tiles=kernel.choice.variant in BYTE_TILES,
            in_registers=_is_short(kernel, isa),
        )
    if kernel.choice.variant == "winograd f16":
        return half_winograd("contract", _conv_spec(kernel, name_of), "store_row", isa)
    if kernel.choice.variant.partition(" ")[0] == "winograd":
        tile = cut_of(kernel.choice.variant, isa, "f32").tile
        return winograd("contract", _conv_spec(kernel, name_of), "store_row", isa, tile)
    grouped = kernel.choice.variant == "grouped"
    if not kernel.depthwise and not grouped:
        cut = cut_of(kernel.choice.variant, isa, kernel.dtype)
        direct = replace(_conv_spec(kernel, name_of), copies=cut.copies)
        return conv(
            "contract",
            direct,
            "store_row",
            isa,
            cut.tile,
            cut.depth,
            in_registers=_is_short(kernel, isa),
            asks=_asks(kernel),
        )
    window, images = _window(kernel, name_of), extent(kernel.images, name_of)
    many = kernel.filters // kernel.channels
    weights = "i8" if kernel.dtype == "i32" else kernel.stored
    spec = DepthwiseSpec(
        images,
        kernel.channels,
        window,
        many,
        kernel.stored,
        weights,
        kernel.padding,
        in_halves=kernel.choice.variant == "depthwise f16",
        ending=kernel.ending,
        each=kernel.channels // kernel.groups,
    )
    if kernel.choice.variant == "depthwise dot":
        flipped = (kernel.stored == "u8") != isa.unsigned_bytes
        return integer_depthwise(
            "contract",
            spec,
            "store_row",
            flipped=flipped,
            start=_start(kernel),
            in_registers=_is_short(kernel, isa),
        )
    return depthwise("contract", spec, "store_row", isa)


def _conv_spec(kernel: ConvolutionKernel, name_of: Callable[[str], str]) -> ConvSpec:
    return ConvSpec(
        extent(kernel.images, name_of),
        kernel.channels,
        kernel.filters,
        _window(kernel, name_of),
        kernel.groups,
        kernel.stored,
        kernel.stored,
        in_halves=kernel.stored == "f16" and kernel.choice.variant in HALF_ARITHMETIC,
        ending=kernel.ending,
    )


def _window(kernel: ConvolutionKernel, name_of: Callable[[str], str]) -> Window:
    return Window(
        kernel.kernel,
        kernel.strides,
        kernel.dilations,
        kernel.pads_begin,
        tuple(extent(size, name_of) for size in kernel.sizes),
        tuple(extent(size, name_of) for size in kernel.output_sizes),
    )
