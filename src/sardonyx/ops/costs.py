"""The bill: multiply-accumulates, other arithmetic, and bytes moved, as sizes.

What is not known is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.ops.facts import Facts
from sardonyx.sizes import Size, ceil_div

__all__ = ["Cost", "bytes_of", "moved", "total"]

ZERO: Size = 0


@dataclass(frozen=True)
class Cost:
    """What one node takes. A field is None when a size it depends on is not known.

    Attributes:
        macs: multiply-accumulates of contractions.
        flops: arithmetic outside contractions, one per element and elementary operation.
        bytes_read: of every input that the node has to read.
        bytes_written: of every output that the node has to write.
    """

    macs: Size | None = 0
    flops: Size | None = 0
    bytes_read: Size | None = 0
    bytes_written: Size | None = 0


def bytes_of(facts: Facts | None, elements: Size | None = None) -> Size | None:
    """Bytes of a tensor, or of `elements` of its elements; 4-bit types take half a byte each."""
    if facts is None:
        return 0
    count = facts.elements if elements is None else elements
    if facts.kind != "tensor" or facts.dtype is None or count is None:
        return None
    if facts.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    bits = facts.dtype.bitwidth
    return count * (bits // 8) if bits >= 8 else ceil_div(count * bits, 8)


def total(parts: Iterable[Size | None]) -> Size | None:
    """The sum, or None when a part is not known."""
    result: Size = 0
    for part in parts:
        if part is None:
            return None
        result = result + part
    return result


def moved(
    inputs: Sequence[Facts | None],
    outputs: Sequence[Facts],
    *,
    macs: Size | None = 0,
    flops: Size | None = 0,
) -> Cost:
    """A node that reads all its inputs and writes all its outputs once."""
    return Cost(
        macs, flops, total(map(bytes_of, inputs)), total(bytes_of(output) for output in outputs)
    )
