"""If, Loop and Scan as a flat list: the nodes of their bodies between jumps.

    Loop(M, cond, x)            turns = cond ? max(M, 0) : 0
                                y <- x
                                Turn i = 0, below turns, else END
                                BODY: the body's nodes; they read y, and i for the number of the turn
                                y <- what the body gives
                                Turn i + 1, below turns, else END
                                Go END unless the body goes on;  Go BODY
                                END

An output of such a node is a variable: it has one tensor, which several kernels write. Kernels write values
of their own, and `aliases` says whose tensor those have. Bodies are copied with their inputs replaced; the
model itself is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowering import Lowering

__all__ = ["Bind", "Control", "Flow", "Go", "Item", "Label", "Region", "Turn", "is_control"]


@dataclass(frozen=True, eq=False)
class Label:
    """A place between steps."""


@dataclass(frozen=True, eq=False)
class Go:
    """To another place: always, or where a value is false."""

    to: Label
    unless: ir.Value | None = None


@dataclass(frozen=True, eq=False)
class Turn:
    """The first or the next turn, or to the end of the loop.

    Attributes:
        keeps: variables that the turns write piece by piece: they live as long as the loop.
    """

    counter: str
    start: bool
    limit: ir.Value
    to: Label
    keeps: tuple[ir.Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Bind:
    """Symbols get the value that a kernel has computed."""

    symbols: tuple[str, ...]
    value: ir.Value


Control: TypeAlias = Label | Go | Turn | Bind


@dataclass(frozen=True, eq=False)
class Region:
    """A body: what is computed in it is there for itself and for regions inside of it."""

    parent: Region | None

    def is_inside(self, other: Region | None) -> bool:
        """Whether this is the other region, or one inside of it."""
        here: Region | None = self
        while here is not None and here is not other:
            here = here.parent
        return here is other


@dataclass(frozen=True, eq=False)
class Item:
    """A node of a body, a small kernel, or a mark.

    Attributes:
        number: of the model's node that it belongs to.
        lowering: None where the operator has its own.
        when: it need not run unless this value is needed.
    """

    node: ir.Node
    number: int
    lowering: Lowering | Control | None
    region: Region | None
    when: ir.Value | None = None


@dataclass
class Flow:
    """What became of every If, Loop and Scan of the main graph.

    Attributes:
        items: their flat lists.
        reasons: those that have none, and why.
        nodes: all that were made here.
        facts, constants: about values that are not the model's own.
        aliases: values that are written into the tensor of another.
        stored: values that have bytes, whatever reads them.
        symbols: counters, and sizes that a `Bind` decides.
    """

    items: dict[ir.Node, tuple[Item, ...]] = field(default_factory=dict)
    reasons: dict[ir.Node, str] = field(default_factory=dict)
    nodes: list[ir.Node] = field(default_factory=list)
    facts: dict[ir.Value, Facts] = field(default_factory=dict)
    constants: dict[ir.Value, npt.NDArray[Any]] = field(default_factory=dict)
    aliases: dict[ir.Value, ir.Value] = field(default_factory=dict)
    stored: set[ir.Value] = field(default_factory=set)
    symbols: set[str] = field(default_factory=set)

    def tensor_of(self, value: ir.Value) -> ir.Value:
        """The value whose tensor this one has."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def release(self) -> None:
        """Let the model forget the nodes that were made here: its values no longer count them as users."""
        for node in self.nodes:
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)


def is_control(node: ir.Node) -> bool:
    return node.op_type in ("If", "Loop", "Scan") and normal_domain(node.domain) == ""
