"""What a contraction through tiles takes its numbers apart into: the shape of strips and panels, and text.

A strip is up to 32 rows of A, a panel 32 columns of B. Both go by steps of K, and a step by planes, one for each part of a number:
32 lines of 64 bytes. Weights lie as

    the factors of all steps    float32, where rows are scaled
    panel by panel              what is in front of it, then its steps
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PLANE", "ROWS", "Parts"]

ROWS = 32
PLANE = ROWS * 32  # elements of 16 bits in a plane of a strip, and of a panel, for one step


@dataclass(frozen=True)
class Parts:
    """How numbers are taken apart, and their parts multiplied.

    Attributes:
        planes: parts of a number.
        depth: values of K in a step.
        steps: of a block of K, at most.
        products: dot products for every tile of sums in a step.
        asks: how many times memory is asked for in a step of a strip and a panel.
        scaled: rows and columns have scales, and values of K factors.
        panel_head: elements in front of a panel's steps.
        text: of the functions that `amx.split_contraction` calls, by their prefix, whether memory is asked for, and whether a row's
            values can be gathered.
    """

    planes: int
    depth: int
    steps: int
    products: int
    asks: int
    scaled: bool
    panel_head: int
    text: Callable[[str, bool, bool], str]

    @property
    def step(self) -> int:
        """Elements of a step."""
        return self.planes * PLANE

    @property
    def strip_head(self) -> int:
        """Elements in front of a strip that was split beforehand: what its rows are scaled by."""
        return 2 * ROWS if self.scaled else 0

    def factors(self, steps: str) -> str:
        """C text: elements in front of the first panel."""
        return f"{steps} * {2 * self.depth}" if self.scaled else "0"
