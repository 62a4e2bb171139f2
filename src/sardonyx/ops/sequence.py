"""Sequences of tensors, and optionals."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import (
    VARYING,
    Facts,
    Values,
    common_shape,
    objects,
    sequence_of,
    unknown,
)
from sardonyx.ops.plain import free, move_all
from sardonyx.sizes import Size, ceil_div

__all__ = ["OPERATORS"]

MAX_PARTS = 1024  # of one tensor split into a sequence


def _elements(call: Call) -> list[Facts] | None:
    """Facts about each element, when the sequence is known that well."""
    facts = call.input(0)
    return None if facts.kind != "sequence" or facts.value is None else list(facts.value)


def _length(call: Call) -> Size | None:
    facts = call.input(0)
    return facts.shape[0] if facts.kind == "sequence" and facts.shape else None


def _sequence(element: Facts | None, length: Size | None) -> Facts:
    return Facts("sequence", shape=None if length is None else (length,), element=element)


def construct(call: Call) -> list[Facts]:
    return [sequence_of([call.input(index) for index in range(len(call.inputs))])]


def empty(call: Call) -> list[Facts]:
    """Whatever is inserted later decides the shape."""
    dtype = call.dtype_attr("dtype") or ir.DataType.FLOAT
    return [replace(sequence_of([]), element=Facts("tensor", dtype))]


def insert(call: Call) -> list[Facts]:
    elements, new, length = _elements(call), call.input(1), _length(call)
    old = call.input(0).element
    if old is not None and old.dtype is not None and new.dtype not in (None, old.dtype):
        call.fail(f"a sequence of {old} cannot take {new}; all elements have one type")
    place = _position(call, 2, length, extra=1)
    if elements is not None and place is not None:
        return [sequence_of([*elements[:place], new, *elements[place:]])]
    if length == 0:
        return [_sequence(new.with_value(None), 1)]
    element = None
    if old is not None:
        element = Facts(new.kind, new.dtype, common_shape(old.shape, new.shape))
    return [_sequence(element, None if length is None else length + 1)]


def _position(call: Call, index: int, length: Size | None, extra: int = 0) -> int | None:
    """Where in the sequence, counted from the front; the end when it is not given."""
    if not call.has(index):
        return (length if extra else length - 1) if isinstance(length, int) else None
    place = call.scalar(index)
    if not isinstance(length, int) or not isinstance(place, int):
        return None
    if not -length <= place < length + extra:
        call.fail(f"position {place} is outside a sequence of {length}")
    return place + length if place < 0 else place


def erase(call: Call) -> list[Facts]:
    elements, length = _elements(call), _length(call)
    if length == 0:
        call.fail("the sequence is empty; there is nothing to erase")
    place = _position(call, 1, length)
    if elements is not None and place is not None:
        rest = sequence_of([*elements[:place], *elements[place + 1 :]])
        return [rest if rest.element is not None else replace(rest, element=call.input(0).element)]
    return [_sequence(call.input(0).element, None if length is None else length - 1)]


def at(call: Call) -> list[Facts]:
    elements, place = _elements(call), _position(call, 1, _length(call))
    if elements is not None and place is not None:
        return [elements[place]]
    return [_any_element(call)]


def _any_element(call: Call) -> Facts:
    """One element, whose own sizes are told apart from every other's."""
    element = call.input(0).element or unknown()
    if element.shape is None:
        return element
    return replace(
        element,
        shape=tuple(
            call.fresh(axis) if dim == VARYING else dim for axis, dim in enumerate(element.shape)
        ),
    )


def length(call: Call) -> list[Facts]:
    return [call.out(())]


def length_values(call: Call, output: Facts) -> Values | None:
    count = _length(call)
    return None if count is None else objects([count], ())


def split_to_sequence(call: Call) -> list[Facts]:
    facts = call.input(0)
    if facts.shape is None:
        return [_sequence(Facts("tensor", facts.dtype), None)]
    axis = call.axis(call.int_attr("axis"), len(facts.shape))
    before, size, after = facts.shape[:axis], facts.shape[axis], facts.shape[axis + 1 :]
    if not call.has(1):
        keep = (1,) if call.int_attr("keepdims", 1) else ()
        return [_sequence(Facts("tensor", facts.dtype, (*before, *keep, *after)), size)]
    parts, part, count = _parts(call, size, axis)
    if parts is not None:
        return [sequence_of([Facts("tensor", facts.dtype, (*before, p, *after)) for p in parts])]
    return [_sequence(Facts("tensor", facts.dtype, (*before, part, *after)), count)]


