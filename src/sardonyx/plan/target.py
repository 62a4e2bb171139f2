"""What planning must know of the machine: which contraction kernels its backend has, and their panels."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.nodes import Dtype

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A backend on a family of processors.

    Attributes:
        name: for people.
        panels: columns of a packed operand's panel, by the type of the sum.
        narrow_panels: the same for products of few rows.
        few_rows: how many rows are few.
        timings: what was measured on this machine: (problem, ((variant, seconds), …)).
    """

    name: str
    panels: tuple[tuple[Dtype, int], ...]
    narrow_panels: tuple[tuple[Dtype, int], ...]
    few_rows: int
    timings: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()

    def panel(self, dtype: Dtype, *, few: bool) -> int | None:
        """The panel's columns; None where the backend has no kernel for this type."""
        return dict(self.narrow_panels if few else self.panels).get(dtype)
