"""Which kernels through AMX tiles may compute a contraction of float32, and whether a rule expects that to pay.

A number is split into parts of bfloat16, and products of parts are added up: six are as good as float32, three lose
about 1e-6, one is bfloat16. Splitting A costs about as much as some tens of columns; weights are split beforehand.
"""

from __future__ import annotations

from sardonyx.plan.plan import ConvolutionKernel, Plan, ProductKernel
from sardonyx.plan.target import Target
from sardonyx.sizes import Size

__all__ = ["AMX_DEPTH", "AMX_PANEL", "AMX_PARTS", "amx_pays", "amx_variants", "uses_amx"]

AMX_PARTS = {"amx6": 3, "amx3": 2, "amx1": 1}
AMX_PANEL, AMX_DEPTH = 32, 32  # weights are filled up to whole panels of columns and steps of K

_ALLOWED = {
    "float32": ("amx6",),
    "fast": ("amx3", "amx6"),
    "bfloat16": ("amx1", "amx3", "amx6"),
}
# Fewer rows wait for the weights, whose parts are no smaller than float32.
_LEAST_ROWS, _LEAST_DEPTH, _LEAST_COLUMNS = 16, 64, 32

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


def uses_amx(plan: Plan) -> bool:
    """Whether a kernel of the plan goes through AMX tiles."""
    return any(
        isinstance(kernel, (ProductKernel, ConvolutionKernel))
        and kernel.choice.variant in AMX_PARTS
        for kernel in plan.kernels
    )
