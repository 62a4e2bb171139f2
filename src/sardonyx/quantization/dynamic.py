"""Dynamic quantization: every run finds the range of what it multiplies; nothing is calibrated.

    x ─ DynamicQuantizeLinear ─ MatMulInteger(·, w) ─ Cast ─ Mul(scale of x * scale of w) ─ Add(bias)

The weights are integers in the file and in the arithmetic. Written so, both our kernels and onnxruntime's take it up as
one; convolutions stay in float, where finding the range of an image costs more than its products save.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Answers, Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import grid_of_weights
from sardonyx.quantization.options import Dynamic
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.recipe import Recipe, Steps, node_input
from sardonyx.quantization.targets import (
    Choice,
    Kept,
    Target,
    constant_of,
    is_plain_product,
    number_of,
)

__all__ = ["choose_dynamic", "prepare_dynamic"]


def choose_dynamic(choice: Choice) -> Choice:
    """Products of a matrix, and tables."""
    targets: list[Target] = []
    kept = list(choice.kept)
    for target in choice.targets:
        if target.weights is None:
            continue
        if target.node.op_type == "Gather" or is_plain_product(target.node):
            targets.append(target)
        else:
            kept.append(Kept(target.node, "not a plain product of a matrix: faster in float"))
    return Choice(tuple(targets), tuple(kept))


def prepare_dynamic(
    model: ir.Model,
    shapes: Shapes,
    targets: Sequence[Target],
    options: Dynamic,
    data: CalibrationData | None,
    progress: Progress,
) -> Recipe:
    """The weights on their grids; data serve to measure the result alone."""
    weights: dict[ir.Node, Steps] = {}
    for target in targets:
        assert target.weights is not None
        number, channels = target.weights
        array = constant_of(node_input(target, number))
        assert array is not None
        axis = channels if options.per_channel else None
        grid = grid_of_weights(array, ir.DataType.INT8, axis=axis)
        weights[target.node] = Steps(grid.quantize(array), grid)
    answers: Sequence[Answers] = ()
    if data is not None:
        answers = observe(model, {}, data, progress)
    plain = [
        Target(t.node, (), t.weights) for t in targets
    ]  # what they read is quantized by the node itself
    return Recipe(model, shapes, plain, {}, weights, answers, rewrite=_rewrite)


def _rewrite(writer: Writer, twin: ir.Node, target: Target, weights: Steps) -> None:
    """Put the integer product in the place of a node."""
    source = twin.inputs[0]
    assert source is not None
    assert target.weights is not None
    base = twin.outputs[0].name or "product"
    name = node_input(target, target.weights[0]).name or "weights"
    steps, scale, zero = writer.quantized_at_run_time(source)
    turned = number_of(twin, "transB") == 1
    matrix = writer.shared(
        f"{name}.quantized", weights.steps.T if turned else weights.steps, ir.DataType.INT8
    )
    factor = writer.shared(f"{name}.scale", np.atleast_1d(weights.grid.scale))
    product = writer.call("MatMulInteger", [steps, matrix, zero], f"{base}.sums")
    whole = writer.call("Cast", product.outputs, f"{base}.whole", to=ir.DataType.FLOAT)
    both = writer.call("Mul", [scale, factor], f"{base}.scale")
    result = writer.call("Mul", [whole.outputs[0], both.outputs[0]], f"{base}.scaled")
    made = [product, whole, both, result]
    bias = twin.inputs[2] if len(twin.inputs) > 2 else None
    if bias is not None:
        made.append(writer.call("Add", [result.outputs[0], bias], f"{base}.biased"))
    writer.stand_in(twin.outputs[0], made[-1].outputs[0], made)
    writer.model.graph.remove(twin, safe=True)
