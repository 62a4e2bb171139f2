"""The Plan: frozen plain data, from which C is printed and memory is laid out.

    tensors    every buffer that a step touches: where it lives, its type, sizes and order of axes
    steps      kernels in order, with the tensors and symbols they are called with
    kernels    each distinct one once; many steps may share it

A Plan knows no graph and no weights: constants are named by where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.loops.nodes import Dtype, Kernel
from sardonyx.sizes import Size, product

__all__ = [
    "BYTES",
    "Constant",
    "KernelSource",
    "Order",
    "Packing",
    "Place",
    "Plan",
    "PlannedNode",
    "ReferenceStep",
    "Slot",
    "Step",
    "Template",
    "Tensor",
]

BYTES: dict[Dtype, int] = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1,
}  # fmt: skip

Order: TypeAlias = tuple[int, ...]  # axes from the outermost in memory to the innermost
PlaceKind: TypeAlias = Literal["input", "output", "constant", "slot", "object"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is.

    input, output: the caller's array of that number
    constant: the model's, of that number
    slot: bytes of the arena
    object: whatever a node on the reference backend gave
    """

    kind: PlaceKind
    number: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """One value that is kept somewhere. `name` is the model's own, for people; nothing depends on it.

    What only the reference backend can hold (strings, sequences, tensors of unknown rank) has
    neither type nor shape here.
    """

    name: str
    dtype: Dtype | None
    shape: tuple[Size, ...] | None
    order: Order
    place: Place

    @property
    def elements(self) -> Size:
        assert self.shape is not None
        return product(self.shape)

    @property
    def bytes(self) -> Size:
        assert self.dtype is not None
        return self.elements * BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Slot:
    """Bytes of the arena that are in use from one step to another, both included."""

    bytes: Size
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Packing:
    """How a constant is laid out for its kernel: the name of a packing and its numbers."""

    name: str
    numbers: tuple[int, ...] = ()


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
class Template:
    """A contraction kernel: the name of a template of the backend, and what it is filled with.

    Attributes:
        name: which template.
        variant: which of its variants was chosen.
        numbers: the template's own parameters, by name; sizes may be symbolic.
        definition: what it computes, as loops.
        epilogue: what happens to each finished sum, as loops over one row of results.
    """

    name: str
    variant: str
    numbers: tuple[tuple[str, Size], ...]
    epilogue: Kernel
    definition: Kernel | None = None


KernelSource: TypeAlias = Kernel | Template


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call.

    Attributes:
        kernel: number of the kernel.
        tensors: numbers of the tensors, in the order of the kernel's buffers.
        symbols: the plan's symbols that the kernel's symbols are, in its order.
        nodes: the model's nodes that it computes, for people.
    """

    kernel: int
    tensors: tuple[int, ...]
    symbols: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One node on the reference backend.

    Attributes:
        node: its number in the graph.
        reads: tensors in the order in which the node's program takes them.
        writes: tensors of its outputs; None where nobody needs one.
    """

    node: int
    reads: tuple[int, ...]
    writes: tuple[int | None, ...]
    name: str


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """Where one node of the model went."""

    node: str
    op: str
    native: bool
    reason: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    inputs: tuple[int, ...]  # numbers of tensors, in the model's order
    outputs: tuple[int, ...]
    symbols: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    constants: tuple[Constant, ...]
    slots: tuple[Slot, ...]
    kernels: tuple[KernelSource, ...]
    steps: tuple[Step | ReferenceStep, ...]
    nodes: tuple[PlannedNode, ...]
