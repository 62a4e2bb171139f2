"""Which channels of a model hang together.

Every position along a value's channel axis has a number. A layer gives its results fresh numbers; an addition makes those
of its operands the same; a concatenation puts them side by side, a flattening repeats them. What is taken out of one place
is then taken out of all that have its number. Where an operator needs a channel as it is (an output of the model, a
normalisation over channels, anything unknown), its number is fixed, with the reason.

    conv a ─ [0 1 2 3] ─┐
                        add ─ [0 1 2 3] ─ concat ─ [0 1 2 3 8 9]      conv b made 4…7, and they became 0…3
    conv b ─ [4 5 6 7] ─┘                  │
    conv c ─ [8 9] ────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

__all__ = ["Channels", "Cut", "Layer", "Numbers", "constant_of"]

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Channels:
    """An axis of a value, and the numbers along it."""

    axis: int
    numbers: Array


@dataclass(frozen=True, eq=False)
class Cut:
    """An axis of a constant that shrinks with some channels.

    Attributes:
        node, index: who reads the constant, and as which input.
        makes: whether these channels are made by it, and not read.
    """

    node: ir.Node
    index: int
    axis: int
    numbers: Array
    makes: bool = False


@dataclass(frozen=True, eq=False)
class Layer:
    """A node that makes channels, with their numbers."""

    node: ir.Node
    numbers: Array


@dataclass
class Numbers:
    """All numbers of a model: which are the same, and which are fixed and why.

    Attributes:
        cuts: axes of constants that shrink with them.
        layers: who makes them.
        sizes: elements of constant shapes that count channels: (node, input, position, numbers).
        groups: convolutions whose `group` counts channels.
    """

    cuts: list[Cut] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    sizes: list[tuple[ir.Node, int, int, Array]] = field(default_factory=list)
    groups: list[tuple[ir.Node, Array]] = field(default_factory=list)
    _parents: list[int] = field(default_factory=list)
    _fixed: dict[int, str] = field(default_factory=dict)

    def fresh(self, count: int) -> Array:
        first = len(self._parents)
        self._parents.extend(range(first, first + count))
        return np.arange(first, first + count)

    def root(self, number: int) -> int:
        while (parent := self._parents[number]) != number:
            self._parents[number] = self._parents[parent]
            number = parent
        return number

    def roots(self, numbers: Array) -> Array:
        return np.array([self.root(number) for number in numbers.tolist()], np.int64)

    def join(self, one: Array, other: Array) -> None:
        """These are the same, position by position."""
        for a, b in zip(one.tolist(), other.tolist(), strict=True):
            first, second = sorted((self.root(a), self.root(b)))
            if first != second:
                self._parents[second] = first
                if second in self._fixed:
                    self._fixed.setdefault(first, self._fixed[second])

    def fix(self, numbers: Iterable[int], reason: str) -> None:
        for number in numbers:
            self._fixed.setdefault(self.root(number), reason)

    def reason(self, number: int) -> str | None:
        """Why a channel stays; None where it may go."""
        return self._fixed.get(self.root(number))


def constant_of(value: ir.Value | None) -> Array | None:
    """The array of an initializer that nobody can feed."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()
