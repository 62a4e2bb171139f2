"""Which values lie in memory as float16 where the model has float32: half as much to write and to read.

    Conv ─ Clip(0, 6) ─ depthwise Conv ─ Clip(0, 6) ─ Conv
                      f16, multiplied as such       f16

For precision "bfloat16" on CPUs that multiply float16. A value that a Clip ends is between known bounds, so that float16
holds it, with more bits than were promised, where they are near 1. All that read it are convolutions in float16 arithmetic: they would round it
when they read it. Numbers below 6e-5 are off by up to 3e-8, whatever is beside them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.ops.lowering import Convolution
from sardonyx.plan.graph import Graph, Work
from sardonyx.plan.group import Group, Grouping
from sardonyx.plan.halves import BOUND, LEAST_BOUND, halves_pay, holds_filters, may_halve
from sardonyx.plan.target import Target
from sardonyx.plan.winograd import winograd_is_possible
from sardonyx.plan.write import Writer
from sardonyx.sizes import product

__all__ = ["find_narrow"]

_LEAST_CHANNELS = 16  # two vectors


def find_narrow(graph: Graph, grouping: Grouping, target: Target) -> frozenset[ir.Value]:
    """Values that are worth it."""
    if not may_halve(target):
        return frozenset()
    return frozenset(
        group.result
        for group in grouping.groups
        if group.result in grouping.stored
        and group.result not in graph.outputs
        and group.result not in graph.flow.aliases
        and LEAST_BOUND <= _bound(graph, group) <= BOUND
        and all(
            _takes_halves(graph, work, group.result, _bound(graph, group), target)
            for work in graph.readers.get(group.result, [])
        )
    )


def _bound(graph: Graph, group: Group) -> float:
    """What no number of the result is beyond; infinite where nobody knows."""
    node, call = group.last.node, group.last.call
    if node.op_type != "Clip" or graph.dtype(group.result) != "f32":
        return math.inf
    ends: list[Any] = [call.attr("min"), call.attr("max")]
    if call.version >= 11:
        given = (node.inputs[n] if call.has(n) else None for n in (1, 2))
        ends = [None if value is None else graph.constants.get(value) for value in given]
    # By numpy, for which NaN is the largest.
    return float(np.max([math.inf if end is None else np.max(np.abs(end)) for end in ends]))


def _takes_halves(graph: Graph, work: Work, source: ir.Value, bound: float, target: Target) -> bool:
    """Whether a reader is a convolution that multiplies the value as float16, all of whose sums fit."""
    if not isinstance(work.lowering, Convolution) or list(work.node.inputs).count(source) != 1:
        return False
    filters = work.node.inputs[1]
    weights = None if filters is None else graph.constants.get(filters)
    if work.node.inputs[0] is not source or weights is None or weights.dtype != np.float32:
        return False
    window = work.lowering.describe(Writer(graph, frozenset(), {}).pull.site(work))
    outputs, channels = weights.shape[0], weights.shape[1] * window.groups
    if not all(isinstance(pad, int) for pad in window.pads_begin) or channels < _LEAST_CHANNELS:
        return False
    if window.groups == channels == outputs:
        return holds_filters(weights, bound)
    if winograd_is_possible(target, window, channels, outputs, "f32"):
        return False
    rows = product(graph.shape(work.node.outputs[0])) // outputs
    pays = halves_pay(rows, weights[0].size, outputs, narrow=True)
    return window.groups == 1 and channels >= target.few_channels and pays
