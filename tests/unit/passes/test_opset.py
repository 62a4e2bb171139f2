"""Models in other opsets: the same answers, or the operator that stands in the way."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx
from sardonyx.api import convert_opset
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.inspection.runtimes import newest_opset
from sardonyx.model.save import to_proto
from sardonyx.passes.opset.convert import convert
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.rewriting.workspace import Workspace

SHAPE = (2, 3, 4, 5)


def model_of(opset: int, body: str, shape: str = "2,3,4,5", ports: str = "") -> onnx.ModelProto:
    """A model of one input x and one output y; `ports` declares initializers."""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g (float[{shape}] x) => (y) {f"<{ports}>" if ports else ""} {{ {body} }}""".replace("@", '"')
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return onnx.shape_inference.infer_shapes(proto)


def answers(model: Any) -> Any:
    loaded = sardonyx.load(to_proto(model) if not isinstance(model, onnx.ModelProto) else model)
    random = np.random.default_rng(3)
    shape = [d if isinstance(d, int) else 2 for d in loaded.graph.inputs[0].shape or ()]
    array = random.normal(size=shape).astype(np.float32)
    array.reshape(-1)[:4] = [np.nan, np.inf, -np.inf, -0.0]
    program = compile_model(loaded)
    with np.errstate(all="ignore"):
        return program.run({"x": array}, ["y"], Guard(1 << 28))[0]


def converted(proto: onnx.ModelProto, version: int) -> tuple[Any, str | None]:
    work = Workspace(sardonyx.load(proto).clone())
    return work.model, convert(work, version)


CASES = [
    (6, 13, "y = Add <axis = 1, broadcast = 1> (x, b)", "float[3] b = {1, 2, 3}"),
    (6, 13, "y = PRelu (x, b)", "float[3] b = {1, 2, 3}"),
    (6, 13, "y = Clip <min = -1.0> (x)", ""),
    (9, 13, "y = Clip <min = -1.0, max = 0.5> (x)", ""),
    (9, 23, "y = Clip (x)", ""),
    (9, 24, "y = Softmax <axis = 1> (x)", ""),
    (11, 13, "y = Softmax (x)", ""),
    (11, 14, "y = LogSoftmax <axis = 2> (x)", ""),
    (11, 21, "y = Hardmax <axis = -1> (x)", ""),
    (11, 18, "y = ReduceSum <axes = [1, -1]> (x)", ""),
    (11, 18, "y = ReduceMean <axes = [0, 2], keepdims = 0> (x)", ""),
    (13, 18, "y = ReduceMax (x)", ""),
    (11, 13, "u = Unsqueeze <axes = [0]> (x) y = Squeeze <axes = [0]> (u)", ""),
    (9, 18, "a, y = Split <axis = 3, split = [2, 3]> (x)", ""),
    (13, 18, "a, y = Split <axis = 0> (x)", ""),
    (9, 18, "y = Slice <starts = [1], ends = [3], axes = [2]> (x)", ""),
    (9, 10, "y, i = TopK <axis = 3, k = 2> (x)", ""),
    (9, 18, "y = Pad <pads = [0, 0, 1, 2, 0, 0, 0, 1], value = 2.5> (x)", ""),
    (9, 11, "y = Pad <mode = @reflect@, pads = [0, 0, 1, 2, 0, 0, 0, 1]> (x)", ""),
    (9, 13, "y = Dropout <ratio = 0.3> (x)", ""),
    (8, 11, "y = Upsample <mode = @nearest@, scales = [1.0, 1.0, 2.0, 3.0]> (x)", ""),
    (9, 18, "y = Upsample <mode = @linear@> (x, s)", "float[4] s = {1, 1, 2, 3}"),
    (9, 10, "y = Upsample (x, s)", "float[4] s = {1, 1, 2, 3}"),
    (10, 13, "y = Resize (x, s)", "float[4] s = {1, 1, 2, 1.5}"),
    (11, 19, "y = Resize (x, r, s)", "float[4] s = {1, 1, 2, 1.5}, float[0] r = {}"),
    (9, 17, "y = BatchNormalization (x, s, s, m, s)", "float[3] s = {1, 2, 3}, float[3] m = {0, 1, 2}"),
    (
        16,
        20,
        "y = GridSample <mode = @bilinear@> (x, g)",
        "float[2,1,1,2] g = {0.1, 0.2, -0.3, 0.4}",
    ),
    (17, 20, "a = Unsqueeze (x, l) d = DFT <axis = 2> (a) y = Squeeze (d, n)", "int64[1] l = {-1}, int64[0] n = {}"),
    (9, 23, "i = Constant <value = int64[1] {1}> () y = Gather <axis = 1> (x, i)", ""),
    (10, 16, "y = RoiAlign <output_height = 2, output_width = 2> (x, b, i)",
     "float[1,4] b = {0, 0, 3, 3}, int64[1] i = {1}"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "body", "ports"), CASES, ids=[c[2][:40] for c in CASES])
