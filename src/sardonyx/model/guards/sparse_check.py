"""Is a sparse tensor what it claims to be? Values, indices and dimensions must agree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from sardonyx.errors import StructureError, UnsupportedError
from sardonyx.model.guards.tensors import check_tensor, data_type, type_text
from sardonyx.model.limits import Limits

__all__ = ["check_sparse_indices", "check_sparse_tensor"]


def check_sparse_tensor(sparse: onnx.SparseTensorProto, limits: Limits, *, where: str) -> None:
    """Refuse a sparse tensor whose parts disagree; external indices are checked when their file is open."""
    limits.check("rank", len(sparse.dims), "dimensions", where)
    dims = tuple(sparse.dims)
    values, indices = sparse.values, sparse.indices
    if not dims or min(dims) < 0:
        raise StructureError(
            f"a sparse tensor needs dimensions of 0 or more, not {list(dims)}.",
            where=where,
            value=min(dims, default=None),
            limit=0,
        )
    check_tensor(values, limits, where=f"values of {where}")
    check_tensor(indices, limits, where=f"indices of {where}")
    dtype = data_type(values.data_type, where)
    if dtype == ir.DataType.STRING:
        raise UnsupportedError("a sparse tensor of strings.", where=where)
    dense_bytes = math.prod(d for d in dims if d) * max(1, dtype.bitwidth // 8)
    limits.check("dense_bytes", dense_bytes, "bytes when its zeros are written out", where)
    if len(values.dims) != 1:
        raise StructureError(
            f"its values must have one dimension, not {list(values.dims)}.",
            where=where,
            value=len(values.dims),
            limit=1,
        )
    stored = values.dims[0]
    shapes = ((stored,), (stored, len(dims)))
    if indices.data_type != onnx.TensorProto.INT64 or tuple(indices.dims) not in shapes:
        found = type_text(data_type(indices.data_type, where), indices.dims)
        raise StructureError(
            f"its indices must be int64[{stored}] or int64[{stored}, {len(dims)}], not {found}.",
            where=where,
            value=found,
        )
    if indices.data_location != onnx.TensorProto.EXTERNAL:
        check_sparse_indices(ir.serde.TensorProtoTensor(indices).numpy(), dims, where)


def check_sparse_indices(indices: npt.NDArray[np.int64], dims: tuple[int, ...], where: str) -> None:
    """Refuse indices out of range, out of order or repeated: [stored] linear, or [stored, rank]."""
    bounds = np.array(dims if indices.ndim == 2 else math.prod(dims))
    outside = (indices < 0) | (indices >= bounds)
    if outside.any():
        found = indices[outside][0]
        raise StructureError(
            f"the index {found} lies outside the dimensions {list(dims)}.",
            where=where,
            value=int(found),
            limit=math.prod(dims),
        )
    if indices.ndim == 2:
        strides = [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
        indices = indices @ np.array(strides, np.int64)
    if len(indices) > 1 and not (np.diff(indices) > 0).all():
        raise StructureError("its indices are not in ascending order without repeats.", where=where)
