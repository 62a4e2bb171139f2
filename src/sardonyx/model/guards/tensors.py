"""Is a tensor what it claims to be? Its type, its dimensions and its data must agree, byte for byte."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import StructureError, UnsupportedError
from sardonyx.model.guards.wire import TOKEN_BYTES
from sardonyx.model.limits import Limits

__all__ = [
    "Weights",
    "byte_size",
    "check_bits",
    "check_tensor",
    "data_type",
    "lifted_data",
    "type_text",
]

Weights = Mapping[
    bytes, memoryview
]  # data that was lifted out of the message, by the token in its place

_T = onnx.TensorProto
_TYPED_FIELDS = (
    "float_data",
    "int32_data",
    "string_data",
    "int64_data",
    "double_data",
    "uint64_data",
)

# Where each type keeps its elements when they are not raw, and how many entries an element takes there.
_HOME: dict[int, tuple[str, int]] = {
    _T.FLOAT: ("float_data", 1),
    _T.COMPLEX64: ("float_data", 2),
    _T.DOUBLE: ("double_data", 1),
    _T.COMPLEX128: ("double_data", 2),
    _T.INT64: ("int64_data", 1),
    _T.UINT32: ("uint64_data", 1),
    _T.UINT64: ("uint64_data", 1),
    _T.STRING: ("string_data", 1),
}
_RANGE: dict[int, tuple[int, int]] = {  # of entries that are wider than their elements
    _T.BOOL: (0, 1),
    _T.INT8: (-128, 127),
    _T.UINT8: (0, 255),
    _T.INT16: (-(1 << 15), (1 << 15) - 1),
    _T.UINT16: (0, (1 << 16) - 1),
    _T.FLOAT16: (0, (1 << 16) - 1),
    _T.BFLOAT16: (0, (1 << 16) - 1),
    _T.UINT32: (0, (1 << 32) - 1),
    _T.FLOAT6E2M3: (0, 63),
    _T.FLOAT6E3M2: (0, 63),
}
_ONE_BYTE = (-128, 255)  # packed and 8-bit floats: whether the exporter extended the sign or not


def data_type(number: int, where: str) -> ir.DataType:
    """The element type of a number in a file, or a refusal that names the place."""
    try:
        found = ir.DataType(number)
    except ValueError:
        found = ir.DataType.UNDEFINED
    if found == ir.DataType.UNDEFINED:
        raise UnsupportedError(
            f"element type {number} is not one that ONNX (IR version {onnx.IR_VERSION}) defines.",
            where=where,
            value=number,
        )
    return found


def type_text(dtype: ir.DataType, dims: Iterable[int]) -> str:
    return f"{dtype.name.lower()}[{', '.join(str(d) for d in dims)}]"


def byte_size(dtype: ir.DataType, count: int) -> int:
    """Bytes of so many elements as they are stored; small ones share bytes."""
    return (count * dtype.bitwidth + 7) // 8


def lifted_data(tensor: onnx.TensorProto, weights: Weights) -> memoryview | None:
    """The tensor's data, if it was lifted out of the message."""
    if not weights:
        return None  # raw_data is a copy every time it is asked for
    raw = tensor.raw_data
    return weights.get(raw) if len(raw) == TOKEN_BYTES else None


def check_tensor(
    tensor: onnx.TensorProto,
    limits: Limits,
    *,
    where: str,
    weights: Weights = MappingProxyType({}),
) -> None:
    """Refuse a tensor whose parts disagree."""
    dtype = data_type(tensor.data_type, where)
    count = _check_dims(tensor, dtype, limits, where)
    if tensor.HasField("segment"):
        raise UnsupportedError("segmented tensors are not supported by any runtime.", where=where)
    homes = [name for name in _TYPED_FIELDS if len(getattr(tensor, name))]
    raw = tensor.raw_data if tensor.HasField("raw_data") else None
    holders = [*(("raw_data",) if raw is not None else ()), *homes]
    if tensor.data_location == _T.EXTERNAL:
        if raw or homes:
            raise StructureError(
                f"the data is said to be external, but {holders[0]} is set too.", where=where
            )
        if dtype == ir.DataType.STRING:
            raise StructureError("strings cannot be external data.", where=where)
    elif len(holders) > 1:
        raise StructureError(
            f"{' and '.join(holders)} are set; only one can be true.", where=where, value=holders
        )
    elif raw is not None:
        lifted = lifted_data(tensor, weights)
        _check_raw(raw if lifted is None else lifted, dtype, count, tensor, where)
    else:
        _check_typed(tensor, homes, dtype, count, where)


