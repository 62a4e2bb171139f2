"""One entry an operator: what it is, its shape and value rules, its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost
from sardonyx.ops.facts import Facts, Values
from sardonyx.ops.lowering import Lowering

__all__ = ["CostRule", "OpKind", "Operator", "ShapeRule", "ValueRule"]

OpKind: TypeAlias = Literal["pointwise", "view", "reduction", "contraction", "opaque"]
ShapeRule: TypeAlias = Callable[[Call], Sequence[Facts]]
ValueRule: TypeAlias = Callable[[Call, Facts], "Values | None"]
CostRule: TypeAlias = Callable[[Call, Sequence[Facts]], Cost]


@dataclass(frozen=True)
class Operator:
    """What one operator means, for the opset versions since…until.

    Attributes:
        name: op_type.
        kind: how it may be fused: pointwise, view, reduction, contraction or opaque.
        shapes: facts about the outputs from facts about the inputs; None asks onnx.
        values: the elements of the first output, where shape arithmetic needs them.
        cost: what running it takes; None is not known.
        lower: its meaning in the kernel language; None runs on the reference backend.
    """

    name: str
    kind: OpKind
    shapes: ShapeRule | None = None
    values: ValueRule | None = None
    cost: CostRule | None = None
    lower: Lowering | None = None
    domain: str = ""
    since: int = 1
    until: int | None = None
