"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.cases.case import Case, f, floats, ints


def windows() -> Iterator[Case]:
    shapes = (
        ((2, 4, 7), (6, 4, 3)),
        ((1, 4, 7, 8), (6, 4, 3, 2)),
        ((1, 2, 5, 6, 7), (4, 2, 2, 3, 2)),
    )
    for shape, weight in shapes:
        n = len(shape) - 2
        for attributes in (
            {},
            {"strides": [2] * n},
            {"dilations": [2] * n},
            {"pads": [1] * n + [2] * n},
            {"auto_pad": "SAME_UPPER", "strides": [2] * n},
            {"auto_pad": "SAME_LOWER", "strides": [2] * n},
            {"auto_pad": "VALID"},
        ):
            yield Case("Conv", 11, [f(*shape), f(*weight), f(weight[0])], attributes)
    yield Case("Conv", 1, [f(2, 4, 6, 6), f(8, 2, 3, 3)], {"group": 2})
    yield Case("Conv", 11, [f(2, 4, 6, 6), f(8, 1, 3, 3), f(8)], {"group": 4})
    yield Case("Conv", 11, [f(0, 4, 6, 6), f(8, 4, 3, 3)])
    for shape, weight in (
        ((2, 4, 5), (4, 3, 3)),
        ((1, 4, 5, 4), (4, 3, 3, 2)),
        ((1, 4, 3, 3, 3), (4, 2, 2, 3, 2)),
    ):
        n = len(shape) - 2
        for attributes in (
            {},
            {"strides": [2] * n},
            {"dilations": [2] * n},
            {"pads": [1] * n + [0] * n},
            {"strides": [3] * n, "output_padding": [1] * n},
            {"auto_pad": "SAME_UPPER", "strides": [2] * n},
            {"auto_pad": "SAME_LOWER", "strides": [2] * n},
            {"strides": [2] * n, "output_shape": [2 * s for s in shape[2:]]},
            {
                "strides": [2] * n,
                "output_shape": [2 * s for s in shape[2:]],
                "auto_pad": "SAME_UPPER",
            },
        ):
            yield Case("ConvTranspose", 11, [f(*shape), f(*weight)], attributes)
    yield Case("ConvTranspose", 11, [f(1, 4, 5, 5), f(4, 3, 3, 3), f(6)], {"group": 2})
    yield Case(
        "DeformConv", 19, [f(1, 2, 5, 5), f(3, 2, 3, 3), f(1, 18, 3, 3), f(3), f(1, 9, 3, 3)]
    )
    yield Case(
        "DeformConv",
        19,
        [f(1, 4, 5, 5), f(4, 2, 3, 3), f(1, 36, 5, 5)],
        {"pads": [1, 1, 1, 1], "group": 2, "offset_group": 2},
    )
    yield Case("Col2Im", 18, [f(1, 8, 9), ints(4, 4), ints(2, 2)])
    yield Case(
        "Col2Im", 18, [f(1, 4, 4), ints(5, 5), ints(2, 2)], {"dilations": [2, 2], "strides": [2, 2]}
    )


def pools() -> Iterator[Case]:
    for shape, kernel in (((1, 2, 9), (3,)), ((1, 2, 8, 7), (3, 2)), ((1, 2, 5, 6, 7), (2, 3, 2))):
        n = len(kernel)
        plain: list[dict[str, Any]] = [
            {},
            {"strides": [2] * n},
            {"pads": [1] * (2 * n)},
            {"auto_pad": "SAME_UPPER", "strides": [2] * n},
            {"auto_pad": "SAME_LOWER", "strides": [2] * n},
            {"auto_pad": "VALID", "strides": [2] * n},
        ]
        ceil: list[dict[str, Any]] = [
            {"ceil_mode": 1, "strides": [2] * n},
            {"ceil_mode": 1, "strides": [3] * n, "pads": [1] * (2 * n)},
        ]
        for attributes in plain:
            for version in (8, 12):
                yield Case(
                    "MaxPool", version, [f(*shape)], {"kernel_shape": kernel, **attributes}, 2
                )
            for version in (7, 11, 19):
                yield Case(
                    "AveragePool", version, [f(*shape)], {"kernel_shape": kernel, **attributes}
                )
        for attributes in (*ceil, {"dilations": [2] * n}):
            yield Case("MaxPool", 12, [f(*shape)], {"kernel_shape": kernel, **attributes}, 2)
            yield Case("AveragePool", 19, [f(*shape)], {"kernel_shape": kernel, **attributes})
            padded = {"kernel_shape": kernel, "count_include_pad": 1, **attributes}
            yield Case("AveragePool", 19, [f(*shape)], padded)
        yield Case("MaxPool", 12, [f(*shape)], {"kernel_shape": kernel, "storage_order": 1}, 2)
    for version, attributes in (
        (2, {}),
        (11, {"p": 1}),
        (11, {"p": 3, "strides": [2, 2]}),
        (18, {"pads": [1, 1, 1, 1]}),
        (18, {"ceil_mode": 1, "strides": [2, 2]}),
        (18, {"dilations": [2, 2]}),
        (18, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ):
        yield Case("LpPool", version, [f(1, 2, 8, 7)], {"kernel_shape": [3, 2], **attributes})
    for op in ("GlobalLpPool", "GlobalAveragePool", "GlobalMaxPool"):
        yield Case(op, 2, [f(2, 3, 4, 5)])
    rois = floats(0, 1, 1, 6, 7, 1, 0, 2, 11, 9, 0, 5, 5, 5, 5).reshape(3, 5)
    yield Case("MaxRoiPool", 1, [f(2, 3, 10, 12), rois], {"pooled_shape": [3, 2]})
    yield Case(
        "MaxRoiPool", 1, [f(2, 3, 10, 12), rois], {"pooled_shape": [3, 2], "spatial_scale": 0.5}
    )
    yield Case(
        "MaxUnpool",
        11,
        [f(1, 1, 2, 2), ints(0, 3, 9, 14).reshape(1, 1, 2, 2)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    )


FAMILIES = (
    windows,
    pools,
)
