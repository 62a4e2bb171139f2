"""Why a node has no way back."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.errors import UnsupportedError
from sardonyx.model.source import describe, source_line

__all__ = ["refusal"]


def refusal(node: ir.Node, reason: str, hint: str | None = None) -> UnsupportedError:
    """The error for a node that cannot be written in a framework's words."""
    return UnsupportedError(
        f"{reason}.", where=describe(node), source=source_line(node), value=node.op_type, hint=hint
    )
