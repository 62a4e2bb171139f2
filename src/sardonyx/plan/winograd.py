"""Whether a convolution may be computed by Winograd's F(2×2, 3×3), and whether a rule expects that to pay.

Four outputs take 16 multiplications for each channel and filter instead of 36. Beside these there are the
transforms of inputs and outputs, of 16 values each for every tile and channel, or filter, and 16 weights to read
where there were 9. Odd sizes waste half of their last tiles.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.target import Target
from sardonyx.sizes import Size

__all__ = ["winograd_is_possible", "winograd_pays"]

LEAST = 16  # channels, and filters: the widest vectors have as many lanes

# In multiplications of the plain kernel, fitted to times on Neoverse N1; reading weights to times on AVX-512, whose
# multipliers wait longer for what a network left in memory.
_POINTS = 18  # for every tile, channel and filter
_TRANSFORM = 80  # for every tile and channel, and for every tile and filter
_WEIGHT = 112  # for every channel and filter: reading U
_GAIN = 0.9  # of the plain kernel's: less would not be worth the larger weights
_UNKNOWN = 16  # what a size of an image is taken for where nobody knows it; there is one image


def winograd_is_possible(
    target: Target, window: Window, channels: int, filters: int, stored: Dtype
) -> bool:
    """Whether the backend's kernel can compute it, within what was promised of its precision."""
    return (
        target.precision != "strict"
        and stored == "f32"
        and window.kernel == (3, 3)
        and {*window.strides, *window.dilations, window.groups} == {1}
        and min(channels, filters) >= LEAST
    )


def winograd_pays(channels: int, filters: int, images: Size, output: Sequence[Size]) -> bool:
    """Whether it should be the faster way.

    What sizes are expected to be is not asked: the model decides alone, so that its answers have the same bits
    wherever nothing was measured.

    Args:
        output: height and width of the output.
    """
    height, width = (size if isinstance(size, int) else _UNKNOWN for size in output)
    several = images if isinstance(images, int) else 1
    pixels, tiles = several * height * width, several * (-(-height // 2)) * (-(-width // 2))
    pairs = channels * filters
    cost = tiles * (_POINTS * pairs + _TRANSFORM * (channels + filters)) + _WEIGHT * pairs
    return cost < _GAIN * 9 * pixels * pairs
