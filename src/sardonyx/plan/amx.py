"""Which kernels through AMX tiles may compute a contraction, and whether a rule expects that to pay.

Bytes are multiplied as they are, exactly. A number of float32 is split into parts of bfloat16, and products of parts are
added up: six are as good as float32, three lose about 1e-6, one is bfloat16. Splitting A costs about as much as some tens of columns; weights are split beforehand.
"""

from __future__ import annotations

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
    "uses_amx",
    "with_byte_tiles",
]

BYTE_TILES = ("gemm amx", "direct amx")

AMX_PARTS = {"amx6": 3, "amx3": 2, "amx1": 1}
AMX_PANEL, AMX_DEPTH = 32, 32  # weights are filled up to whole panels of columns and steps of K

_ALLOWED = {
    "float32": ("amx6",),
    "fast": ("amx3", "amx6"),
    "bfloat16": ("amx1", "amx3", "amx6"),
}
# Fewer rows wait for the weights, whose parts are no smaller than float32. Bytes: a step has 64 of them.
_LEAST_ROWS, _LEAST_DEPTH, _LEAST_COLUMNS = 16, 64, 32

# Of queries, keys, and of their sizes: tiles are half full at least.
_LEAST_OF_ATTENTION = (32, 32, 16, 16)
_FOR_ATTENTION = ("amx1", "amx3")

# In cycles of a core, for every row and value of K.
_PLAIN = 1 / 32  # a column by two multipliers of 16 lanes
_TILE = (
    1.25 / 512
)  # a column, for each product: a tile has 16 × 16 × 32 in 16 cycles, and some wait for memory
_SPLIT = 0.25  # for each part
_GAIN = 0.8  # of the plain kernel's time: less may be a mistake of these numbers


def amx_variants(target: Target) -> tuple[str, ...]:
    """The kernels that keep what was promised of the precision, those of the fewest products first."""
    return _ALLOWED.get(target.precision, ()) if target.amx else ()


def amx_pays(variant: str, rows: Size, inner: int, columns: int) -> bool:
    """Whether it is clearly faster than the plain kernel; never where only a run knows the rows."""
    if not isinstance(rows, int) or rows < _LEAST_ROWS:
        return False
    if inner < _LEAST_DEPTH or columns < _LEAST_COLUMNS:
        return False
    products = int(variant.removeprefix("amx"))
    filled = -(-columns // AMX_PANEL) * AMX_PANEL
    deeper = -(-inner // AMX_DEPTH) * AMX_DEPTH / inner
    tiles = deeper * (filled * products * _TILE + AMX_PARTS[variant] * _SPLIT)
    return tiles <= _GAIN * columns * _PLAIN


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
    pays = many and run >= _LEAST_DEPTH and columns >= _LEAST_COLUMNS
    return (f"{kernel} amx", *plain) if pays else (*plain, f"{kernel} amx")


def uses_amx(plan: Plan) -> bool:
    """Whether a kernel of the plan goes through AMX tiles."""
    return any(_variant(kernel) in (*AMX_PARTS, *BYTE_TILES) for kernel in plan.kernels)


def _variant(kernel: KernelSource) -> str:
    if isinstance(kernel, (ProductKernel, ConvolutionKernel)):
        return kernel.choice.variant
    return kernel.variant if isinstance(kernel, AttentionKernel) else ""
