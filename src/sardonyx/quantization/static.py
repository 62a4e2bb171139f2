"""Static quantization: a grid for every value that a quantized node reads, by what calibration saw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import (
    STEPS,
    Grid,
    grid_of_range,
    grid_of_weights,
)
from sardonyx.quantization.observers import Observer, make_observer
from sardonyx.quantization.options import Static
from sardonyx.quantization.recipe import Recipe, Steps
from sardonyx.quantization.sharing import share_grids
from sardonyx.quantization.targets import Target, constant_of

__all__ = ["calibrate"]

_LARGEST_BIAS = 2.0**30  # steps; with the sums of products it stays within 32 bits


def calibrate(
    model: ir.Model,
    shapes: Shapes,
    targets: Sequence[Target],
    options: Static,
    data: CalibrationData,
    progress: Progress,
) -> Recipe:
    """Run the model over the data, and fit a grid to every value that the targets read."""
    observers: dict[str, Observer] = {}
    members: dict[str, Sequence[str]] = {}
    seen: dict[str, Observer] = {}
    for group in share_grids(model.graph, targets, shapes).groups:
        observer = make_observer(options.calibration, options.percentile)
        names = [value.name or "" for value in group.values]
        observers[names[0]], members[names[0]] = observer, names
        seen.update(dict.fromkeys((root.name or "" for root in group.roots), observer))
    sinks = {name: [one.see] for name, one in seen.items()}
    answers = observe(model, sinks, data, progress)
    low, high = STEPS[options.activations]
    grids: dict[str, Grid] = {}
    for name, observer in observers.items():
        covered = observer.range(int(high - low))
        grid = grid_of_range(*covered, options.activations, symmetric=options.symmetric)
        grids.update(dict.fromkeys(members[name], grid))
    weights = {t.node: _steps(t, options, grids) for t in targets if t.weights is not None}
    return Recipe(model, shapes, targets, grids, weights, answers)


def _steps(target: Target, options: Static, grids: dict[str, Grid]) -> Steps:
    """A node's weights on a grid, one that is wide enough for its bias where that is an integer too."""
    assert target.weights is not None
    node, (number, channels) = target.node, target.weights
    weights = constant_of(node.inputs[number])
    assert weights is not None
    axis = channels if options.per_channel and channels >= 0 else None
    symmetric = STEPS[options.weights][0] < 0
    grid = grid_of_weights(weights, options.weights, axis=axis, symmetric=symmetric)
    bias = constant_of(node.inputs[target.bias]) if target.bias is not None else None
    if bias is not None and target.activations:
        # A channel of tiny weights beside a large bias: its steps of a * w would overflow 32 bits.
        source = node.inputs[target.activations[0]]
        assert source is not None
        scale = float(grids[source.name or ""].scale)
        largest = np.abs(bias) if axis is not None else np.abs(bias).max(initial=0.0)
        needed = np.asarray(largest / (_LARGEST_BIAS * scale), np.float32)
        grid = replace(grid, scale=np.maximum(grid.scale, needed))
    return Steps(grid.quantize(weights), grid)
