"""Numbers below 2^-126: kept by `strict`, and nobody's floating-point mode is changed behind their back."""

from __future__ import annotations

import platform

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx

SMALL = np.float32(2.0**-140)
SIZE = 96


def doubled(op: str) -> onnx.ModelProto:
    """Products of numbers below 2^-126 with 2^30, which are not below it any more."""
    shape = [SIZE, SIZE] if op == "MatMul" else [1, SIZE, SIZE, 1]
    weights = np.eye(SIZE, dtype=np.float32) * np.float32(2.0**30)
    kernel = weights if op == "MatMul" else weights.reshape(SIZE, SIZE, 1, 1)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(kernel, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def small_numbers(op: str) -> np.ndarray:
    shape = (SIZE, SIZE) if op == "MatMul" else (1, SIZE, SIZE, 1)
    return np.full(shape, SMALL)


@pytest.mark.parametrize("op", ["MatMul", "Conv"])
def test_strict_keeps_them(op: str) -> None:
    (answer,) = sx.Session(doubled(op), precision="strict").run(None, {"x": small_numbers(op)})
    np.testing.assert_array_equal(answer, np.float32(2.0**-110))


@pytest.mark.parametrize("op", ["MatMul", "Conv"])
@pytest.mark.parametrize("threads", [1, 2])
def test_float32_takes_them_for_zero_where_they_are_slow(op: str, threads: int) -> None:
    slow = platform.machine() in ("x86_64", "AMD64")
    (answer,) = sx.Session(doubled(op), threads=threads).run(None, {"x": small_numbers(op)})
    np.testing.assert_array_equal(answer, np.float32(0 if slow else 2.0**-110))


def test_the_caller_keeps_its_own_mode() -> None:
    sx.Session(doubled("MatMul")).run(None, {"x": small_numbers("MatMul")})
    assert np.float32(2.0**-126) * np.float32(0.5) != 0
