from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.channels_last import agree_channels_last
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import SardonyxError

RNG = np.random.default_rng(0)
COORDINATES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "asymmetric",
    "align_corners",
]


def image(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.random(shape) * 100).astype(dtype)


def by_scales(x: np.ndarray, scales: list[float], symbolic: bool = False, **more: Any) -> Case:
    inputs = [x, None, np.array(scales, np.float32)]
    return Case("Resize", inputs, more, constants=frozenset({2}), symbolic=symbolic)


def by_sizes(x: np.ndarray, sizes: list[int], symbolic: bool = False, **more: Any) -> Case:
    inputs = [x, None, None, np.array(sizes, np.int64)]
    return Case("Resize", inputs, more, constants=frozenset({3}), symbolic=symbolic)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("scales", [[1, 1, 2, 1.5], [1, 1, 0.6, 0.4]])
def test_interpolation(mode: str, coordinates: str, scales: list[float]) -> None:
    case = by_scales(
        image(1, 2, 5, 6), scales, mode=mode, coordinate_transformation_mode=coordinates
    )
    agree(case)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("scales", [[1, 1, 2, 3], [1, 1, 0.6, 2.3]])
def test_nearest(nearest: str, coordinates: str, scales: list[float]) -> None:
    attributes = {"nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
    agree(by_scales(image(1, 2, 5, 4), scales, **attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[1, 2, 7, 9], [1, 2, 5, 3], [1, 2, 1, 1]])
@pytest.mark.parametrize("symbolic", [False, True])
def test_sizes(mode: str, sizes: list[int], symbolic: bool) -> None:
    agree(by_sizes(image(1, 2, 5, 6), sizes, symbolic, mode=mode))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_of_unknown_sizes(mode: str) -> None:
    agree(by_scales(image(1, 2, 5, 6), [1, 1, 2, 0.5], symbolic=True, mode=mode))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_channels_last(mode: str) -> None:
    agree_channels_last(by_sizes(image(1, 3, 4, 5), [1, 3, 8, 7], mode=mode))
    agree_channels_last(by_sizes(image(1, 3, 4, 5), [1, 6, 4, 5], mode=mode))
    agree_channels_last(by_sizes(image(2, 3, 4, 5), [4, 6, 4, 5], mode=mode))


def test_batch_and_channels_last_of_fewer_images() -> None:
    agree_channels_last(by_sizes(image(9, 8, 4, 5), [2, 2, 4, 5], mode="linear", antialias=1))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("width", [1, 5, 2048, 2049])
def test_rows_of_a_larger_image(mode: str, width: int) -> None:
    case = by_scales(image(1, 2, 3, width), [1, 1, 2, 1.5], mode=mode)
    agree(case, interpreted=width < 100)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_antialias(mode: str, exclude_outside: int) -> None:
    attributes = {"mode": mode, "antialias": 1, "exclude_outside": exclude_outside}
    agree(by_sizes(image(1, 1, 8, 9), [1, 1, 3, 4], **attributes))
    agree(by_scales(image(1, 1, 4, 9), [1, 1, 1.5, 0.3], **attributes))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_rows_of_an_antialiased_image(mode: str, dtype: Any) -> None:
    """Blended of rows first, and then along themselves, whichever two axes those are."""
    attributes = {"mode": mode, "antialias": 1}
    agree(by_scales(image(2, 3, 17, 23, dtype=dtype), [1, 1, 0.31, 0.22], **attributes))
    agree(by_scales(image(2, 11, 2, 13, dtype=dtype), [1, 0.3, 1, 0.4], **attributes))
    agree(by_scales(image(9, 10, dtype=dtype), [0.4, 0.3], symbolic=True, **attributes))


def test_rows_with_infinities() -> None:
    x = image(1, 2, 20, 21)
    x[0, 0, 3, 4], x[0, 1, 9, 9], x[0, 1, 9, 15] = np.nan, np.inf, -np.inf
    agree(by_scales(x, [1, 1, 0.3, 0.4], mode="linear", antialias=1))


def test_weights_outside_are_left_out() -> None:
    case = by_scales(image(1, 1, 4, 4), [1, 1, 2, 2], mode="cubic", exclude_outside=1)
    agree(case)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("fed", [False, True])
def test_crop(mode: str, fed: bool) -> None:
    roi = np.array([0, 0, -0.2, 0.3, 1, 1, 0.6, 1.4], np.float32)
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.5,
    }
    inputs = [image(1, 1, 5, 6), roi, None, np.array([1, 1, 4, 5])]
    known = frozenset({3} if fed else {1, 3})
    agree(Case("Resize", inputs, attributes, constants=known))
    if mode != "nearest":
        inputs = [image(1, 1, 15, 16), roi, None, np.array([1, 1, 4, 5])]
        agree(Case("Resize", inputs, {**attributes, "antialias": 1}, constants=known))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect(policy: str) -> None:
    agree(by_sizes(image(1, 1, 4, 6), [7, 8], axes=[2, 3], keep_aspect_ratio_policy=policy))