def _check_dims(tensor: onnx.TensorProto, dtype: ir.DataType, limits: Limits, where: str) -> int:
    limits.check("rank", len(tensor.dims), "dimensions", where)
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise StructureError(
            f"negative dimension in {type_text(dtype, dims)}.",
            where=where,
            value=min(dims),
            limit=0,
        )
    count = math.prod(d for d in dims if d)  # numpy counts so too, even where a 0 makes it nothing
    limits.check("tensor_elements", count, f"elements in {type_text(dtype, dims)}", where)
    return 0 if 0 in dims else count


def _check_raw(
    raw: bytes | memoryview, dtype: ir.DataType, count: int, tensor: onnx.TensorProto, where: str
) -> None:
    if dtype == ir.DataType.STRING:
        raise StructureError("strings cannot be raw_data; they belong in string_data.", where=where)
    need = byte_size(dtype, count)
    if len(raw) != need:
        raise StructureError(
            f"raw_data has {len(raw):,} bytes, but {type_text(dtype, tensor.dims)} needs {need:,}.",
            where=where,
            value=len(raw),
            limit=need,
            hint="Export the model again; the file is damaged.",
        )
    check_bits(raw, dtype, count, where)


def check_bits(data: bytes | memoryview, dtype: ir.DataType, count: int, where: str) -> None:
    """Refuse bytes that mean nothing: a bool that is neither 0 nor 1, float6 padding that is not zero."""
    if dtype == ir.DataType.BOOL:
        largest = int(np.frombuffer(data, np.uint8).max(initial=0))
        if largest > 1:
            raise StructureError(
                f"a bool tensor holds the byte {largest}; only 0 and 1 mean anything.",
                where=where,
                value=largest,
                limit=1,
            )
    used = count * dtype.bitwidth % 8
    if dtype.bitwidth == 6 and used and data[-1] >> used:
        raise StructureError("the bits after the last element are not zero.", where=where)


def _check_typed(
    tensor: onnx.TensorProto, homes: list[str], dtype: ir.DataType, count: int, where: str
) -> None:
    home, entries = _HOME.get(tensor.data_type, ("int32_data", 1))
    need = count * entries
    if dtype != ir.DataType.STRING and dtype.bitwidth in (2, 4):
        need = byte_size(dtype, count)  # several elements share an entry, as they share a byte
    if homes and homes[0] != home:
        raise StructureError(
            f"{dtype.name.lower()} elements belong in {home}, not in {homes[0]}.", where=where
        )
    have = len(getattr(tensor, home))
    if have != need:
        raise StructureError(
            f"{home} has {have:,} entries, but {type_text(dtype, tensor.dims)} needs {need:,}.",
            where=where,
            value=have,
            limit=need,
            hint="Export the model again; the file is damaged.",
        )
    if have and home in ("int32_data", "uint64_data"):
        _check_range(tensor, home, dtype, where)
    if home == "string_data":
        for i, text in enumerate(tensor.string_data):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise StructureError(
                    f"string {i:,} is not UTF-8 ({error.reason} at byte {error.start}).",
                    where=where,
                    value=text[:40],
                ) from None


def _check_range(tensor: onnx.TensorProto, home: str, dtype: ir.DataType, where: str) -> None:
    """Entries are wider than most elements that they hold; a value that does not fit is damage."""
    if dtype in (ir.DataType.INT32, ir.DataType.UINT64):
        return
    low, high = _RANGE.get(tensor.data_type, _ONE_BYTE)
    values = np.asarray(getattr(tensor, home))
    least, greatest = int(values.min()), int(values.max())
    if least < low or greatest > high:
        raise StructureError(
            f"{home} holds {least}..{greatest}, but {dtype.name.lower()} takes {low}..{high}.",
            where=where,
            value=least if least < low else greatest,
            limit=low if least < low else high,
        )
