"""Resizing, sampling grids and regions, and boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from tests.differential.cases.case import RANDOM, Case, f, floats, i, ints


def sampling() -> Iterator[Case]:
    x = f(1, 2, 5, 6)
    for mode in ("nearest", "linear"):
        yield Case("Upsample", 9, [x, floats(1, 1, 2, 3)], {"mode": mode})
        yield Case("Upsample", 7, [x], {"mode": mode, "scales": [1.0, 1.0, 2.0, 1.5]})
    for mode, coordinates in itertools.product(
        ("nearest", "linear", "cubic"),
        ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
    ):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
        for scales in (floats(1, 1, 2, 3), floats(1, 1, 0.6, 0.5)):
            for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
                if mode == "nearest" or rounding == "floor":
                    yield Case(
                        "Resize", 19, [x, None, scales], {**attributes, "nearest_mode": rounding}
                    )
        for sizes in (ints(1, 2, 8, 9), ints(1, 2, 3, 2), ints(1, 2, 1, 7)):
            yield Case("Resize", 13, [x, None, None, sizes], attributes)
    yield Case(
        "Resize",
        11,
        [x, floats(), floats(1, 1, 2, 3)],
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn"},
    )
    for mode, scales in itertools.product(
        ("linear", "cubic"), (floats(1, 1, 0.6, 0.5), floats(1, 1, 1.7, 0.3))
    ):
        yield Case("Resize", 19, [x, None, scales], {"mode": mode, "antialias": 1})
    yield Case(
        "Resize", 19, [x, None, floats(1, 1, 0.6, 0.5)], {"mode": "cubic", "exclude_outside": 1}
    )
    for roi in (floats(0, 0, 0.1, 0.2, 1, 1, 0.9, 0.7), floats(0, 0, -0.1, 0.2, 1, 1, 1.2, 0.7)):
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 5.0}
        yield Case("Resize", 19, [x, roi, None, ints(1, 2, 4, 3)], {"mode": "linear", **crop})
    for policy, sizes in itertools.product(
        ("stretch", "not_larger", "not_smaller"), (ints(7, 8), ints(3, 8))
    ):
        yield Case(
            "Resize",
            19,
            [x, None, None, sizes],
            {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": "linear"},
        )
    yield Case(
        "Resize", 13, [f(1, 1, 3, 4, 5), None, floats(1, 1, 2, 0.5, 1.5)], {"mode": "linear"}
    )
    yield Case(
        "Resize",
        13,
        [i(0, 255, 1, 1, 4, 4, dtype=np.uint8), None, floats(1, 1, 1.5, 1.5)],
        {"mode": "linear"},
        slack=1,
    )
    grid = RANDOM.uniform(-1.4, 1.4, (1, 4, 5, 2)).astype(np.float32)
    for mode, padding, aligned in itertools.product(
        ("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    ):
        old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        yield Case(
            "GridSample",
            16,
            [x, grid],
            {"mode": old, "padding_mode": padding, "align_corners": aligned},
        )
    deep = RANDOM.uniform(-1.4, 1.4, (1, 2, 4, 5, 3)).astype(np.float32)
    for mode, padding in itertools.product(
        ("linear", "nearest"), ("zeros", "border", "reflection")
    ):
        yield Case(
            "GridSample", 20, [f(1, 2, 3, 4, 5), deep], {"mode": mode, "padding_mode": padding}
        )
    yield Case("AffineGrid", 20, [f(2, 2, 3), ints(2, 3, 4, 5)], {"align_corners": 1})
    yield Case("AffineGrid", 20, [f(2, 3, 4), ints(2, 3, 4, 5, 6)])
    rois = floats(1, 1, 4, 4, 0, 2, 5, 3, -1, -1, 2, 9).reshape(3, 4)
    for mode, ratio in itertools.product(("avg", "max"), (0, 2)):
        attributes = {
            "mode": mode,
            "sampling_ratio": ratio,
            "output_height": 3,
            "output_width": 2,
            "spatial_scale": 0.8,
        }
        yield Case("RoiAlign", 10, [f(2, 3, 6, 7), rois, ints(0, 1, 0)], attributes)
        for coordinates in ("half_pixel", "output_half_pixel"):
            yield Case(
                "RoiAlign",
                16,
                [f(2, 3, 6, 7), rois, ints(0, 1, 0)],
                {**attributes, "coordinate_transformation_mode": coordinates},
            )
    boxes = floats(
        0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1
    ).reshape(1, 5, 4)
    scores = floats(0.9, 0.75, 0.6, 0.95, 0.5).reshape(1, 1, 5)
    for limits in (
        [ints(3), floats(0.5), floats(0)],
        [ints(3), floats(0.5)],
        [],
        [ints(2**62), floats(0.5), floats(0.55)],
    ):
        yield Case("NonMaxSuppression", 11, [boxes, scores, *limits])
    yield Case(
        "NonMaxSuppression", 11, [boxes, scores, ints(3), floats(0.5)], {"center_point_box": 1}
    )
    yield Case(
        "NonMaxSuppression",
        11,
        [boxes[..., [2, 1, 0, 3]].copy(), np.ones((1, 2, 5), np.float32), ints(9), floats(0.5)],
    )


FAMILIES = (sampling,)
