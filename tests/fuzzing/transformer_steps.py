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


def rotary(make: Maker, x: str, shape: Shape) -> None:
    """Pairs of columns turned, all of them or the first ones, heads first or tokens first."""
    if len(shape) != 4 or 0 in shape or shape[3] < 2:
        return
    half, rest = shape[3] // 2, shape[3] % 2
    turned, whole = (*shape[:3], 2 * half), shape
    x, kept = _cut(make, x, shape, [2 * half, 1]) if rest else (x, None)
    angles = (make.pick(1, shape[0]), *make.pick((1, shape[2]), (shape[1], 1)), half)
    table = make.constant(make.random.normal(size=angles).astype(np.float32))
    paired = make.chance(0.5)
    if paired:
        spread = (
            make.call("Unsqueeze", [table, make.ints(-1)], (*angles, 1)) if make.opset >= 13 else ""
        )
        if not spread:
            spread = make.call("Unsqueeze", [table], (*angles, 1), axes=[4])
        spread = make.call("Expand", [spread, make.ints(1, 1, 1, 1, 2)], (*angles, 2))
        wide = make.call("Reshape", [spread, make.ints(*angles[:3], -1)], (*angles[:3], 2 * half))
    else:
        wide = make.call("Concat", [table, table], (*angles[:3], 2 * half), axis=3)
    cosine, sine = (make.call(op, [wide], (*angles[:3], 2 * half)) for op in ("Cos", "Sin"))
    swapped = _swapped(make, x, turned, paired)
    parts = [
        make.call("Mul", [x, cosine], turned),
        make.call("Mul", [swapped, make.pick(sine, sine, sine, cosine)], turned),
    ]
    y = make.call("Add", parts if make.chance(0.5) else parts[::-1], turned)
    if kept is not None:
        make.call("Concat", [y, kept], whole, axis=3)


def _cut(make: Maker, x: str, shape: Shape, sizes: list[int]) -> tuple[str, str]:
    """The first columns and the others."""
    last, cut = make.ints(3), make.ints(sizes[0])
    first = make.call("Slice", [x, make.ints(0), cut, last], (*shape[:3], sizes[0]))
    return first, make.call("Slice", [x, cut, make.ints(2**31), last], (*shape[:3], sizes[1]))


def _swapped(make: Maker, x: str, shape: Shape, paired: bool) -> str:
    """(-b, a) for the pairs (a, b) of columns, which are halves or neighbours."""
    half = (*shape[:3], shape[3] // 2)
    if not paired:
        a, b = _cut(make, x, shape, [half[3], half[3]])
        return make.call("Concat", [make.call("Neg", [b], half), a], shape, axis=3)
    far, last, step = make.ints(2**31), make.ints(3), make.ints(2)
    a, b = (make.call("Slice", [x, make.ints(n), far, last, step], half) for n in (0, 1))
    parts = [
        make.call("Reshape", [one, make.ints(0, 0, 0, -1, 1)], (*half, 1))
        for one in (make.call("Neg", [b], half), a)
    ]
    pairs = make.call("Concat", parts, (*half, 2), axis=4)
    return make.call("Reshape", [pairs, make.ints(0, 0, 0, -1)], shape)


def several_products(make: Maker, x: str, shape: Shape) -> None:
    """One value times several matrices, with biases and without."""
    if len(shape) < 2 or shape[-1] == 0:
        return
    for _ in range(make.pick(2, 3, 4)):
        columns = int(make.pick(1, 2, 3))
        whole = (*shape[:-1], columns)
        if len(shape) == 2 and make.chance(0.3):
            make.call("Gemm", [x, make.floats(shape[-1], columns), make.floats(columns)], whole)
            continue
        y = make.call("MatMul", [x, make.floats(shape[-1], columns)], whole)
        if make.chance(0.6):
            make.call("Add", [y, make.floats(*make.pick((columns,), (1,), (1, columns)))], whole)


def grouped_attention(make: Maker, x: str, shape: Shape) -> None:
    """Queries of several heads that share keys and values, masked or capped or neither."""
    if len(shape) != 4 or 0 in shape:
        return
    x = make.call("Tanh", [x], shape)  # sums of products that overflow do so at other places
    times = int(make.pick(1, 2, 3))
    whole = (shape[0], shape[1] * times, *shape[2:])
    queries = make.call("Concat", [x] * times, whole, axis=1)
    keys = _repeated(make, x, shape, times) if times > 1 else x
    turned = make.call("Transpose", [keys], (*whole[:2], whole[3], whole[2]), perm=[0, 1, 3, 2])
    square = (*whole[:3], whole[2])
    scores = make.call("MatMul", [queries, turned], square)
    if make.chance(0.3):
        cap = _number(make, 2.0)
        bent = make.call("Tanh", [make.call("Div", [scores, cap], square)], square)
        scores = make.call("Mul", [bent, cap], square)
    if make.chance(0.5):
        allowed = np.tri(shape[2], k=make.pick(0, 0, 0, 1, -1)) > 0
        mask = np.where(allowed, 0, make.pick(-np.inf, -np.inf, -1e9)).astype(np.float32)
        scores = make.call("Add", [scores, make.constant(mask)], square)
    weights = make.call("Softmax", [scores], square, axis=3)
    make.call("MatMul", [weights, keys], whole)


def _repeated(make: Maker, x: str, shape: Shape, times: int) -> str:
    """Every head so many times in a row."""
    batch, heads, rows, columns = shape
    single = make.call(
        "Reshape", [x, make.ints(0, heads, 1, rows, columns)], (batch, heads, 1, rows, columns)
    )
    spread = make.call(
        "Expand", [single, make.ints(1, 1, times, 1, 1)], (batch, heads, times, rows, columns)
    )
    return make.call(
        "Reshape",
        [spread, make.ints(0, heads * times, rows, columns)],
        (batch, heads * times, rows, columns),
    )


STEPS: tuple[Step, ...] = (
    rms_norm,
    image_norm,
    rotary,
    rotary,
    several_products,
    grouped_attention,
)
