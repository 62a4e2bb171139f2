"""Sizes that a model computes from its input's, as exporters write them: right for every size, and known before the run."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import sardonyx as sx
from sardonyx.errors import SardonyxError
from sardonyx.plan.plan import Step

RNG = np.random.default_rng(0)

# As torch.export writes channel shuffles behind convolutions of stride 2: (height - 1) // 2 + 1 by the division of integers.
SHUFFLE = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[n, 3, height, width] x) => (float[a, b, c, d] y)
    <float[8, 3, 3, 3] w, float[8, 8, 3, 3] v, int64 one = {1}, int64 two = {2}, int64[1] last = {-1}, int64[1] groups = {2},
     int64[1] each = {4}, int64[1] all = {8}> {
        h = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)
        batch = Shape <start = 0, end = 1> (x)
        rows_ = Shape <start = 2, end = 3> (x)
        rows0 = Squeeze (rows_)
        less = Sub (rows0, one)
        half = Div (less, two)
        rows = Add (half, one)
        row = Reshape (rows, last)
        columns_ = Shape <start = 3, end = 4> (x)
        columns0 = Squeeze (columns_)
        fewer = Sub (columns0, one)
        middle = Div (fewer, two)
        columns = Add (middle, one)
        column = Reshape (columns, last)
        parted = Concat <axis = 0> (batch, groups, each, row, column)
        split = Reshape <allowzero = 1> (h, parted)
        turned = Transpose <perm = [0, 2, 1, 3, 4]> (split)
        whole = Concat <axis = 0> (batch, all, row, column)
        shuffled = Reshape <allowzero = 1> (turned, whole)
        y = Conv <pads = [1, 1, 1, 1]> (shuffled, v)
    }
"""


def shuffle() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(SHUFFLE)
    for name, shape in (("w", (8, 3, 3, 3)), ("v", (8, 8, 3, 3))):
        values = RNG.standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(values, name))
    return proto


def test_a_shuffle_of_any_size() -> None:
    proto = shuffle()
    ours, peer = sx.Session(proto), onnxruntime.InferenceSession(proto.SerializeToString())
    assert ours._native is not None
    assert all(isinstance(step, Step) for step in ours._native.plan.steps)
    for sizes in ((1, 3, 8, 8), (2, 3, 9, 7), (1, 3, 1, 1), (3, 3, 2, 33), (0, 3, 5, 6)):
        x = RNG.standard_normal(sizes).astype(np.float32)
        (got,), (want,) = ours.run(None, {"x": x}), peer.run(None, {"x": x})
        assert got.shape == want.shape
        # Sums of sums cancel: an error counts beside the largest of them.
        largest = float(np.abs(want).max(initial=1))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * largest)


def test_an_image_without_pixels_is_an_error_and_no_answer() -> None:
    """Its sizes come out as 0 and as 1: there is no such Reshape."""
    session = sx.Session(shuffle())
    with pytest.raises(SardonyxError):
        session.run(None, {"x": np.ones((1, 3, 0, 4), np.float32)})


TARGETS = {
    "Expand": "y = Expand (x, target)",
    "ConstantOfShape": "y = ConstantOfShape (target)",
    "Range": "end = Squeeze (target) zero = Constant <value_int = 0> () step = Constant <value_int = 1> () y = Range (zero, end, step)",
}


@pytest.mark.parametrize("op", TARGETS)
@pytest.mark.parametrize(("less", "by"), [(1, 2), (1, 8), (3, 4), (5, 8), (2, 3), (9, 4), (0, 3)])
def test_division_cuts_towards_zero(op: str, less: int, by: int) -> None:
    proto = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[n] given, float[1] x) => (float[m] y)
        <int64[1] less = {{{less}}}, int64[1] by = {{{by}}}, int64[1] one = {{1}}> {{
            size = Shape (given)
            fewer = Sub (size, less)
            part = Div (fewer, by)
            raised = Add (part, one)
            zeros = Sub (raised, raised)
            target = Max (raised, zeros)
            {TARGETS[op]}
        }}
    """)
    if op == "Range":
        proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    session = sx.Session(proto)
    for n in range(12):
        feeds = {"given": np.ones(n, np.float32), "x": np.ones(1, np.float32)}
        (got,) = session.run(None, feeds)
        assert got.shape == (max(0, int((n - less) / by) + 1),)


@pytest.mark.parametrize("start", ["Sub (size, seven)", "Neg (size)", "Sub (one, size)"])
def test_a_slice_from_somewhere_that_may_be_before_the_front(start: str) -> None:
    """Its size is asked of the rule of the node, which is told the numbers that sizes tell."""
    proto = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[n] x) => (float[k] y)
        <int64[1] seven = {{7}}, int64[1] one = {{1}}, int64[1] far = {{1099511627776}}, int64[1] axis = {{0}}> {{
            size = Shape (x)
            start = {start}
            y = Slice (x, start, far, axis)
        }}
    """)
    session = sx.Session(proto, fallback="refuse")
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    for n in (0, 1, 3, 7, 9, 20):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], peer.run(None, {"x": x})[0])
