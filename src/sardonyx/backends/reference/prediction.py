"""How many bytes a node's outputs will take, known before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.values import Value

__all__ = ["predict_bytes"]


def predict_bytes(operator: Operator, inputs: Sequence[Value]) -> int:
    """The bytes of all outputs, as far as shapes and small values tell."""
    return 0
