"""Resize to sizes that only a run knows is native."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import SardonyxError
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import infer_shapes

HEADER = '<ir_version: 10, opset_import: ["": 18]>\n'
OWN = """
    whole = Shape(x) zero = Constant<value_ints = [0]>() two = Constant<value_ints = [2]>()
    own = Slice(whole, zero, two)
"""


def model(body: str, inputs: str = "float[n, 3, h, w] x, int64[2] size") -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f"{HEADER} g ({inputs}) => (float y) {{ {body} }}")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


def check(proto: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> None:
    session = sx.Session(proto)
    assert {placed.backend for placed in session.placement} == {"native"}
    program = compile_model(sx.load(proto))
    for fed in feeds:
        (expected,) = program.run(dict(fed), ["y"], Guard())
        for _ in range(2):
            (found,) = session.run(None, fed)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


SIZES = [np.array(size) for size in ((9, 4), (2, 13), (5, 7), (1, 1))]


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
def test_the_axes_before_the_wanted_sizes_are_left_alone(mode: str, coordinates: str) -> None:
    body = f"""{OWN} all = Concat<axis = 0>(own, size)
        y = Resize<mode = "{mode}", coordinate_transformation_mode = "{coordinates}">(x, , , all)"""
    proto = model(body)
    check(proto, *({"x": image(2, 3, 5, 7), "size": size} for size in SIZES))
    loaded = sx.load(proto)
    planned = prepare(loaded, infer_shapes(loaded))
    (resize,) = (node for node in planned.model.graph if node.op_type == "Resize")
    shape = planned.shapes.of(resize.outputs[0]).shape
    assert shape is not None
    assert [str(size) for size in shape[:2]] == ["n", "3"]
    assert all("axes" not in node.attributes for node in loaded.graph)


def test_an_image_of_infinities_stays_one() -> None:
    body = f'{OWN} all = Concat<axis = 0>(own, size) y = Resize<mode = "linear">(x, , , all)'
    x = image(2, 3, 4, 4)
    x[0], x[1, 1] = np.inf, np.nan
    check(model(body), {"x": x, "size": np.array([8, 8])})


def test_sizes_may_come_one_by_one_and_for_all_axes() -> None:
    apart = f"""{OWN} one = Constant<value_ints = [1]>() first, second = Split<axis = 0, num_outputs = 2>(size)
        wide = Add(second, one) all = Concat<axis = 0>(own, first, wide)
        y = Resize<mode = "linear">(x, , , all)"""
    check(model(apart), *({"x": image(1, 3, 4, 6), "size": size} for size in SIZES))
    every = 'y = Resize<mode = "linear">(x, , , size)'
    fed: list[dict[str, Any]] = [
        {"x": image(2, 3, 5, 7), "size": np.array(size)} for size in ((2, 3, 8, 5), (1, 3, 5, 7))
    ]
    check(model(every, "float[n, 3, h, w] x, int64[4] size"), *fed)


def test_scales_that_only_a_run_knows() -> None:
    body = 'y = Resize<mode = "linear">(x, , scales)'
    proto = model(body, "float[n, 3, h, w] x, float[4] scales")
    scales = [np.array([1, 1, *s], np.float32) for s in ((0.7, 2), (1.3, 0.5), (1, 1))]
    check(proto, *({"x": image(1, 3, 10, 6), "scales": scale} for scale in scales))
    fixed = "s = Constant<value_floats = [1.0, 1.0, 1.1, 0.7]>() y = Resize(x, , s)"
    check(model(fixed, "float[n, 3, h, w] x"), *({"x": image(1, 3, k, k)} for k in (3, 10, 17)))


def test_sizes_that_are_none_are_refused() -> None:
    body = f'{OWN} all = Concat<axis = 0>(own, size) y = Resize<mode = "linear">(x, , , all)'
    session = sx.Session(model(body))
    with pytest.raises(SardonyxError, match="negative"):
        session.run(None, {"x": image(1, 3, 4, 4), "size": np.array([4, -1])})
    with pytest.raises(SardonyxError):
        session.run(None, {"x": image(1, 3, 0, 4), "size": np.array([4, 4])})
