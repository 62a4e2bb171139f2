"""A look at the protobuf bytes before protobuf parses them.

Parsing copies every byte, so a stranger's 1 GB doc_string would cost 1 GB before anyone could refuse it.
This walk reads only tags and lengths, steps over whatever is small, and

- refuses text and unknown fields past the limits, and truncated or malformed records;
- lifts the large weights out: the parser gets the model without them, and they are used where they lie,
  in the file's own memory map.

    ModelProto ── graph ── initializer[i] ── raw_data   ← lifted when it is 4 KiB or more
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import onnx

from sardonyx.errors import FormatError, LimitError
from sardonyx.model.limits import Limits

__all__ = ["Lifted", "graph_depth", "lift_weights"]

_SMALL = 4096  # messages up to this size are not entered, weights up to it are not lifted
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # field numbers in ModelProto, GraphProto, TensorProto


class Record(NamedTuple):
    """One field of a message: its number, and where its tag, its value and its end lie."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


@dataclass(frozen=True)
class Lifted:
    """The model without its large weights, and where each of them lies: initializer index -> (start, end)."""

    skeleton: bytes | memoryview
    weights: dict[int, tuple[int, int]]


def lift_weights(data: memoryview, limits: Limits) -> Lifted:
    """Walk the message, refuse what breaks the limits, and take the large weights out."""
    _check_limits(data, limits)
    graphs = [r for r in _records(data, 0, len(data)) if r.number == _GRAPH]
    if not graphs:
        raise FormatError(
            "this is not an ONNX model: it has no graph.", hint="Is it really an .onnx file?"
        )
    if len(graphs) > 1:
        raise FormatError(f"the model has {len(graphs)} graphs; ONNX allows one.")
    graph = graphs[0]
    body: list[bytes | memoryview] = []
    weights: dict[int, tuple[int, int]] = {}
    index = 0
    for record in _records(data, graph.value, graph.end):
        tensor: bytes | None = None
        if record.number == _INITIALIZER:
            if record.end - record.value > _SMALL:
                tensor = _lift_raw_data(data, record, index, weights)
            index += 1
        if tensor is None:
            body.append(data[record.start : record.end])
        else:
            body += [data[record.start : record.start + 1], _varint(len(tensor)), tensor]
    if not weights:
        return Lifted(data, {})
    inner = b"".join(body)
    skeleton = b"".join(
        [
            data[: graph.start],
            data[graph.start : graph.start + 1],
            _varint(len(inner)),
            inner,
            data[graph.end :],
        ]
    )
    return Lifted(skeleton, weights)


def _lift_raw_data(
    data: memoryview, tensor: Record, index: int, weights: dict[int, tuple[int, int]]
) -> bytes | None:
    raw = [r for r in _records(data, tensor.value, tensor.end) if r.number == _RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].value < _SMALL:
        return None
    weights[index] = (raw[0].value, raw[0].end)
    return b"".join([data[tensor.value : raw[0].start], data[raw[0].end : tensor.end]])


def _check_limits(data: memoryview, limits: Limits) -> None:
    unknown = 0
    todo: list[tuple[int, int, Any, str]] = [(0, len(data), onnx.ModelProto.DESCRIPTOR, "model")]
    while todo:
        start, end, message, path = todo.pop()
        fields = message.fields_by_number
        for record in _records(data, start, end):
            size = record.end - record.value
            field = fields.get(record.number)
            if field is None:
                unknown += size
                if unknown > limits.unknown_bytes:
                    raise LimitError(
                        f"{unknown:,} bytes in fields that ONNX does not have (field {record.number}); "
                        f"the limit is {limits.unknown_bytes:,} (Limits.unknown_bytes).",
                        where=path,
                        value=unknown,
                        limit=limits.unknown_bytes,
                    )
            elif size <= _SMALL or record.wire_type != _BYTES:
                continue
            elif field.type == field.TYPE_MESSAGE:
                todo.append((record.value, record.end, field.message_type, f"{path}.{field.name}"))
            elif field.type == field.TYPE_STRING and size > limits.text_bytes:
                raise LimitError(
                    f"{size:,} bytes of text; the limit is {limits.text_bytes:,} (Limits.text_bytes).",
                    where=f"{path}.{field.name}",
                    value=size,
                    limit=limits.text_bytes,
                )


def _records(data: memoryview, start: int, end: int) -> Iterator[Record]:
    at = start
    while at < end:
        tag, value = _read_varint(data, at, end)
        wire_type = tag & 7
        if wire_type == _BYTES:
            size, value = _read_varint(data, value, end)
            stop = value + size
        elif wire_type == _VARINT:
            _, stop = _read_varint(data, value, end)
        elif wire_type == _FIXED32:
            stop = value + 4
        elif wire_type == _FIXED64:
            stop = value + 8
        else:
            raise FormatError(
                f"byte {at:,} starts no field that protobuf knows; the file is damaged."
            )
        if stop > end:
            raise FormatError(
                f"a field at byte {at:,} ends at {stop:,}, past the end at {end:,}; the file is cut off or damaged."
            )
        yield Record(tag >> 3, wire_type, at, value, stop)
        at = stop


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise FormatError(f"byte {at:,} is part of no valid number; the file is damaged.")
    raise FormatError(f"the file is cut off in the middle of a number at byte {at:,}.")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def graph_depth(data: memoryview) -> int:
    """How deep graphs are nested, for a message that protobuf's own parser gave up on."""
    deepest = 0
    todo: list[tuple[int, int, Any, int]] = [(0, len(data), onnx.ModelProto.DESCRIPTOR, -1)]
    while todo:
        start, end, message, depth = todo.pop()
        depth += message.name == "GraphProto"
        deepest = max(deepest, depth)
        try:
            for record in _records(data, start, end):
                field = message.fields_by_number.get(record.number)
                if field is None or record.wire_type != _BYTES or field.type != field.TYPE_MESSAGE:
                    continue
                if field.message_type.name in ("GraphProto", "NodeProto", "AttributeProto"):
                    todo.append((record.value, record.end, field.message_type, depth))
        except FormatError:
            continue
    return deepest
