"""The ONNX graph under construction.

    total = graph.op("Add", x, graph.constant(1, like=x))

Values know their element type; a constant is kept once, in the outermost graph, where every body can read it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.free_names import FreeNames
from sardonyx.errors import ConvertError

__all__ = [
    "BITS_OPSET",
    "OPSET",
    "SMALL_FLOAT_OPSET",
    "Dim",
    "Graph",
    "dtype_of",
    "is_known",
    "onnx_shape",
    "tensor_of",
]

OPSET = 21
SMALL_FLOAT_OPSET = 22  # bfloat16 in every operator of floats
BITS_OPSET = 26  # BitCast

_STACK_TRACE = "sardonyx.stack_trace"
_MOST_KEPT_ONCE = 1 << 12  # bytes; larger constants are told apart by their arrays alone

Dim = Any  # an int, or a size of jax.export over symbols


def is_known(dims: Sequence[Dim]) -> bool:
    """Whether no symbol is among the sizes."""
    return all(isinstance(dim, int | np.integer) for dim in dims)


class Graph:
    """Nodes and constants as they are written.

    Attributes:
        opset: the lowest version that has all operators written so far.
        line: of the user's source, that nodes are written for.
        symbols: the size of every open axis, as int64[1].
        initializers: by their names.
        names: what the user calls those that are weights of his, or views of them.
    """

    def __init__(self) -> None:
        self.opset = OPSET
        self.line: str | None = None
        self.symbols: dict[str, ir.Value] = {}
        self.initializers: dict[str, ir.Value] = {}
        self.names: dict[ir.Value, str] = {}
        self._blocks: list[list[ir.Node]] = [[]]
        self._known: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._free = FreeNames()

    # ------------------------------------------------------------ values

    def reserve(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        return self._free.reserve(name)

    def release(self, value: ir.Value) -> None:
        """Its name is free again."""
        self._free.release(value.name or "", self.names.get(value, ""))

    def value(self, name: str, dtype: np.dtype[Any], shape: Sequence[Dim]) -> ir.Value:
        """A value that nobody has computed: an input of the graph or of a body."""
        kind = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
        return ir.Value(name=self.reserve(name), type=kind, shape=onnx_shape(shape))

    def constant(self, value: Any, dtype: Any = None, *, like: ir.Value | None = None) -> ir.Value:
        """A constant of the model; small ones that are equal are kept once."""
        if like is not None:
            dtype = dtype_of(like)
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        if array.nbytes > _MOST_KEPT_ONCE:
            return self.parameter("const", array)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.parameter("const", array)
        return self._known[key]

    def parameter(self, name: str, array: np.ndarray[Any, np.dtype[Any]]) -> ir.Value:
        """A constant of the user's own, by its own name."""
        made = self.value(name, array.dtype, array.shape)
        made.const_value = ir.tensor(array, dtype=made.dtype, name=made.name)
        assert made.name is not None
        self.initializers[made.name] = made
        return made

    def view(self, value: ir.Value, array: np.ndarray[Any, np.dtype[Any]]) -> ir.Value:
        """A constant of the user's own with its axes changed; it keeps its name."""
        assert value.name is not None
        made = self.parameter(self.names.get(value, value.name), array)
        self.names[made] = self.names.get(value, value.name)
        return made

    def known(self, value: ir.Value) -> np.ndarray[Any, np.dtype[Any]] | None:
        """The numbers of a constant."""
        return None if value.const_value is None else value.const_value.numpy()

    # ------------------------------------------------------------ nodes

    def op(
        self, kind: str, *inputs: ir.Value | None, dtype: Any = None, **attributes: Any
    ) -> ir.Value:
        """Write a node with one output; it has its operands' type unless another is told."""
        (made,) = self.node(kind, inputs, (dtype,), **attributes)
        return made

    def node(
        self, kind: str, inputs: Sequence[ir.Value | None], dtypes: Sequence[Any], **attributes: Any
    ) -> Sequence[ir.Value]:
        """Write a node; a type of None is that of its operands."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        line = {_STACK_TRACE: self.line} if self.line else None
        name = self.reserve(kind)
        made = ir.node(
            kind, inputs, attributes, num_outputs=len(dtypes), name=name, metadata_props=line
        )
        for index, (output, dtype) in enumerate(zip(made.outputs, dtypes, strict=True)):
            output.name = name if index == 0 else self.reserve(f"{kind}_output")
            made_of = _result(kind, inputs) if dtype is None else _onnx_type(dtype)
            output.type = None if made_of is None else ir.TensorType(made_of)
        self._blocks[-1].append(made)
        return made.outputs

    def cast(self, value: ir.Value, dtype: Any) -> ir.Value:
        wanted = np.dtype(dtype)
        if dtype_of(value) == wanted:
            return value
        known = self.known(value)
        if (
            known is not None
            and known.size <= 1
            and wanted.kind in "biu"
            and known.dtype.kind in "bi"
        ):
            return self.constant(known.astype(wanted))
        return self.op("Cast", value, dtype=wanted, to=int(ir.DataType.from_numpy(wanted)))

    def require(self, opset: int) -> None:
        """Operators of this version are written."""
        self.opset = max(self.opset, opset)

    # ------------------------------------------------------------ sizes

    def size(self, dim: Dim) -> ir.Value:
        """A size as int64[1]."""
        if is_known((dim,)):
            return self.constant([int(dim)], np.int64)
        return self._evaluate(ast.parse(str(dim), mode="eval").body, str(dim))

    def sizes(self, dims: Sequence[Dim]) -> ir.Value:
        """Sizes as int64[n]; neighbours that are numbers stay one constant."""
        if is_known(dims):
            return self.constant([int(dim) for dim in dims], np.int64)
        parts: list[ir.Value] = []
        numbers: list[int] = []
        for dim in dims:
            if is_known((dim,)):
                numbers.append(int(dim))
                continue
            if numbers:
                parts.append(self.constant(numbers, np.int64))
                numbers = []
            parts.append(self.size(dim))
        if numbers:
            parts.append(self.constant(numbers, np.int64))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def scalar_size(self, dim: Dim) -> ir.Value:
        """A size as int64[]."""
        if is_known((dim,)):
            return self.constant(int(dim), np.int64)
        return self.op("Squeeze", self.size(dim), self.constant([0], np.int64))

    def _evaluate(self, tree: ast.expr, text: str) -> ir.Value:
        """JAX prints its sizes as Python: sums and products, floordiv(a, b), mod(a, b), max(a, b), min(a, b)."""
        match tree:
            case ast.Constant(value=int() as number):
                return self.constant([number], np.int64)
            case ast.Name(id=name) if name in self.symbols:
                return self.symbols[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.op("Neg", self._evaluate(inner, text))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                base = self._evaluate(left, text)
                made = base
                for _ in range(power - 1):
                    made = self.op("Mul", made, base)
                return made
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as kind, right=right):
                name = (
                    type(kind).__name__.removesuffix("t")
                    if isinstance(kind, ast.Mult)
                    else type(kind).__name__
                )
                return self.op(name, self._evaluate(left, text), self._evaluate(right, text))
            case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _CALLS:
                a, b = self._evaluate(left, text), self._evaluate(right, text)
                if name in ("max", "min"):
                    return self.op(name.capitalize(), a, b)
                rest = self.op("Mod", a, b)  # of the divisor's sign, as Python's
                return rest if name == "mod" else self.op("Div", self.op("Sub", a, rest), b)
        raise ConvertError(f"the size {text[:120]!r} cannot be computed from the inputs' sizes.")

    # ------------------------------------------------------------ bodies

    @contextmanager
    def block(self) -> Iterator[list[ir.Node]]:
        """Nodes written inside belong to a body."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    def body(
        self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], nodes: list[ir.Node]
    ) -> ir.Graph:
        """The nodes of the block that is open, as a body; every output is a node's own."""
        seen: set[ir.Value] = set()
        given = []
        for output in outputs:
            own = output.producer() in nodes and output not in seen
            given.append(output if own else self.op("Identity", output))
            seen.add(output)
        return ir.Graph(inputs, given, nodes=nodes, name=self.reserve("body"))

    @property
    def nodes(self) -> list[ir.Node]:
        """Of the outermost graph."""
        return self._blocks[0]


