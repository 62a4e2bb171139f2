"""What each operator means: one entry an operator, with its shape rule, cost rule and kind."""

from __future__ import annotations

from sardonyx.ops.bill import cost_of
from sardonyx.ops.costs import Cost, bytes_of
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape, facts_of_array, facts_of_tensor, sequence_of, unknown
from sardonyx.ops.infer import infer_node
from sardonyx.ops.registry import all_operators, find_operator

__all__ = [
    "Cost",
    "Facts",
    "Operator",
    "Shape",
    "all_operators",
    "bytes_of",
    "cost_of",
    "facts_of_array",
    "facts_of_tensor",
    "find_operator",
    "infer_node",
    "sequence_of",
    "unknown",
]
