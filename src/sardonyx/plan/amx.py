"""Which kernels through AMX tiles may compute a contraction, and whether a rule expects that to pay.

Bytes are multiplied as they are, exactly. A number of float32 is split into parts, and products of parts are
added up: of parts of bfloat16 six are as good as float32, three lose about 1e-6, one is bfloat16; of digits of eight bits ten are as good as float32. Splitting A costs about as much as some tens of columns; weights are split beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.plan.kernels import AttentionKernel, ConvolutionKernel, KernelSource, ProductKernel
from sardonyx.plan.plan import Plan
from sardonyx.plan.target import Target
from sardonyx.sizes import Size, ceil_div

__all__ = [
    "AMX_DEPTH",
    "AMX_PANEL",
    "AMX_PARTS",
    "BYTE_TILES",
    "amx_attention",
    "amx_attention_elements",
    "amx_pays",
    "amx_variants",
    "amx_weights",
    "depth_of",
    "parts_beforehand",
    "runs_of",
    "uses_amx",
    "whole_steps",
    "with_byte_tiles",
]

BYTE_TILES = ("gemm amx", "direct amx")

AMX_PARTS = {"amx10": 4, "amx6": 3, "amx3": 2, "amx1": 1}
AMX_PANEL = 32  # weights are filled up to whole panels of columns
AMX_DEPTH = 32  # and to steps of K, of bfloat16
_PLANE = 1024  # elements of 16 bits that a part takes for a step, of a panel and of a strip of rows
_DIGIT_DEPTH, _FACTORS, _HEADS = (
    64,
    128,
    (64, 128),
)  # a step of digits; elements in front of all panels for each step, of a strip and of a panel
AMX_STRIP = 32  # rows that are split and multiplied together

_ALLOWED = {
    "float32": ("amx10", "amx6"),
    "fast": ("amx3", "amx10", "amx6"),
    "bfloat16": ("amx1", "amx3", "amx10", "amx6"),
}
_BY_RULE = ("amx3", "amx1")
_GATHERED = 512  # values of K that are copied before they are split
# Fewer rows wait for the weights, whose parts are no smaller than float32. Bytes: a step has 64 of them.
_LEAST_ROWS, _LEAST_DEPTH, _LEAST_COLUMNS = 16, 16, 24
_LEAST_BYTES = 64  # of K, where bytes are multiplied

# Of queries, keys, and of their sizes: tiles are half full at least.
_LEAST_OF_ATTENTION = (32, 32, 16, 16)
_FOR_ATTENTION = ("amx1", "amx3")

# In cycles of a core, for every row and value of K.
_PLAIN = 1 / 32  # a column by two multipliers of 16 lanes
_TILE = (
    1.25 / 512
)  # a column, for each product of bfloat16: a tile has 16 × 16 × 32 in 16 cycles, and some wait for memory
_SPLIT = 0.25  # for each part
_SAVED_BY_WINOGRAD = 1.8  # times as fast as the plain kernel
# All rows are split beforehand where they are so few that threads share them, each with columns of its own: with more,
# each has rows of its own, and splits a strip of them right before it is multiplied. To wait for one another costs threads
# as much as some millions of multiplications.
_SHARED_ROWS, _SHARED_BYTES, _SHARED_WORK = 512, 4 << 20, 1 << 25
_GAIN = 0.7  # of the plain kernel's time: less may be a mistake of these numbers


def amx_variants(target: Target) -> tuple[str, ...]:
    """The kernels that keep what was promised of the precision, those of the fewest products first."""
    return _ALLOWED.get(target.precision, ()) if target.amx else ()


def depth_of(variant: str) -> int:
    """Values of K in a step."""
    return _DIGIT_DEPTH if variant == "amx10" else AMX_DEPTH


def runs_of(kernel: Sequence[int], dilations: Sequence[int], channels: int, depth: int) -> int:
    """How many runs of K a window reads: its pixels or, where channels fill no steps, its lines of them; for digits one, where that is short."""
    lines = channels % depth != 0 and dilations[-1] == 1
    if lines and depth == _DIGIT_DEPTH and math.prod(kernel) * channels <= _GATHERED:
        return 1
    return math.prod(kernel[:-1] if lines else kernel)


def whole_steps(inner: int, runs: int, depth: int) -> int:
    """K filled up: each run fills whole steps."""
    return runs * -(-inner // runs // depth) * depth


def amx_weights(variant: str, inner: Size, columns: Size) -> Size:
    """Elements of 16 bits that packed weights take."""
    steps, panels = ceil_div(inner, depth_of(variant)), ceil_div(columns, AMX_PANEL)
    if variant == "amx10":
        plain = columns * steps * (2 * _DIGIT_DEPTH)  # the weights themselves lie behind the digits
        return (
            panels * (steps * (AMX_PARTS[variant] * _PLANE) + _HEADS[1]) + steps * _FACTORS + plain
        )
    return panels * (steps * (AMX_PARTS[variant] * _PLANE))


def amx_pays(variant: str, plain: str, rows: Size, inner: int, columns: int, runs: int = 1) -> bool:
    """Whether it is clearly faster than the plain kernel; never where only a run knows the rows.

    Six products never are by this rule: where another thread shares the core, a tile's dot product takes two to three
    times as long, and a vector's hardly longer.
    """
    if variant not in _BY_RULE or not isinstance(rows, int) or rows < _LEAST_ROWS:
        return False
    if inner < _LEAST_DEPTH or columns < _LEAST_COLUMNS:
        return False
    products, depth = int(variant.removeprefix("amx")), depth_of(variant)
    filled = -(-columns // AMX_PANEL) * AMX_PANEL
    deeper = whole_steps(inner, runs, depth) / inner
    of_column = products * _TILE * AMX_DEPTH / depth
    tiles = deeper * (filled * of_column + AMX_PARTS[variant] * _SPLIT)
    saved = _SAVED_BY_WINOGRAD if plain.startswith("winograd") else 1.0
    return tiles <= _GAIN * columns * _PLAIN / saved


def parts_beforehand(
    variant: str, batch: Size, rows: Size, inner: Size, columns: Size
) -> int | None:
    """Elements of all rows' parts, where they are split before any of them is multiplied; None where they are not."""
    if variant not in AMX_PARTS or not isinstance(rows, int) or not isinstance(inner, int):
        return None
    if not isinstance(batch, int) or not isinstance(columns, int) or rows > _SHARED_ROWS:
        return None
    if batch * rows * inner * columns < _SHARED_WORK:
        return None
    steps, head = -(-inner // depth_of(variant)), _HEADS[0] if variant == "amx10" else 0
    elements = batch * -(-rows // AMX_STRIP) * (steps * AMX_PARTS[variant] * _PLANE + head)
    return elements if 0 < elements * 2 <= _SHARED_BYTES else None


def amx_attention(target: Target, rows: Size, keys: Size, size: int, width: int) -> str | None:
    """The variant by which an attention's two products go through tiles; None where they do not, or too few rows are known to be there."""
    sizes = zip((rows, keys, size, width), _LEAST_OF_ATTENTION, strict=True)
    enough = all(not isinstance(n, int) or n >= least for n, least in sizes)
    if not enough or not isinstance(rows, int):
        return None
    return next((name for name in amx_variants(target) if name in _FOR_ATTENTION), None)


def amx_attention_elements(variant: str, keys: Size, size: int, width: int) -> tuple[Size, Size]:
    """Elements of bfloat16 that the packed keys and values of a batch take, with a mark for every panel of keys."""
    panels = ceil_div(keys, AMX_PANEL)
    step = AMX_PANEL * AMX_DEPTH * AMX_PARTS[variant]
    of_keys = panels * (-(-size // AMX_DEPTH) * step)
    return of_keys, panels * (-(-width // AMX_PANEL) * step + 1)


def with_byte_tiles(
    target: Target, plain: Sequence[str], rows: Size, run: int, columns: int
) -> tuple[str, ...]:
    """Kernels of bytes, and the one through AMX tiles: in front where a rule expects that it pays.

    Tiles multiply eight times as many bytes as vectors do in the same time; few rows or columns leave them empty.

    Args:
        run: bytes of K that lie side by side.
    """
    kernel = plain[0].partition(" ")[0]
    if not (target.amx and target.unsigned_bytes) or kernel not in ("gemm", "direct"):
        return tuple(plain)
    many = isinstance(rows, int) and rows >= _LEAST_ROWS
    pays = many and run >= _LEAST_BYTES and columns >= AMX_PANEL
    return (f"{kernel} amx", *plain) if pays else (*plain, f"{kernel} amx")


def uses_amx(plan: Plan) -> bool:
    """Whether a kernel of the plan goes through AMX tiles."""
    return any(_variant(kernel) in (*AMX_PARTS, *BYTE_TILES) for kernel in plan.kernels)


def _variant(kernel: KernelSource) -> str:
    if isinstance(kernel, (ProductKernel, ConvolutionKernel)):
        return kernel.choice.variant
    return kernel.variant if isinstance(kernel, AttentionKernel) else ""
