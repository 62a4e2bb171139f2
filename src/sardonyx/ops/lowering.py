"""What an operator's lowering is: its meaning in the kernel language.

    Element    out[index] as an expression of the inputs; fuses with its neighbours on both sides
    Relabel    the inputs' elements in the same order under another shape; costs nothing
    Nest       loops of its own, which read elements and store elements
    Counted    two nests: how many elements there will be, and then those
    Product    batched matrix products, for the contraction kernels to choose from
    Convolution  likewise, with its window
    IntegerProduct, IntegerConvolution   the same of bytes

A lowering sees a `Site`: the node, what is known about it, and a way to read elements of its inputs,
whatever those are by then: a buffer, a constant, or an expression that was never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.nodes import Dtype, Expr, apply
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape
from sardonyx.sizes import Size, max_of, min_of

__all__ = [
    "DTYPES",
    "USUAL_SUMS",
    "Bytes",
    "Contraction",
    "Convolution",
    "Counted",
    "Element",
    "IntegerConvolution",
    "IntegerProduct",
    "Lowering",
    "Nest",
    "NotNative",
    "Parts",
    "Position",
    "Product",
    "Relabel",
    "Site",
    "TransposedConvolution",
    "Window",
    "computed",
    "loop_dtype",
]

Position: TypeAlias = tuple[Size, ...]

USUAL_SUMS = 96  # 24 of the 32 registers of NEON, 12 of the 16 of AVX2

DTYPES: dict[ir.DataType, Dtype] = {
    ir.DataType.FLOAT16: "f16",
    ir.DataType.BFLOAT16: "bf16",
    ir.DataType.FLOAT: "f32",
    ir.DataType.DOUBLE: "f64",
    ir.DataType.INT8: "i8",
    ir.DataType.INT16: "i16",
    ir.DataType.INT32: "i32",
    ir.DataType.INT64: "i64",
    ir.DataType.UINT8: "u8",
    ir.DataType.UINT16: "u16",
    ir.DataType.UINT32: "u32",
    ir.DataType.UINT64: "u64",
    ir.DataType.BOOL: "bool",
    ir.DataType.FLOAT8E4M3FN: "f8e4m3fn",
    ir.DataType.FLOAT8E4M3FNUZ: "f8e4m3fnuz",
    ir.DataType.FLOAT8E5M2: "f8e5m2",
    ir.DataType.FLOAT8E5M2FNUZ: "f8e5m2fnuz",
    ir.DataType.FLOAT8E8M0: "f8e8m0",
    ir.DataType.FLOAT4E2M1: "f4e2m1",
    ir.DataType.INT4: "i4",
    ir.DataType.UINT4: "u4",
    ir.DataType.INT2: "i2",
    ir.DataType.UINT2: "u2",
}


class NotNative(Exception):  # noqa: N818  it is an answer, not a fault
    """A lowering's refusal, with its reason; the node then runs on the reference backend.

    `node` is the one that refused, filled in by whoever asked its lowering.
    """

    node: ir.Node | None = None


def loop_dtype(dtype: ir.DataType | None) -> Dtype:
    """The kernel language's name of an element type."""
    found = None if dtype is None else DTYPES.get(dtype)
    if found is None:
        name = "unknown" if dtype is None else dtype.name.lower()
        raise NotNative(f"elements of type {name} have no native code")
    return found


