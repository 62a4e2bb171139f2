"""Which kernel of the backend computes a contraction: what a machine measured, else what a rule says.

A problem is a contraction's sizes and types as one line of text, the same wherever it occurs:

    product f32 1 of 128×768×3072, A by 768×1, B packed
    convolution f32 1×64×56×56 → 64×56×56, kernel 3×3, strides 1×1, dilations 1×1, groups 1

A size that only a run knows is measured at what it is expected to be, as `128?`: the kernel is another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.amx import AMX_PARTS, amx_pays, amx_variants
from sardonyx.plan.halves import HALF_ARITHMETIC
from sardonyx.plan.kernels import BATCH, Choice, Matrix
from sardonyx.plan.target import Target
from sardonyx.sizes import Expr, Size, substitute, symbols

__all__ = [
    "HALF_WEIGHTS",
    "choose",
    "convolution_problem",
    "convolution_variants",
    "expected_sizes",
    "product_problem",
    "product_variants",
    "with_amx",
    "with_half_weights",
    "with_suitable_tile",
]

HALF_WEIGHTS = (
    "gemm bf16",
    "gemv bf16",
)  # kernels of float32 whose weights are rounded to bfloat16
WORTH = 0.97  # of the favourite's time: what is gained by less may be chance
_NEAR_BORDER = 4  # times more or fewer channels than those where the rule changes its mind


def choose(target: Target, problem: str | None, variants: Sequence[str]) -> Choice:
    """One of the variants, of which the rule likes the first best.

    Args:
        problem: None where a size is not known before the run, so that nothing could be measured.
    """
    return replace(_choose(target, problem, variants), flushes=target.precision != "strict")


def _choose(target: Target, problem: str | None, variants: Sequence[str]) -> Choice:
    favourite, names = variants[0], tuple(variants)
    by_rule = "by rule" + _falls_short(target, names)
    if len(variants) == 1:
        return Choice(favourite, "the only one", problem, names)
    if problem is None:
        return Choice(favourite, f"{by_rule}: sizes are known when it runs", problem, names)
    measured = dict(target.timings).get(problem, ())
    seconds = {name: time for name, time in measured if name in variants}
    if favourite not in seconds or len(seconds) < 2:
        return Choice(favourite, by_rule, problem, names)
    best = min(seconds, key=lambda name: (seconds[name], names.index(name)))
    if seconds[best] > WORTH * seconds[favourite]:
        best = favourite
    other = min((name for name in seconds if name != best), key=lambda name: seconds[name])
    if best != favourite:
        other = favourite
    why = f"measured: {_milliseconds(seconds[best])}, {other} {_milliseconds(seconds[other])}"
    return Choice(best, why, problem, names, measured=True)


def _falls_short(target: Target, variants: Sequence[str]) -> str:
    """Says so where a lower precision was allowed, and no kernel makes use of it."""
    lower = {*AMX_PARTS, *HALF_WEIGHTS, *HALF_ARITHMETIC}
    if target.precision in ("strict", "float32") or lower.intersection(variants):
        return ""
    return f", as float32: no kernel for {target.precision} here"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def expected_sizes(
    target: Target, definitions: Sequence[tuple[str, Size]] = ()
) -> Mapping[str, int]:
    """What symbols are expected to be: those that were told, and the names that stand for long sizes."""
    known = dict(target.sizes)
    for name, size in definitions:
        found = substitute(size, known)
        if isinstance(found, int):
            known[name] = found
    return known


# Products


def product_problem(
    batch: Size,
    rows: Size,
    columns: Size,
    inner: Size,
    a: Matrix,
    b: Matrix,
    *,
    packed: bool,
    dtype: Dtype,
    expected: Mapping[str, int],
) -> str | None:
    """The problem of a product; None where a size is not known."""
    sizes = [batch, rows, inner, columns, a.by_row, a.by_column]
    if not packed:
        sizes += [b.by_row, b.by_column]
    shown = _shown(sizes, expected)
    if shown is None:
        return None
    count, height, depth, width, *strides = shown
    types = dtype if a.dtype == dtype else f"{a.dtype} in {dtype}"
    each = "each " if BATCH in symbols(b.offset) else ""
    operand = "packed" if packed else f"by {'×'.join(strides[2:])}"
    return (
        f"product {types} {count} of {height}×{depth}×{width}, "
        f"A by {'×'.join(strides[:2])}, {each}B {operand}"
    )


def product_variants(
    target: Target, dtype: Dtype, rows: Size, inner: Size, expected: Mapping[str, int]
) -> tuple[str, ...]:
    """The kernels for a product, the rule's favourite first."""
    depth = substitute(inner, expected)
    depths = target.depths(dtype, depth) if isinstance(depth, int) else ()
    if isinstance(rows, int) and rows <= target.few_rows:
        return ("gemv", "gemm", *(f"{name} {cut}" for name in ("gemv", "gemm") for cut in depths))
    return ("gemm", "gemv", *(f"gemm {cut}" for cut in (*target.tiles(dtype), *depths)))