def test_axes_and_ranks() -> None:
    agree(by_sizes(image(3, 4), [5, 2], axes=[-1, 0], mode="linear"))
    agree(by_scales(image(7), [1.7], mode="linear"))
    agree(by_scales(image(1, 1, 3, 3, 3), [1, 1, 2, 2, 2], mode="linear"))
    agree(by_scales(image(1, 1, 2, 2, 2), [1, 1, 2, 2, 2], mode="cubic"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.uint8, np.int32])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_types(dtype: Any, mode: str) -> None:
    agree(by_sizes(image(1, 2, 4, 5, dtype=dtype), [1, 2, 6, 8], mode=mode))


def test_empty() -> None:
    agree(by_scales(image(0, 2, 3, 3), [1, 1, 2, 2]))
    agree(by_scales(image(1, 1, 3, 3), [1, 1, 0.2, 2], mode="linear"))


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(opset: int, mode: str) -> None:
    scales = [1.0, 1.0, 2.0, 3.0]
    x = image(1, 2, 3, 4)
    if opset == 7:
        agree(Case("Upsample", [x], {"mode": mode, "scales": scales}, opset=7))
    else:
        inputs = [x, np.array(scales, np.float32)]
        agree(Case("Upsample", inputs, {"mode": mode}, constants=frozenset({1}), opset=9))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_opset_10(mode: str) -> None:
    inputs = [image(1, 1, 4, 5), np.array([1, 1, 0.6, 2.0], np.float32)]
    agree(Case("Resize", inputs, {"mode": mode}, constants=frozenset({1}), opset=10))


def test_something_of_nothing() -> None:
    case = by_sizes(image(1, 1, 0, 3), [1, 1, 4, 4], symbolic=True)
    model = sx.load(case.model())
    with pytest.raises(SardonyxError):
        run_reference(model, case.feeds())
    with pytest.raises(SardonyxError):
        run_compiled(model, plan_of(model), case.feeds())


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 3.0])
def test_declared_sizes_are_no_promise(scale: float) -> None:
    """Scales that are fed make another size than the model declares, or none at all."""
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 1, 3, 3] x, float[4] scales) => (float[1, 1, 6, 6] y) {
            y = Resize(x, , scales)
        }
    """
    model = sx.load(text)
    feeds = {"x": image(1, 1, 3, 3), "scales": np.array([1, 1, 2, scale], np.float32)}
    with pytest.raises(SardonyxError):
        run_compiled(model, plan_of(model), feeds)
    feeds["scales"][3] = 2
    (got,) = run_compiled(model, plan_of(model), feeds)
    np.testing.assert_array_equal(got, feeds["x"].repeat(2, 2).repeat(2, 3))


def test_what_follows_is_fused() -> None:
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 2, 3, 3] x, float[1, 2, 6, 6] r) => (float[1, 2, 6, 6] y)
        <float[4] scales = {1, 1, 2, 2}> {
            u = Resize(x, , scales)
            s = Add(u, r)
            y = Relu(s)
        }
    """
    model = sx.load(text)
    feeds = {"x": image(1, 2, 3, 3), "r": image(1, 2, 6, 6) - 50}
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (got,), (want,) = run_compiled(model, plan, feeds), run_reference(model, feeds)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_axis_that_turns_out_to_stay_takes_nothing_from_its_neighbours(mode: str) -> None:
    x = np.ones((2, 3, 4, 5), np.float32)
    x[0, 1], x[1, 2] = np.nan, np.inf
    sizes = np.array([2, 3, 8, 5])
    case = Case(
        "Resize", [x, None, None, sizes], {"mode": mode}, constants=frozenset({3}), symbolic=True
    )
    agree(case)
