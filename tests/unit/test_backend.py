"""The `onnx.backend` interface, driven by onnx's own harness."""

from __future__ import annotations

import unittest

import numpy as np
import onnx.backend.test
import onnx.helper
import pytest

import sardonyx.backend
from sardonyx.errors import InputError, UnsupportedError


def test_run_node() -> None:
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    a = np.ones((2, 3), np.float32)
    outputs = sardonyx.backend.run_node(node, [a, a])
    np.testing.assert_array_equal(outputs.c, a + a)  # type: ignore[attr-defined]


def test_more_inputs_than_the_model_has_are_refused() -> None:
    node = onnx.helper.make_node("Neg", ["a"], ["c"])
    a = onnx.helper.make_tensor_value_info("a", 1, [2])
    c = onnx.helper.make_tensor_value_info("c", 1, [2])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [a], [c]), ir_version=10)
    x = np.ones(2, np.float32)
    with pytest.raises(InputError, match="2 inputs, where the model has 1"):
        sardonyx.backend.run_model(model, [x, x])


def test_devices() -> None:
    assert sardonyx.backend.supports_device("CPU")
    assert not sardonyx.backend.supports_device("CUDA:0")
    with pytest.raises(UnsupportedError):
        sardonyx.backend.prepare(onnx.ModelProto(), "CUDA")


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # onnx makes its cases on the way; some overflow
def test_the_official_harness_accepts_the_backend() -> None:
    harness = onnx.backend.test.BackendTest(sardonyx.backend.SardonyxBackend, __name__)
    harness.include(r"^test_(relu|add|split_equal_parts_2d|sequence_insert_at_back)_cpu$")
    result = unittest.TestResult()
    harness.test_suite.run(result)
    assert not result.failures
    assert not result.errors
    assert result.testsRun - len(result.skipped) == 4