def with_suitable_tile(
    target: Target, variants: Sequence[str], dtype: Dtype, columns: Size
) -> tuple[str, ...]:
    """Kernels, the favourite in front with the tile that suits so many columns."""
    if isinstance(columns, Expr):
        return tuple(variants)
    name = target.cheapest(variants[0], dtype, columns)
    return (name, *(one for one in variants if one != name))


def with_amx(
    target: Target, plain: Sequence[str], rows: Size, inner: Size, columns: Size, runs: int = 1
) -> tuple[str, ...]:
    """Other kernels, and those through AMX tiles: in front where a rule expects that they pay.

    For operands of float32 alone, one of them packed beforehand.
    """
    few = isinstance(rows, int) and rows <= target.few_rows
    if few or not isinstance(inner, int) or not isinstance(columns, int):
        return tuple(plain)
    found = amx_variants(target)
    pays = [name for name in found if amx_pays(name, plain[0], rows, inner, columns, runs)]
    return (*pays, *plain, *(name for name in found if name not in pays))


def with_half_weights(target: Target, plain: Sequence[str], rows: Size) -> tuple[str, ...]:
    """Other kernels, and one that reads weights in bfloat16: in front where reading them is all that takes time."""
    if target.precision != "bfloat16":
        return tuple(plain)
    few = isinstance(rows, int) and rows <= target.few_rows
    return ("gemv bf16", *plain) if few else (*plain, "gemm bf16")


# Convolutions


def convolution_problem(
    shape: Sequence[Size],
    filters: int,
    output: Sequence[Size],
    window: Window,
    dtype: Dtype,
    expected: Mapping[str, int],
) -> str | None:
    """The problem of a convolution of [images, channels, spatial…]; None where a size is not known."""
    before, after = _shown(shape, expected), _shown(output, expected)
    if before is None or after is None:
        return None
    kernel, strides, dilations = (
        "×".join(map(str, numbers)) for numbers in (window.kernel, window.strides, window.dilations)
    )
    return (
        f"convolution {dtype} {'×'.join(before)} → {'×'.join((str(filters), *after))}, "
        f"kernel {kernel}, strides {strides}, dilations {dilations}, groups {window.groups}"
    )


def convolution_variants(
    target: Target, window: Window, channels: int, stored: Dtype, summed: Dtype
) -> tuple[str, ...]:
    """The kernels that read the image itself, the rule's favourite first."""
    depth, border = channels // window.groups, target.few_channels
    found = ["direct"]
    if stored == summed and border <= depth * _NEAR_BORDER and depth <= border * _NEAR_BORDER:
        found.append("direct wide" if depth < border else "direct narrow")
    cuts = (*target.tiles(summed), *target.depths(summed, depth * prod(window.kernel)))
    return (*found, *(f"direct {cut}" for cut in cuts))


def _shown(sizes: Sequence[Size], expected: Mapping[str, int]) -> list[str] | None:
    """Sizes as text, marked where only a run knows them; None where not even that is expected."""
    found = []
    for size in sizes:
        value = substitute(size, expected)
        if not isinstance(value, int):
            return None
        found.append(str(value) if isinstance(size, int) else f"{value}?")
    return found
