"""The strings of a tensor in a model, exactly.

`numpy()` of such a tensor gives numpy's own fixed-width strings, which lose the zero bytes at their end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.errors import StructureError

__all__ = ["strings_of"]


def strings_of(tensor: ir.TensorProtocol) -> npt.NDArray[Any]:
    """An object array of `str`; the standard's strings are UTF-8.

    Raises:
        StructureError: one of them is not.
    """
    stored = tensor.string_data() if isinstance(tensor, ir.StringTensor) else tensor.numpy().flat
    array = np.empty(tensor.size, dtype=object)
    try:
        array[:] = [item.decode() if isinstance(item, bytes) else str(item) for item in stored]
    except UnicodeDecodeError as error:
        raise StructureError(
            f"a string is not UTF-8 ({error.reason} at byte {error.start})",
            where=f"tensor {tensor.name!r}",
            value=error.object,
            hint="Export the model again with UTF-8 strings.",
        ) from error
    return array.reshape(tuple(tensor.shape.numpy()))
