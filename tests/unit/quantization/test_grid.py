"""A grid rounds as QuantizeLinear and DequantizeLinear do, for any shape, axis and block."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.quantization.grid import Grid, grid_of_blocks, grid_of_range, grid_of_weights

D = ir.DataType
TYPES = [D.INT8, D.UINT8, D.INT16, D.UINT16, D.INT4, D.UINT4]


def by_the_standard(array: Any, grid: Grid) -> tuple[Any, Any]:
    attributes: dict[str, int] = {} if grid.axis is None else {"axis": grid.axis}
    if grid.block:
        attributes["block_size"] = grid.block
    names = ["x", "s", "z"]
    nodes = [
        onnx.helper.make_node("QuantizeLinear", names, ["q"], **attributes),
        onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes),
    ]
    kinds = (D.FLOAT, D.FLOAT, grid.dtype)
    inputs = [
        onnx.helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True)
    ]
    outputs = [
        onnx.helper.make_tensor_value_info(n, k, None)
        for n, k in (("q", grid.dtype), ("y", D.FLOAT))
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", inputs, outputs),
        opset_imports=[onnx.helper.make_opsetid("", 21)],
    )
    feeds = {"x": array, "s": grid.scale, "z": grid.zero}
    return tuple(onnx.reference.ReferenceEvaluator(model).run(None, feeds))  # type: ignore[return-value]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rounding_is_that_of_the_standard(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    dtype = data.draw(st.sampled_from(TYPES))
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    block = data.draw(st.sampled_from([0, 2, 4])) if axis is not None else 0
    symmetric = data.draw(st.booleans())
    seed = data.draw(st.integers(0, 100))
    array = (np.random.default_rng(seed).standard_normal(shape) * 3).astype(np.float32)
    if axis is None:
        grid = grid_of_range(float(array.min()), float(array.max()), dtype, symmetric=symmetric)
    elif block:
        padded = [(0, 0)] * len(shape)  # the evaluator takes whole blocks only
        padded[axis] = (0, -shape[axis] % block)
        array = np.pad(array, padded)
        grid = grid_of_blocks(array, dtype, axis=axis, block=block, symmetric=symmetric)
    else:
        grid = grid_of_weights(array, dtype, axis=axis, symmetric=symmetric)
    steps, numbers = by_the_standard(array, grid)
    np.testing.assert_array_equal(grid.quantize(array).astype(np.int64), steps.astype(np.int64))
    np.testing.assert_array_equal(grid.dequantize(grid.quantize(array)), numbers)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(-1e6, 1e6, width=32),
    st.floats(-1e6, 1e6, width=32),
    st.sampled_from(TYPES),
    st.booleans(),
)
def test_zero_is_a_step_and_nothing_is_off_by_more_than_one(
    a: float, b: float, dtype: D, symmetric: bool
) -> None:
    low, high = min(a, b), max(a, b)
    grid = grid_of_range(low, high, dtype, symmetric=symmetric)
    ends = np.array([0.0, low, high], np.float32)
    found = grid.round(ends)
    assert found[0] == 0.0
    assert np.all(np.abs(found - ends) <= grid.scale * 1.001)


@pytest.mark.parametrize("dtype", TYPES)
def test_all_zeros_have_a_grid(dtype: D) -> None:
    zeros = np.zeros((4, 8), np.float32)
    for grid in (
        grid_of_range(0.0, 0.0, dtype),
        grid_of_weights(zeros, dtype, axis=0),
        grid_of_blocks(zeros, dtype, axis=1, block=4),
    ):
        np.testing.assert_array_equal(grid.round(zeros), zeros)


def test_the_last_block_may_be_shorter() -> None:
    weights = np.arange(30, dtype=np.float32).reshape(10, 3)
    grid = grid_of_blocks(weights, D.INT8, axis=0, block=4)
    assert grid.scale.shape == (3, 3)
    assert np.abs(grid.round(weights) - weights).max() <= 29 / 127
