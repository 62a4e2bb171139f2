"""Steps of views and parts as exporters write them: merged and split axes, repeated and empty parts, shapes at run time."""

from __future__ import annotations

import numpy as np
from onnx import helper
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["STEPS"]

Shape = tuple[int, ...]


def _view(make: Maker, op: str, x: str, axis: int, shape: Shape) -> str:
    """Unsqueeze or Squeeze of one axis, as the opset writes it."""
    if make.opset >= 13:
        return make.call(op, [x, make.ints(axis)], shape)
    return make.call(op, [x], shape, axes=[axis])


def axes_added_and_taken(make: Maker, x: str, shape: Shape) -> None:
    """Two Unsqueezes, then perhaps two Squeezes, at any places."""
    begins = [shape]
    places = []
    for _ in range(2):
        axis = int(make.random.integers(len(shape) + 1))
        shape = (*shape[:axis], 1, *shape[axis:])
        x = _view(make, "Unsqueeze", x, make.pick(axis, axis - len(shape)), shape)
        begins.append(shape)
        places.append(axis)
    if make.chance(0.5):
        x = make.call(make.pick("Relu", "Neg"), [x], shape)
    if make.chance(0.7):
        for axis, target in zip(reversed(places), reversed(begins[:-1]), strict=True):
            x = _view(make, "Squeeze", x, axis, target)


def repeated(make: Maker, x: str, shape: Shape) -> None:
    """Expand or Tile, of what is there already or to a larger shape, before an operator that broadcasts."""
    if not shape:
        return
    axis = int(make.random.integers(len(shape)))
    times = make.pick(1, 2, 3)
    if shape[axis] == 1 and make.chance(0.5):
        target = (*shape[:axis], times, *shape[axis + 1 :])
        vector = make.shape_vector(
            x, shape, [None if n == m else n for n, m in zip(target, shape, strict=True)]
        )
        y = make.call("Expand", [x, vector], target)
    else:
        repeats = [1] * len(shape)
        repeats[axis] = times
        target = (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])
        y = make.call("Tile", [x, make.ints(*repeats)], target)
    other = make.floats(*make.pick(target, target[-1:], (1,)))
    make.call(
        make.pick("Add", "Mul", "Max"), [y, other] if make.chance(0.5) else [other, y], target
    )


def expanded_to_another(make: Maker, x: str, shape: Shape) -> None:
    """Expand to the shape of another value."""
    if not shape or 0 in shape:
        return
    axis = int(make.random.integers(len(shape)))
    narrow = (*shape[:axis], 1, *shape[axis + 1 :])
    part = make.call("Slice", [x, make.ints(0), make.ints(1), make.ints(axis)], narrow)
    size = make.name()
    make.nodes.append(helper.make_node("Shape", [x], [size]))
    y = make.call("Expand", [part, size], shape)
    make.call(make.pick("Add", "Neg", "Sub"), [y, x], shape) if make.chance(0.7) else None


def heads(make: Maker, x: str, shape: Shape) -> None:
    """Leading axes merged, the others turned, and the leading ones split again."""
    if len(shape) < 3 or 0 in shape:
        return
    lead = make.pick(2, len(shape) - 1)
    merged = (int(np.prod(shape[:lead])), *shape[lead:])
    x = make.call("Reshape", [x, make.ints(*merged)], merged)
    order = [0, *(1 + int(axis) for axis in make.random.permutation(len(merged) - 1))]
    turned = tuple(merged[axis] for axis in order)
    x = make.call("Transpose", [x], turned, perm=order)
    target = (*shape[:lead], *turned[1:])
    make.call("Reshape", [x, make.ints(*target)], target)


def joined(make: Maker, x: str, shape: Shape) -> None:
    """Concats of Concats, of parts without elements, and Splits into one part."""
    if not shape:
        return
    axis = int(make.random.integers(len(shape)))

    def long(size: int) -> Shape:
        return (*shape[:axis], size, *shape[axis + 1 :])

    size = shape[axis]
    inputs, total = [x], size
    if make.chance(0.5):
        empty = make.call("Slice", [x, make.ints(0), make.ints(0), make.ints(axis)], long(0))
        inputs.insert(make.pick(0, 1), empty)
    if make.chance(0.7):
        inner = make.call("Concat", [x, x], long(2 * size), axis=axis)
        inputs.append(inner)
        total += 2 * size
    if make.chance(0.3):
        name = make.name()
        extra = {"num_outputs": 1} if make.opset >= 18 else {}
        make.nodes.append(helper.make_node("Split", [x], [name], axis=axis, **extra))
        inputs.append(name)
        total += size
    make.call("Concat", inputs, long(total), axis=axis - make.pick(0, len(shape)))


def sizes(make: Maker, x: str, shape: Shape) -> None:
    """Some neighbouring sizes of a shape, as numbers."""
    if not shape:
        return
    begin = int(make.random.integers(len(shape)))
    end = int(make.random.integers(begin, len(shape))) + 1
    whole, some, numbers = make.name(), make.name(), make.name()
    make.nodes.append(helper.make_node("Shape", [x], [whole]))
    if make.chance(0.5):
        indices = make.ints(*range(begin, end))
        make.nodes.append(helper.make_node("Gather", [whole, indices], [some]))
    else:
        limits = [make.ints(begin), make.ints(end), make.ints(0)]
        make.nodes.append(helper.make_node("Slice", [whole, *limits], [some]))
    make.nodes.append(helper.make_node("Cast", [some], [numbers], to=1))
    make.values.append((numbers, (end - begin,)))
    if end - begin in (1, *shape[-1:]):
        make.call("Mul", [x, numbers], shape)


@of_rank(4)
def resized(make: Maker, x: str, shape: Shape) -> None:
    """Resize by 1, or to twice the size."""
    if len(shape) != 4 or 0 in shape:
        return
    factors = [1.0, 1.0, *make.pick((1.0, 1.0), (1.0, 1.0), (2.0, 1.0))]
    target = tuple(int(size * factor) for size, factor in zip(shape, factors, strict=True))
    scales = make.constant(np.array(factors, dtype=np.float32))
    region = make.constant(np.zeros(0, dtype=np.float32))
    make.call("Resize", [x, region, scales], target, mode=make.pick("nearest", "linear"))


def padded_by_nothing(make: Maker, x: str, shape: Shape) -> None:
    if not shape:
        return
    pads = [0] * (2 * len(shape))
    if make.chance(0.3):
        pads[-1] = 1
    make.call("Pad", [x, make.ints(*pads)], (*shape[:-1], shape[-1] + pads[-1]))


STEPS: tuple[Step, ...] = (
    *(axes_added_and_taken, repeated, repeated, expanded_to_another, heads, joined, joined),
    *(sizes, resized, padded_by_nothing),
)
