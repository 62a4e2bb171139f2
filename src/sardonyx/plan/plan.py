"""The Plan: frozen plain data, from which C is printed and memory is laid out.

    tensors    every buffer that a step touches: where it lives, its type, sizes and order of axes
    steps      kernels in order, with the tensors and symbols they are called with; jumps between them
    kernels    each distinct one once; many steps may share it

A Plan knows no graph and no weights: constants are named by where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.loops.nodes import Dtype, Kernel
from sardonyx.sizes import Size, product

__all__ = [
    "BATCH",
    "BYTES",
    "COLUMN",
    "COUNT",
    "ROW",
    "SUMS",
    "AnyStep",
    "AttentionKernel",
    "BindStep",
    "Choice",
    "CodedWeights",
    "Constant",
    "ConvolutionKernel",
    "Count",
    "Ending",
    "HostStep",
    "Jump",
    "KernelSource",
    "Matrix",
    "Operand",
    "Order",
    "Packing",
    "Place",
    "Plan",
    "PlannedNode",
    "ProductKernel",
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
class Matrix:
    """Where an operand's elements are: buffer[offset + row * by_row + column * by_column].

    Attributes:
        buffer: number of the kernel's buffer.
        offset: over the symbol `BATCH`, the number of the product.
    """

    buffer: int
    offset: Size
    by_row: Size
    by_column: Size
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel of the backend by its name, and why it was taken.

    Attributes:
        problem: what there was to compute, as one line of text; None where sizes are not known.
        variants: all that could compute it, the one that a rule would take first.
        measured: whether it is what this machine measured, or else what a rule says.
        flushes: whether it may take float32 below 2^-126 for 0, where a processor is slow with them.
    """

    variant: str
    why: str
    problem: str | None = None
    variants: tuple[str, ...] = ()
    measured: bool = False
    flushes: bool = False


@dataclass(frozen=True, slots=True)
class CodedWeights:
    """Weights of a product as integers, which the kernel itself multiplies with their scales.

    Attributes:
        block: values of K whose digits have one exponent; K is filled up to whole ones.
        shared: so many of these blocks share a scale.
        zero: the zero point of all; `zeros` is the buffer of theirs where they differ.
        digits: of 8 bits, that a number of the other operand is cut into.
        scales: the buffer of the scales.
        scratch: for the digits.
    """

    bits: int
    block: int
    shared: int
    zero: int
    digits: int
    scales: int
    zeros: int | None
    scratch: int


