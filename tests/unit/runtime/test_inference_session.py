"""The drop-in: the same calls on onnxruntime and on us give the same answers."""

from __future__ import annotations

import threading

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import CancelledError, DeadlineError, InputError, UnsupportedError

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17], producer_name: "tests", model_version: 3,
 doc_string: "two outputs", metadata_props: ["author": "us"]>
agraph (float[batch, 3] x) => (float[batch, 3] y, int64[rank] s)
{
    y = Relu(x)
    s = Shape(x)
}
""").SerializeToString()
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=["sardonyx", "onnxruntime"])
def ort(request: pytest.FixtureRequest) -> object:
    return sx if request.param == "sardonyx" else onnxruntime


def open_session(ort: object) -> sx.InferenceSession:
    return ort.InferenceSession(MODEL, ort.SessionOptions(), providers=["CPUExecutionProvider"])  # type: ignore[attr-defined,no-any-return]


def test_run(ort: object) -> None:
    session = open_session(ort)
    y, s = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, np.maximum(X, 0))
    np.testing.assert_array_equal(s, [2, 3])
    (only,) = session.run(["s"], {"x": X})
    np.testing.assert_array_equal(only, [2, 3])


def test_descriptions(ort: object) -> None:
    session = open_session(ort)
    (x,) = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["batch", 3])
    assert [(o.name, o.type) for o in session.get_outputs()] == [
        ("y", "tensor(float)"),
        ("s", "tensor(int64)"),
    ]
    assert session.get_overridable_initializers() == []
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("tests", "agraph", 3)
    assert (meta.description, meta.custom_metadata_map) == ("two outputs", {"author": "us"})
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_ort_values(ort: object) -> None:
    session = open_session(ort)
    value = ort.OrtValue.ortvalue_from_numpy(X)  # type: ignore[attr-defined]
    assert (value.shape(), value.data_type(), value.device_name(), value.is_tensor()) == (
        [2, 3],
        "tensor(float)",
        "cpu",
        True,
    )
    y, _ = session.run_with_ort_values(["y", "s"], {"x": value})
    np.testing.assert_array_equal(y.numpy(), np.maximum(X, 0))


def test_io_binding(ort: object) -> None:
    session = open_session(ort)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("s")
    target = np.zeros((2, 3), np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target, np.maximum(X, 0))
    s, y = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(s, [2, 3])
    np.testing.assert_array_equal(y, target)


def test_io_binding_by_address_and_ort_value(ort: object) -> None:
    session = open_session(ort)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    out = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cpu", 0)  # type: ignore[attr-defined]
    binding.bind_ortvalue_output("y", out)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out.numpy(), np.maximum(X, 0))


def test_bound_buffer_of_the_wrong_shape() -> None:
    session = open_session(sx)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", sx.OrtValue(np.zeros((9, 9), np.float32)))
    with pytest.raises(InputError, match=r"float32\[9, 9\].*float32\[2, 3\]"):
        session.run_with_iobinding(binding)


def test_run_async(ort: object) -> None:
    session = open_session(ort)
    heard: list[object] = []
    done = threading.Event()

    def callback(results: list[np.ndarray], user_data: object, error: str) -> None:
        heard.extend([results, user_data, error])
        done.set()

    session.run_async(["y"], {"x": X}, callback, "mine")
    assert done.wait(30)
    results, user_data, error = heard
    np.testing.assert_array_equal(results[0], np.maximum(X, 0))  # type: ignore[index]
    assert (user_data, error) == ("mine", "")


def test_run_options_stop_a_run() -> None:
    session = open_session(sx)
    options = sx.RunOptions()
    options.terminate = True
    with pytest.raises(CancelledError):
        session.run(None, {"x": X}, options)
    with pytest.raises(DeadlineError):
        session.run(None, {"x": X}, sx.RunOptions(timeout=0.0))


def test_session_options() -> None:
    options = sx.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("batch", 2)
    session = sx.InferenceSession(MODEL, options)
    assert session.get_session_options() is options
    session.run(None, {"x": X})
    with pytest.raises(InputError, match="batch"):
        session.run(None, {"x": X[:1]})
    with pytest.raises(AttributeError):
        options.intra_op_threads = 1  # type: ignore[attr-defined]


def test_the_usual_snippet(ort: object) -> None:
    """What half of all deployment code starts with."""
    assert "CPUExecutionProvider" in ort.get_available_providers()  # type: ignore[attr-defined]
    assert ort.get_device() == "CPU"  # type: ignore[attr-defined]
    options = ort.SessionOptions()  # type: ignore[attr-defined]
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL  # type: ignore[attr-defined]
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL  # type: ignore[attr-defined]
    session = ort.InferenceSession(MODEL, options, providers=ort.get_available_providers()[-1:])  # type: ignore[attr-defined]
    assert len(session.run(None, {"x": X})) == 2


def test_no_library_is_loaded() -> None:
    with pytest.raises(UnsupportedError, match="not loaded"):
        sx.SessionOptions().register_custom_ops_library("evil.so")


def test_other_providers_are_said_to_be_missing() -> None:
    with pytest.warns(UserWarning, match="CUDAExecutionProvider is not available"):
        sx.InferenceSession(MODEL, providers=["CUDAExecutionProvider"])
