"""Sequences and optionals. An optional is its value, or None."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array, Value
from sardonyx.errors import RunError

_FORM = "an optional is its value or None, not a list around it"
_POSITION = "positions outside the sequence are an error"


@corrects("Optional", reason=_FORM)
def optional(call: Call, value: Value = None) -> Value:
    return value


@corrects("OptionalHasElement", reason=_FORM)
def optional_has_element(call: Call, value: Value = None) -> Array:
    return np.array(value is not None)


@corrects("OptionalGetElement", reason=_FORM)
def optional_get_element(call: Call, value: Value) -> Value:
    if value is None:
        raise RunError("the optional is empty")
    return value


@corrects("SequenceEmpty", "SequenceConstruct", reason="elements are passed on, not copied")
def sequence_construct(call: Call, *elements: Value) -> list[Any]:
    return list(elements)


@corrects("SequenceLength", reason="the count is an int64 scalar")
def sequence_length(call: Call, sequence: list[Any]) -> Array:
    return np.array(len(sequence), dtype=np.int64)


@corrects("SequenceAt", reason=_POSITION)
def sequence_at(call: Call, sequence: list[Any], position: Array) -> Value:
    index = _position(position, len(sequence), len(sequence) - 1)
    value: Value = sequence[index]
    return value


@corrects("SequenceErase", reason=_POSITION)
def sequence_erase(call: Call, sequence: list[Any], position: Array | None = None) -> list[Any]:
    index = _position(position, len(sequence), len(sequence) - 1)
    return sequence[:index] + sequence[index + 1 :]


@corrects("SequenceInsert", reason=_POSITION)
def sequence_insert(
    call: Call, sequence: list[Any], value: Value, position: Array | None = None
) -> list[Any]:
    if position is None:
        return [*sequence, value]
    index = _position(position, len(sequence), len(sequence))
    return [*sequence[:index], value, *sequence[index:]]


def _position(position: Array | None, length: int, last: int) -> int:
    """A position that may count from the end; the last element where it is left out."""
    given = last if position is None else int(position.item())
    index = given + length if given < 0 else given
    if not 0 <= index <= last:
        raise RunError(
            f"position {given} is outside a sequence of {length}", value=given, limit=length
        )
    return index


@corrects("SplitToSequence", reason="sizes that do not add up are an error; keepdims is honoured")
def split_to_sequence(call: Call, data: Array, split: Array | None = None) -> list[Any]:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    size = data.shape[axis]
    if split is None:
        sizes = [1] * size
    elif split.ndim == 0:
        step = int(split)
        if step <= 0:
            raise RunError(f"split is {step}; a chunk has at least one element", value=step)
        sizes = [min(step, size - start) for start in range(0, size, step)]
    else:
        sizes = [int(part) for part in split]
    if any(part < 0 for part in sizes) or sum(sizes) != size:
        raise RunError(f"split {sizes} does not add up to {size}", value=sizes, limit=size)
    parts = np.split(data, np.cumsum(sizes)[:-1], axis) if sizes else []
    if split is None and not call.attr("keepdims", 1):
        parts = [part.squeeze(axis) for part in parts]
    return list(parts)


@corrects("ConcatFromSequence", reason="an empty sequence has no answer, and new_axis is checked")
def concat_from_sequence(call: Call, sequence: list[Any]) -> Array:
    if not sequence:
        raise RunError("an empty sequence has no type to give the result")
    new_axis = call.attr("new_axis", 0)
    axis = normalize_axis(call.attr("axis"), sequence[0].ndim + bool(new_axis))
    return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)
