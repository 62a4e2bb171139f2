"""The Plan: frozen plain data, from which C is printed and memory is laid out.

    tensors    every buffer that a step touches: where it lives, its type, sizes and order of axes
    steps      kernels in order, with the tensors and symbols they are called with; jumps between them
    kernels    each distinct one once; many steps may share it

A Plan knows no graph and no weights: constants are named by where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sardonyx.sizes import Size, product

if TYPE_CHECKING:  # whoever runs a plan that was kept need not wait for the language of kernels
    from sardonyx.loops.nodes import Dtype
    from sardonyx.plan.kernels import KernelSource
    from sardonyx.plan.origins import Constant, PlannedNode

__all__ = [
    "BYTES",
    "AnyStep",
    "BindStep",
    "Count",
    "HostStep",
    "Jump",
    "Operand",
    "Order",
    "Place",
    "Plan",
    "ReferenceStep",
    "SizeStep",
    "Slot",
    "Step",
    "Tensor",
    "Texts",
]

BYTES: dict[Dtype, int] = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, "f8e4m3fn": 1, "f8e4m3fnuz": 1, "f8e5m2": 1,
    "f8e5m2fnuz": 1, "f8e8m0": 1, "f4e2m1": 1, "i4": 1, "u4": 1, "i2": 1, "u2": 1,
}  # fmt: skip

Order: TypeAlias = tuple[int, ...]  # axes from the outermost in memory to the innermost
PlaceKind: TypeAlias = Literal["input", "output", "constant", "slot", "object"]


class Place(NamedTuple):
    """Where a value is.

    input, output: the caller's array of that number
    constant: the model's, of that number
    slot: bytes of the arena
    object: whatever a node on the reference backend gave
    """

    kind: PlaceKind
    number: int


class Tensor(NamedTuple):
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


class Slot(NamedTuple):
    """Bytes of the arena that are in use from one step to another, both included."""

    bytes: Size
    first: int
    last: int


class Step(NamedTuple):
    """One kernel call.

    Attributes:
        kernel: number of the kernel.
        tensors: numbers of the tensors, in the order of the kernel's buffers.
        symbols: the plan's symbols that the kernel's symbols are, in its order.
        nodes: numbers of the model's nodes that it computes, in order; none for a copy into another
            order of axes. A node that several kernels write where they read it is in all of them.
    """

    kernel: int
    tensors: tuple[int, ...]
    symbols: tuple[str, ...]
    nodes: tuple[int, ...]


class Jump(NamedTuple):
    """Goes on with another step: always, or where a condition is false.

    Attributes:
        unless: a tensor of one bool; None for always.
        node: number of the If or Loop that it belongs to.
    """

    to: int
    unless: int | None
    node: int


class Count(NamedTuple):
    """Counts the turns of a loop: the first or the next one begins, or the loop is over.

        0  Count i from 0, below n, else 4
        1  …
        2  Count i on, below n, else 4
        3  Jump 1
        4

    Attributes:
        counter: a symbol of the plan; the steps of the loop's body see the number of the turn in it.
        start: whether it counts from 0.
        limit: a tensor of one i64: how many turns there are at most.
        to: where to go on when they are done.
        node: number of the Loop or Scan.
    """

    counter: str
    start: bool
    limit: int
    to: int
    node: int


class ReferenceStep(NamedTuple):
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


class Operand(NamedTuple):
    """An input of a node whose sizes are asked for.

    Attributes:
        dtype: of onnx.
        tensor: where its numbers are, if they are anywhere.
        known: its integers, one after the other, where sizes tell them.
    """

    dtype: int
    shape: tuple[Size, ...]
    tensor: int | None
    known: tuple[Size, ...] | None = None


class SizeStep(NamedTuple):
    """Asks a node's shape rule what its outputs' sizes are, once the values that decide them are there.

    Attributes:
        node: its number in the graph.
        inputs: None for one left out.
        outputs: the shapes as planned; symbols that have no value yet get one here.
    """

    node: int
    inputs: tuple[Operand | None, ...]
    outputs: tuple[tuple[Size, ...], ...]
    name: str


class BindStep(NamedTuple):
    """Gives symbols the value of a tensor of one i64: sizes that a kernel has computed."""

    symbols: tuple[str, ...]
    tensor: int
    node: int


HostStep: TypeAlias = ReferenceStep | SizeStep | BindStep  # done by the host, between two calls
AnyStep: TypeAlias = Step | Jump | Count | HostStep


class Texts(NamedTuple):
    """Strings that the plan has as numbers, of type i64.

    Attributes:
        known: by their numbers, the strings of the model; others get numbers behind these when a run meets them.
        inputs, outputs: which of the plan's are strings for the caller.
    """

    known: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    inputs: tuple[int, ...]  # numbers of tensors, in the model's order
    outputs: tuple[int, ...]
    symbols: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    constants: tuple[Constant, ...]
    slots: tuple[Slot, ...]
    kernels: tuple[KernelSource, ...]
    steps: tuple[AnyStep, ...]
    nodes: tuple[PlannedNode, ...]  # those of the main graph, then those of its subgraphs
    definitions: tuple[tuple[str, Size], ...] = ()  # symbols that stand for long sizes
    texts: Texts | None = None
    squeezed: tuple[int, ...] = ()  # outputs that callers get without their dimensions of 1
