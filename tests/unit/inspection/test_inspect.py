"""The bill: MACs and bytes per node and in all, over symbols and with numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.sizes import symbol


def mlp() -> onnx.ModelProto:
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="fc"),
            helper.make_node("Relu", ["h"], ["y"], name="relu"),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.zeros((64, 10), np.float32), "w")],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="hand"
    )
    model.metadata_props.add(key="task", value="digits")
    return model


def test_costs_over_symbols() -> None:
    found = sx.inspect(mlp())
    batch = symbol("batch")
    fc, relu = found.nodes
    assert (fc.name, fc.op, fc.macs, fc.outputs) == (
        "fc",
        "MatMul",
        640 * batch,
        ("float[batch, 10]",),
    )
    assert fc.bytes_read == 4 * (64 * batch + 640)
    assert fc.bytes_written == 40 * batch
    assert (relu.macs, relu.bytes_read, relu.bytes_written) == (0, 40 * batch, 40 * batch)
    assert found.totals.macs == 640 * batch
    assert found.totals.bytes_read == 296 * batch + 2560
    assert found.totals.unknown == 0


def test_costs_with_numbers() -> None:
    found = sx.inspect(mlp(), dims={"batch": 3})
    assert found.totals.macs == 1920
    assert found.inputs[0].shape == (3, 64)
    assert found.nodes[0].outputs == ("float[3, 10]",)
    assert found.dims == {"batch": 3}


def test_a_dimension_that_the_model_does_not_have() -> None:
    with pytest.raises(InputError, match=r"the dimension 'batsch'.*batch"):
        sx.inspect(mlp(), dims={"batsch": 3})
    with pytest.raises(InputError, match="cannot be -1"):
        sx.inspect(mlp(), dims={"batch": -1})


def test_what_the_model_is_and_holds(tmp_path: Path) -> None:
    path = tmp_path / "mlp.onnx"
    onnx.save(mlp(), path)
    found = sx.inspect(path)
    assert found.name == str(path)
    assert found.file_bytes == path.stat().st_size
    assert (found.producer, found.ir_version, found.opsets) == ("hand", 8, {"ai.onnx": 17})
    assert found.metadata == {"task": "digits"}
    assert (found.parameters, found.weight_bytes, found.initializers) == (640, 2560, 1)
    assert found.operators == {"MatMul": 1, "Relu": 1}
    assert [(p.name, p.type, p.shape_text) for p in found.inputs] == [
        ("x", "tensor(float)", "[batch, 64]")
    ]
    assert "640 parameters (2.50 KiB)" in str(found)


def test_external_files_are_listed_with_their_size(tmp_path: Path) -> None:
    path = tmp_path / "mlp.onnx"
    onnx.save(mlp(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert sx.inspect(path).external_files == {"w.bin": (tmp_path / "w.bin").stat().st_size}


def test_json_is_plain_and_whole() -> None:
    data = json.loads(json.dumps(sx.inspect(mlp()).to_json()))
    assert data["totals"]["macs"] == "640*batch"
    assert data["nodes"][0]["macs"] == "640*batch"
    assert data["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["batch", 64]}]
    assert data["weights"] == [{"dtype": "float", "tensors": 1, "elements": 640, "bytes": 2560}]
    assert sx.inspect(mlp(), dims={"batch": 2}).to_json()["totals"]["macs"] == 1280


def test_the_most_expensive_nodes_come_first_with_symbols_too() -> None:
    found = sx.inspect(mlp())
    assert [row.name for row in found.most_expensive(2)] == ["fc", "relu"]
    assert len(found.most_expensive(1)) == 1


def test_bodies_of_control_flow_are_counted_once_and_marked() -> None:
    found = sx.inspect(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (bool c, float[4, 4] x) => (float[4, 4] y) { "
        "[branch] y = If (c) <then_branch = t () => (float[4, 4] p) { p = MatMul (x, x) }, "
        "else_branch = e () => (float[4, 4] q) { q = Relu (x) }> }"
    )
    assert [(row.op, row.inside) for row in found.nodes] == [
        ("If", None),
        ("MatMul", "If 'branch'"),
        ("Relu", "If 'branch'"),
    ]
    assert found.totals.macs == 64
    assert (found.totals.control_flow.bodies, found.totals.control_flow.nodes) == (1, 2)


FUNCTIONS = (
    '<ir_version: 10, opset_import: ["" : 17, "local" : 1]> '
    "g (float[N, 8] x, float[8, 8] w) => (float[N, 8] y) "
    "{ [one] a = local.twice (x, w) [two] y = local.twice (a, w) } "
    '<domain: "local", opset_import: ["" : 17]> '
    "twice (p, q) => (s) { r = MatMul (p, q) s = MatMul (r, q) }"
)


def test_a_function_costs_what_its_body_costs_at_each_call() -> None:
    model = sx.load(FUNCTIONS)
    found = sx.inspect(model)
    assert found.totals.macs == 4 * 64 * symbol("N")
    assert found.totals.unknown == 0
    assert found.functions == ("local::twice",)
    assert found.operators == {"MatMul": 2, "local::twice": 2}
    assert len(model.functions) == 1, "the caller's model was changed"


def test_what_is_not_known_is_said() -> None:
    found = sx.inspect(
        '<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]> '
        "g (float[N] x) => (float[N] y) { y = com.acme.Fancy (x) }"
    )
    (row,) = found.nodes
    assert row.op == "com.acme::Fancy"
    assert row.macs is None
    assert found.totals.unknown == 1
    assert found.totals.macs == 0


def test_a_weight_under_two_names_counts_once() -> None:
    model = sx.load(mlp())
    weight = model.graph.initializers["w"]
    twin = type(weight)(
        name="w2", type=weight.type, shape=weight.shape, const_value=weight.const_value
    )
    model.graph.register_initializer(twin)
    assert sx.inspect(model).parameters == 640
