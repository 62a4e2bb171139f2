from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.channels_last import agree_channels_last
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def grid(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Coordinates on both sides of the image's edges."""
    return (RNG.random(shape) * 3 - 1.5).astype(dtype)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid(mode: str, padding: str, aligned: int) -> None:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    agree(Case("GridSample", [normal(2, 2, 4, 5), grid(2, 3, 4, 2)], attributes))


@pytest.mark.parametrize("channels", [8, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_grid_of_many_channels(channels: int, mode: str, padding: str) -> None:
    """By a table of all places, several channels at a time where that divides them."""
    attributes = {"mode": mode, "padding_mode": padding}
    agree(Case("GridSample", [normal(2, channels, 4, 5), grid(2, 3, 4, 2)], attributes))
    agree(Case("GridSample", [normal(1, channels, 0, 5), grid(1, 3, 4, 2)], attributes))
    if mode != "cubic":
        agree(Case("GridSample", [normal(1, channels, 3, 4, 5), grid(1, 2, 3, 2, 3)], attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_grid_of_other_ranks(mode: str) -> None:
    agree(Case("GridSample", [normal(1, 2, 3, 4, 5), grid(1, 2, 3, 2, 3)], {"mode": mode}))
    agree(Case("GridSample", [normal(1, 2, 6), grid(1, 5, 1)], {"mode": mode}))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_of_opset_16(mode: str) -> None:
    agree(Case("GridSample", [normal(1, 2, 4, 5), grid(1, 3, 2, 2)], {"mode": mode}, opset=16))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_far_away(padding: str) -> None:
    places = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0, 1, -1], np.float32)
    attributes = {"padding_mode": padding}
    agree(Case("GridSample", [normal(1, 1, 4, 5), places.reshape(1, 2, 2, 2)], attributes))


def test_grid_symbolic() -> None:
    agree(Case("GridSample", [normal(2, 3, 4, 5), grid(2, 3, 4, 2)], symbolic=True))
    agree(Case("GridSample", [normal(1, 3, 0, 5), grid(1, 3, 4, 2)], symbolic=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_grid_types(dtype: Any) -> None:
    agree(Case("GridSample", [normal(1, 2, 4, 5, dtype=dtype), grid(1, 3, 3, 2, dtype=dtype)]))
    agree(Case("GridSample", [normal(1, 8, 4, 5, dtype=dtype), grid(1, 3, 3, 2, dtype=dtype)]))


def test_grid_with_channels_last() -> None:
    agree_channels_last(Case("GridSample", [normal(1, 3, 4, 5), grid(1, 3, 2, 2)]))


@pytest.mark.parametrize("size", [[2, 1, 3, 4], [1, 1, 1, 5], [2, 1, 2, 3, 4]])
@pytest.mark.parametrize("aligned", [0, 1])
def test_affine_grid(size: list[int], aligned: int) -> None:
    rank = len(size) - 2
    inputs = [normal(size[0], rank, rank + 1), np.array(size, np.int64)]
    agree(Case("AffineGrid", inputs, {"align_corners": aligned}, constants=frozenset({1})))


def failure(case: Case) -> None:
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


def test_batches_that_differ() -> None:
    failure(Case("GridSample", [normal(2, 3, 4, 5), grid(1, 3, 4, 2)], symbolic=True))


REGIONS = np.array(
    [[0, 0, 6, 5], [1.5, 2, 4, 4.5], [-3, -2, 2, 2], [2, 2, 2, 2], [4, 4, 12, 12]], np.float32
)
IMAGES = np.array([0, 1, 1, 0, 1], np.int64)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("opset", [10, 16])
def test_roi_align(mode: str, ratio: int, opset: int) -> None:
    attributes = {
        "mode": mode,
        "sampling_ratio": ratio,
        "output_height": 2,
        "output_width": 3,
        "spatial_scale": 0.75,
    }
    agree(Case("RoiAlign", [normal(2, 2, 6, 7), REGIONS, IMAGES], attributes, opset=opset))


@pytest.mark.parametrize("kind", ["half_pixel", "output_half_pixel"])
def test_roi_align_of_unknown_sizes(kind: str) -> None:
    attributes = {"output_height": 2, "output_width": 2, "coordinate_transformation_mode": kind}
    inputs = [normal(2, 3, 6, 7), REGIONS, IMAGES]
    agree(Case("RoiAlign", inputs, attributes, symbolic=True))
    agree(Case("RoiAlign", [inputs[0], REGIONS[:0], IMAGES[:0]], attributes, symbolic=True))


@pytest.mark.parametrize("image", [-1, 2])
def test_roi_of_no_image(image: int) -> None:
    images = IMAGES.copy()
    images[3] = image
    failure(Case("RoiAlign", [normal(2, 2, 6, 7), REGIONS, images]))


@pytest.mark.parametrize("corner", [np.nan, np.inf])
def test_roi_that_is_not_finite(corner: float) -> None:
    regions = REGIONS.copy()
    regions[2, 1] = corner
    failure(Case("RoiAlign", [normal(2, 2, 6, 7), regions, IMAGES]))


def test_roi_of_absurd_size() -> None:
    regions = REGIONS.copy()
    regions[2, 3] = 1e30
    case = Case("RoiAlign", [normal(2, 2, 6, 7), regions, IMAGES])
    model = sx.load(case.model())
    with pytest.raises(RunError, match="samples"):
        run_compiled(model, plan_of(model), case.feeds())


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("symbolic", [False, True])
def test_max_roi_pool(scale: float, symbolic: bool) -> None:
    regions = np.concatenate([IMAGES[:, None].astype(np.float32), REGIONS], 1)
    attributes = {"pooled_shape": [2, 3], "spatial_scale": scale}
    agree(Case("MaxRoiPool", [normal(2, 2, 6, 7), regions], attributes, symbolic=symbolic))


@pytest.mark.parametrize(("place", "value"), [(0, -1), (0, 2), (2, np.nan), (3, np.inf)])
def test_max_roi_pool_outside(place: int, value: float) -> None:
    regions = np.array([[1, 0, 0, 4, 4]], np.float32)
    regions[0, place] = value
    failure(Case("MaxRoiPool", [normal(2, 2, 6, 7), regions], {"pooled_shape": [2, 2]}))
