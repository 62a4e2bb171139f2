"""Squeeze without axes over sizes that only a run knows is native, and gives the rank that the run says."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model

HEADER = '<ir_version: 10, opset_import: ["": 21]>\n'


def model(
    body: str, inputs: str = "float[n, 1, m] x", outputs: str = "float[...] y"
) -> onnx.ModelProto:
    parts = [part.strip().replace("float[...] ", "float ") for part in outputs.split(",")]
    proto = onnx.parser.parse_model(f"{HEADER} g ({inputs}) => ({', '.join(parts)}) {{ {body} }}")
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


def check(proto: onnx.ModelProto, *shapes: tuple[int, ...], native: bool = True) -> None:
    session = sx.Session(proto)
    slow = [placed for placed in session.placement if placed.backend != "native"]
    assert bool(slow) != native
    program = compile_model(sx.load(proto))
    names = [port.name for port in session.outputs]
    for shape in shapes:
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        expected = program.run({"x": x}, names, Guard())
        for _ in range(2):  # the second one takes the short way
            for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
                assert ours.shape == theirs.shape
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


SHAPES = ((3, 1, 2), (1, 1, 2), (3, 1, 1), (1, 1, 1), (0, 1, 4), (0, 1, 1))


def test_what_follows_element_by_element_keeps_the_ones() -> None:
    check(model("y = Squeeze(x)"), *SHAPES)
    body = """
        s = Squeeze(x) c = Constant<value_float = 4.0>() a = Sigmoid(s) b = Mul(a, c) d = Add(b, s)
        e = Squeeze(d) y = Clip(e, , c)
    """
    check(model(body), *SHAPES)


def test_a_result_may_be_given_out_and_used() -> None:
    body = "s = Squeeze(x) y = Exp(s) z = Neg(s)"
    check(model(body, outputs="float[...] s, float[...] y, float[...] z"), *SHAPES)


def test_reshape_looks_at_the_elements_alone() -> None:
    body = "s = Squeeze(x) t = Relu(s) to = Constant<value_ints = [2, -1]>() y = Reshape(t, to)"
    check(model(body), (2, 1, 3), (1, 1, 2))


@pytest.mark.parametrize(
    "body",
    [
        "s = Squeeze(x) to = Constant<value_ints = [0, -1]>() y = Reshape(s, to)",
        "s = Squeeze(x) y = Transpose(s)",
        "s = Squeeze(x) o = Constant<value_floats = [1.0]>() y = Add(s, o)",
        "s = Squeeze(x) t = Relu(s) y = Add(t, x)",
        "s = Squeeze(x) t = Relu(s) q = Shape(t) y = Cast<to = 1>(q)",
    ],
)
def test_who_needs_the_rank_is_left_to_the_reference_backend(body: str) -> None:
    check(model(body), (3, 1, 2), (1, 1, 2), native=False)


def test_branches_that_read_it_see_it_squeezed() -> None:
    body = """
        s = Squeeze(x) c = Constant<value_int = 1>() b = Cast<to = 9>(c)
        y = If(b) <
            then_branch = t () => (float u) { u = Transpose(s) },
            else_branch = e () => (float v) { v = Neg(s) }
        >
    """
    proto = model(body)
    x = np.ones((3, 1, 2), np.float32)
    assert sx.Session(proto).run(None, {"x": x})[0].shape == (2, 3)


def test_declared_ranks_of_results_are_no_promise() -> None:
    proto = model("s = Squeeze(x) y = Exp(s)")
    proto.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "n"
    check(proto, (3, 1, 1), (1, 1, 2))


def test_known_sizes_need_nothing() -> None:
    check(model("y = Squeeze(x)", inputs="float[3, 1, 2] x"), (3, 1, 2))
    proto = model("a = Constant<value_ints = [1]>() y = Squeeze(x, a)")
    check(proto, *SHAPES)
