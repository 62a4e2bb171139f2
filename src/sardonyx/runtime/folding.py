"""Computing one node on constants, through the reference backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.backends import reference
from sardonyx.backends.guard import Guard
from sardonyx.errors import SardonyxError

__all__ = ["MAX_FOLDED_BYTES", "fold_node"]

MAX_FOLDED_BYTES = 1 << 28  # that computing one constant from others may take


def fold_node(
    model: ir.Model,
    node: ir.Node,
    inputs: Sequence[npt.NDArray[Any] | None],
    most: int = MAX_FOLDED_BYTES,
) -> list[npt.NDArray[Any]] | None:
    """What the node gives on these inputs; None for what fails or takes more bytes: the run will name it."""
    given = {v: a for v, a in zip(node.inputs, inputs, strict=True) if v is not None}
    try:
        program = reference.compile_node(model, node)
        values = [given[v] for v in program.reads]
        results = program.run(values, Guard(most))
    except (SardonyxError, KeyError):
        return None
    arrays = [value for value in results if isinstance(value, np.ndarray)]
    return arrays if len(arrays) == len(results) else None
