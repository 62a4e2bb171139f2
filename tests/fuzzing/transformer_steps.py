"""Steps of many nodes as transformers and normalised networks have them."""

from __future__ import annotations

import numpy as np
from tests.fuzzing.maker import Maker, Step

__all__ = ["STEPS"]

Shape = tuple[int, ...]


def _number(make: Maker, value: float) -> str:
    return make.constant(np.array(value, dtype=np.float32))


def _mean(make: Maker, x: str, shape: Shape, axes: list[int]) -> tuple[str, Shape]:
    narrow = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if make.opset >= 18:
        return make.call("ReduceMean", [x, make.ints(*axes)], narrow), narrow
    return make.call("ReduceMean", [x], narrow, axes=axes), narrow


def _normalised(make: Maker, x: str, shape: Shape, axes: list[int], centre: bool) -> str:
    if centre:
        x = make.call("Sub", [x, _mean(make, x, shape, axes)[0]], shape)
    square = make.call("Mul", [x, x], shape)
    variance, narrow = _mean(make, square, shape, axes)
    root = make.call("Sqrt", [make.call("Add", [variance, _number(make, 1e-3)], narrow)], narrow)
    if make.chance(0.5):
        return make.call("Mul", [x, make.call("Reciprocal", [root], narrow)], shape)
    return make.call("Div", [x, root], shape)


def rms_norm(make: Maker, x: str, shape: Shape) -> None:
    if not shape or 0 in shape:
        return
    y = _normalised(make, x, shape, [len(shape) - 1], centre=False)
    if make.chance(0.8):
        make.call("Mul", [y, make.floats(shape[-1])], shape)


def image_norm(make: Maker, x: str, shape: Shape) -> None:
    """An InstanceNormalization, or one of groups, written out or not, with a factor and an offset a channel."""
    if len(shape) != 4 or 0 in shape:
        return
    channels = shape[1]
    groups = (
        channels if make.chance(0.4) else int(make.pick(*(n for n in (1, 2) if not channels % n)))
    )
    grouped = shape if groups == channels else (shape[0], groups, int(np.prod(shape[1:])) // groups)
    y = x if grouped == shape else make.call("Reshape", [x, make.ints(0, groups, -1)], grouped)
    if make.chance(0.5):
        y = _normalised(make, y, grouped, list(range(2, len(grouped))), centre=True)
    else:
        parameters = [make.floats(groups), make.floats(groups)]
        y = make.call("InstanceNormalization", [y, *parameters], grouped)
    if grouped != shape:
        y = make.call("Reshape", [y, make.ints(0, *shape[1:])], shape)
    if make.chance(0.7):
        y = make.call("Mul", [y, make.floats(channels, 1, 1)], shape)
        make.call("Add", [y, make.floats(1, channels, 1, 1)], shape)


STEPS: tuple[Step, ...] = (rms_norm, image_norm)
