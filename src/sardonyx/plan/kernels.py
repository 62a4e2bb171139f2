"""The kernels of a plan: what each computes, and which of the backend's was chosen for it.

A kernel of loops is its own text (`loops.nodes.Kernel`); contractions are a description, which the backend fills in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.loops.nodes import Dtype, Kernel
from sardonyx.sizes import Size

__all__ = [
    "BATCH",
    "COLUMN",
    "COUNT",
    "ROW",
    "SUMS",
    "AttentionKernel",
    "Begin",
    "Choice",
    "CodedWeights",
    "ConvolutionKernel",
    "Ending",
    "KernelSource",
    "Matrix",
    "ProductKernel",
]


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


class _Contraction:
    """A kernel of the backend around an epilogue, which all its symbols and reasons are listed in."""

    __slots__ = ()
    epilogue: Kernel

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.epilogue.symbols

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.epilogue.reasons


@dataclass(frozen=True, slots=True)
class ProductKernel(_Contraction):
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
        widened: the constant that was packed has the type that is summed, and not that of A.
        split: scratch for the parts of A's numbers, where all of them are split before any is multiplied.
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
    widened: bool = False
    split: int | None = None


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
class ConvolutionKernel(_Contraction):
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
        room: of axes where only a run knows whether a window fits: the padded input's size, what a window covers, and the
            number of the reason for refusing.
        split: as of a product.
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
    room: tuple[tuple[Size, int, int], ...] = ()
    split: int | None = None

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.channels


@dataclass(frozen=True, slots=True)
class AttentionKernel(_Contraction):
    """softmax(scores(Q K)) V for every batch, a few rows at a time: the scores are never all there.

    The kernels are functions of a row, over the symbols BATCH, ROW, COLUMN and COUNT, and the array
    SUMS, which all but the epilogue fill. Their buffers and symbols are those of the whole kernel.

    Attributes:
        rows, keys: of a batch.
        size, width: of a query, and of a row of the values.
        packed_keys, packed_values: scratch for panels of `panel` columns.
        variant: how float32 is multiplied: "f16" in float16 arithmetic, "amx3" and the like through AMX tiles, or "".
        guarded: rows of weights that are NaN count as rows of zeros.
        shared: so many batches, one after the other, have the same keys and values.
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
    variant: str
    guarded: bool
    shared: int
    dtype: Dtype
    query: Kernel
    key: Kernel
    value: Kernel
    scores: Kernel
    epilogue: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.query, self.key, self.value, self.scores, self.epilogue


# The arguments of an epilogue.
BATCH, ROW, COLUMN, COUNT, SUMS = "%b", "%m", "%n", "%count", "sums"

KernelSource: TypeAlias = Kernel | ProductKernel | ConvolutionKernel | AttentionKernel
