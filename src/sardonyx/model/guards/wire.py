"""A look at the protobuf bytes before protobuf parses them.

Parsing copies every byte, so a stranger's 1 GB doc_string would cost 1 GB before anyone could refuse it.
This walk reads tags and lengths, steps over the data between them, and

- refuses text, unknown fields, nesting and numbers of fields past the limits, text that is not UTF-8,
  tensors with far more data than their dimensions take, and truncated or malformed records;
- lifts the large weights out: each is replaced by a token, the parser gets the small model that is left (the
  skeleton), and the weights are used where they lie, in the file's own memory map.

    TensorProto { dims: 4096 … raw_data: <64 MB> }   →   TensorProto { dims: 4096 … raw_data: <token> }
"""

from __future__ import annotations

import functools
import math
import re
import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple

import onnx

from sardonyx.errors import FormatError, LimitError, StructureError
from sardonyx.model.limits import Limits

__all__ = ["TOKEN_BYTES", "Lifted", "Walk", "is_repeated", "kind_of", "lift_weights"]

TOKEN_BYTES = 16
_SMALL = 4096  # weights under this size are not lifted
_LARGE = 1 << 20  # tensors with more data than this must be worth it before they are parsed
_DIM_BYTES = (
    1024  # no dimension takes so many; tensors of too many are refused before they are parsed
)
_DEEPEST = 100  # messages around a message; protobuf's own limit
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

Pieces = list[bytes | memoryview]


@dataclass(frozen=True)
class Lifted:
    """The model without its large weights, and where each of them lies: token -> (start, end)."""

    skeleton: bytes | memoryview
    weights: dict[bytes, tuple[int, int]]


def lift_weights(data: memoryview, limits: Limits) -> Lifted:
    """Walk the message, refuse what breaks the limits, and take the large weights out."""
    walk = Walk(data, limits)
    pieces = walk.message(0, len(data), kind_of(onnx.ModelProto.DESCRIPTOR), lift=True)
    if not walk.has_graph:
        raise FormatError(
            "this is not an ONNX model: it has no graph.", hint="Is it really an .onnx file?"
        )
    return Lifted(data if pieces is None else b"".join(pieces), walk.weights)


# What matters about a field's content here; numbers, because the walk compares them once a field.
_OTHER, _MESSAGE, _TEXT, _STRINGS, _RAW_DATA, _ELEMENTS, _DIMS, _IN_ATTRIBUTE = range(8)


class _Field(NamedTuple):
    name: str
    holds: int
    once: bool  # protobuf would merge or overwrite a second one, silently
    message: Any  # the descriptor of a MESSAGE


class _Kind(NamedTuple):
    """One type of message: what may stand in it, by tag (field number and wire type)."""

    name: str
    fields: dict[int, _Field]


