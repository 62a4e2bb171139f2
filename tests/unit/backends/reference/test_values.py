from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.unit.backends.reference.models import floats, run_text

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import SparseTensor, compile_model
from sardonyx.errors import BudgetError
from sardonyx.model.load import load


def sparse(name: str, shape: list[int], indices: np.ndarray) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.arange(1, len(indices) + 1, dtype=np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices), shape)


def model_with(
    nodes: list[onnx.NodeProto], shape: list[int], initializers: list[onnx.SparseTensorProto]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        sparse_initializer=initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: onnx.ModelProto, guard: Guard | None = None) -> Any:
    program = compile_model(load(model))
    return program.run({}, ["y"], guard or Guard(1 << 20))[0]


@pytest.mark.parametrize(
    "indices", [np.array([1, 5]), np.array([[0, 1], [1, 2]])], ids=["linear", "coordinates"]
)
def test_sparse_tensors_run_dense(indices: np.ndarray) -> None:
    expected = [[0, 1, 0], [0, 0, 2]]
    node = helper.make_node("Identity", ["s"], ["y"])
    assert run(model_with([node], [2, 3], [sparse("s", [2, 3], indices)])).tolist() == expected
    constant = helper.make_node("Constant", [], ["y"], sparse_value=sparse("", [2, 3], indices))
    assert run(model_with([constant], [2, 3], [])).tolist() == expected


def test_a_sparse_bomb_is_refused_when_it_is_written_out() -> None:
    huge = sparse("s", [1 << 14, 1 << 14], np.array([7]))
    shape = [helper.make_node("Shape", ["s"], ["y"])]
    with pytest.raises(BudgetError):
        run(model_with(shape, [2], [huge]), Guard(1 << 28))


def test_a_sparse_value_can_be_written_out() -> None:
    value = SparseTensor(floats(7, 8), np.array([[0, 0], [1, 1]]), (2, 2))
    assert value.dense().tolist() == [[7, 0], [0, 8]]


SMALL = {
    "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "float8e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "float8e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "int4": (TensorProto.INT4, ml_dtypes.int4),
    "uint4": (TensorProto.UINT4, ml_dtypes.uint4),
    "int2": (TensorProto.INT2, ml_dtypes.int2),
    "uint2": (TensorProto.UINT2, ml_dtypes.uint2),
    "float4e2m1": (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_types_are_stored_fed_and_returned(name: str) -> None:
    kind, dtype = SMALL[name]
    weights = np.array([0, 1, 1, 0, 1]).astype(np.int8).astype(dtype)
    graph = helper.make_graph(
        [
            helper.make_node("Transpose", ["w"], ["t"]),
            helper.make_node("Identity", ["x"], ["u"]),
            helper.make_node("Cast", ["t"], ["v"], to=TensorProto.FLOAT),
        ],
        "g",
        [helper.make_tensor_value_info("x", kind, [5])],
        [
            helper.make_tensor_value_info(out, k, [5])
            for out, k in (("t", kind), ("u", kind), ("v", 1))
        ],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    program = compile_model(load(model))
    t, u, v = program.run({"x": weights}, ["t", "u", "v"], Guard(1 << 20))
    assert t.dtype == u.dtype == dtype
    assert v.tolist() == [0, 1, 1, 0, 1]


def test_an_optional_is_its_value_or_none() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (optional(float[N]) x) => (bool has) '
        "{ has = OptionalHasElement(x) }"
    )
    assert run_text(text, None)[0] == np.array(False)
    assert run_text(text, floats(1))[0] == np.array(True)


def test_sequences_are_lists_and_are_not_shared_with_the_caller() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (seq(float[N]) s) => (seq(float[N]) t) '
        "{ t = Identity(s) }"
    )
    fed = [floats(1), floats(2, 3)]
    (result,) = run_text(text, fed)
    result[0][...] = 9
    result.append(floats(4))
    assert [item.tolist() for item in fed] == [[1], [2, 3]]
