"""Moving, selecting and reducing elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from tests.differential.cases.case import Case, f, floats, i, ints, pos, words


def shaping() -> Iterator[Case]:
    x = f(3, 4, 5)
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    for shape in (ints(-1, 5), ints(0, -1), ints(2, 30), ints(60)):
        yield Case("Reshape", 14, [x, shape])
    yield Case("Reshape", 14, [f(0, 3), ints(3, 0)], {"allowzero": 1})
    yield Case("Reshape", 5, [x, ints(0, -1)])
    for start, end, axis, step in (
        (1, 3, 0, 1), (0, most, 1, 2), (-1, least, 1, -1), (most, least, 2, -2), (least, most, 2, 1),
        (3, 1, 1, 1), (3, 1, 1, -1), (10, -100, 2, -1), (-100, 100, 2, 3), (4, -6, 2, -1),
        (2, -4, 1, -1), (-2, 0, 1, -1), (most, 0, 1, 1),
    ):  # fmt: skip
        yield Case("Slice", 13, [x, ints(start), ints(end), ints(axis), ints(step)])
    yield Case("Slice", 1, [x], {"starts": [1, 0], "ends": [3, 1000], "axes": [1, 2]})
    yield Case("Slice", 10, [x, ints(1), ints(3)])
    yield Case("Split", 13, [x, ints(2, 0, 3)], {"axis": 2}, 3)
    yield Case("Split", 11, [x], {"axis": 1, "split": [1, 3]}, 2)
    yield Case("Split", 2, [x], {"axis": 1}, 2)
    yield Case("Split", 18, [f(7)], {"num_outputs": 3}, 3)
    yield Case("Squeeze", 13, [f(1, 3, 1), ints(0, -1)])
    yield Case("Squeeze", 11, [f(1, 3, 1)], {"axes": [0]})
    yield Case("Squeeze", 13, [f(1, 3, 1)])
    yield Case("Unsqueeze", 13, [f(3), ints(2, 0)])
    yield Case("Unsqueeze", 11, [f(3)], {"axes": [0, 2]})
    yield Case("Transpose", 13, [x], {"perm": [2, 0, 1]})
    for axis in (2, -1, 0, 3):
        yield Case("Flatten", 13, [x], {"axis": axis})
    yield Case("Concat", 13, [x, f(3, 1, 5)], {"axis": -2})
    yield Case("Tile", 13, [x, ints(2, 0, 3)])
    yield Case("Tile", 6, [x, ints(2, 1, 3)])
    for shape in (ints(2, 1, 4), ints(3, 0), ints(1)):
        yield Case("Expand", 13, [f(3, 1), shape])
    for mode, pads in itertools.product(
        ("constant", "reflect", "edge", "wrap"), (ints(0, 1, 2, 0, 0, 1), ints(0, -1, 2, 0, 1, -1))
    ):
        yield Case("Pad", 19, [x, pads], {"mode": mode})
    yield Case("Pad", 18, [x, ints(1, 2), np.float32(3), ints(-1)])
    yield Case("Pad", 2, [x], {"pads": [0, 1, 2, 0, 0, 1], "value": 2.5})
    yield Case("Pad", 2, [x], {"pads": [0, 1, 2, 0, 0, 1], "mode": "reflect"})
    yield Case("DepthToSpace", 11, [f(1, 8, 2, 3)], {"blocksize": 2})
    yield Case("DepthToSpace", 11, [f(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"})
    yield Case("SpaceToDepth", 1, [f(1, 2, 4, 6)], {"blocksize": 2})
    yield Case("CenterCropPad", 18, [f(5, 6), ints(3, 9)])
    yield Case("CenterCropPad", 18, [f(5, 6), ints(8)], {"axes": [-1]})


def selecting() -> Iterator[Case]:
    x = f(3, 4, 5)
    yield Case("Gather", 13, [x, i(-4, 4, 2, 3)], {"axis": 1})
    yield Case("Gather", 1, [x, np.array([0, 2], np.int32)])
    yield Case("Gather", 13, [x, ints()], {"axis": 1})
    yield Case("GatherElements", 13, [x, i(-4, 4, 2, 2, 3)], {"axis": 1})
    yield Case("GatherND", 13, [x, i(-3, 3, 2, 2)])
    yield Case("GatherND", 13, [x, i(0, 4, 3, 2, 1)], {"batch_dims": 1})
    rows = np.broadcast_to(np.arange(3)[None, :, None], (3, 3, 5)).copy()
    for reduction in ("none", "add", "mul", "max", "min"):
        yield Case(
            "ScatterElements", 18, [x, rows, f(3, 3, 5)], {"axis": 1, "reduction": reduction}
        )
        where = np.array([[0, 1], [2, 3]])
        yield Case("ScatterND", 18, [x, where, f(2, 5)], {"reduction": reduction})
    yield Case("Scatter", 9, [x, i(0, 4, 3, 1, 5), f(3, 1, 5)], {"axis": 1})
    yield Case("OneHot", 11, [i(-6, 6, 2, 3), ints(4), floats(0, 1)], {"axis": 1})
    for kind in (np.int16, np.int32, np.int64, np.float32, np.float64):
        for first, last, step in ((0, 10, 3), (10, 0, -3), (0, 10, -1), (5, 5, 1)):
            yield Case("Range", 11, [np.array(value, kind) for value in (first, last, step)])
    yield Case("ConstantOfShape", 9, [ints(2, 0)])
    yield Case("ConstantOfShape", 9, [ints()])
    yield Case("EyeLike", 9, [f(3, 4)], {"k": 1})
    yield Case("EyeLike", 9, [i(0, 2, 3, 4)], {"k": -2, "dtype": 1})
    yield Case("Trilu", 14, [x, np.array(-1)], {"upper": 0})
    yield Case("Trilu", 14, [x])
    for largest, axis in itertools.product((0, 1), (1, -1)):
        yield Case("TopK", 11, [i(0, 3, 4, 6), ints(4)], {"largest": largest, "axis": axis}, 2)
    yield Case("TopK", 1, [x], {"k": 2, "axis": 1}, 2)
    yield Case("TopK", 10, [x, ints(2)], {"axis": 1}, 2)
    for attributes in ({}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0}):
        yield Case("Unique", 11, [i(0, 3, 4, 3, dtype=np.float32)], attributes, 4)
    yield Case("Unique", 11, [words("b", "a", "b")], {"sorted": 0}, 4)
    yield Case("NonZero", 13, [i(0, 2, 3, 4)])
    yield Case("Compress", 11, [x, np.array([True, False, True])], {"axis": 1})
    yield Case("Compress", 11, [x, np.array([True, False, True])])
    yield Case("ReverseSequence", 10, [f(4, 3, 2), ints(4, 2, 0)])
    yield Case("ReverseSequence", 10, [f(3, 4), ints(4, 2, 1)], {"batch_axis": 0, "time_axis": 1})


def reducing() -> Iterator[Case]:
    x = pos(3, 4, 5)
    names = ("Sum", "Mean", "Prod", "Max", "Min", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    for op in (f"Reduce{name}" for name in names):
        for axes, keep in itertools.product((None, [1], [0, 2], [-1]), (0, 1)):
            given = [] if axes is None else [np.array(axes)]
            yield Case(op, 18, [x, *given], {"keepdims": keep})
            yield Case(op, 11, [x], {"keepdims": keep, **({} if axes is None else {"axes": axes})})
        yield Case(op, 18, [x, ints()], {"noop_with_empty_axes": 1})
        yield Case(op, 18, [np.float32(3.5)])
        yield Case(op, 18, [i(1, 9, 3, 4, dtype=np.int32), ints(1)])
        yield Case(op, 18, [f(3, 0), ints(0)])
        if op != "ReduceMean":
            yield Case(op, 18, [f(0, 4), ints(0)])
    yield Case("ReduceLogSumExp", 18, [floats(1000, 1001, -np.inf, -np.inf).reshape(2, 2), ints(1)])
    for op in ("ArgMax", "ArgMin"):
        for attributes in (
            {},
            {"axis": -1},
            {"axis": 1, "keepdims": 0},
            {"axis": 1, "select_last_index": 1},
        ):
            yield Case(op, 13, [i(0, 3, 3, 4, 5, dtype=np.float32)], attributes)
    for op, version in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), (1, 11, 13)):
        for axis in (0, 1, 2) if version == 1 else (0, 1, 2, -1, -2):
            yield Case(op, version, [x], {"axis": axis})
        yield Case(op, version, [x])
    for exclusive, reverse in itertools.product((0, 1), (0, 1)):
        yield Case("CumSum", 14, [x, np.array(-2)], {"exclusive": exclusive, "reverse": reverse})


FAMILIES = (
    shaping,
    selecting,
    reducing,
)
