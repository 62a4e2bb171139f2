"""What kernels in float16 do to their sums themselves: an offset and two limits, with factors in the filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from benchmarks.doubles import in_double
from onnx import ModelProto, numpy_helper, parser

import sardonyx as sx
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.backends.c.variants import target_of
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ConvolutionKernel, Ending
from sardonyx.plan.make import Planned, make_plan

HERE = replace(target_of(replace(NEON, half_arithmetic=True)), precision="bfloat16")
BATCH_NORM = "n = BatchNormalization(c, scale, shift, mean, variance)"
CLIP = "y = Clip(n, zero, six)"


def network(body: str, filters: int = 40, **arrays: Any) -> ModelProto:
    """A convolution of 24 channels, and what follows it."""
    text = f"""<ir_version: 10, opset_import: ["": 20]> g (float[1, 24, h, 7] x) => (float[1, {filters}, h, 7] y)
<float zero = {{0}}, float six = {{6}}> {{ {body} }}"""
    draw = np.random.default_rng(3)
    known: dict[str, Any] = {
        "weights": draw.standard_normal((filters, 24, 1, 1)) / 5,
        "bias": draw.standard_normal(filters),
        "scale": draw.uniform(0.5, 2, filters),
        "shift": draw.standard_normal(filters),
        "mean": draw.standard_normal(filters),
        "variance": draw.uniform(0.5, 2, filters),
        **arrays,
    }
    proto = parser.parse_model(text)
    for name, array in known.items():
        if name in body:
            tensor = numpy_helper.from_array(np.asarray(array, np.float32), name)
            proto.graph.initializer.append(tensor)
    return proto


def planned(proto: ModelProto) -> Planned:
    model = ir.from_proto(proto)
    return make_plan(model, infer_shapes(model), None, HERE)


def ending(proto: ModelProto) -> Ending | None:
    (kernel,) = (k for k in planned(proto).plan.kernels if isinstance(k, ConvolutionKernel))
    assert (kernel.dtype == "f16") == (kernel.ending is not None)
    return kernel.ending


@pytest.mark.parametrize(
    "body",
    [
        f"c = Conv(x, weights) {BATCH_NORM} {CLIP}",
        f"c = Conv(x, weights, bias) {BATCH_NORM} {CLIP}",
        f"n = Conv(x, weights, bias) {CLIP}",
        "n = Conv(x, weights) m = Min(n, six) y = Max(m, zero)",
    ],
)
def test_a_factor_an_offset_and_limits(body: str) -> None:
    found = ending(network(body))
    assert found is not None
    assert (found.low, found.high) == (0.0, 6.0)


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv(x, weights, bias) y = Relu(c)",  # no limit above
        "c = Conv(x, weights) m = Clip(c, zero, six) y = Add(m, six)",
        "c = Conv(x, weights) s = Sigmoid(c) y = Clip(s, zero, six)",
        "c = Conv(x, weights) m = Mul(c, c) y = Clip(m, zero, six)",
        "c = Conv(x, weights) m = Add(c, columns) y = Clip(m, zero, six)",  # not one a filter
        "c = Conv(x, weights) y = Clip(c, tiny, six)",  # limits that float16 would round
        "c = Conv(x, weights) y = Clip(c, zero, near)",
        "c = Conv(x, weights) m = Clip(c, zero, six) y = Max(m, nothing)",  # NaN, all of it
        "c = Conv(x, weights) m = Min(nothing, c) y = Clip(m, zero, six)",
        # Infinite before it is brought back.
        "c = Conv(x, weights) s = Cast<to = 10>(c) t = Cast<to = 1>(s) m = Mul(t, tiny) y = Clip(m, zero, six)",
    ],
)
def test_all_else_is_done_in_float32(body: str) -> None:
    arrays = {"columns": np.ones((1, 1, 1, 7)), "tiny": 1e-8, "near": 0.7, "nothing": np.nan}
    assert ending(network(body, **arrays)) is None


@pytest.mark.parametrize(
    "arrays",
    [
        {"shift": np.full(40, 25.0)},  # what is lost of it would show
        {"scale": np.full(40, 1e-4)},  # filters would be too small
        {"scale": np.full(40, 1e4)},  # and sums too large
        {"scale": np.full(40, 1e38), "weights": np.full((40, 24, 1, 1), 1e4)},
        {"scale": np.full(40, np.nan)},
        {"mean": np.full(40, np.inf)},
        {"mean": np.full(40, np.inf), "shift": np.full(40, np.inf)},
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_that_float16_does_not_hold(arrays: dict[str, Any]) -> None:
    body = f"c = Conv(x, weights) {BATCH_NORM} {CLIP}"
    assert ending(network(body)) is not None
    assert ending(network(body, **arrays)) is None


def test_factors_are_in_the_filters_and_offsets_are_whole_panels() -> None:
    proto = network(f"c = Conv(x, weights) {BATCH_NORM} {CLIP}")
    known = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    model = planned(proto)
    (kernel,) = (k for k in model.plan.kernels if isinstance(k, ConvolutionKernel))
    (step,) = (
        s
        for s in model.plan.steps
        if getattr(s, "kernel", None) == model.plan.kernels.index(kernel)
    )
    assert kernel.ending is not None

    def constant(buffer: int) -> Any:
        return model.constants[model.plan.tensors[step.tensors[buffer]].place.number]

    factor = known["scale"] / np.sqrt(known["variance"] + 1e-5)
    expected = known["weights"].reshape(40, 24) * factor[:, None]
    offsets = constant(kernel.ending.offsets)
    assert offsets.dtype == np.float16
    assert offsets.shape == (48,)
    np.testing.assert_allclose(constant(kernel.weights).reshape(40, 24), expected, rtol=1e-6)
    np.testing.assert_allclose(offsets[:40], known["shift"] - known["mean"] * factor, rtol=1e-3)
    assert not offsets[40:].any()


@pytest.mark.skipif("fp16" not in host_cpu().features, reason="for CPUs with float16 arithmetic")
@pytest.mark.parametrize("filters", [32, 40, 100])
@pytest.mark.parametrize(
    "scale", [1.0, 1e-3, 300.0]
)  # rows that are scaled are finished in float32
def test_answers_are_those_of_float64(filters: int, scale: float) -> None:
    proto = network(f"c = Conv(x, weights, bias) {BATCH_NORM} {CLIP}", filters)
    x = (scale * np.random.default_rng(1).standard_normal((1, 24, 5, 7))).astype(np.float32)
    one, two = (sx.Session(proto, precision="bfloat16", threads=n) for n in (1, 2))
    found = np.asarray(one.run(None, {"x": x})[0])
    assert found.tobytes() == np.asarray(two.run(None, {"x": x})[0]).tobytes()
    unlimited = network("c = Conv(x, weights, bias) y = BatchNormalization(c, scale, shift, mean, variance)", filters)  # fmt: skip
    exact = np.asarray(sx.Session(in_double(unlimited)).run(None, {"x": x.astype(np.float64)})[0])
    # Sums of 24 products are off by 2^-12 of what they are so far, 8 and less, with each; what is further beyond a
    # limit than that is the limit.
    lost = 1e-2 * max(1.0, scale)
    rounded = 2.0**-11 * 6
    assert (found >= np.clip(exact - lost, 0, 6) - rounded).all()
    assert (found <= np.clip(exact + lost, 0, 6) + rounded).all()
    assert found.min() == 0.0
    assert found.max() <= 6.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is(value: float) -> None:
    proto = network(f"c = Conv(x, weights) {BATCH_NORM} {CLIP}")
    x = np.random.default_rng(1).standard_normal((1, 24, 4, 7)).astype(np.float32)
    x[0, 3, 1, 2] = value
    found, exact = (
        np.asarray(sx.Session(proto, precision=precision).run(None, {"x": x})[0])
        for precision in ("bfloat16", "strict")
    )
    np.testing.assert_allclose(found, exact, atol=1e-2, equal_nan=True)
