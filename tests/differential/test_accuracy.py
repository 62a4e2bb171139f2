"""The truth that answers are measured against is in float64 throughout; long sums are nearer to it than onnxruntime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from benchmarks.accuracy import Task, compute_truths, errors_of, measure, ratio
from benchmarks.doubles import in_double, still_single
from onnx import helper, numpy_helper

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
MIXED = (
    HEADER
    + """mixed (float[2, 3, 4, 4] x, int64[2] n) => (float[2, 3, 8, 8] y, float[2] z)
<float[4] scales = {1.0, 1.0, 2.0, 2.0}, float[4] scale = {1.5, 1.0, 0.5, 0.1}> {
    third = Constant <value_float = 0.1> ()
    normal = LayerNormalization <axis = -1, epsilon = 0.00001> (x, scale)
    larger = Resize <mode = "linear"> (normal, , scales)
    y = Mul (larger, third)
    single = Cast <to = 1> (n)
    yes = Constant <value = bool {1}> ()
    z = If (yes) <
        then_branch = one () => (float[2] a) { half = Constant <value = float {0.5}> () a = Mul (single, half) },
        else_branch = two () => (float[2] b) { b = Identity (single) }
    >
}"""
)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_every_value_is_a_double() -> None:
    single = onnx.parser.parse_model(MIXED)
    assert {"third", "normal", "larger", "y", "single", "half"} <= set(still_single(single))
    double = in_double(single)
    assert still_single(double) == []
    assert still_single(single)  # the model itself is as it was
    assert {port.type.tensor_type.elem_type for port in double.graph.output} == {11}


def test_constants_are_those_of_the_model(tmp_path: Path) -> None:
    """0.1 is what float32 has for it: another number would be another model."""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MIXED), path)
    x = random(2, 3, 4, 4)
    ((y, z),) = compute_truths(Task("mixed", path, ({"x": x, "n": np.array([3, 5])},)))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5))
    normal *= np.array([1.5, 1.0, 0.5, 0.1], np.float32).astype(np.float64)
    # Of a linear interpolation by two, the outermost pixels are those of the input.
    corners = normal[:, :, ::3, ::3] * np.float64(np.float32(0.1))
    np.testing.assert_allclose(y[:, :, ::7, ::7], corners, rtol=1e-13)
    assert z.tolist() == [1.5, 2.5]


def test_errors_are_parts_of_the_output() -> None:
    right = np.array([3.0, -4.0])
    found = errors_of([np.array([3.0, -4.5], np.float32), np.array([7])], [right, np.array([8])])
    assert found is not None
    assert (found.mean, found.largest) == pytest.approx((0.1, 0.125))
    assert errors_of([np.array([np.nan])], [np.array([1.0])]) is None
    assert errors_of([np.array([1])], [np.array([2])]) is None


@pytest.mark.parametrize("precision", ["sardonyx", "sardonyx strict"])
def test_long_sums_are_nearer_to_the_truth_than_those_of_onnxruntime(precision: str, tmp_path: Path) -> None:  # fmt: skip
    weights = numpy_helper.from_array(random(3072, 64), "w")
    ports = [helper.make_tensor_value_info(name, 1, [16, None]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], [weights])  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]), path)  # fmt: skip
    inputs = tuple({"x": random(16, 3072) + offset} for offset in np.array([0, 0.5, 1], np.float32))
    task = Task("product", path, inputs)
    truth = compute_truths(task)
    np.testing.assert_allclose(truth[1][0], inputs[1]["x"].astype(np.float64) @ numpy_helper.to_array(weights), rtol=1e-9)  # fmt: skip
    ours, theirs = measure(task, precision, truth), measure(task, "onnxruntime", truth)
    assert ours is not None
    assert theirs is not None
    found = ratio(ours, theirs)
    assert found is not None
    assert found <= 1.0
