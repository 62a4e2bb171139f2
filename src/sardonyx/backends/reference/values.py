"""What flows between nodes at run time, and how many bytes it holds.

A value is a numpy array (`ml_dtypes` for the small floats and integers, object arrays of `str`
for strings), a list (sequence), None (an empty optional, or an input left out), a dict (map)
or a `SparseTensor`.

Arrays are frozen (`writeable = False`) while they flow, so that an implementation which writes
into its input fails loudly and can never corrupt a value that another node still needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.errors import StructureError
from sardonyx.model.carried.sparse import SparseTensor as StoredSparse

__all__ = [
    "Array",
    "SparseTensor",
    "Value",
    "byte_count",
    "decode_strings",
    "element_bytes",
    "freeze",
    "normalize",
    "stored_tensor",
    "tensor_array",
    "thaw",
]

# A numpy.ndarray. Its element type is chosen at run time and may be one of ml_dtypes', of which
# numpy's stubs know nothing, so a more exact type would say no more and cost casts everywhere.
Array: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """A sparse tensor in the COO form of the standard.

    Attributes:
        values: the elements that are not zero, of shape [NNZ].
        indices: where they are: [NNZ] linear, or [NNZ, rank] coordinates; sorted, without repeats.
        shape: of the dense tensor.
    """

    values: Array
    indices: Array
    shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.indices.nbytes)

    @property
    def dense_nbytes(self) -> int:
        return math.prod(self.shape) * int(self.values.dtype.itemsize)

    def dense(self) -> Array:
        """The same tensor with its zeros written out."""
        dense = np.zeros(self.shape, dtype=self.values.dtype)
        if self.indices.ndim == 1:
            dense.reshape(-1)[self.indices] = self.values
        else:
            dense[tuple(self.indices.T)] = self.values
        return dense


# A sequence holds values and a map holds scalars; mypy has no use for the recursion here.
Value: TypeAlias = "Array | SparseTensor | list[Any] | dict[Any, Any] | None"


def element_bytes(dtype: ir.DataType) -> int:
    """Bytes that one element takes in memory: the packed types take a byte, strings a pointer."""
    if dtype == ir.DataType.STRING:
        return np.dtype(object).itemsize
    return np.dtype(dtype.numpy()).itemsize


def byte_count(value: Value) -> int:
    """Bytes of every array inside a value."""
    if isinstance(value, (np.ndarray, SparseTensor)):
        return int(value.nbytes)
    if isinstance(value, Sequence):
        return sum(byte_count(item) + 8 for item in value)
    if isinstance(value, Mapping):
        return 16 * len(value)
    return 0


def freeze(value: Value) -> Value:
    """Make every array inside a value read-only, in place."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, list):
        for item in value:
            freeze(item)
    return value


def thaw(value: Value) -> Value:
    """A value that its receiver may write to, sharing no memory with feeds or initializers."""
    if isinstance(value, np.ndarray):
        if value.base is None and value.flags.owndata:
            value.setflags(write=True)
            return value
        return value.copy()
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def normalize(value: object) -> Value:
    """Bring what an implementation returned into the forms listed above."""
    if isinstance(value, np.ndarray):
        return value.astype(object) if value.dtype.kind in "US" else value
    if value is None or isinstance(value, (SparseTensor, dict)):
        return value
    if isinstance(value, (list, tuple)):
        return [normalize(item) for item in value]
    if isinstance(value, (np.generic, int, float, complex, str)):
        return normalize(np.asarray(value))
    if all(hasattr(value, name) for name in ("values", "indices", "shape")):
        return SparseTensor(value.values, value.indices, tuple(value.shape))  # type: ignore[attr-defined]
    raise TypeError(f"{type(value).__name__} is not a value of the standard")


def stored_tensor(tensor: ir.TensorProtocol) -> Array | SparseTensor:
    """A tensor as the model stores it; a sparse one is not written out yet."""
    if isinstance(tensor, StoredSparse):
        shape = tuple(int(size) for size in tensor.shape.numpy())
        return SparseTensor(tensor_array(tensor.values), tensor_array(tensor.indices), shape)
    return tensor_array(tensor)


def tensor_array(tensor: ir.TensorProtocol) -> Array:
    """The elements of a tensor in a model; mapped files stay mapped.

    Except where the file's layout puts them at an odd address: numpy would copy those at every use, and
    may sum them in another order than aligned ones.
    """
    array = tensor.numpy()
    if not array.flags.aligned:
        array = array.copy()
    if tensor.dtype == ir.DataType.STRING:
        array = decode_strings(array.astype(object), f"tensor {tensor.name!r}")
    view = array.view()
    view.setflags(write=False)
    return view


def decode_strings(array: Array, where: str) -> Array:
    """Bytes to str; the standard's strings are UTF-8."""
    decoded = np.empty(array.shape, dtype=object)
    try:
        decoded.reshape(-1)[:] = [
            item.decode("utf-8") if isinstance(item, bytes) else str(item)
            for item in array.reshape(-1)
        ]
    except UnicodeDecodeError as error:
        raise StructureError(
            f"a string is not UTF-8 ({error.reason} at byte {error.start})",
            where=where,
            value=error.object,
            hint="Export the model again with UTF-8 strings.",
        ) from error
    return decoded
