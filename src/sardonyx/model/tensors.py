"""Is a tensor what it claims to be? Its type, its dimensions and its data must agree, byte for byte."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import LimitError, StructureError, UnsupportedError
from sardonyx.model.limits import Limits

__all__ = ["check_sparse_indices", "check_sparse_tensor", "check_tensor", "data_type", "type_text"]

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
_INT32_RANGE: dict[int, tuple[int, int]] = {
    _T.BOOL: (0, 1),
    _T.INT8: (-128, 127),
    _T.UINT8: (0, 255),
    _T.INT16: (-(1 << 15), (1 << 15) - 1),
    _T.UINT16: (0, (1 << 16) - 1),
    _T.FLOAT16: (0, (1 << 16) - 1),
    _T.BFLOAT16: (0, (1 << 16) - 1),
}


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


def check_tensor(
    tensor: onnx.TensorProto, limits: Limits, *, where: str, lifted: memoryview | None = None
) -> None:
    """Refuse a tensor whose parts disagree. `lifted` is raw_data that was taken out before parsing."""
    dtype = data_type(tensor.data_type, where)
    count = _check_dims(tensor, dtype, limits, where)
    if tensor.HasField("segment"):
        raise UnsupportedError("segmented tensors are not supported by any runtime.", where=where)
    homes = [name for name in _TYPED_FIELDS if len(getattr(tensor, name))]
    raw = (
        lifted if lifted is not None else (tensor.raw_data if tensor.HasField("raw_data") else None)
    )
    if tensor.data_location == _T.EXTERNAL:
        if homes or raw:
            raise StructureError(
                f"the data is said to be external, but {', '.join(homes) or 'raw_data'} is set too.",
                where=where,
            )
        if dtype == ir.DataType.STRING:
            raise StructureError("strings cannot be external data.", where=where)
        return
    if raw and homes:
        raise StructureError(
            f"raw_data and {homes[0]} are both set; only one can be true.", where=where
        )
    if len(homes) > 1:
        raise StructureError(
            f"{' and '.join(homes)} are both set; only one can be true.", where=where
        )
    if raw is not None and not homes:
        _check_raw(raw, dtype, count, tensor, where)
    else:
        _check_typed(tensor, homes, dtype, count, where)


def _check_dims(tensor: onnx.TensorProto, dtype: ir.DataType, limits: Limits, where: str) -> int:
    dims = tuple(tensor.dims)
    if len(dims) > limits.rank:
        raise LimitError(
            f"{len(dims)} dimensions; the limit is {limits.rank} (Limits.rank).",
            where=where,
            value=len(dims),
            limit=limits.rank,
        )
    if any(d < 0 for d in dims):
        raise StructureError(
            f"negative dimension in {type_text(dtype, dims)}.", where=where, value=dims
        )
    count = math.prod(dims)
    if count > limits.tensor_elements:
        raise LimitError(
            f"{type_text(dtype, dims)} has {count:,} elements; the limit is {limits.tensor_elements:,} "
            "(Limits.tensor_elements).",
            where=where,
            value=count,
            limit=limits.tensor_elements,
        )
    return count


def _check_raw(
    raw: bytes | memoryview, dtype: ir.DataType, count: int, tensor: onnx.TensorProto, where: str
) -> None:
    if dtype == ir.DataType.STRING:
        raise StructureError("strings cannot be raw_data; they belong in string_data.", where=where)
    need = (count * dtype.bitwidth + 7) // 8
    if len(raw) != need:
        raise StructureError(
            f"raw_data has {len(raw):,} bytes, but {type_text(dtype, tensor.dims)} needs {need:,}.",
            where=where,
            value=len(raw),
            limit=need,
            hint="Export the model again; the file is damaged.",
        )
    if dtype == ir.DataType.BOOL and count and int(np.frombuffer(raw, np.uint8).max()) > 1:
        raise StructureError("a bool tensor holds bytes other than 0 and 1.", where=where)


def _check_typed(
    tensor: onnx.TensorProto, homes: list[str], dtype: ir.DataType, count: int, where: str
) -> None:
    home, entries = _HOME.get(tensor.data_type, ("int32_data", 1))
    bits = 8 if dtype == ir.DataType.STRING else dtype.bitwidth
    if bits in (2, 4):  # several elements share an entry, as they share a byte
        need = (count * bits + 7) // 8
    else:
        need = count * entries
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
    if home == "int32_data" and have:
        low, high = _INT32_RANGE.get(tensor.data_type, (-(1 << 31), (1 << 31) - 1))
        if bits < 8 or (bits == 8 and tensor.data_type not in _INT32_RANGE):
            low, high = -128, 255  # one byte of bits, whether the exporter sign-extended it or not
        values = np.asarray(tensor.int32_data)
        if int(values.min()) < low or int(values.max()) > high:
            raise StructureError(
                f"int32_data holds {int(values.min())}..{int(values.max())}, "
                f"but {dtype.name.lower()} takes {low}..{high}.",
                where=where,
            )
    if home == "string_data":
        for i, text in enumerate(tensor.string_data):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise StructureError(
                    f"string {i} is not UTF-8 ({error.reason}).", where=where
                ) from None


def check_sparse_tensor(sparse: onnx.SparseTensorProto, limits: Limits, *, where: str) -> None:
    """Values, indices and dimensions must agree; indices in range, sorted and unique."""
    dims = tuple(sparse.dims)
    if not dims or any(d < 0 for d in dims):
        raise StructureError(
            f"a sparse tensor needs dimensions of 0 or more, not {list(dims)}.", where=where
        )
    if len(dims) > limits.rank:
        raise LimitError(
            f"{len(dims)} dimensions; the limit is {limits.rank} (Limits.rank).", where=where
        )
    values, indices = sparse.values, sparse.indices
    check_tensor(values, limits, where=f"values of {where}")
    check_tensor(indices, limits, where=f"indices of {where}")
    dense_bytes = math.prod(dims) * max(1, data_type(values.data_type, where).bitwidth // 8)
    if dense_bytes > limits.dense_bytes:
        raise LimitError(
            f"it would be {dense_bytes:,} bytes when dense; the limit is {limits.dense_bytes:,} (Limits.dense_bytes).",
            where=where,
            value=dense_bytes,
            limit=limits.dense_bytes,
        )
    if len(values.dims) != 1:
        raise StructureError(
            f"its values must be one-dimensional, not {list(values.dims)}.", where=where
        )
    stored = values.dims[0]
    if indices.data_type != _T.INT64 or tuple(indices.dims) not in ((stored,), (stored, len(dims))):
        raise StructureError(
            f"its indices must be int64[{stored}] or int64[{stored}, {len(dims)}], not "
            f"{type_text(data_type(indices.data_type, where), indices.dims)}.",
            where=where,
        )
    if indices.data_location != _T.EXTERNAL:
        check_sparse_indices(onnx.numpy_helper.to_array(indices), dims, where)


def check_sparse_indices(indices: np.ndarray, dims: tuple[int, ...], where: str) -> None:
    flat = indices if indices.ndim == 1 else None
    if indices.ndim == 2:
        if ((indices < 0) | (indices >= np.array(dims))).any():
            raise StructureError(f"an index lies outside the dimensions {list(dims)}.", where=where)
        flat = (
            np.ravel_multi_index(tuple(indices.T), dims) if len(indices) else np.zeros(0, np.int64)
        )
    assert flat is not None
    if len(flat) and (int(flat.min()) < 0 or int(flat.max()) >= math.prod(dims)):
        raise StructureError(
            f"index {int(flat.max())} lies outside its {math.prod(dims):,} elements.", where=where
        )
    if len(flat) > 1 and not bool((np.diff(flat) > 0).all()):
        raise StructureError("its indices are not in ascending order without repeats.", where=where)
