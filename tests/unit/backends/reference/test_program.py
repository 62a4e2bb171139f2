from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from tests.unit.backends.reference.models import floats, node_model, program_of, run_node, run_text

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import InputError, RunError, StructureError, UnsupportedError

ADD = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[2] y) => (float[2] z) { z = Add(x, y) }'


def chain(length: int) -> ir.Model:
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info(f"v{length}", TensorProto.FLOAT, [4])],
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def test_outputs_come_in_the_order_asked_for() -> None:
    program = program_of(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] a, float[2] b) '
        "{ a = Neg(x) b = Abs(x) }"
    )
    b, a = program.run({"x": floats(-1, 2)}, ["b", "a"], Guard())
    assert a.tolist() == [1, -2]
    assert b.tolist() == [1, 2]


def test_a_missing_feed_is_named() -> None:
    with pytest.raises(InputError, match="'y'"):
        program_of(ADD).run({"x": floats(1, 2)}, ["z"], Guard())


def test_an_unknown_output_is_named() -> None:
    with pytest.raises(InputError, match="'z'"):
        program_of(ADD).run({"x": floats(1, 2), "y": floats(1, 2)}, ["w"], Guard())


def test_an_initializer_is_the_default_of_its_input() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[2] w = {1, 2}) '
        "=> (float[2] z) { z = Add(x, w) }"
    )
    program = program_of(text)
    assert program.run({"x": floats(1, 1)}, ["z"], Guard())[0].tolist() == [2, 3]
    fed = program.run({"x": floats(1, 1), "w": floats(5, 5)}, ["z"], Guard())
    assert fed[0].tolist() == [6, 6]


def test_all_values_can_be_had_by_name() -> None:
    program = program_of(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] z) '
        "{ y = Neg(x) z = Exp(y) }"
    )
    values = program.run_all({"x": floats(0, 1)}, Guard())
    assert set(values) == {"x", "y", "z"}
    assert values["y"].tolist() == [0, -1]


def test_a_long_chain_holds_two_values_at_a_time() -> None:
    guard = Guard(byte_budget=64)
    (result,) = compile_model(chain(20_000)).run({"v0": floats(1, 2, 3, 4)}, ["v20000"], guard)
    assert result.tolist() == [1, 2, 3, 4]
    assert guard.bytes_held == 0
    assert guard.bytes_peak <= 64


def test_a_chain_stops_at_the_deadline() -> None:
    program = compile_model(chain(20_000))
    with pytest.raises(RunError, match="deadline"):
        program.run({"v0": floats(1, 2, 3, 4)}, ["v20000"], Guard(deadline=time.monotonic()))


@pytest.mark.parametrize("op", ["Identity", "Reshape", "Transpose"])
def test_results_can_be_written_and_share_nothing_with_feeds(op: str) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    inputs = [x, np.array([2, 2])] if op == "Reshape" else [x]
    result = run_node(op, 17, *inputs)
    result[...] = 9
    assert x.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "feed",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
        np.arange(6, dtype=np.float32).reshape(3, 2, order="F"),
        np.frombuffer(b"\0" + np.arange(6, dtype=np.float32).tobytes(), np.float32, 6, 1).reshape(
            3, 2
        ),
    ],
    ids=["strided", "column major", "misaligned and read-only"],
)
def test_any_memory_layout_can_be_fed(feed: np.ndarray) -> None:
    before = feed.copy()
    result = run_node("Add", 17, feed, np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(result, before + 1)
    np.testing.assert_array_equal(feed, before)


def test_a_program_is_shared_by_threads() -> None:
    program = program_of(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N] x, int64 n) => (float[N] z) {'
        " z = Loop(n, , x) <body = b (int64 i, bool c, float[N] v) => (bool k, float[N] w)"
        " { k = Identity(c) one = CastLike(i, v) w = Add(v, one) }> }"
    )

    def run(seed: int) -> bool:
        x = np.full(8, seed, dtype=np.float32)
        (z,) = program.run({"x": x, "n": np.array(20)}, ["z"], Guard(1 << 20))
        return bool((z == seed + 190).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(64)))


def test_numpy_stays_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(run_node("Div", 14, floats(1, -1), floats(0, 0))).all()
        assert np.isnan(run_node("Log", 13, floats(-1))).all()
        assert run_node("Cast", 13, floats(np.nan, 1e30), to=TensorProto.INT8).tolist() == [0, 127]


def test_a_failing_node_is_named_with_its_cause_and_source() -> None:
    model = ir.from_proto(node_model("MatMul", 13, [np.ones((2, 3)), np.ones((3, 2))], {}))
    node = model.graph[0]
    node.metadata_props["pkg.torch.onnx.stack_trace"] = (
        'File "/home/me/net.py", line 41, in forward'
    )
    program = compile_model(model)
    with pytest.raises(RunError) as caught:
        program.run({"x0": np.ones((2, 3)), "x1": np.ones((4, 2))}, ["y0"], Guard())
    assert caught.value.where == "MatMul 'n'"
    assert caught.value.source == "net.py:41"
    assert caught.value.__cause__ is not None


def test_an_unknown_operator_suggests_the_nearest() -> None:
    with pytest.raises(UnsupportedError, match="'Relu'"):
        compile_model(ir.from_proto(node_model("Relou", 13, [floats(1)], {})))


def test_a_node_without_its_attribute_is_refused_when_compiled() -> None:
    with pytest.raises(StructureError, match=r"LinearAttention 'n'"):
        compile_model(ir.from_proto(node_model("LinearAttention", 27, [floats(1)] * 3, {})))


def test_an_optional_output_left_out_takes_no_place() -> None:
    (indices,) = run_text(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,1,2,2] x) => (int64[1,1,1,1] i) '
        "{ y, i = MaxPool <kernel_shape = [2, 2]> (x) }",
        np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2),
    )
    assert indices.tolist() == [[[[3]]]]


def test_strings_flow_as_python_strings() -> None:
    (result,) = run_text(
        '<ir_version: 8, opset_import: ["": 20]> g (string[2] x) => (string[2] z) '
        '{ y = Constant <value_strings = ["ä", "b"]> () z = StringConcat(x, y) }',
        np.array(["1", "2"], dtype=object),
    )
    assert result.dtype == object
    assert result.tolist() == ["1ä", "2b"]
