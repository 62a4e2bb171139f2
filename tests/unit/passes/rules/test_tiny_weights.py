"""A factor in front of a convolution whose weights are nearly too small for it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.unit.passes.rules.table import operators, optimized, refusals, same

SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def halved_before_conv(*weights: float) -> onnx.ModelProto:
    """A Conv of two channels in and one out, of half of x."""
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "half"], ["h"]),
            helper.make_node("Conv", ["h", "w"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1, 3, 3])],
        [
            numpy_helper.from_array(np.float32(0.5), "half"),
            numpy_helper.from_array(np.array(weights, np.float32).reshape(1, 2, 1, 1), "w"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_weight_that_underflows_keeps_its_sign() -> None:
    """0 in its place would make NaN of an infinite input."""
    model = halved_before_conv(-SMALLEST, 1.0)
    result = optimized(model)
    assert operators(result) == ["Conv"]
    same(model, result, steps=4)
    conv = next(iter(result.model.graph))
    tensor = conv.inputs[1].const_value if conv.inputs[1] is not None else None
    assert tensor is not None
    assert tensor.numpy().reshape(-1).tolist() == [-SMALLEST, 0.5]


def test_weights_that_all_underflow_stay() -> None:
    result = optimized(halved_before_conv(SMALLEST, 4 * SMALLEST))
    assert operators(result) == ["Mul", "Conv"]
    assert "a weight would underflow" in refusals(result, "scale-before-conv")[0]