class Site:
    """One node while its kernel is written.

    Attributes:
        call: attributes, opset version, and facts about the inputs.
        outputs: facts about the outputs.
        b: the kernel so far.
        output: the number of the output whose element is asked for, where an Element is.
        channels_last: the first output lies in memory as (batch, spatial…, channels): loops over it are
            best nested so.
        sums: how many numbers registers hold beside what is multiplied.
    """

    def __init__(
        self,
        call: Call,
        outputs: Sequence[Facts],
        b: Builder,
        read: Callable[[int, Position], Expr],
        store: Callable[[int, Position, Expr], None] | None = None,
        constant: Callable[[int], npt.NDArray[Any] | None] | None = None,
        scratch: Callable[[Dtype, Size], str] | None = None,
        channels_last: bool = False,
        output: int = 0,
        table: Callable[[npt.NDArray[Any]], str] | None = None,
        kept: Callable[[Dtype, Size], str] | None = None,
        input_order: Callable[[int], tuple[int, ...]] | None = None,
        sums: int = USUAL_SUMS,
    ) -> None:
        self.call = call
        self.outputs = outputs
        self.b = b
        self._read = read
        self._store = store
        self._constant = constant
        self._scratch = scratch
        self.channels_last = channels_last
        self.output = output
        self._table = table
        self._kept = kept
        self._input_order = input_order
        self.sums = sums

    # Shapes and types

    def shape(self, index: int) -> Shape:
        """The shape of an input."""
        shape = self.call.input(index).shape
        if shape is None:
            raise NotNative(f"the rank of input {index} is not known before it runs")
        return shape

    def out_shape(self, output: int = 0) -> Shape:
        shape = self.outputs[output].shape
        if shape is None:
            raise NotNative(f"the rank of output {output} is not known before it runs")
        return shape

    def input_order(self, index: int) -> tuple[int, ...]:
        """The axes of an input as it lies in memory, or what it is computed of, the outermost first."""
        if self._input_order is None:
            return tuple(range(len(self.shape(index))))
        return self._input_order(index)

    def memory_order(self) -> tuple[int, ...]:
        """The axes of the first output as they lie in memory, the outermost first."""
        axes = tuple(range(len(self.out_shape())))
        return (0, *axes[2:], 1) if self.channels_last and len(axes) > 2 else axes

    def dtype(self, index: int) -> Dtype:
        return loop_dtype(self.call.input(index).dtype)

    def out_dtype(self, output: int = 0) -> Dtype:
        return loop_dtype(self.outputs[output].dtype)

    def refuse(self, reason: str) -> NoReturn:
        """This node, with these attributes and types, has no native code."""
        raise NotNative(reason)

    # Elements

    def read(self, index: int, position: Sequence[Size]) -> Expr:
        """An element of an input, as it is stored."""
        return self._read(index, tuple(position))

    def operand(self, index: int, position: Sequence[Size]) -> Expr:
        """An element to compute with: small floats become f32."""
        return computed(self.read(index, position))

    def broadcast(self, index: int, position: Sequence[Size]) -> Expr:
        """As `operand`, of an input that broadcasts to the output's shape."""
        return self.operand(index, self.spread(self.shape(index), position, self.out_shape()))

    def spread(self, shape: Shape, position: Sequence[Size], target: Shape) -> Position:
        """Where an element of `target` comes from, to which `shape` broadcasts.

        Whether it does is checked during the run where nobody can tell before.
        """
        skipped = len(target) - len(shape)
        axes = zip(shape, tuple(position)[skipped:], target[skipped:], strict=True)
        return tuple(self._spread_axis(*axis) for axis in axes)

    def _spread_axis(self, size: Size, at: Size, whole: Size) -> Size:
        if size == 1:
            return 0
        if size == whole:
            return at
        b = self.b
        with b.once():
            have, want = b.size(size), b.size(whole)
            fault = apply("ne", have, want) & apply("ne", have, 1)
            b.fail_if(fault, "a size of {value} does not broadcast to {limit}", have, want)
        return at * min_of(1, max_of(size - 1, 0))  # 0 where the size is 1

    def store(self, position: Sequence[Size], value: Expr, output: int = 0) -> None:
        """An element of an output; whatever was fused after the node happens here."""
        assert self._store is not None, "only a Nest stores"
        self._store(output, tuple(position), cast(value, self.out_dtype(output)))

    def constant(self, index: int) -> npt.NDArray[Any] | None:
        """The elements of an input that is a constant of the model; None where it is not."""
        return None if self._constant is None else self._constant(index)

    def table(self, array: npt.NDArray[Any]) -> str:
        """A buffer of constants that the lowering brings along, for `b.load`."""
        assert self._table is not None
        return self._table(array)

    def scratch(self, dtype: Dtype, size: Size) -> str:
        """A buffer of the kernel's own, for `b.load` and `b.store`."""
        assert self._scratch is not None, "only a Nest has scratch memory"
        return self._scratch(dtype, size)

    def kept(self, dtype: Dtype, size: Size) -> str:
        """A buffer that a Counted's first nest fills and its second reads, asked for in the same order."""
        assert self._kept is not None, "only a Counted keeps something"
        return self._kept(dtype, size)


def computed(value: Expr) -> Expr:
    """The value in the type that arithmetic uses for it."""
    return cast(value, "f32") if value.dtype in ("f16", "bf16") else value


ElementRule: TypeAlias = Callable[[Site, Position], Expr]
NestRule: TypeAlias = Callable[[Site], None]


@dataclass(frozen=True)
class Element:
    """out[position] = value(site, position), of the output number `site.output`.

    Attributes:
        weight: what one element costs, in multiplications; 0 for what only moves elements.
        pointwise: whether element i depends on the inputs at i alone (after broadcasting).
        narrow: whether it takes and gives types of fewer bits than the smallest that C has, and
            float8: those are only read, stored and converted.
        widens: whether it is the first input in more bits: readers had better read that, and widen it themselves.
    """

    value: ElementRule
    weight: int = 1
    pointwise: bool = False
    narrow: bool = False
    widens: bool = False


