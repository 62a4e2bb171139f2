"""Whether a convolution may be computed with many small groups in a vector, and whether a rule expects that to pay.

A kernel of tiles has the filters of one group in a vector: 4 of 16 lanes, where a group has 4. Where groups are as wide in as out, and
whole groups fill a vector, shuffles put each of their channels in the place of all of them.
"""

from __future__ import annotations

import math

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.target import Target

__all__ = ["columns_fit", "with_groups"]

_ACROSS = 8  # taps in a row of the window, at most: they are written out
_TAPS = 64  # of a sum, and
_PRODUCTS = 192  # at most: kernels of tiles sum so many in one go, in the same order
_AT_ONCE = 6  # pixels whose windows a kernel looks at
_COLUMNS = 4096  # pointers at what these cover, which are on the stack


def columns_fit(window: Window) -> bool:
    """Whether a kernel of channels side by side may keep where all that its windows cover lies."""
    *outer, across = window.kernel
    reach = (_AT_ONCE - 1) * window.strides[-1] + (across - 1) * window.dilations[-1] + 1
    return math.prod(outer) * reach <= _COLUMNS


def with_groups(
    target: Target,
    variants: tuple[str, ...],
    window: Window,
    channels: int,
    filters: int,
    stored: Dtype,
) -> tuple[str, ...]:
    """Other kernels, and that of groups where the backend has it: first where it should be the fastest."""
    each = channels // window.groups
    if stored != "f32" or each in (1, channels) or filters != channels:
        return variants
    fills = target.lanes % each == 0 and channels >= target.lanes
    taps = math.prod(window.kernel)
    short = window.kernel[-1] <= _ACROSS and taps <= _TAPS and each * taps <= _PRODUCTS
    if not (fills and short and columns_fit(window)):
        return variants
    return ("grouped", *variants) if each in target.grouped else (*variants, "grouped")
