"""The operator table of CoreML: what ONNX's operators are in layers, one family a file."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.coreml.operators import (
    activations,
    arithmetic,
    choosing,
    convolving,
    gathering,
    normalizing,
    parts,
    pooling,
    products,
    quantizing,
    recurrent,
    reducing,
    resizing,
    views,
)
from sardonyx.conversion.back.coreml.step import Entry

__all__ = ["TABLE", "knows"]

TABLE: Mapping[str, Entry] = {
    **arithmetic.ENTRIES,
    **activations.ENTRIES,
    **choosing.ENTRIES,
    **views.ENTRIES,
    **parts.ENTRIES,
    **gathering.ENTRIES,
    **reducing.ENTRIES,
    **products.ENTRIES,
    **convolving.ENTRIES,
    **pooling.ENTRIES,
    **normalizing.ENTRIES,
    **resizing.ENTRIES,
    **quantizing.ENTRIES,
    **recurrent.ENTRIES,
}


def knows(domain: str, operator: str, version: int = 0) -> bool:
    """Whether the table has an operator."""
    return not domain and operator in TABLE
