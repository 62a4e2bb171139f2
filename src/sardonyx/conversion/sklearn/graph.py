"""The graph under construction, and tensors of it that are written down as numpy is.

    scores = x @ model.coef_.T + model.intercept_        three nodes and two constants
    label = scores.argmax(1)

A tensor knows its element type and its shape, with None for the batch, so that numbers from an estimator take
the type of what they meet and a table knows how wide it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper, numpy_helper

__all__ = ["ML_OPSET", "OPSET", "TEXT", "Graph", "Operand", "Shape", "Tensor", "concat", "stack"]

OPSET = 21
ML_OPSET = 3
ML = "ai.onnx.ml"

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int | None, ...]
Operand: TypeAlias = "Tensor | Array | float | int"

TEXT = np.dtype(object)


class Graph:
    """Nodes and constants as they are written.

    Attributes:
        number: the type that real numbers are computed in.
    """

    def __init__(self, number: DTypeLike) -> None:
        self.number = np.dtype(number)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._written: dict[bytes, list[str]] = {}
        self._count = 0

    def new_name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, value: Any, dtype: DTypeLike | None = None) -> Tensor:
        """An array of the model as it is, or of another type; equal ones are kept once."""
        array = np.asarray(value, dtype)
        if array.dtype.kind in "US":
            array = array.astype(object)
        raw = repr(array.tolist()).encode() if array.dtype == TEXT else array.tobytes()
        key = (array.dtype.str, array.shape, raw)
        if key not in self._known:
            self._known[key] = self.new_name("const")
            if array.dtype == TEXT:
                texts = [str(item).encode() for item in array.reshape(-1)]
                made = onnx.TensorProto(
                    name=self._known[key], data_type=onnx.TensorProto.STRING, dims=array.shape
                )
                made.string_data.extend(texts)
            else:
                made = numpy_helper.from_array(np.asarray(array, order="C"), self._known[key])
            self.constants.append(made)
        return Tensor(self, self._known[key], array.dtype, array.shape)

    def node(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        *,
        outputs: int = 1,
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Write a node, unless the same one is there; the names of what it gives."""
        fed = ["" if value is None else value.name for value in inputs]
        made = helper.make_node(op, fed, [], domain=domain, **attributes)
        key = made.SerializeToString(deterministic=True)
        if key not in self._written:
            names = [self.new_name(op) for _ in range(outputs)]
            made.output.extend(names)
            made.name = names[0]
            self.nodes.append(made)
            self._written[key] = names
        return self._written[key]

    def op(
        self,
        op: str,
        *inputs: Tensor | None,
        dtype: DTypeLike,
        shape: Shape,
        domain: str = "",
        **attributes: Any,
    ) -> Tensor:
        """Write a node with one output."""
        (name,) = self.node(op, inputs, domain=domain, **attributes)
        return Tensor(self, name, np.dtype(dtype), shape)


