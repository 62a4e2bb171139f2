"""What one node costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.facts import Facts
from sardonyx.ops.registry import find_operator

__all__ = ["cost_of"]


def cost_of(
    node: ir.Node,
    inputs: Sequence[Facts | None],
    outputs: Sequence[Facts],
    version: int,
    *,
    bound: Mapping[str, ir.Attr] | None = None,
) -> Cost:
    """Multiply-accumulates, other arithmetic and bytes moved of one node, as sizes.

    A field is None when a size it depends on is not known, or when the operator has no cost rule.

    Raises:
        ShapeError: an attribute that the cost depends on is not of its type.
    """
    call = Call(node, inputs, version, bound=bound)
    operator = find_operator(node.domain, node.op_type, version)
    if operator is None or operator.cost is None:
        return moved(inputs, outputs, macs=None, flops=None)
    used = [facts for facts, value in zip(outputs, node.outputs, strict=True) if value.name != ""]
    return operator.cost(call, used or outputs)
