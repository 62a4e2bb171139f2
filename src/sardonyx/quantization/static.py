"""Static quantization: ranges from calibration data, pairs in the graph.

recipe = calibrate(model, shapes, targets, options, data)     # a grid for every value that may be quantized
write(recipe, targets)                                        # the model with all of them quantized, or with some
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Answers, Progress, observe
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
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.sharing import share_grids
from sardonyx.quantization.targets import Target, constant_of

__all__ = ["Recipe", "calibrate", "grid_of_target", "write"]

_LARGEST_BIAS = 2.0**30  # steps; with the sums of products it stays within 32 bits


@dataclass(frozen=True)
class Recipe:
    """All that is needed to quantize any of a model's nodes.

    Attributes:
        model: as it was, in float.
        grids: of the values that some target reads, by name.
        answers: of the model to the data's sample.
    """

    model: ir.Model
    shapes: Shapes
    options: Static
    grids: Mapping[str, Grid]
    answers: Sequence[Answers]


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
    return Recipe(model, shapes, options, grids, answers)


def write(recipe: Recipe, targets: Sequence[Target]) -> ir.Model:
    """The model with these nodes quantized."""
    writer = Writer(recipe.model)
    sharing = share_grids(recipe.model.graph, targets, recipe.shapes)
    rounded: dict[ir.Value, ir.Value] = {}
    for group in sharing.groups:
        for value in group.values:
            rounded[value] = writer.pair(value, recipe.grids[value.name or ""])
    for carrier in sharing.carriers:
        _reread(writer, carrier, rounded, range(len(carrier.inputs)))
    for target in targets:
        _reread(writer, target.node, rounded, target.activations)
        _write_weights(writer, recipe, target)
    writer.drop_unread()
    return writer.model


def _reread(
    writer: Writer, node: ir.Node, rounded: Mapping[ir.Value, ir.Value], numbers: Sequence[int]
) -> None:
    twin = writer.node(node)
    for number in numbers:
        value = node.inputs[number]
        if value is not None and value in rounded:
            twin.replace_input_with(number, rounded[value])


def grid_of_target(target: Target, weights: Array, options: Static, scale: float) -> Grid:
    """The grid of a node's weights; wide enough for its bias, where that is an integer too."""
    assert target.weights is not None
    axis = target.weights[1] if options.per_channel and target.weights[1] >= 0 else None
    symmetric = STEPS[options.weights][0] < 0
    grid = grid_of_weights(weights, options.weights, axis=axis, symmetric=symmetric)
    bias = constant_of(target.node.inputs[target.bias]) if target.bias is not None else None
    if bias is None:
        return grid
    # A channel of tiny weights beside a large bias: steps of a * w that small would overflow 32 bits.
    largest = np.abs(bias) if axis is not None else np.abs(bias).max(initial=0.0)
    needed = (largest / (_LARGEST_BIAS * scale)).astype(np.float32)
    return replace(grid, scale=np.maximum(grid.scale, needed))


def _write_weights(writer: Writer, recipe: Recipe, target: Target) -> None:
    """Weights as integers, and the bias as 32 bits in steps of activation times weight."""
    if target.weights is None:
        return
    node, twin = target.node, writer.node(target.node)
    source, value = node.inputs[target.activations[0]], node.inputs[target.weights[0]]
    weights = constant_of(value)
    assert weights is not None
    assert source is not None
    assert value is not None
    scale = float(recipe.grids[source.name or ""].scale)
    grid = grid_of_target(target, weights, recipe.options, scale)
    name = value.name or "weights"
    twin.replace_input_with(target.weights[0], writer.weights(name, weights, grid))
    if target.bias is None:
        return
    given = node.inputs[target.bias]
    bias = constant_of(given)
    assert bias is not None
    assert given is not None
    product = (grid.scale.astype(np.float64) * scale).astype(np.float32)
    zeros = np.zeros(product.shape, np.int32)
    axis = None if product.ndim == 0 else 0
    fine = Grid(product, zeros, ir.DataType.INT32, axis)
    twin.replace_input_with(target.bias, writer.weights(given.name or "bias", bias, fine))