def test_up(old: int, new: int, body: str, ports: str) -> None:
    proto = model_of(old, body, ports=ports)
    model, reason = converted(proto, new)
    assert reason is None
    assert model.opset_imports[""] == new
    onnx.checker.check_model(to_proto(model))
    np.testing.assert_array_equal(answers(model), answers(proto))


DOWN = [
    (13, 9, "y = Clip (x, a)", "float a = {-1}"),
    (13, 11, "y = Softmax <axis = 1> (x)", ""),
    (13, 9, "y = Softmax (x)", ""),
    (18, 11, "y = ReduceMean <keepdims = 0> (x, a)", "int64[2] a = {0, -1}"),
    (18, 9, "u = Unsqueeze (x, a) y = Squeeze (u, a)", "int64[1] a = {-1}"),
    (18, 9, "a, y = Split <axis = -1> (x, s)", "int64[2] s = {2, 3}"),
    (18, 13, "a, y = Split <num_outputs = 2> (x)", ""),
    (18, 9, "y = Slice (x, s, e, a)", "int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {2}"),
    (18, 11, "y = Pad (x, p, , a)", "int64[4] p = {1, 2, 0, 1}, int64[2] a = {-2, -1}"),
    (18, 9, "y = Pad (x, p, v)", "int64[8] p = {0, 0, 1, 2, 0, 0, 0, 1}, float v = {2.5}"),
    (19, 11, "y = Resize (x, , s)", "float[4] s = {1, 1, 2, 1.5}"),
    (19, 11, "y = Resize <mode = @linear@> (x, , , s)", "int64[4] s = {2, 3, 7, 5}"),
    (20, 16, "y = GridSample <mode = @linear@> (x, g)", "float[2,1,1,2] g = {0.1, 0.2, -0.3, 0.4}"),
    (17, 9, "y = BatchNormalization (x, s, s, s, s)", "float[3] s = {1, 2, 3}"),
    (19, 9, "c = Constant <value_float = 2.5> () y = Mul (x, c)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "body", "ports"), DOWN, ids=[c[2][:40] for c in DOWN])
def test_down(old: int, new: int, body: str, ports: str) -> None:
    proto = model_of(old, body, ports=ports)
    model, reason = converted(proto, new)
    assert reason is None
    onnx.checker.check_model(to_proto(model))
    np.testing.assert_array_equal(answers(model), answers(proto))


@pytest.mark.parametrize(
    ("old", "new", "body", "ports", "reason"),
    [
        (20, 13, "y = Gelu (x)", "", "Gelu.*came with opset 20"),
        (18, 11, "n = NonZero (x) s = ReduceMin <keepdims = 0> (n, a) y = ReduceMean (x, s)", "int64[1] a = {1}", "axes cannot come from a run"),
        (19, 18, "y = Pad <mode = @wrap@> (x, p)", "int64[8] p = {0,0,0,0,0,0,0,1}", "opset 19"),
        (12, 9, "y = Clip (x, m)", "", "min cannot come from a run"),
        (9, 13, "y, m = Dropout (x)", "", ""),
        (11, 13, "y = Resize <coordinate_transformation_mode = @tf_half_pixel_for_nn@> (x, r, s)",
         "float[4] s = {1, 1, 2, 1.5}, float[0] r = {}", "tf_half_pixel_for_nn"),
        (10, 11, "y = Resize (x, s)", "float[4] s = {1, 1, 2, 0.5}", "shrink"),
        (8, 9, "y = BatchNormalization <spatial = 0> (x, s, s, s, s)", "float[3] s = {1, 2, 3}",
         "spatial = 0"),
        (13, 5, "y = Relu (x)", "", "opset 5 is not one of 7 to"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way(old: int, new: int, body: str, ports: str, reason: str) -> None:
    if not reason:  # the mask is not read: nothing stands in the way
        assert converted(model_of(old, body, ports=ports), new)[1] is None
        return
    if "Clip (x, m)" in body:
        body = "m = ReduceMin <keepdims = 0> (x) " + body
    work = Workspace(sardonyx.load(model_of(old, body, ports=ports)).clone())
    before = onnx.printer.to_text(to_proto(work.model))
    found = convert(work, new)
    assert found is not None
    assert re.search(reason, found)
    assert onnx.printer.to_text(to_proto(work.model)) == before


GELU = """d = Div (x, r) e = Erf (d) a = Add (e, o) m = Mul (x, a) y = Mul (m, h)"""
NUMBERS = "float r = {1.4142135}, float o = {1}, float h = {0.5}"


def operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph]


def test_the_opset_is_raised_where_a_fusion_needs_it() -> None:
    proto = model_of(13, GELU, ports=NUMBERS)
    result = optimize(sardonyx.load(proto), Settings(level=3, highest=24))
    assert operators(result.model) == ["Gelu"]
    assert result.model.opset_imports[""] == 20
    assert result.ledger.notes == ["The opset was raised from 13 to 20."]
    np.testing.assert_allclose(answers(result.model), answers(proto), rtol=1e-5)


@pytest.mark.parametrize(
    ("reader", "weight"),
    [("y = Conv (g, w)", "float[2, 3, 1, 1] w"), ("y = MatMul (g, w)", "float[5, 6] w")],
)
def test_an_activation_is_found_before_a_weight_takes_its_last_factor(
    reader: str, weight: str
) -> None:
    numbers = ", ".join(str(0.1 * n - 1) for n in range(30 if "5" in weight else 6))
    body = f"{GELU.replace('y =', 'g =')} {reader}"
    proto = model_of(13, body, ports=f"{NUMBERS}, {weight} = {{{numbers}}}")
    result = optimize(sardonyx.load(proto), Settings(level=3, highest=24))
    assert operators(result.model) == ["Gelu", reader.split()[2]]
    np.testing.assert_allclose(answers(result.model), answers(proto), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("highest", [None, 19])
def test_it_is_not_raised_past_what_the_runtime_loads(highest: int | None) -> None:
    model = sardonyx.load(model_of(13, GELU, ports=NUMBERS))
    result = optimize(model, Settings(level=3, highest=highest))
    assert "Gelu" not in operators(result.model)
    assert result.model.opset_imports[""] == 13


def test_it_is_not_raised_for_nothing() -> None:
    result = optimize(sardonyx.load(model_of(13, "y = Relu (x)")), Settings(level=3, highest=24))
    assert result.model.opset_imports[""] == 13
    assert result.ledger.notes == []


def test_what_keeps_the_opset_is_named() -> None:
    model = sardonyx.load(model_of(11, f"t, k = Dropout (x) {GELU}", ports=NUMBERS))
    model.graph.outputs.append(next(n for n in model.graph if n.op_type == "Dropout").outputs[1])
    result = optimize(model, Settings(level=3, highest=24))
    assert len(result.ledger.notes) == 1
    assert "Dropout" in result.ledger.notes[0]
    assert "its mask is read" in result.ledger.notes[0]


def test_an_opset_that_cannot_be_written_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match=r"opset 13: Gelu.* came with opset 20"):
        convert_opset(model_of(20, "y = Gelu (x)"), 13)


def test_optimize_takes_the_opset_that_is_asked_for() -> None:
    proto = model_of(18, "y = ReduceMean (x, a)", ports="int64[1] a = {1}")
    result = sardonyx.optimize(proto, opset=13)
    assert result.model.opset_imports[""] == 13
    assert "Opset 18 became 13." in result.ledger.notes
    assert result.verification is not None


@pytest.mark.parametrize(
    ("runtime", "opset"),
    [
        ("onnxruntime", 26),
        ("onnxruntime@1.17", 20),
        ("onnxruntime@1.17.3", 20),
        ("tensorrt@8.6", 17),
    ],
)
def test_what_a_runtime_loads(runtime: str, opset: int) -> None:
    assert newest_opset(runtime) == opset


@pytest.mark.parametrize("runtime", ["caffe", "onnxruntime@new", "onnxruntime@0.5"])
def test_a_runtime_that_is_not_known(runtime: str) -> None:
    with pytest.raises(InputError):
        newest_opset(runtime)
