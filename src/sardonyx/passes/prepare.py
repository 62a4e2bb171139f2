"""The model as it is planned: the same answers, said so that more of it can be compiled."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.attentions import write_out_attention
from sardonyx.passes.expand import Expanded, expand
from sardonyx.passes.resizes import resize_what_changes
from sardonyx.passes.shapes import Shapes
from sardonyx.passes.squeezes import keep_ones
from sardonyx.passes.texts import number_texts

__all__ = ["prepare"]


def prepare(model: ir.Model, shapes: Shapes) -> Expanded:
    """Without calls of functions; with numbers for strings, and with ranks and sizes that are known."""
    prepared = expand(model, shapes)
    for change in (number_texts, keep_ones, resize_what_changes, write_out_attention):
        prepared = change(prepared)
    return prepared
