"""What is known once a model is calibrated, and any mix of quantized and float nodes written from it.

v ─ QuantizeLinear ─ DequantizeLinear ─ Conv(·, DequantizeLinear(w), DequantizeLinear(b))
Gather(table, i)  →  DequantizeLinear(Gather(steps, i))      only what is looked up becomes float
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Answers
from sardonyx.quantization.grid import Array, Grid
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.sharing import share_grids
from sardonyx.quantization.targets import Target, constant_of

__all__ = ["Recipe", "Steps", "node_input", "quantize_node", "write"]


@dataclass(frozen=True)
class Steps:
    """Weights on a grid."""

    steps: Array
    grid: Grid


@dataclass(frozen=True)
class Recipe:
    """All that is needed to quantize any of a model's nodes.

    Attributes:
        model: as it was, in float.
        targets: the nodes that can be quantized.
        grids: of the values that targets read, by name; none where nothing but weights is quantized.
        weights: of the targets that have some.
        rewrite: writes a target in another way than by pairs; None for pairs.
        answers: of the model to the data's sample.
        biases: instead of the targets' own.
    """

    model: ir.Model
    shapes: Shapes
    targets: Sequence[Target]
    grids: Mapping[str, Grid]
    weights: Mapping[ir.Node, Steps]
    answers: Sequence[Answers] = ()
    biases: Mapping[ir.Node, Array] = field(default_factory=dict)
    rewrite: Callable[[Writer, ir.Node, Target, Steps], None] | None = field(default=None)


def write(recipe: Recipe, targets: Sequence[Target]) -> ir.Model:
    """The model with these nodes quantized."""
    writer = Writer(recipe.model)
    sharing = share_grids(recipe.model.graph, targets, recipe.shapes)
    rounded: dict[ir.Value, ir.Value] = {}
    for group in sharing.groups:
        for value in group.values:
            rounded[value] = writer.pair(value, recipe.grids[value.name or ""])
    for carrier in sharing.carriers:
        _reread(carrier, writer.node(carrier), rounded, range(len(carrier.inputs)))
    for target in targets:
        quantize_node(writer, recipe, target, writer.node(target.node), rounded)
        if target.added is not None and target.activations:
            node, number = target.added
            _write_bias(writer, recipe, target, node, writer.node(node), number)
    writer.drop_unread()
    return writer.model


def quantize_node(
    writer: Writer,
    recipe: Recipe,
    target: Target,
    twin: ir.Node,
    rounded: Mapping[ir.Value, ir.Value],
) -> None:
    """Have a copy of the target's node, `twin`, work with what is quantized; whoever read it reads the result."""
    if target.node.op_type == "Gather":
        writer.dequantize_result(twin, _name(target), *_parts(recipe, target))
        return
    if recipe.rewrite is not None:
        recipe.rewrite(writer, twin, target, recipe.weights[target.node])
        return
    _reread(target.node, twin, rounded, target.activations)
    if target.weights is None:
        return
    steps, grid = _parts(recipe, target)
    twin.replace_input_with(target.weights[0], writer.weights(_name(target), steps, grid))
    if target.bias is not None and target.activations:
        _write_bias(writer, recipe, target, target.node, twin, target.bias)


def _write_bias(
    writer: Writer, recipe: Recipe, target: Target, node: ir.Node, twin: ir.Node, number: int
) -> None:
    """A bias in steps of activation times weight, as it is added to the integer sum."""
    source, given = node_input(target, target.activations[0]), node.inputs[number]
    bias = recipe.biases.get(target.node, constant_of(given))
    assert bias is not None
    assert given is not None
    grid = recipe.weights[target.node].grid
    scale = recipe.grids[source.name or ""].scale.astype(np.float64) * grid.scale
    fine = Grid(
        scale.astype(np.float32),
        np.zeros(scale.shape, np.int32),
        ir.DataType.INT32,
        None if scale.ndim == 0 else 0,
    )
    name = given.name or "bias"
    twin.replace_input_with(number, writer.weights(name, fine.quantize(bias), fine))


def node_input(target: Target, number: int) -> ir.Value:
    value = target.node.inputs[number]
    assert value is not None
    return value


def _parts(recipe: Recipe, target: Target) -> tuple[Array, Grid]:
    found = recipe.weights[target.node]
    return found.steps, found.grid


def _name(target: Target) -> str:
    assert target.weights is not None
    return node_input(target, target.weights[0]).name or "weights"


def _reread(
    node: ir.Node,
    twin: ir.Node,
    rounded: Mapping[ir.Value, ir.Value],
    numbers: Sequence[int],
) -> None:
    for number in numbers:
        value = node.inputs[number]
        if value is not None and value in rounded:
            twin.replace_input_with(number, rounded[value])
