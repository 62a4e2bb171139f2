"""The model as it is planned: the same answers, said so that more of it can be compiled."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.preparing.attentions import write_out_attention
from sardonyx.passes.preparing.expand import Expanded, expand
from sardonyx.passes.preparing.grouping import normalize_groups
from sardonyx.passes.preparing.integers import multiply_integers
from sardonyx.passes.preparing.moves import move_bytes
from sardonyx.passes.preparing.resizes import resize_what_changes
from sardonyx.passes.preparing.squeezes import keep_ones
from sardonyx.passes.preparing.texts import number_texts
from sardonyx.passes.shapes import Shapes

__all__ = ["prepare"]

_CHANGES = (
    number_texts,
    keep_ones,
    resize_what_changes,
    write_out_attention,
    normalize_groups,
    move_bytes,
)


def prepare(model: ir.Model, shapes: Shapes, *, unsigned_bytes: bool = False) -> Expanded:
    """Without calls of functions; with numbers for strings, with ranks and sizes that are known, and with products of integers.

    Args:
        unsigned_bytes: whether the processor multiplies bytes without a sign.
    """
    prepared = expand(model, shapes)
    for change in _CHANGES:
        prepared = change(prepared)
    return multiply_integers(prepared, unsigned=unsigned_bytes)
