"""One node as a rule sees it: attributes, facts about inputs, and the way to state outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.limits import DEFAULT_LIMITS
from sardonyx.model.source import describe, source_line
from sardonyx.ops.facts import Facts, Shape, Values
from sardonyx.ops.schema import Signature, signature_of
from sardonyx.sizes import Expr, Ratio, Size, symbol

__all__ = ["Call"]

MAX_DIMENSION = 2**63 - 1


class Call:
    """A node, what is known about its inputs, and the opset version that gives it meaning."""

    __slots__ = ("_signature", "bound", "inputs", "node", "scope", "version")

    def __init__(
        self,
        node: ir.Node,
        inputs: Sequence[Facts | None],
        version: int,
        scope: str = "",
        bound: Mapping[str, ir.Attr] | None = None,
    ) -> None:
        self.node = node
        self.inputs = inputs
        self.version = version
        self.scope = scope  # tells apart symbols of one function's several calls
        self.bound = bound  # what a function's caller passed for its attributes
        self._signature: Signature | None = None

    # What the node says

    def attribute(self, name: str) -> ir.Attr | None:
        """An attribute as the schema types it; None when it is absent."""
        found = self.node.attributes.get(name)
        if found is not None and found.is_ref():
            found = None if self.bound is None else self.bound.get(found.ref_attr_name or "")
        if found is not None and self.signature is not None:
            wanted = self.signature.attributes.get(name, found.type)
            if found.type != wanted:
                self.fail(f"attribute {name!r} must be of type {wanted}, but is {found.type}")
        return found

    def attr(self, name: str, default: Any = None) -> Any:
        found = self.attribute(name)
        return default if found is None else found.value

    def int_attr(self, name: str, default: int = 0) -> int:
        return int(self.attr(name, default))

    def ints_attr(self, name: str) -> tuple[int, ...] | None:
        value = self.attr(name)
        return None if value is None else tuple(value)

    def str_attr(self, name: str, default: str = "") -> str:
        value = self.attr(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def dtype_attr(self, name: str) -> ir.DataType | None:
        """A data type by its number; None when the attribute is absent."""
        number = self.attr(name)
        if number is None:
            return None
        if not isinstance(number, int) or not 0 < number <= max(ir.DataType):
            self.fail(f"attribute {name!r} is {number!r}, which names no data type")
        return ir.DataType(number)

    @property
    def signature(self) -> Signature | None:
        if self._signature is None:
            self._signature = signature_of(self.node.domain, self.node.op_type, self.version)
        return self._signature

    # What is known about inputs

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index: int) -> Facts:
        """Facts about an input that the operator needs."""
        if index < len(self.inputs):
            found = self.inputs[index]
            if found is not None:
                return found
        formal = self.signature.input(index) if self.signature else None
        raise self.error(f"input {index} ({formal.name if formal else '?'}) is missing")

    def shape(self, index: int) -> Shape | None:
        """The shape of an input; None when it is absent or its rank unknown."""
        found = self.inputs[index] if index < len(self.inputs) else None
        return None if found is None else found.shape

    def dtype(self, index: int) -> ir.DataType | None:
        found = self.inputs[index] if index < len(self.inputs) else None
        return None if found is None else found.dtype

    def value(self, index: int) -> Values | None:
        """The elements of an input; None when it is absent or they are not known."""
        found = self.inputs[index] if index < len(self.inputs) else None
        return None if found is None else found.value

    def vector(self, index: int) -> list[Any] | None:
        """The elements of an input that must be one-dimensional (a scalar passes as one)."""
        found = self.value(index)
        if found is None:
            return None
        if found.ndim > 1:
            self.fail(f"input {index} must have one dimension, but has shape {found.shape}")
        return list(found.reshape(-1))

    def integers(self, index: int) -> list[int] | None:
        """As `vector`, when every element is a plain int (axes, say)."""
        found = self.vector(index)
        if found is None or any(isinstance(element, Expr) for element in found):
            return None
        return [int(element) for element in found]

    def scalar(self, index: int) -> Any:
        """The one element of an input; None when unknown."""
        found = self.value(index)
        if found is None:
            return None
        if found.size != 1:
            self.fail(f"input {index} must be a scalar, but has shape {found.shape}")
        return found.reshape(-1)[0]

    def whole(self, index: int) -> Size | None:
        """As `scalar`, a number of things: cut to an integer where the type is a float."""
        found = self.scalar(index)
        return None if found is None else self._cut(found, index)

    def sizes(self, index: int) -> list[Size] | None:
        """As `vector`, numbers of things: cut to integers where the type is a float."""
        found = self.vector(index)
        return None if found is None else [self._cut(element, index) for element in found]

    def _cut(self, element: Any, index: int) -> Size:
        if isinstance(element, Ratio):
            return element.floor()
        if isinstance(element, float) and not isfinite(element):
            self.fail(f"input {index} has the element {element}; a finite number is needed")
        return element if isinstance(element, Expr) else int(element)

    def axis(self, axis: int, rank: int, *, what: str = "axis") -> int:
        """A non-negative axis; -1 is the last."""
        if not -rank <= axis < rank:
            self.fail(f"{what} {axis} is outside the rank {rank} (allowed: {-rank} to {rank - 1})")
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Iterable[int], rank: int) -> tuple[int, ...]:
        """Non-negative axes, none of them twice."""
        found = tuple(self.axis(int(axis), rank) for axis in axes)
        if len(set(found)) != len(found):
            self.fail(f"axes {found} name one dimension twice")
        return found

    # What the rule answers

    def fresh(self, axis: int, output: int = 0) -> Expr:
        """A size that only data decides, named after the output it belongs to."""
        return symbol(f"{self.scope}{self._output_name(output)}.{axis}")

    def fresh_shape(self, rank: int, output: int = 0) -> Shape:
        return tuple(self.fresh(axis, output) for axis in range(rank))

    def _output_name(self, output: int) -> str:
        outputs = self.node.outputs
        name = outputs[output].name if output < len(outputs) else None
        return name or f"{self.node.name or self.node.op_type}:{output}"

    def output_dtype(self, output: int = 0) -> ir.DataType | None:
        """What the schema says the type of an output is, given the inputs' types."""
        signature = self.signature
        index = signature.output(output) if signature else None
        if signature is None or index is None:
            return None
        fixed = signature.output_dtypes[index]
        if fixed is not None:
            return fixed
        for source in signature.output_sources[index]:
            dtype = self.dtype(source)
            if dtype is not None:
                return dtype
        return None

    def out(
        self,
        shape: Iterable[Size] | None,
        output: int = 0,
        dtype: ir.DataType | None = None,
        value: Values | None = None,
    ) -> Facts:
        """A tensor output; its type is the schema's answer unless given."""
        dims = None if shape is None else tuple(shape)
        if dims is not None:
            self._check_dims(dims, output)
        return Facts("tensor", self.output_dtype(output) if dtype is None else dtype, dims, value)

    def _check_dims(self, dims: Shape, output: int) -> None:
        if len(dims) > DEFAULT_LIMITS.rank:
            self.fail(
                f"output {output} would have {len(dims)} dimensions, more than the limit "
                f"{DEFAULT_LIMITS.rank}"
            )
        for axis, dim in enumerate(dims):
            if isinstance(dim, int) and not 0 <= dim <= MAX_DIMENSION:
                self.fail(f"dimension {axis} of output {output} would be {dim}")

    def same(self, index: int = 0, output: int = 0) -> Facts:
        """A tensor output with the shape of an input."""
        return self.out(self.input(index).shape, output)

    def error(self, message: str, *, hint: str | None = None) -> ShapeError:
        where, source = describe(self.node), source_line(self.node)
        return ShapeError(f"{message}.", where=where, source=source, hint=hint)

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Refuse the node: its inputs and attributes contradict the specification."""
        raise self.error(message, hint=hint)

    def need_rank(self, index: int, *ranks: int) -> Shape | None:
        """The input's shape, refused when its rank is known and none of `ranks`."""
        shape = self.input(index).shape
        if shape is not None and len(shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            self.fail(
                f"input {index} must have rank {expected}, but has shape {list(map(str, shape))}"
            )
        return shape

    def agree(self, a: Size, b: Size, what: str) -> Size:
        """Two sizes that must be equal: the known one, or a refusal when both are and differ."""
        if isinstance(a, int) and isinstance(b, int):
            if a != b:
                self.fail(f"{what}: {a} and {b} must be equal")
            return a
        return a if isinstance(a, int) else b if isinstance(b, int) else a
