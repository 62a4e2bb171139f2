"""Where the parts of a plan came from: its constants, and the nodes of the model. No run needs them; people do."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.nodes import Dtype

__all__ = ["Constant", "Packing", "PlannedNode"]


@dataclass(frozen=True, slots=True)
class Packing:
    """How a constant is laid out for its kernel: the name of a packing and its numbers.

    Attributes:
        widened: the type that its elements are converted to first; None where they keep their own.
    """

    name: str
    numbers: tuple[int, ...] = ()
    widened: Dtype | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model, or one that was computed from such when the plan was made.

    Attributes:
        source: the name of the value in the model.
        packing: None where it is used as it lies in the model.
    """

    source: str
    packing: Packing | None = None


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """Where one node of the model went."""

    node: str
    op: str
    native: bool
    reason: str
    source: str | None