@dataclass(frozen=True)
class Relabel:
    """The first input's elements in the same order, under the output's shape.

    Attributes:
        check: says, once in a kernel, what must hold for that to be true where only a run can tell.
    """

    check: Callable[[Site], None] | None = None


@dataclass(frozen=True)
class Nest:
    """Loops that store every element of every output exactly once.

    Attributes:
        reads_once: whether each input element is read about once, so that what computes it may be fused in.
        stores_once: whether the epilogue of pointwise neighbours may be fused into its stores.
    """

    build: NestRule
    reads_once: bool = False
    stores_once: bool = True


@dataclass(frozen=True)
class Counted:
    """Outputs of a size that only data decide.

    Attributes:
        count: writes loops that find out how many there are, and answers that number as i64.
        build: then stores every element of every output exactly once, as a Nest does.
    """

    count: Callable[[Site], Expr]
    build: NestRule


@dataclass(frozen=True)
class Parts:
    """What the sizes of a product are products of, so that an operand which lies as no matrix may be laid out as one.

    Attributes:
        along: of each operand, which of the batch's dimensions it has.
    """

    rows: Shape
    inner: Shape
    columns: Shape
    along: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Contraction:
    """out[batch, m, n] = finish(sum over k of a[batch, m, k] * b[batch, k, n]).

    The functions read elements through the site that described it; `out` says where an element of
    the result belongs.

    Attributes:
        operands: which inputs of the node `a` and `b` read.
        parts: where an operand's elements may have any order in memory.
    """

    batch: Shape
    rows: Size
    columns: Size
    inner: Size
    dtype: Dtype  # of the sum
    a: Callable[[Position, Size, Size], Expr]
    b: Callable[[Position, Size, Size], Expr]
    finish: Callable[[Position, Size, Size, Expr], Expr]
    out: Callable[[Position, Size, Size], Position]
    operands: tuple[int, int] = (0, 1)
    parts: Parts | None = None

    def turned(self) -> Contraction:
        """The same result with rows for columns: C' = B' A'."""
        parts = self.parts
        return Contraction(
            batch=self.batch,
            rows=self.columns,
            columns=self.rows,
            inner=self.inner,
            dtype=self.dtype,
            a=lambda at, m, k: self.b(at, k, m),
            b=lambda at, k, n: self.a(at, n, k),
            finish=lambda at, m, n, total: self.finish(at, n, m, total),
            out=lambda at, m, n: self.out(at, n, m),
            operands=self.operands[::-1],
            parts=parts and Parts(parts.columns, parts.inner, parts.rows, parts.along[::-1]),
        )


@dataclass(frozen=True)
class Product:
    """A matrix product; the plan chooses a kernel for it, and a plain loop nest defines it."""

    describe: Callable[[Site], Contraction]


@dataclass(frozen=True)
class Window:
    """A convolution's geometry, one number a spatial dimension; `padded` are the sizes of the padded input."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[Size, ...]
    groups: int
    padded: tuple[Size, ...] = ()


@dataclass(frozen=True)
class Convolution:
    """x[n, c, spatial…] * w[o, c / groups, kernel…] + bias[o]; `nest` defines it."""

    describe: Callable[[Site], Window]
    nest: Nest


@dataclass(frozen=True)
class TransposedConvolution:
    """x[n, c, spatial…] spread by w[c, o / groups, kernel…], plus bias[o]; `nest` defines it.

    The window's `pads_begin` says how far into the full spread the output begins.
    """

    describe: Callable[[Site], Window]
    nest: Nest


@dataclass(frozen=True)
class Bytes:
    """Which inputs a contraction of bytes has, by number: its factors, and their zero points, which may be absent."""

    a: int
    a_zero: int
    b: int
    b_zero: int


@dataclass(frozen=True)
class IntegerProduct:
    """A product of bytes less their zero points, summed in 32 bits; `nest` defines it.

    Attributes:
        describe: factors as they lie in memory; `finish` takes the sum that has the zero points taken off.
    """

    operands: Bytes
    describe: Callable[[Site], Contraction]
    nest: Nest


@dataclass(frozen=True)
class IntegerConvolution:
    """A convolution of bytes less their zero points, summed in 32 bits; `nest` defines it.

    Attributes:
        finish: what the element of a position is, from its sum.
    """

    operands: Bytes
    describe: Callable[[Site], Window]
    finish: Callable[[Site], Callable[[Position, Expr], Expr]]
    nest: Nest


Lowering: TypeAlias = (
    "Element | Relabel | Nest | Counted | Product | Convolution | TransposedConvolution"
    " | IntegerProduct | IntegerConvolution"
)