_TRUTHS = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf"})
_CALLS = frozenset({"floordiv", "mod", "max", "min"})


def _onnx_type(dtype: Any) -> ir.DataType:
    return ir.DataType.from_numpy(np.dtype(dtype))


def _result(kind: str, inputs: Sequence[ir.Value | None]) -> ir.DataType | None:
    if kind in _TRUTHS:
        return ir.DataType.BOOL
    first = inputs[1 if kind == "Where" else 0]
    return None if first is None else first.dtype


def dtype_of(value: ir.Value) -> np.dtype[Any]:
    assert value.dtype is not None
    return value.dtype.numpy()


def tensor_of(aval: Any) -> tuple[np.dtype[Any], tuple[Dim, ...]]:
    """The element type and the shape that a value of JAX has in ONNX; a key of random numbers is its two words."""
    if str(aval.dtype).startswith("key<"):
        return np.dtype(np.uint32), (*aval.shape, 2)
    return np.dtype(aval.dtype), tuple(aval.shape)


def onnx_shape(dims: Sequence[Dim]) -> ir.Shape:
    """Sizes as ONNX declares them; what is more than a symbol is left open."""
    return ir.Shape(
        [int(d) if is_known((d,)) else (str(d) if str(d).isidentifier() else None) for d in dims]
    )