@dataclass(frozen=True, slots=True)
class Begin:
    """What sums of bytes begin with in a column of B: factor · (the sum of the column's bytes - K · zero) + offset."""

    factor: int
    zero: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProductKernel:
    """Batched matrix products, by a kernel of the backend.

    Attributes:
        a: its rows are read where they lie.
        b: None where a constant was packed beforehand: then its buffer is `packed`.
        packed: the buffer of the packed operand; scratch where it is packed by the kernel itself.
        panel: columns of a panel of the packed operand.
        choice: which kernel of the backend, and why.
        epilogue: what happens to a row of sums: over the symbols BATCH, ROW, COLUMN and COUNT, and
            the array SUMS. Its buffers and symbols are those of the whole kernel.
        start: the buffer of what sums of integers begin with, column by column; None where that is 0.
        begin: the same where the kernel finds it as it packs bytes.
        coded: what the packed operand is where it is not a matrix of `dtype`.
        origin: the byte of A that counts as 0 where bytes are split.
    """

    batch: Size
    rows: Size
    columns: Size
    inner: Size
    a: Matrix
    b: Matrix | None
    packed: int
    panel: int
    choice: Choice
    dtype: Dtype
    epilogue: Kernel
    start: int | None = None
    coded: CodedWeights | None = None
    origin: int = 0
    begin: Begin | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.epilogue.symbols

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.epilogue.reasons


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of sums of float16 before the epilogue reads them: an offset, and two limits.

    Attributes:
        offsets: a buffer of float16, one number a filter, and zeros up to the end of a panel.
    """

    offsets: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ConvolutionKernel:
    """A convolution over channels-last activations, by a kernel of the backend.

    Attributes:
        input, weights: buffers; the weights are packed constants.
        sizes, output_sizes: spatial sizes of the images.
        stored, dtype: the types of activations and weights, and of the sums.
        choice: which kernel of the backend, and why.
        epilogue: as of a product; the batch is the image, the row its pixel, the column the filter.
        padding: what stands for 0, where activations are bytes: the byte, or its number where each channel is by itself.
        start, origin: as of a product.
        ending: what the kernel itself does to its sums, where these are float16.
    """

    input: int
    weights: int
    images: Size
    channels: int
    filters: int
    groups: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    sizes: tuple[Size, ...]
    output_sizes: tuple[Size, ...]
    stored: Dtype
    dtype: Dtype
    choice: Choice
    epilogue: Kernel
    padding: int = 0
    start: int | None = None
    origin: int = 0
    ending: Ending | None = None

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.channels

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.epilogue.symbols

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.epilogue.reasons


@dataclass(frozen=True, slots=True)
class AttentionKernel:
    """softmax(scores(Q K)) V for every batch, a few rows at a time: the scores are never all there.

    The kernels are functions of a row, over the symbols BATCH, ROW, COLUMN and COUNT, and the array
    SUMS, which all but the epilogue fill. Their buffers and symbols are those of the whole kernel.

    Attributes:
        rows, keys: of a batch.
        size, width: of a query, and of a row of the values.
        packed_keys, packed_values: scratch for panels of `panel` columns.
        packed: the type of the panels; "f16" where float32 is multiplied in float16 arithmetic.
        guarded: rows of weights that are NaN count as rows of zeros.
        query, key, value: read row ROW of an operand; a row of keys is a column of K.
        scores: what happens to products of query ROW with COUNT keys from COLUMN on.
        epilogue: as of a product.
    """

    batch: Size
    rows: Size
    keys: Size
    size: int
    width: int
    packed_keys: int
    packed_values: int
    panel: int
    packed: Dtype
    guarded: bool
    dtype: Dtype
    query: Kernel
    key: Kernel
    value: Kernel
    scores: Kernel
    epilogue: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.query, self.key, self.value, self.scores, self.epilogue

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.epilogue.symbols

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.epilogue.reasons


# The arguments of an epilogue.
BATCH, ROW, COLUMN, COUNT, SUMS = "%b", "%m", "%n", "%count", "sums"

KernelSource: TypeAlias = Kernel | ProductKernel | ConvolutionKernel | AttentionKernel


@dataclass(frozen=True, slots=True)
class Step:
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


@dataclass(frozen=True, slots=True)
class Jump:
    """Goes on with another step: always, or where a condition is false.

    Attributes:
        unless: a tensor of one bool; None for always.
        node: number of the If or Loop that it belongs to.
    """

    to: int
    unless: int | None
    node: int


@dataclass(frozen=True, slots=True)
class Count:
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
class Operand:
    """An input of a node whose sizes are asked for: its type, its shape, and its tensor if it has one."""

    dtype: int  # of onnx
    shape: tuple[Size, ...]
    tensor: int | None


@dataclass(frozen=True, slots=True)
class SizeStep:
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


@dataclass(frozen=True, slots=True)
class BindStep:
    """Gives symbols the value of a tensor of one i64: sizes that a kernel has computed."""

    symbols: tuple[str, ...]
    tensor: int
    node: int


HostStep: TypeAlias = ReferenceStep | SizeStep | BindStep  # done by the host, between two calls
AnyStep: TypeAlias = Step | Jump | Count | HostStep


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """Where one node of the model went."""

    node: str
    op: str
    native: bool
    reason: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Texts:
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
