"""A TensorFlow Lite file becomes frozen data; whatever the file says is checked against what it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.conversion.tflite.flatbuffer import Flatbuffer, Table
from sardonyx.conversion.tflite.schema import (
    OPERATORS,
    OPTIONS,
    TYPES,
    Array,
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
)
from sardonyx.conversion.tflite.sparse import read_sparsity, write_out
from sardonyx.errors import InputError

__all__ = ["read_model"]

_IDENTIFIER = b"TFL3"
_MOST_AXES = 32
_MOST_OF_NOTHING = 1 << 40  # the other axes of a tensor without elements, multiplied
_BLOCKWISE = 2  # of quantization: another scale for every few elements
# Sparse tensors of a file, written out, may have this many bytes, and so many for each byte of the file.
_FREE_BYTES, _BYTES_PER_BYTE = 1 << 20, 64


def read_model(data: bytes, where: str = "the model") -> Model:
    """Read the bytes of a .tflite file.

    Raises:
        InputError: they are damaged, or of another format.
    """
    return _Reader(Flatbuffer(data, where)).model()


class _Reader:
    def __init__(self, buffer: Flatbuffer) -> None:
        self._buffer = buffer
        self._root = buffer.root(_IDENTIFIER)
        self._codes = [self._code(table) for table in self._root.tables(1)]
        self._buffers = list(self._root.tables(4))
        self._room = _FREE_BYTES + _BYTES_PER_BYTE * len(buffer.data)

    def model(self) -> Model:
        version = self._root.number(0, "I")
        if version != 3:
            raise InputError(
                f"its schema has version {version}.",
                where=self._buffer.where,
                value=version,
                limit=3,
            )
        subgraphs = tuple(self._subgraph(table) for table in self._root.tables(2))
        if not subgraphs:
            raise self._buffer.damaged("it has no subgraph")
        signatures = tuple(self._signature(table, subgraphs) for table in self._root.tables(7))
        self._check_calls(subgraphs)
        return Model(subgraphs, signatures, self._root.text(3))

    def _code(self, table: Table) -> str:
        # The first field is a byte; codes above 127 are in the last one.
        code = max(int(table.number(0, "b")), int(table.number(3, "i")))
        if code == OPERATORS.index("CUSTOM"):
            return f"CUSTOM {table.text(1)}"
        return OPERATORS[code] if 0 <= code < len(OPERATORS) else f"number {code}"

    def _subgraph(self, table: Table) -> Subgraph:
        tensors = tuple(self._tensor(each) for each in table.tables(0))
        operators = tuple(self._operator(each, len(tensors)) for each in table.tables(3))
        ports = [self._checked(table.numbers(field, np.int32), len(tensors)) for field in (1, 2)]
        if any(index < 0 for port in ports for index in port):
            raise self._buffer.damaged("an input or output of it is no tensor")
        made = {index for operator in operators for index in operator.outputs} | {*ports[0]}
        held = (t if i in made else _with_nothing(t) for i, t in enumerate(tensors))
        return Subgraph(tuple(held), ports[0], ports[1], operators)

    def _checked(self, indices: tuple[int, ...], count: int) -> tuple[int, ...]:
        for index in indices:
            if not -1 <= index < count:
                raise self._buffer.damaged(f"tensor {index} is asked for, of {count:,}")
        return indices

    def _operator(self, table: Table, tensors: int) -> Operator:
        code = int(table.number(0, "I"))
        if code >= len(self._codes):
            raise self._buffer.damaged(
                f"an operator has the code {code:,}, of {len(self._codes):,} that there are"
            )
        kind = self._codes[code]
        outputs = self._checked(table.numbers(2, np.int32), tensors)
        if any(index < 0 for index in outputs):
            raise self._buffer.damaged(f"an output of {kind} is no tensor")
        held = table.table(4)
        options: dict[str, Any] = {}
        for name, (field, form, default) in OPTIONS.get(kind, {}).items():
            if held is None:
                options[name] = default
            elif form == "i*":
                options[name] = held.numbers(field, np.int32)
            elif form == "text":
                options[name] = held.text(field)
            else:
                options[name] = held.number(field, form, default)
        inputs = self._checked(table.numbers(1, np.int32), tensors)
        return Operator(kind, inputs, outputs, options)

    def _tensor(self, table: Table) -> Tensor:
        name = table.text(3)
        code = int(table.number(1, "b"))
        if code not in TYPES:
            raise InputError(
                f"tensor {name[:80]!r} has elements of type {code}, which is none that is read.",
                where=self._buffer.where,
                value=code,
                hint="Texts, variants, complex numbers of 128 bits and 2-bit integers are not converted.",
            )
        shape = self._sizes(table.numbers(0, np.int32), name)
        signature = table.numbers(7, np.int32) or shape
        if len(signature) != len(shape):
            raise self._buffer.damaged(f"tensor {name[:80]!r} has two ranks")
        dtype, index, sparsity = TYPES[code], int(table.number(2, "I")), table.table(6)
        if sparsity is None:
            data = self._data(index, dtype, shape, name)
        else:
            data = self._sparse(sparsity, index, dtype, shape, name)
        ranked = bool(shape) or data is not None or bool(table.number(8, "?"))
        return Tensor(
            name,
            dtype,
            tuple(None if size < 0 else size for size in signature),
            shape if ranked else None,
            data,
            self._quantization(table.table(4), shape, name),
            bool(table.number(5, "?")),
        )

    def _sizes(self, shape: tuple[int, ...], name: str) -> tuple[int, ...]:
        if len(shape) > _MOST_AXES or any(size < 0 for size in shape):
            raise self._buffer.damaged(f"tensor {name[:80]!r} has the shape {list(shape)!s:.80}")
        return shape

    def _bytes(self, index: int, name: str) -> Array:
        """Of a constant, as they lie in the file."""
        if index >= len(self._buffers):
            raise self._buffer.damaged(f"tensor {name[:80]!r} has the buffer {index:,}")
        held = self._buffers[index]
        offset, size = int(held.number(1, "Q")), int(held.number(2, "Q"))
        if offset > 1 and size:  # of a file above 2 GB: behind the flatbuffer
            if offset + size > len(self._buffer.data):
                raise self._buffer.damaged(f"tensor {name[:80]!r} lies outside of it")
            return np.frombuffer(self._buffer.data, np.uint8, size, offset)
        return held.vector(0, np.uint8)

    def _data(
        self, index: int, dtype: np.dtype[Any], shape: tuple[int, ...], name: str
    ) -> Array | None:
        data = self._bytes(index, name)
        if not data.size:
            return None
        count = math.prod(shape)
        packed = dtype == np.dtype(ml_dtypes.int4)
        needed = (count + 1) // 2 if packed else count * dtype.itemsize
        if data.size != needed:
            raise self._buffer.damaged(
                f"tensor {name[:80]!r} has {data.size:,} bytes, but {dtype}{list(shape)} needs {needed:,}"
            )
        return (_unpacked(data, count) if packed else data.view(dtype)).reshape(shape)

    def _sparse(
        self, table: Table, index: int, dtype: np.dtype[Any], shape: tuple[int, ...], name: str
    ) -> Array:
        data = self._bytes(index, name)
        if dtype == np.dtype(ml_dtypes.int4) or data.size % dtype.itemsize:
            raise self._buffer.damaged(
                f"tensor {name[:80]!r} is sparse, of {dtype}, and has {data.size:,} bytes"
            )
        self._room -= math.prod(shape) * dtype.itemsize
        if self._room < 0:
            raise InputError(
                f"tensor {name[:80]!r} is sparse, and {dtype}{list(shape)} is too large for a file of {len(self._buffer.data):,} bytes.",
                where=self._buffer.where,
                limit=_FREE_BYTES + _BYTES_PER_BYTE * len(self._buffer.data),
                hint="Convert the model without pruning's sparse tensors.",
            )
        dense = write_out(read_sparsity(table), data.view(dtype), shape)
        if dense is None:
            raise self._buffer.damaged(
                f"tensor {name[:80]!r} is sparse, and its places are not of {list(shape)}"
            )
        return dense

    def _quantization(
        self, table: Table | None, shape: tuple[int, ...], name: str
    ) -> Quantization | None:
        if table is None:
            return None
        scale, zero = table.vector(2, np.float32), table.vector(3, np.int64)
        if int(table.number(4, "B")) == _BLOCKWISE:
            raise InputError(
                f"tensor {name[:80]!r} has another scale for every few elements.",
                where=self._buffer.where,
                hint="Quantize it with one scale a tensor or a channel.",
            )
        if not scale.size:
            return None
        axis = int(table.number(6, "i"))
        fits = scale.size == 1 or (0 <= axis < len(shape) and shape[axis] == scale.size)
        if not fits or zero.size not in (0, 1, scale.size):
            raise self._buffer.damaged(
                f"tensor {name[:80]!r} has {scale.size:,} scales and {zero.size:,} zero points for axis {axis} of {list(shape)}"
            )
        if not np.isfinite(scale).all() or (scale < 0).any():
            raise self._buffer.damaged(f"tensor {name[:80]!r} has a scale that is no step")
        if not scale.all():  # a constant of zeros: any step will do
            scale = np.where(scale == 0, np.float32(1), scale)
        zeros = np.zeros(scale.size, np.int64) if not zero.size else zero
        return Quantization(scale, np.broadcast_to(zeros, scale.shape), axis)

    def _signature(self, table: Table, subgraphs: tuple[Subgraph, ...]) -> Signature:
        number = int(table.number(4, "I"))
        if number >= len(subgraphs):
            raise self._buffer.damaged(f"a signature is of subgraph {number:,}")
        graph = subgraphs[number]
        ports: list[Mapping[str, int]] = []
        for field in (0, 1):
            named = {each.text(0): int(each.number(1, "I")) for each in table.tables(field)}
            self._checked(tuple(named.values()), len(graph.tensors))
            ports.append(named)
        return Signature(table.text(2), ports[0], ports[1], number)

    def _check_calls(self, subgraphs: tuple[Subgraph, ...]) -> None:
        """Bodies come after their callers in every file: what calls itself, or one before it, is refused."""
        for number, graph in enumerate(subgraphs):
            for operator in graph.operators:
                called = [
                    int(operator.options[name])
                    for name in ("then", "else", "cond", "body", "init")
                    if name in operator.options
                ]
                if any(not number < other < len(subgraphs) for other in called):
                    raise self._buffer.damaged(
                        f"{operator.kind} of subgraph {number} calls {called}, of {len(subgraphs)}"
                    )


def _with_nothing(tensor: Tensor) -> Tensor:
    """A constant without elements has no bytes, and nobody computes it."""
    if (
        tensor.data is None
        and 0 in (tensor.shape or ())
        and math.prod(size or 1 for size in tensor.shape or ()) < _MOST_OF_NOTHING
    ):
        return replace(tensor, data=np.zeros(tensor.shape or (), tensor.dtype))
    return tensor


def _unpacked(data: Array, count: int) -> Array:
    """Two numbers of four bits a byte, the low half first."""
    halves = np.stack([data & 15, data >> 4], -1).reshape(-1)[:count].astype(np.int8)
    signed: Array = np.where(halves > 7, halves - 16, halves).astype(ml_dtypes.int4)
    return signed
