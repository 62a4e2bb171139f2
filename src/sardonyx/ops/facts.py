"""What is known about one value before it runs.

Facts("tensor", FLOAT, (batch, 3, 224, 224))
Facts("tensor", INT64, (2,), value=[batch, 768])        a shape that the graph computes
Facts("sequence", shape=(3,), element=Facts("tensor", FLOAT, …))
Facts("map", INT64, element=Facts("tensor", FLOAT, ()))     keys INT64, values FLOAT
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.sizes import Expr, Ratio, Size, symbol, symbols

__all__ = [
    "VARYING",
    "Facts",
    "Kind",
    "Shape",
    "Values",
    "as_array",
    "common_shape",
    "element_symbols",
    "fact_symbols",
    "facts_of_array",
    "facts_of_tensor",
    "is_concrete",
    "keeps_value",
    "objects",
    "sequence_of",
    "unknown",
]

Kind: TypeAlias = Literal["tensor", "sequence", "optional", "sparse", "map"]
Shape: TypeAlias = tuple[Size, ...]
Values: TypeAlias = npt.NDArray[Any]  # of dtype object

MAX_KNOWN_INTEGERS = 1024
MAX_KNOWN_RANK = 32  # of arrays in every supported numpy
MAX_KNOWN_FLOATS = 64  # enough for scales, bounds and coordinates; weights are none of these

DISCRETE = frozenset(
    {
        ir.DataType.BOOL,
        ir.DataType.INT8,
        ir.DataType.INT16,
        ir.DataType.INT32,
        ir.DataType.INT64,
        ir.DataType.UINT8,
        ir.DataType.UINT16,
        ir.DataType.UINT32,
        ir.DataType.UINT64,
    }
)
CONTINUOUS = frozenset(
    {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about one value before it runs.

    Attributes:
        kind: what the value is.
        dtype: of a tensor's elements, or of a map's keys; None when unknown or a container.
        shape: the dimensions; None when not even the rank is known. Of a sequence: (length,).
        value: the elements themselves, when they are known: an object array of `Size` for
            integers, `bool` for booleans, `float` or the exact `Ratio` for floats. Of a
            sequence: an array of `Facts`, one an element.
        element: what a sequence or optional holds, or a map's values. A size that differs from
            element to element is `VARYING`.
    """

    kind: Kind = "tensor"
    dtype: ir.DataType | None = None
    shape: Shape | None = None
    value: Values | None = None
    element: Facts | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Facts):
            return NotImplemented
        return (
            self.kind == other.kind
            and self.dtype == other.dtype
            and self.shape == other.shape
            and self.element == other.element
            and _same_values(self.value, other.value)
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.dtype, self.shape, self.element))

    def __str__(self) -> str:
        name = "?" if self.dtype is None else self.dtype.name.lower()
        if self.kind == "map":
            return f"map({name}, {self.element or '?'})"
        if self.kind in ("sequence", "optional"):
            return f"{self.kind}({self.element or '?'})"
        dims = "[...]" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return ("sparse " if self.kind == "sparse" else "") + name + dims

    @property
    def elements(self) -> Size | None:
        """How many elements a tensor has."""
        if self.shape is None:
            return None
        total: Size = 1
        for dim in self.shape:
            total = total * dim
        return total

    def with_value(self, value: Values | None) -> Facts:
        return replace(self, value=value)


UNKNOWN = Facts()
VARYING = symbol("*")  # in a sequence's element: every element has its own size here


def unknown(dtype: ir.DataType | None = None) -> Facts:
    """A tensor of which no more than perhaps the type is known."""
    return UNKNOWN if dtype is None else Facts("tensor", dtype)


def keeps_value(dtype: ir.DataType | None, shape: Sequence[Size] | None) -> bool:
    """Whether elements of such a tensor are worth knowing: few, and of a plain numeric type."""
    if dtype is None or shape is None or len(shape) > MAX_KNOWN_RANK:
        return False
    limit = MAX_KNOWN_INTEGERS if dtype in DISCRETE else MAX_KNOWN_FLOATS
    if dtype not in DISCRETE and dtype not in CONTINUOUS:
        return False
    count = 1
    for dim in shape:
        if not isinstance(dim, int):
            return False
        count *= dim
    return count <= limit


def facts_of_array(array: npt.NDArray[Any], dtype: ir.DataType | None = None) -> Facts:
    """Facts about an array that exists; its elements too where it is small."""
    dtype = ir.DataType.from_numpy(array.dtype) if dtype is None else dtype
    shape = array.shape
    value = array.astype(object) if keeps_value(dtype, shape) else None
    return Facts("tensor", dtype, shape, value)


def facts_of_tensor(tensor: ir.TensorProtocol) -> Facts:
    """Facts about a constant; the data of a large one is never touched."""
    shape = tuple(tensor.shape.numpy())
    if not keeps_value(tensor.dtype, shape):
        return Facts("tensor", tensor.dtype, shape)
    return Facts("tensor", tensor.dtype, shape, tensor.numpy().astype(object).reshape(shape))


def is_concrete(values: Values) -> bool:
    """Whether every element is a plain number."""
    return not any(isinstance(element, (Expr, Ratio)) for element in values.flat)


def as_array(facts: Facts) -> npt.NDArray[Any] | None:
    """The elements as a numpy array of the facts' own type, when all are plain numbers."""
    if facts.value is None or facts.dtype is None or not is_concrete(facts.value):
        return None
    return facts.value.astype(facts.dtype.numpy())


def objects(elements: Iterable[Any], shape: tuple[int, ...] | None = None) -> Values:
    """An object array of exactly these elements; numpy is not asked to guess their type."""
    listed = list(elements)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array if shape is None else array.reshape(shape)


def sequence_of(elements: Sequence[Facts]) -> Facts:
    """A sequence of exactly these elements."""
    few = len(elements) <= MAX_KNOWN_INTEGERS
    value = objects(elements) if few else None
    return Facts("sequence", None, (len(elements),), value, _common(elements))


def _common(elements: Sequence[Facts]) -> Facts | None:
    """What holds of every element."""
    common: Facts | None = None
    for facts in elements:
        facts = facts.with_value(None) if facts.kind == "tensor" else facts
        if common is None:
            common = facts
        elif common != facts:
            dtype = common.dtype if common.dtype == facts.dtype else None
            kind = common.kind if common.kind == facts.kind else "tensor"
            common = Facts(kind, dtype, common_shape(common.shape, facts.shape))
    return common


def common_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of elements that have either; sizes that differ are `VARYING`."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else VARYING for x, y in zip(a, b, strict=True))


def element_symbols(element: Any) -> frozenset[str]:
    """The symbols that one known element depends on."""
    if isinstance(element, Facts):
        return fact_symbols(element)
    if isinstance(element, Ratio):
        return symbols(element.numerator)
    return symbols(element) if isinstance(element, Expr) else frozenset()


def fact_symbols(facts: Facts) -> frozenset[str]:
    """Every symbol that a shape or a known element mentions."""
    found: set[str] = set()
    for size in facts.shape or ():
        found |= symbols(size)
    if facts.value is not None:
        for element in facts.value.flat:
            found |= element_symbols(element)
    if facts.element is not None:
        found |= fact_symbols(facts.element)
    return frozenset(found)


def _same_values(a: Values | None, b: Values | None) -> bool:
    if a is None or b is None or a is b:
        return a is b
    if a.shape != b.shape:
        return False
    return prod(a.shape) == 0 or all(x == y for x, y in zip(a.flat, b.flat, strict=True))
