"""Static quantization: a grid for every value that a quantized node reads, by what calibration saw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.bias_correction import Mean, corrected_bias
from sardonyx.quantization.calibration import Progress, Sink, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import (
    STEPS,
    Array,
    Grid,
    grid_of_range,
    grid_of_weights,
)
from sardonyx.quantization.observers import Observer, make_observer
from sardonyx.quantization.options import Static
from sardonyx.quantization.recipe import Recipe, Steps
from sardonyx.quantization.sharing import share_grids
from sardonyx.quantization.targets import Target, bias_of, constant_of

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
    sinks: dict[str, list[Sink]] = {name: [one.see] for name, one in seen.items()}
    means = _means(targets) if options.correct_bias else {}
    for name, mean in means.items():
        sinks.setdefault(name, []).append(mean.see)
    # Where the extremes are enough, they are found in the graph, and no tensor is handed over.
    extremes = frozenset(seen if options.calibration == "minmax" else ()) - means.keys()
    answers = observe(model, sinks, data, progress, extremes=extremes)
    low, high = STEPS[options.activations]
    grids: dict[str, Grid] = {}
    for name, observer in observers.items():
        covered = observer.range(int(high - low))
        grid = grid_of_range(*covered, options.activations, symmetric=options.symmetric)
        grids.update(dict.fromkeys(members[name], grid))
    weights = {t.node: _steps(t, options, grids) for t in targets if t.weights is not None}
    biases: dict[ir.Node, Array] = {}
    for target in targets if options.correct_bias else ():
        bias = (
            corrected_bias(target, weights[target.node], means) if target.bias is not None else None
        )
        if bias is not None:
            biases[target.node] = bias
    return Recipe(model, shapes, targets, grids, weights, answers, biases)


def _means(targets: Sequence[Target]) -> dict[str, Mean]:
    """Of what nodes with a bias of their own read; channels are before the sides of an image, else last."""
    found: dict[str, Mean] = {}
    for target in targets:
        source = target.node.inputs[0]
        if target.bias is not None and source is not None:
            images = target.node.op_type in ("Conv", "ConvTranspose")
            found[source.name or ""] = Mean(1 if images else -1)
    return found


def _steps(target: Target, options: Static, grids: dict[str, Grid]) -> Steps:
    """A node's weights on a grid, one that is wide enough for its bias where that is an integer too."""
    assert target.weights is not None
    node, (number, channels) = target.node, target.weights
    weights = constant_of(node.inputs[number])
    assert weights is not None
    axis = channels if options.per_channel and channels >= 0 else None
    # Nothing looks up rows of small floats: tables have integers.
    small = node.op_type == "Gather" and options.weights == ir.DataType.FLOAT8E4M3FN
    dtype = ir.DataType.INT8 if small else options.weights
    grid = grid_of_weights(weights, dtype, axis=axis, symmetric=STEPS[dtype][0] < 0)
    bias = bias_of(target)
    if bias is not None and target.activations:
        # A channel of tiny weights beside a large bias: its steps of a * w would overflow 32 bits.
        source = node.inputs[target.activations[0]]
        assert source is not None
        scale = float(grids[source.name or ""].scale)
        largest = np.abs(bias) if axis is not None else np.abs(bias).max(initial=0.0)
        needed = np.asarray(largest / (_LARGEST_BIAS * scale), np.float32)
        grid = replace(grid, scale=np.maximum(grid.scale, needed))
    return Steps(grid.quantize(weights), grid)
