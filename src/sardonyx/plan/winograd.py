"""Whether a convolution may be computed by Winograd's algorithm, and whether a rule expects that to pay.

F(2×2, 3×3) makes four outputs of 16 multiplications for each channel and filter instead of 36. Beside these there are the
transforms of inputs and outputs, of 16 values each for every tile and channel, or filter, and 16 weights to read
where there were 9. Odd sizes waste half of their last tiles. In float16 it is F(2×4, 3×3): eight outputs of 24.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.plan.target import Target
from sardonyx.sizes import Size

__all__ = [
    "BYTES",
    "FLOATS",
    "HALVES",
    "Costs",
    "integer_winograd_is_possible",
    "winograd_is_possible",
    "winograd_pays",
]

LEAST = 16  # channels, and filters: the widest vectors have as many lanes
_LEAST_BYTES = 32  # channels: as many numbers of 16 bits
_MOST_BYTES = 2048  # of which sums of products, times 4, fit into 32 bits


@dataclass(frozen=True)
class Costs:
    """What an algorithm takes, in multiplications of the plain kernel.

    Attributes:
        tile: outputs down and across.
        points: for every tile, channel and filter.
        transform: for every tile and channel, and for every tile and filter.
        weight: for every channel and filter: reading U.
        lane: the same for every lane of a vector: the more of them it multiplies meanwhile.
    """

    tile: tuple[int, int]
    points: float
    transform: int
    weight: int = 0
    lane: int = 0


# Fitted to times on Neoverse N1; how FLOATS read weights, and all of BYTES, to times on AVX-512. There the plain kernel takes
# three instructions for what pairs of bytes take four.
FLOATS = Costs((2, 2), 18, 80, lane=7)
BYTES = Costs((2, 2), 24, 80, weight=56)
HALVES = Costs((2, 4), 25.5, 240, weight=32)
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
    costs: Costs,
) -> bool:
    """Whether it should be the faster way.

    What sizes are expected to be is not asked: the model and the kind of CPU decide, so that answers have the same bits
    wherever nothing was measured.

    Args:
        output: height and width of the output.
    """
    height, width = (size if isinstance(size, int) else _UNKNOWN for size in output)
    several = images if isinstance(images, int) else 1
    down, across = costs.tile
    tiles, pairs = several * -(-height // down) * -(-width // across), channels * filters
    work = tiles * (costs.points * pairs + costs.transform * (channels + filters))
    weights = (costs.weight + costs.lane * target.lanes) * pairs
    return work + weights < _GAIN * 9 * several * height * width * pairs
