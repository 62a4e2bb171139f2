"""Operators that move elements, or give them another type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.conversions.tflite_operators.cases import (
    ALL,
    BYTES,
    RNG,
    STEPS,
    WHOLE,
    Case,
    Value,
    const,
    fed,
    name_of,
    out,
)
from benchmarks.conversions.tflite_operators.file import TYPES

__all__ = ["moved"]


def moved() -> Iterator[Case]:
    for dtype in (*ALL, *WHOLE, "?"):
        yield from _moved_of(dtype)
    for a, b in (([3, 1], [1, 4]), ([2, 3, 1], [4])):
        shapes = [const(a, np.int32), const(b, np.int32)]
        yield Case(name_of("BROADCAST_ARGS", a, b), "BROADCAST_ARGS", list(shapes), [out("i4")])
    for dtype in BYTES:
        x = fed(dtype, 3, 4)
        other = {"i1": "u1", "u1": "i1", "i2": "i1"}[dtype]
        yield Case(name_of("QUANTIZE", dtype, other), "QUANTIZE", [x], [out(other)])
        yield Case(name_of("QUANTIZE f4", dtype), "QUANTIZE", [fed("f4", 3, 4)], [out(dtype)])
        yield Case(name_of("DEQUANTIZE", dtype), "DEQUANTIZE", [x], [out("f4")])
        parts = [fed(dtype, 2, 3), fed(dtype, 2, 3, scale=STEPS[dtype][0] * 0.5)]
        yield Case(name_of("CONCATENATION", dtype, "two grids"), "CONCATENATION", list(parts),
                   [out(dtype)], "ConcatenationOptions", {"axis": 1})  # fmt: skip
    for bits, narrow in ((8, False), (8, True), (4, False)):
        fields = {"min": -1.1, "max": 2.3, "numBits": bits, "narrowRange": narrow}
        yield Case(name_of("FAKE_QUANT", bits, narrow), "FAKE_QUANT", [fed("f4", 40)], [out("f4")],
                   "FakeQuantOptions", fields)  # fmt: skip


def _moved_of(dtype: str) -> Iterator[Case]:
    def case(kind: str, inputs: list[Value | None], count: int = 1, options: str | None = None,
             said: str = "", **fields: Any) -> Case:  # fmt: skip
        made = [out(dtype) for _ in range(count)]
        return Case(name_of(kind, dtype, said), kind, inputs, made, options, fields)

    x = fed(dtype, 2, 3, 4)
    flat = fed(dtype, 1, 4, 6, 8)
    filler = const(1, dtype, x.scale, x.zero)
    widths = const([[1, 0], [0, 2], [1, 1]], np.int32)
    yield case("TRANSPOSE", [x, const([2, 0, 1], np.int32)])
    yield case("RESHAPE", [x, const([4, -1], np.int32)])
    yield case("RESHAPE", [x], options="ReshapeOptions", said="by option", newShape=[4, 6])
    yield case("SQUEEZE", [fed(dtype, 1, 3, 1)], options="SqueezeOptions", squeezeDims=[-1])
    yield case(
        "SQUEEZE", [fed(dtype, 1, 3, 1)], options="SqueezeOptions", said="all", squeezeDims=[]
    )
    yield case("EXPAND_DIMS", [x, const(-2, np.int32)])
    yield case("SLICE", [x, const([0, 1, 1], np.int32), const([2, -1, 2], np.int32)])
    yield case(
        "SPLIT_V",
        [x, const([1, -1], np.int32), const(2, np.int32)],
        2,
        "SplitVOptions",
        numSplits=2,
    )
    yield case("SPLIT", [const(-1, np.int32), x], 2, "SplitOptions", numSplits=2)
    yield case("PACK", [x, x], options="PackOptions", valuesCount=2, axis=-1)
    yield case("UNPACK", [x], 3, "UnpackOptions", num=3, axis=-2)
    yield case("TILE", [x, const([1, 2, 3], np.int32)])
    yield case("BROADCAST_TO", [fed(dtype, 3, 1), const([2, 3, 4], np.int32)])
    yield case("PAD", [x, widths])
    yield case("PADV2", [x, widths, filler])
    for mode in (0, 1):
        narrow = const([[1, 0], [0, 2], [1, 1]], np.int32)
        yield case("MIRROR_PAD", [x, narrow], options="MirrorPadOptions", said=str(mode), mode=mode)
    yield case("REVERSE_V2", [x, const([1], np.int32)])
    yield case("GATHER", [x, const([[2, 0], [1, 1]], np.int32)], options="GatherOptions", axis=1)
    yield case("GATHER", [x, const([[2, 0], [1, 1]], np.int32)], options="GatherOptions", said="batches",
               axis=1, batchDims=1)  # fmt: skip
    yield case("GATHER_ND", [x, const([[1, 2], [0, 0]], np.int32)])
    yield case("ZEROS_LIKE", [x])
    yield case("FILL", [const([2, 3], np.int32), filler])
    yield case(
        "SCATTER_ND",
        [const([[2], [0], [2]], np.int32), fed(dtype, 3, 4), const([5, 4], np.int32)],
    )
    yield case("DYNAMIC_UPDATE_SLICE", [x, fed(dtype, 1, 2, 2), const([1, 2, -1], np.int32)])
    yield case("ONE_HOT", [const([1, -1, 3, 0], np.int32), const(4, np.int32), filler,
                           const(0, dtype, x.scale, x.zero)], options="OneHotOptions", axis=-1)  # fmt: skip
    yield case("DEPTH_TO_SPACE", [flat], options="DepthToSpaceOptions", blockSize=2)
    yield case("SPACE_TO_DEPTH", [flat], options="SpaceToDepthOptions", blockSize=2)
    block, sides = const([2, 2], np.int32), const([[1, 1], [0, 2]], np.int32)
    yield case("SPACE_TO_BATCH_ND", [flat, block, sides])
    yield case(
        "BATCH_TO_SPACE_ND",
        [fed(dtype, 4, 2, 3, 2), block, const([[0, 1], [1, 0]], np.int32)],
    )
    yield case("CONCATENATION", [x, x], options="ConcatenationOptions", axis=-1)
    yield case("STRIDED_SLICE", [x, const([0, -1, 0], np.int32), const([0, 0, 4], np.int32),
                                 const([1, -1, 2], np.int32)], options="StridedSliceOptions",
               beginMask=0, endMask=2, shrinkAxisMask=1)  # fmt: skip
    if dtype in ("f4", "i4", "i8"):
        ends = [const(n, dtype) for n in (1, 9, 3)]
        yield case("RANGE", list(ends))
    yield Case(name_of("SHAPE", dtype), "SHAPE", [x], [out("i8")], "ShapeOptions", {"outType": 4})
    yield Case(name_of("RANK", dtype), "RANK", [x], [out("i4")])
    if dtype not in BYTES:
        yield Case(
            name_of("WHERE", dtype),
            "WHERE",
            [const(RNG.integers(0, 2, (3, 4)), dtype)],
            [out("i8")],
        )
    for other in ("f4", "i4", "i8", "?", "i1", "u1", "i2"):
        a, b = Value(dtype, (3, 4)), Value(other)
        codes = {"inDataType": TYPES[np.dtype(dtype)], "outDataType": TYPES[np.dtype(other)]}
        yield Case(name_of("CAST", dtype, other), "CAST", [a], [b], "CastOptions", codes)