class Tensor:
    """A value of the graph."""

    __array_ufunc__ = None  # numpy leaves `array * tensor` to us

    def __init__(self, graph: Graph, name: str, dtype: np.dtype[Any], shape: Shape) -> None:
        self.graph = graph
        self.name = name
        self.dtype = dtype
        self.shape = shape

    @property
    def width(self) -> int:
        """How many columns it has."""
        size = self.shape[-1]
        if size is None:
            raise ValueError(f"{self.name} has no known width")
        return size

    # Arithmetic and comparison, with numbers of an estimator taking this tensor's type.

    def like(self, other: Operand) -> Tensor:
        """Another operand, in this tensor's type."""
        if isinstance(other, Tensor):
            return other.cast(self.dtype)
        return self.graph.constant(other, self.dtype)

    def _with(self, op: str, other: Operand, *, flip: bool = False, truth: bool = False) -> Tensor:
        right = self.like(other)
        pair = (right, self) if flip else (self, right)
        dtype = np.dtype(np.bool_) if truth else self.dtype
        return self.graph.op(op, *pair, dtype=dtype, shape=_broadcast(self.shape, right.shape))

    def __add__(self, other: Operand) -> Tensor:
        return self._with("Add", other)

    def __radd__(self, other: Operand) -> Tensor:
        return self._with("Add", other, flip=True)

    def __sub__(self, other: Operand) -> Tensor:
        return self._with("Sub", other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self._with("Sub", other, flip=True)

    def __mul__(self, other: Operand) -> Tensor:
        return self._with("Mul", other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self._with("Mul", other, flip=True)

    def __truediv__(self, other: Operand) -> Tensor:
        return self._with("Div", other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self._with("Div", other, flip=True)

    def __pow__(self, other: Operand) -> Tensor:
        return self._with("Pow", other)

    def __neg__(self) -> Tensor:
        return self.unary("Neg")

    def __lt__(self, other: Any) -> Tensor:
        return self._with("Less", other, truth=True)

    def __le__(self, other: Any) -> Tensor:
        return self._with("LessOrEqual", other, truth=True)

    def __gt__(self, other: Any) -> Tensor:
        return self._with("Greater", other, truth=True)

    def __ge__(self, other: Any) -> Tensor:
        return self._with("GreaterOrEqual", other, truth=True)

    def equals(self, other: Operand) -> Tensor:
        return self._with("Equal", other, truth=True)

    def __and__(self, other: Tensor) -> Tensor:
        return self._with("And", other, truth=True)

    def __or__(self, other: Tensor) -> Tensor:
        return self._with("Or", other, truth=True)

    def __invert__(self) -> Tensor:
        return self.unary("Not")

    def __matmul__(self, other: Operand) -> Tensor:
        right = self.like(other)
        shape = (*self.shape[:-1], right.shape[-1]) if len(right.shape) > 1 else self.shape[:-1]
        return self.graph.op("MatMul", self, right, dtype=self.dtype, shape=shape)

    # One tensor in, one out.

    def unary(self, op: str, **attributes: Any) -> Tensor:
        return self.graph.op(op, self, dtype=self.dtype, shape=self.shape, **attributes)

    def exp(self) -> Tensor:
        return self.unary("Exp")

    def log(self) -> Tensor:
        return self.unary("Log")

    def sqrt(self) -> Tensor:
        return self.unary("Sqrt")

    def abs(self) -> Tensor:
        return self.unary("Abs")

    def is_nan(self) -> Tensor:
        return self.graph.op("IsNaN", self, dtype=np.bool_, shape=self.shape)

    def cast(self, dtype: DTypeLike) -> Tensor:
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        to = onnx.TensorProto.STRING if kind == TEXT else helper.np_dtype_to_tensor_dtype(kind)
        return self.graph.op("Cast", self, dtype=kind, shape=self.shape, to=to)

    def clip(self, low: float | None, high: float | None) -> Tensor:
        ends = [
            None if end is None else self.graph.constant(end, self.dtype) for end in (low, high)
        ]
        return self.graph.op("Clip", self, *ends, dtype=self.dtype, shape=self.shape)

    def minimum(self, other: Operand) -> Tensor:
        return self._with("Min", other)

    def maximum(self, other: Operand) -> Tensor:
        return self._with("Max", other)

    # Along an axis.

    def _reduced(self, axis: int, keep: bool) -> Shape:
        axis %= len(self.shape)
        if keep:
            return (*self.shape[:axis], 1, *self.shape[axis + 1 :])
        return (*self.shape[:axis], *self.shape[axis + 1 :])

    def reduce(self, op: str, axis: int, keep: bool = False) -> Tensor:
        axes = self.graph.constant([axis], np.int64)
        shape = self._reduced(axis, keep)
        return self.graph.op(op, self, axes, dtype=self.dtype, shape=shape, keepdims=int(keep))

    def sum(self, axis: int, keep: bool = False) -> Tensor:
        return self.reduce("ReduceSum", axis, keep)

    def max(self, axis: int, keep: bool = False) -> Tensor:
        return self.reduce("ReduceMax", axis, keep)

    def logsumexp(self, axis: int, keep: bool = False) -> Tensor:
        """Around the largest term, so that nothing overflows."""
        top = self.max(axis, keep=True)
        total = (self - top).exp().sum(axis, keep=True).log() + top
        return total if keep else total.squeeze(axis)

    def softmax(self) -> Tensor:
        return self.graph.op("Softmax", self, dtype=self.dtype, shape=self.shape, axis=-1)

    def argmax(self, axis: int = 1) -> Tensor:
        """The first of the largest, as numpy's."""
        shape = self._reduced(axis, False)
        return self.graph.op("ArgMax", self, dtype=np.int64, shape=shape, axis=axis, keepdims=0)

    def argmin(self, axis: int = 1) -> Tensor:
        shape = self._reduced(axis, False)
        return self.graph.op("ArgMin", self, dtype=np.int64, shape=shape, axis=axis, keepdims=0)

    # Shape.

    def squeeze(self, axis: int) -> Tensor:
        axes = self.graph.constant([axis], np.int64)
        shape = self._reduced(axis, False)
        return self.graph.op("Squeeze", self, axes, dtype=self.dtype, shape=shape)

    def expand(self, axis: int) -> Tensor:
        """With a new axis of size one at this place."""
        axes = self.graph.constant([axis], np.int64)
        at = axis % (len(self.shape) + 1)
        shape = (*self.shape[:at], 1, *self.shape[at:])
        return self.graph.op("Unsqueeze", self, axes, dtype=self.dtype, shape=shape)

    def reshape(self, *sizes: int | None) -> Tensor:
        """To these sizes; None is whatever is left (the batch)."""
        wanted = self.graph.constant([-1 if size is None else size for size in sizes], np.int64)
        return self.graph.op("Reshape", self, wanted, dtype=self.dtype, shape=sizes)

    def columns(self, places: Sequence[int] | NDArray[np.int64]) -> Tensor:
        """Some of the columns, in this order."""
        wanted = [int(place) for place in places]
        if wanted == list(range(self.width)):
            return self
        return self.take(self.graph.constant(wanted, np.int64), axis=len(self.shape) - 1)

    def take(self, places: Tensor, axis: int = 0) -> Tensor:
        shape = (*self.shape[:axis], *places.shape, *self.shape[axis + 1 :])
        return self.graph.op("Gather", self, places, dtype=self.dtype, shape=shape, axis=axis)

    def repeated(self, row: Tensor) -> Tensor:
        """A row [width] for every row of this tensor: [batch, width]."""
        count = self.graph.op("Shape", self, dtype=np.int64, shape=(1,), start=0, end=1)
        sizes = concat([count, self.graph.constant([row.width], np.int64)], axis=0)
        return self.graph.op("Expand", row, sizes, dtype=row.dtype, shape=(None, row.width))

    def where(self, yes: Operand, no: Operand) -> Tensor:
        """This condition chooses between the two; one of them at least is a tensor."""
        model = yes if isinstance(yes, Tensor) else no
        if not isinstance(model, Tensor):
            model = self.graph.constant(0, self.graph.number)
        yes, no = model.like(yes), model.like(no)
        shape = _broadcast(self.shape, _broadcast(yes.shape, no.shape))
        return self.graph.op("Where", self, yes, no, dtype=model.dtype, shape=shape)


def concat(tensors: Sequence[Tensor], axis: int = 1) -> Tensor:
    """Side by side; all of one type."""
    first = tensors[0]
    if len(tensors) == 1:
        return first
    sizes = [tensor.shape[axis] for tensor in tensors]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return first.graph.op("Concat", *tensors, dtype=first.dtype, shape=shape, axis=axis)


def stack(tensors: Sequence[Tensor], axis: int = 1) -> Tensor:
    """Along a new axis."""
    return concat([tensor.expand(axis) for tensor in tensors], axis)


def _broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(
        x if y == 1 else (y if x == 1 or x is None else x) for x, y in zip(a, b, strict=True)
    )
