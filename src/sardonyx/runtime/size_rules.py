"""The shape rule of a node, asked during a run for sizes that the values of its inputs decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.errors import RunError, ShapeError
from sardonyx.ops import infer_node
from sardonyx.ops.facts import Facts, facts_of_array
from sardonyx.runtime.native import Array, SizedInput, SizeRule
from sardonyx.sizes import Size

__all__ = ["size_rule"]


def size_rule(node: ir.Node, version: int) -> SizeRule:
    """What gives the shapes of a node's outputs from its inputs, by value or by type and shape."""

    def ask(inputs: Sequence[Array | SizedInput | None]) -> list[Sequence[Size]]:
        try:
            found = infer_node(node, [_facts(one) for one in inputs], version)
        except ShapeError as error:
            raise RunError(
                error.message, where=error.where, source=error.source, hint=error.hint
            ) from error
        return [facts.shape or () for facts in found]

    return ask


def _facts(given: Array | SizedInput | None) -> Facts | None:
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        return facts_of_array(given)
    number, shape = given
    return Facts("tensor", ir.DataType(number), shape)
