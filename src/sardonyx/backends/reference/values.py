"""Values on their way between nodes: how many bytes they hold, and how a stored tensor becomes one.

Arrays are frozen (`writeable = False`) while they flow, so that an implementation which writes
into its input fails loudly and can never corrupt a value that another node still needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.backends.values import Array, SparseTensor, Value
from sardonyx.model.carried.sparse import SparseTensor as StoredSparse
from sardonyx.model.strings import strings_of

__all__ = [
    "Array",
    "SparseTensor",
    "Value",
    "byte_count",
    "element_bytes",
    "freeze",
    "normalize",
    "stored_tensor",
    "tensor_array",
    "thaw",
]


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
    array = strings_of(tensor) if tensor.dtype == ir.DataType.STRING else tensor.numpy()
    if not array.flags.aligned:
        array = array.copy()
    view = array.view()
    view.setflags(write=False)
    return view