def _parts(call: Call, size: Size, axis: int) -> tuple[list[Size] | None, Size, Size | None]:
    """Every part's size where it is known; else the size of any part, and their number."""
    split, listed = call.value(1), call.shape(1)
    if split is None:
        return None, VARYING, listed[0] if listed else None
    if split.ndim == 0:
        step = split.item()
        if isinstance(step, int) and step < 1:
            call.fail(f"split is {step}; at least 1 is needed")
        if isinstance(size, int) and isinstance(step, int) and size <= step * MAX_PARTS:
            return [min(step, size - at) for at in range(0, size, step)], step, None
        return None, VARYING, ceil_div(size, step)
    parts: list[Size] = call.vector(1) or []
    if any(isinstance(part, int) and part < 0 for part in parts):
        call.fail(f"split {[str(part) for part in parts]} has a negative size")
    if parts:
        call.agree(sum(parts[1:], parts[0]), size, f"the sum of split and dimension {axis}")
    return parts, VARYING, len(parts)


def concat_from_sequence(call: Call) -> list[Facts]:
    elements, count = _elements(call), _length(call)
    if elements:
        return [_join(call, elements)]
    element = call.input(0).element or unknown()
    if element.shape is None:
        return [call.out(None, dtype=element.dtype)]
    new = bool(call.int_attr("new_axis"))
    axis = call.axis(call.int_attr("axis"), len(element.shape) + new)
    dims = [call.fresh(at) if dim == VARYING else dim for at, dim in enumerate(element.shape)]
    if new:
        dims.insert(axis, call.fresh(axis) if count is None else count)
    elif count is None or element.shape[axis] == VARYING:
        dims[axis] = call.fresh(axis)
    else:
        dims[axis] = dims[axis] * count
    return [call.out(dims, dtype=element.dtype)]


def _join(call: Call, elements: list[Facts]) -> Facts:
    shapes = [facts.shape for facts in elements]
    known = [shape for shape in shapes if shape is not None]
    dtype = elements[0].dtype
    if len(known) < len(shapes):
        return call.out(None, dtype=dtype)
    rank, new = len(known[0]), bool(call.int_attr("new_axis"))
    if any(len(shape) != rank for shape in known):
        call.fail(f"elements have the ranks {[len(shape) for shape in known]}")
    axis = call.axis(call.int_attr("axis"), rank + new)
    dims = list(known[0])
    for shape in known[1:]:
        for place, dim in enumerate(shape):
            if new or place != axis:
                dims[place] = call.agree(dims[place], dim, f"dimension {place} of the elements")
    if new:
        dims.insert(axis, len(known))
    else:
        dims[axis] = sum((shape[axis] for shape in known[1:]), known[0][axis])
    return call.out(dims, dtype=dtype)


# Optionals


def optional(call: Call) -> list[Facts]:
    if call.has(0):
        return [Facts("optional", element=call.input(0).with_value(None))]
    declared = call.attr("type")
    if declared is None:
        call.fail("it has neither an input nor the attribute 'type'")
    return [Facts("optional", element=_facts_of_type(declared))]


def _facts_of_type(declared: ir.TypeAndShape) -> Facts:
    kind, shape = declared.type, declared.shape
    wrappers: list[str] = []
    while isinstance(kind, (ir.SequenceType, ir.OptionalType)):
        wrappers.append("sequence" if isinstance(kind, ir.SequenceType) else "optional")
        kind = kind.elem_type
    known = shape is not None and all(isinstance(dim, int) for dim in shape)
    dims = tuple(dim for dim in shape or () if isinstance(dim, int)) if known else None
    facts = Facts("tensor", kind.dtype if kind is not None else None, dims)
    for wrapper in reversed(wrappers):
        facts = Facts("sequence" if wrapper == "sequence" else "optional", element=facts)
    return facts


def get_element(call: Call) -> list[Facts]:
    facts = call.input(0)
    return [facts.element or unknown()] if facts.kind == "optional" else [facts]


def has_element(call: Call) -> list[Facts]:
    return [call.out(())]


def has_element_values(call: Call, output: Facts) -> Values | None:
    """No input at all is an empty optional; a tensor or sequence is always there."""
    if not call.has(0):
        return objects([False], ())
    facts = call.input(0)
    certain = facts.kind == "sequence" or facts.shape is not None
    return objects([True], ()) if facts.kind != "optional" and certain else None


OPERATORS = (
    Operator("SequenceConstruct", "opaque", construct, cost=free),
    Operator("SequenceEmpty", "opaque", empty, cost=free),
    Operator("SequenceInsert", "opaque", insert, cost=free),
    Operator("SequenceErase", "opaque", erase, cost=free),
    Operator("SequenceAt", "opaque", at, cost=free),
    Operator("SequenceLength", "opaque", length, length_values, free),
    Operator("SplitToSequence", "opaque", split_to_sequence, cost=move_all),
    Operator("ConcatFromSequence", "opaque", concat_from_sequence, cost=move_all),
    Operator("Optional", "opaque", optional, cost=free),
    Operator("OptionalGetElement", "opaque", get_element, cost=free),
    Operator("OptionalHasElement", "opaque", has_element, has_element_values, free),
)