def is_repeated(field: Any) -> bool:
    """Older protobuf has no other word for it than the label, newer protobuf warns of the label."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


@functools.cache
def kind_of(descriptor: Any) -> _Kind:
    fields: dict[int, _Field] = {}
    for field in descriptor.fields:
        repeated = is_repeated(field)
        tag, once = field.number << 3, not repeated
        holds = _OTHER
        if descriptor.name == "TensorProto" and field.name.endswith("_data"):
            holds = {"raw_data": _RAW_DATA, "string_data": _STRINGS}.get(field.name, _ELEMENTS)
        elif field.name == "dims":
            holds = _DIMS
        elif repeated or field.type == field.TYPE_BYTES:
            holds = _IN_ATTRIBUTE
        if field.type == field.TYPE_MESSAGE:
            fields[tag | _BYTES] = _Field(field.name, _MESSAGE, once, field.message_type)
        elif field.type == field.TYPE_STRING:
            fields[tag | _BYTES] = _Field(field.name, _TEXT, False, None)
        elif field.type == field.TYPE_BYTES:
            fields[tag | _BYTES] = _Field(field.name, holds, once, None)
        else:
            entry = _Field(field.name, holds, False, None)
            one_by_one = {field.TYPE_FLOAT: _FIXED32, field.TYPE_DOUBLE: _FIXED64}
            fields[tag | one_by_one.get(field.type, _VARINT)] = entry
            if repeated:  # or packed; parsers must take both
                fields[tag | _BYTES] = entry
    return _Kind(descriptor.name, fields)


@functools.lru_cache(1024)
def _run(head: bytes, wire_type: int, size: int) -> re.Pattern[bytes]:
    """Up to 4096 records in a row with the same tag and size, as the numbers of a tree ensemble stand."""
    value = {
        _VARINT: rb"[\x80-\xff]{0,9}[\x00-\x7f]",
        _FIXED32: b".{4}",
        _FIXED64: b".{8}",
        _BYTES: b".{%d}" % size,
    }[wire_type]
    return re.compile(b"(?s:" + re.escape(head) + value + b"){1,4096}")


class Walk:
    """Goes through messages and adds up what they hold; any of them may be the one too many."""

    def __init__(self, data: memoryview, limits: Limits) -> None:
        self.weights: dict[bytes, tuple[int, int]] = {}
        self.has_graph = False
        self._data = data
        self._limits = limits
        self._secret = secrets.token_bytes(TOKEN_BYTES - 8)  # so that no file can contain a token
        self._path = ["model"]
        self._graphs = -1  # graphs around the current message; the main graph is not counted
        self._fields = self._nodes = self._text = self._attributes = self._unknown = 0

    def part(self, data: bytes, kind: _Kind, path: list[str]) -> None:
        """Walk a message that stands alone, but belongs somewhere."""
        self._data, self._path, self._graphs = memoryview(data), path, path.count("graph") - 1
        self.message(0, len(data), kind, lift=False)

    def message(self, start: int, end: int, kind: _Kind, *, lift: bool) -> Pieces | None:  # noqa: C901
        """Walk one message and those inside it; what is left when weights were lifted, or None.

        One loop on purpose: it runs once for every field of the file, and calls would double its time.
        """
        data, fields = self._data, kind.fields
        pieces: Pieces = []
        dims: list[memoryview] = []
        payload = seen = count = 0
        at = rest = start  # rest: what follows the last piece
        while at < end:
            first = at
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = self._read_varint(first, end)
            wire_type = tag & 7
            if wire_type == _BYTES:
                size, value = (
                    self._read_varint(at, end)
                    if at >= end or data[at] >= 0x80
                    else (data[at], at + 1)
                )
                at = value + size
            elif wire_type == _VARINT:
                value, at = at, self._read_varint(at, end)[1]
                size = at - value
            elif wire_type in (_FIXED32, _FIXED64):
                value, size = at, 4 if wire_type == _FIXED32 else 8
                at += size
            else:
                raise self._damaged(f"byte {first:,} starts no field that protobuf knows.")
            if at > end or tag < 8:
                raise self._broken_record(first, at, end)
            count += 1
            if not count & 0xFFF:
                self._count_fields(0x1000)
            field = fields.get(tag)
            if field is None:
                self._count_unknown(tag, at - first)
                continue
            name, holds, once, _ = field
            if once:
                if seen >> tag & 1:
                    raise self._damaged(f"{name} is given twice, at byte {first:,}.")
                seen |= 1 << tag
            new: Pieces | None = None
            if holds == _MESSAGE:
                new = self._enter(field, value, at, lift)
            elif holds == _TEXT:
                self._check_text(field, value, at)
            elif holds == _RAW_DATA and lift and size >= _SMALL:
                new = [self._lift(value, at)]
            else:
                if not once and at < end and data[at] == tag and size < 0x80:
                    at = self._skip_run(bytes(data[first:value]), wire_type, size, at, end)
                if holds in (_ELEMENTS, _RAW_DATA):
                    payload += at - value
                elif holds == _DIMS:
                    dims.append(data[first:at])
                    self._check("rank", (at - first) // _DIM_BYTES, "dimensions or more")
                elif holds != _OTHER:
                    self._count_strings(holds, at - value)
            if new is not None:
                head = _varint(tag) + _varint(sum(map(len, new)))
                pieces += [data[rest:first], head, *new]
                rest = at
        self._count_fields(count & 0xFFF)
        if payload > _LARGE:
            self._check_payload(payload, dims)
        return [*pieces, data[rest:end]] if pieces else None

    def _enter(self, field: _Field, start: int, end: int, lift: bool) -> Pieces | None:
        kind = kind_of(field.message)
        graphs = self._graphs
        self._path.append(field.name)
        if kind.name == "GraphProto":
            self.has_graph |= self._path == ["model", "graph"]
            self._graphs += 1
            self._check("graph_depth", self._graphs, "subgraphs inside each other")
        elif kind.name == "NodeProto":
            self._nodes += 1
            if self._nodes > self._limits.nodes:
                self._check("nodes", self._nodes, "nodes")
        elif kind.name in ("SparseTensorProto", "TrainingInfoProto"):
            lift = False  # these are kept as messages, and must be whole
        if len(self._path) > _DEEPEST + 1:
            raise LimitError(
                f"messages nest more than {_DEEPEST} deep; protobuf itself reads no deeper.",
                where=self._where(),
                value=len(self._path) - 1,
                limit=_DEEPEST,
            )
        new = self.message(start, end, kind, lift=lift) if end > start else None
        self._path.pop()
        self._graphs = graphs
        return new

    def _lift(self, start: int, end: int) -> bytes:
        token = self._secret + len(self.weights).to_bytes(8, "little")
        self.weights[token] = (start, end)
        return token

    def _skip_run(self, head: bytes, wire_type: int, size: int, at: int, end: int) -> int:
        pattern = _run(head, wire_type, size if wire_type == _BYTES else 0)
        while (found := pattern.match(self._data, at, end)) is not None:
            at = found.end()
        return at

    def _read_varint(self, at: int, end: int) -> tuple[int, int]:
        result = shift = 0
        while at < end:
            byte = self._data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result, at
            shift += 7
            if shift > 63:
                raise self._damaged(f"byte {at:,} is part of no valid number.")
        raise self._damaged(f"a number at byte {at:,} has no end.")

    def _count_fields(self, count: int) -> None:
        self._fields += count
        if self._fields > self._limits.fields:
            self._check("fields", self._fields, "protobuf fields")

    def _count_unknown(self, tag: int, size: int) -> None:
        self._unknown += size
        if self._unknown > self._limits.unknown_bytes:
            self._path.append(f"<field {tag >> 3}>")
            self._check("unknown_bytes", self._unknown, "bytes in fields that ONNX does not have")

    def _count_strings(self, holds: int, size: int) -> None:
        if holds == _STRINGS:
            self._text += size
            self._check("text_bytes", self._text, "bytes of text")
        else:
            self._attributes += size
            self._check("attribute_bytes", self._attributes, "bytes in attributes")

    def _check_text(self, field: _Field, start: int, end: int) -> None:
        self._text += end - start
        if self._text > self._limits.text_bytes:
            self._path.append(field.name)
            self._check("text_bytes", self._text, "bytes of text")
        try:
            str(self._data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            around = error.object[max(0, error.start - 20) : error.end + 20]
            self._path.append(field.name)
            raise self._damaged(f"text that is not UTF-8: …{bytes(around)!r}….") from None

    def _check_payload(self, payload: int, dims: list[memoryview]) -> None:
        """Refuse a tensor with more data than any type needs for its dimensions, before it is copied."""
        sizes = list(onnx.TensorProto.FromString(b"".join(dims)).dims)
        most = 20 * math.prod(sizes)  # complex128, each half with a tag, is the largest
        if payload > most + _LARGE:
            shown = ", ".join(map(str, sizes[:8])) + (", …" if len(sizes) > 8 else "")
            raise StructureError(
                f"{payload:,} bytes of data; a tensor of [{shown}] takes no more than {most:,}.",
                where=self._where(),
                value=payload,
                limit=most,
                hint="Export the model again; the file is damaged.",
            )

    def _broken_record(self, first: int, stop: int, end: int) -> FormatError:
        if stop > end:
            return self._damaged(
                f"the field at byte {first:,} would end at {stop:,}, past the end at {end:,}: "
                "something is cut off."
            )
        return self._damaged(f"byte {first:,} starts a field with the number 0.")

    def _damaged(self, message: str) -> FormatError:
        return FormatError(
            message, where=self._where(), hint="The file is damaged, or is no ONNX model."
        )

    def _check(self, limit: str, value: int, what: str) -> None:
        self._limits.check(limit, value, what, self._where())

    def _where(self) -> str:
        path = self._path if len(self._path) <= 8 else [*self._path[:4], "…", *self._path[-4:]]
        return ".".join(path)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
