"""What a model says about its values, and whether the graph agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir

from sardonyx.model.carried.maps import declared_type
from sardonyx.ops.facts import Facts, Shape
from sardonyx.sizes import Expr, Size, at_least, parse, symbol

__all__ = ["Conflict", "declared_facts", "reconcile"]

# Texts that exporters write for "not known": they tie nothing to anything.
ANONYMOUS = frozenset({"", "?", "None", "none", "*", "-1", "unk", "unknown"})


@dataclass(frozen=True)
class Conflict:
    """A declaration that the graph contradicts."""

    value: str
    declared: Facts
    inferred: Facts


def declared_facts(value: ir.Value, fresh: Callable[[int], Expr]) -> Facts | None:
    """The declared type and shape; dimensions without a name get `fresh(axis)`."""
    if value.type is None:
        proto = declared_type(value)
        return None if proto is None else _facts_of_proto(proto)
    return _facts_of_type(value.type, value.shape, fresh)


def _facts_of_type(
    kind: ir.TypeProtocol, shape: ir.Shape | None, fresh: Callable[[int], Expr]
) -> Facts:
    if isinstance(kind, ir.SequenceType):
        return Facts("sequence", element=_facts_of_type(kind.elem_type, shape, fresh))
    if isinstance(kind, ir.OptionalType):
        return Facts("optional", element=_facts_of_type(kind.elem_type, shape, fresh))
    dtype = None if kind.dtype == ir.DataType.UNDEFINED else kind.dtype
    dims: Shape | None = None
    if shape is not None:
        dims = tuple(_size(dim, axis, fresh) for axis, dim in enumerate(shape))
    return Facts("sparse" if isinstance(kind, ir.SparseTensorType) else "tensor", dtype, dims)


def _size(dim: int | ir.SymbolicDim, axis: int, fresh: Callable[[int], Expr]) -> Size:
    if isinstance(dim, int):
        return dim if dim >= 0 else fresh(axis)  # -1 is how some exporters say unknown
    if dim.value is None or dim.value.strip() in ANONYMOUS:
        return fresh(axis)
    size = parse(dim.value)
    # Arithmetic over names that comes out as a number, or below zero, was a name after all.
    if isinstance(size, int):
        return size if size >= 0 else symbol(dim.value)
    return size


def _facts_of_proto(proto: onnx.TypeProto) -> Facts:
    """Types that hold maps, which onnx_ir does not have."""
    kind = proto.WhichOneof("value")
    if kind == "map_type":
        value = _facts_of_proto(proto.map_type.value_type)
        return Facts("map", ir.DataType(proto.map_type.key_type), element=value)
    if kind in ("sequence_type", "optional_type"):
        element = _facts_of_proto(getattr(proto, kind).elem_type)
        return Facts("sequence" if kind == "sequence_type" else "optional", element=element)
    tensor = proto.tensor_type
    dtype = ir.DataType(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return Facts("tensor", dtype)
    known = all(dim.HasField("dim_value") for dim in tensor.shape.dim)
    return Facts("tensor", dtype, tuple(d.dim_value for d in tensor.shape.dim) if known else None)


def reconcile(
    inferred: Facts, declared: Facts | None, is_fresh: Callable[[Size], bool]
) -> tuple[Facts, bool]:
    """What to believe, and whether the declaration is contradicted.

    The graph wins wherever it says anything; a declaration fills only what it leaves open.
    """
    if declared is None:
        return inferred, False
    if _says_nothing(inferred):
        return declared, False
    if inferred.kind != declared.kind or _differ(inferred.dtype, declared.dtype):
        return inferred, True
    if inferred.kind in ("sequence", "optional", "map"):
        if inferred.element is None or declared.element is None:
            element = inferred.element or declared.element
            return replace(inferred, element=element), False
        element, conflict = reconcile(inferred.element, declared.element, is_fresh)
        return replace(inferred, element=element), conflict
    dtype = declared.dtype if inferred.dtype is None else inferred.dtype
    if inferred.shape is None:
        return replace(inferred, dtype=dtype, shape=declared.shape), False
    if declared.shape is None:
        return replace(inferred, dtype=dtype), False
    if len(inferred.shape) != len(declared.shape):
        return inferred, True
    shape = tuple(
        theirs if is_fresh(ours) and isinstance(theirs, int) else ours
        for ours, theirs in zip(inferred.shape, declared.shape, strict=True)
    )
    conflict = any(
        isinstance(theirs, int) and _never(ours, theirs)
        for ours, theirs in zip(shape, declared.shape, strict=True)
    )
    return replace(inferred, dtype=dtype, shape=shape), conflict


def _says_nothing(facts: Facts) -> bool:
    return facts.kind == "tensor" and facts.dtype is None and facts.shape is None


def _differ(a: ir.DataType | None, b: ir.DataType | None) -> bool:
    return a is not None and b is not None and a != b


def _never(ours: Size, theirs: int) -> bool:
    """Whether the two cannot be equal for any binding."""
    if isinstance(ours, int):
        return ours != theirs
    return at_least(ours, theirs + 1) or at_least(theirs - 1, ours)
