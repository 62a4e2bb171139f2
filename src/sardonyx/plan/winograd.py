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

__all__ = ["integer_winograd_is_possible", "winograd_is_possible", "winograd_pays"]

LEAST = 16  # channels, and filters: the widest vectors have as many lanes
_LEAST_BYTES = 32  # channels: as many numbers of 16 bits
_MOST_BYTES = 2048  # of which sums of products, times 4, fit into 32 bits

# In multiplications of the plain kernel, fitted to times on Neoverse N1. Reading weights was fitted on AVX-512: it costs
# the more multiplications the more of them a vector makes meanwhile.
_POINTS = 18  # for every tile, channel and filter
_TRANSFORM = 80  # for every tile and channel, and for every tile and filter
_WEIGHT = 7  # for every channel, filter and lane of a vector: reading U
_BYTE_POINTS, _BYTE_WEIGHT = (
    24,
    56,
)  # the same of bytes, on AVX-512: the plain kernel takes three instructions for what pairs take four
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


def integer_winograd_is_possible(
    target: Target, window: Window, channels: int, filters: int
) -> bool:
    """The same for bytes, exactly: where the plain kernel multiplies no more of them at a time than numbers of 16 bits."""
    return (
        target.splits_bytes
        and window.kernel == (3, 3)
        and {*window.strides, *window.dilations, window.groups} == {1}
        and _LEAST_BYTES <= channels <= _MOST_BYTES
        and channels % 2 == 0
        and filters >= LEAST
    )


def winograd_pays(
    target: Target,
    channels: int,
    filters: int,
    images: Size,
    output: Sequence[Size],
    *,
    of_bytes: bool = False,
) -> bool:
    """Whether it should be the faster way.

    What sizes are expected to be is not asked: the model and the kind of CPU decide, so that answers have the same bits
    wherever nothing was measured.

    Args:
        output: height and width of the output.
    """
    height, width = (size if isinstance(size, int) else _UNKNOWN for size in output)
    several = images if isinstance(images, int) else 1
    pixels, tiles = several * height * width, several * (-(-height // 2)) * (-(-width // 2))
    pairs = channels * filters
    points, weight = (_BYTE_POINTS, _BYTE_WEIGHT) if of_bytes else (_POINTS, _WEIGHT * target.lanes)
    cost = tiles * (points * pairs + _TRANSFORM * (channels + filters)) + weight * pairs
    return cost < _GAIN * 9 * pixels * pairs
