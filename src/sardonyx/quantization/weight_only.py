"""Weights alone: steps in the file, floats in the arithmetic.

    MatMul(x, DequantizeLinear(w, block_size=32))        a scale for every 32 weights of a column

Round to nearest, or by the data: errors of one weight made good by the next ones (`gptq`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Answers, Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.gptq import round_by_moments
from sardonyx.quantization.grid import Array, Grid, grid_of_blocks, grid_of_weights
from sardonyx.quantization.moments import collect_moments
from sardonyx.quantization.options import WeightOnly
from sardonyx.quantization.recipe import Recipe, Steps, node_input
from sardonyx.quantization.targets import Choice, Target, constant_of, input_axis

__all__ = ["choose_weights", "weigh"]

_SHORTEST = 16  # channels along the blocks; below it scales would take more than the weights


def choose_weights(choice: Choice) -> Choice:
    """The targets that have weights, to be quantized alone; and those that have none are not spoken of."""
    targets = [
        replace(t, activations=(), bias=None, added=None)
        for t in choice.targets
        if t.weights is not None
    ]
    kept = [one for one in choice.kept if one.node.op_type not in ("Add", "AveragePool")]
    return Choice(tuple(targets), tuple(kept))


def weigh(
    model: ir.Model,
    shapes: Shapes,
    targets: Sequence[Target],
    options: WeightOnly,
    data: CalibrationData | None,
    progress: Progress,
) -> Recipe:
    """A grid for every target's weights, and the weights on it."""
    moments: Mapping[str, Array] = {}
    answers: Sequence[Answers] = ()
    if data is not None:
        answers = observe(model, {}, data, progress) if options.algorithm != "gptq" else ()
    if options.algorithm == "gptq":
        assert data is not None
        moments, answers = collect_moments(model, targets, data, progress)
    weights = {}
    for number, target in enumerate(targets):
        weights[target.node] = _round(target, options, moments)
        progress("rounding weights", number + 1, len(targets))
    return Recipe(model, shapes, targets, {}, weights, answers)


def _round(target: Target, options: WeightOnly, moments: Mapping[str, Array]) -> Steps:
    assert target.weights is not None
    number, channels = target.weights
    weights = constant_of(node_input(target, number))
    assert weights is not None
    axis = input_axis(target.node, weights.ndim)
    if axis is None or (options.bits < 8 and weights.shape[axis] < _SHORTEST):
        # Tables are looked up by row, and short rows would have more scales than weights: 8 bits, a scale a channel.
        grid = grid_of_weights(weights, ir.DataType.INT8, axis=channels if channels >= 0 else None)
        return Steps(grid.quantize(weights), grid)
    moment = moments.get(node_input(target, 0).name or "")
    if moment is not None and weights.ndim == 2:
        return _by_moments(weights, axis, moment, options)
    grid = grid_of(weights, axis, channels, options)
    return Steps(grid.quantize(weights), grid)


def grid_of(weights: Array, axis: int, channels: int, options: WeightOnly) -> Grid:
    if options.block == 0:
        found = channels if channels >= 0 else None
        return grid_of_weights(weights, options.dtype, axis=found, symmetric=options.symmetric)
    return grid_of_blocks(
        weights, options.dtype, axis=axis, block=options.block, symmetric=options.symmetric
    )


def _by_moments(weights: Array, axis: int, moment: Array, options: WeightOnly) -> Steps:
    """The algorithm works on rows of inputs; a product's weights are columns of them."""
    rows = weights.T if axis == 0 else weights
    steps, scale, zero = round_by_moments(
        rows, moment, options.dtype, options.block, symmetric=options.symmetric
    )
    if axis == 0:
        steps, scale, zero = steps.T, scale.T, zero.T
    if options.block == 0:
        grid = Grid(scale.reshape(-1), zero.reshape(-1), options.dtype, 1 - axis)
    else:
        grid = Grid(np.ascontiguousarray(scale), zero, options.dtype, axis, options.block)
    return Steps(np.ascontiguousarray(steps), grid)
