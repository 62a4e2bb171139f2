"""What flows between nodes at run time.

A value is a numpy array (`ml_dtypes` for the small floats and integers, object arrays of `str`
for strings), a list (sequence), None (an empty optional, or an input left out), a dict (map)
or a `SparseTensor`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "SparseTensor", "Value"]

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
