"""What a quantized model has to hold, and which nodes stay in float for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.ops.bill import cost_of
from sardonyx.quantization.accuracy import measure
from sardonyx.quantization.calibration import Progress
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import Array
from sardonyx.quantization.metrics import Metric, Mixed
from sardonyx.quantization.recipe import Recipe
from sardonyx.quantization.report import Accuracy
from sardonyx.quantization.search import find_mix
from sardonyx.quantization.sensitivity import Sensitivity, measure_sensitivity
from sardonyx.quantization.switchboard import Switchboard
from sardonyx.quantization.targets import Target
from sardonyx.sizes import evaluate, symbols

__all__ = ["Decision", "Goal", "decide"]

_TYPICAL = 16  # a dynamic dimension, where nodes are compared by their cost


@dataclass(frozen=True)
class Goal:
    """What to hold, and what to measure.

    Attributes:
        max_drop: by how much the metric may fall; None for no bound.
        metric: of the user; None for the outputs' cosine.
        sensitivity: whether every node is measured by itself.
        faster: whether nodes that are slower quantized on this machine stay in float.
    """

    max_drop: float | None = None
    metric: Metric | None = None
    sensitivity: bool = False
    faster: bool = False

    def __post_init__(self) -> None:
        if self.max_drop is not None and not 0.0 <= self.max_drop < 1e30:
            raise InputError(
                f"max_drop={self.max_drop}; it is a share as 0.01, and not negative.",
                value=self.max_drop,
            )

    def is_held(self, accuracy: Accuracy | None) -> bool:
        if self.max_drop is None or accuracy is None:
            return True
        if accuracy.metric is not None:
            return accuracy.metric[0] - accuracy.metric[1] <= self.max_drop
        return 1.0 - accuracy.cosine <= self.max_drop


@dataclass(frozen=True)
class Decision:
    """Which targets are quantized.

    Attributes:
        kept: why the others are not.
        sensitivities: of the targets that were measured.
        metric: of the user, of the float model.
    """

    targets: Sequence[Target]
    kept: Mapping[ir.Node, str] = field(default_factory=dict)
    sensitivities: Mapping[ir.Node, Sensitivity] = field(default_factory=dict)
    metric: float | None = None

    def with_one_less(self) -> Decision:
        """The most sensitive target goes back to float."""
        worst = max(self.targets, key=lambda t: self.sensitivities[t.node].change)
        return self.without([worst])

    def without(self, targets: Sequence[Target]) -> Decision:
        return self.kept_for({t.node: _reason(self.sensitivities[t.node]) for t in targets})

    def kept_for(self, reasons: Mapping[ir.Node, str]) -> Decision:
        """Nodes go back to float."""
        left = [target for target in self.targets if target.node not in reasons]
        return replace(self, targets=left, kept={**self.kept, **reasons})


def _reason(measured: Sensitivity) -> str:
    return f"kept for max_drop: alone it changes the outputs by {measured.change:.1e}"


def decide(recipe: Recipe, data: CalibrationData, goal: Goal, progress: Progress) -> Decision:
    """All targets, or the mix that holds the goal."""
    if goal.max_drop is None and not goal.sensitivity:
        return Decision(recipe.targets)
    board = Switchboard(recipe)
    measured = measure_sensitivity(board, data.sample, progress)
    nodes = [target.node for target in recipe.targets]
    everything = Decision(recipe.targets, sensitivities=dict(zip(nodes, measured, strict=True)))
    if goal.max_drop is None:
        return everything
    outputs = [value.name or "" for value in recipe.model.graph.outputs]
    none = np.zeros(board.size, np.bool_)
    before = None
    if goal.metric is not None:
        before = goal.metric(Mixed(partial(board.run, none), outputs))

    def holds(mix: Array) -> bool:
        if goal.metric is not None and before is not None:
            after = goal.metric(Mixed(partial(board.run, mix), outputs))
            return goal.is_held(Accuracy(0, 0.0, 0.0, (before, after)))
        return goal.is_held(measure(partial(board.run, mix), data.sample, recipe.answers))

    ranking = sorted(range(board.size), key=lambda number: -measured[number].change)
    mix = find_mix(holds, ranking, [_cost(target, recipe) for target in recipe.targets], progress)
    floats = [target for target, on in zip(recipe.targets, mix, strict=True) if not on]
    return replace(everything, metric=before).without(floats)


def _cost(target: Target, recipe: Recipe) -> float:
    """What a node computes, at dynamic sizes that are all alike; its bytes where it multiplies nothing."""
    shapes, node = recipe.shapes, target.node
    inputs = [None if value is None else shapes.of(value) for value in node.inputs]
    version = recipe.model.opset_imports.get("", 13)
    cost = cost_of(node, inputs, [shapes.of(value) for value in node.outputs], version)
    size = cost.bytes_read if cost.macs is None or cost.macs == 0 else cost.macs
    if size is None:
        return 0.0
    return float(evaluate(size, dict.fromkeys(symbols(size), _TYPICAL)))
