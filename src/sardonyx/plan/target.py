"""What planning must know of the machine: which contraction kernels its backend has, and their panels."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import USUAL_SUMS

__all__ = ["Alternative", "Target", "Timings"]

# What was measured on this machine: (problem, ((variant, seconds), …)).
Timings = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]


@dataclass(frozen=True)
class Alternative:
    """The same kernel cut otherwise: another tile, or K in other blocks.

    Attributes:
        name: what follows the name of the kernel, as in "gemm 6x12" or "direct by 384".
        panel: columns of a packed operand's panel; None where they are the kernel's own.
        deeper_than: for sums of no more products than so many it is the kernel as it always is.
        costs: by the kernel, what a column takes beside one of its usual tile; a rule takes the cheapest. Kernels that are
            not named have this cut only where it was measured to be faster.
    """

    name: str
    panel: int | None = None
    deeper_than: int = 0
    costs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Target:
    """A backend on a family of processors.

    Attributes:
        name: for people.
        panels: columns of a packed operand's panel, by the type of the sum.
        narrow_panels: the same for products of few rows.
        few_rows: how many rows are few.
        lanes: float32 numbers of a vector.
        few_channels: convolutions of fewer channels copy what they read, others read it in place.
        alternatives: other cuts of the kernels, by the type of the sum.
        sizes: what symbols are expected to be, where somebody said so.
        timings: what was measured on this machine.
        precision: what was promised of it (docs/numerics.md): "strict" rules out kernels that compute otherwise.
        amx: whether products may go through AMX tiles.
        half_arithmetic: whether vectors of float16 are multiplied as they are.
        unsigned_bytes: whether the first factor of a product of bytes has no sign when it is multiplied.
        splits_bytes: whether sums of products of bytes may saturate, so that it may pay to take the larger ones in turns.
        widens_halves: whether weights of float16 had better be widened beforehand, where they are read once for every few rows.
        grouped: channels of a group for which the kernel of groups should be the fastest.
        sums: numbers that registers hold as sums, beside what is multiplied.
        column_dots: whether depthwise convolutions of bytes go by dot products down the columns of their kernels.
    """

    name: str
    panels: tuple[tuple[Dtype, int], ...]
    narrow_panels: tuple[tuple[Dtype, int], ...]
    few_rows: int
    lanes: int = 4
    few_channels: int = 0
    alternatives: tuple[tuple[Dtype, tuple[Alternative, ...]], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    timings: Timings = ()
    precision: str = "float32"
    amx: bool = False
    half_arithmetic: bool = False
    unsigned_bytes: bool = False
    splits_bytes: bool = False
    column_dots: bool = False
    widens_halves: bool = False
    grouped: tuple[int, ...] = ()
    sums: int = USUAL_SUMS

    def panel(self, dtype: Dtype, *, few: bool) -> int | None:
        """The panel's columns; None where the backend has no kernel for this type."""
        return dict(self.narrow_panels if few else self.panels).get(dtype)

    def panel_of(self, variant: str, dtype: Dtype) -> int:
        """The columns of the panels that a variant reads."""
        kernel, _, cut = variant.partition(" ")
        for one in dict(self.alternatives).get(dtype, ()):
            if one.name == cut and one.panel is not None:
                return one.panel
        return dict(self.narrow_panels if kernel == "gemv" else self.panels)[dtype]

    def cheapest(self, kernel: str, dtype: Dtype, columns: int) -> str:
        """The variant of `kernel` that takes least for so many columns: their last panel may be empty for the most part."""
        costs = {kernel: float(_whole(columns, self.panel_of(kernel, dtype)))}
        for one in dict(self.alternatives).get(dtype, ()):
            cost = dict(one.costs).get(kernel)
            if cost is not None and one.panel is not None:
                costs[f"{kernel} {one.name}"] = cost * _whole(columns, one.panel)
        return min(costs, key=lambda name: costs[name])

    def tiles(self, dtype: Dtype) -> tuple[str, ...]:
        """The names of the alternatives that have other panels."""
        found = dict(self.alternatives).get(dtype, ())
        return tuple(one.name for one in found if one.panel is not None)

    def depths(self, dtype: Dtype, inner: int) -> tuple[str, ...]:
        """The names of the alternatives that cut a sum of `inner` products otherwise."""
        found = dict(self.alternatives).get(dtype, ())
        return tuple(one.name for one in found if one.panel is None and inner > one.deeper_than)


def _whole(columns: int, panel: int) -> int:
    return -(-columns // panel) * panel
