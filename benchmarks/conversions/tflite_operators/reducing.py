"""Operators along axes: sums, extremes and their places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.conversions.tflite_operators.cases import ALL, WHOLE, Case, const, fed, name_of, out

__all__ = ["reduced"]


def reduced() -> Iterator[Case]:
    for kind in ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"]:
        for dtype in (*ALL, *WHOLE):
            for axes, keep in (([1], False), ([0, 2], True), ([], False), (1, False), ([-1], True)):
                scale = (
                    {"SUM": 0.12, "REDUCE_PROD": 0.5}.get(kind) if dtype in ("i1", "u1") else None
                )
                fields = {"keepDims": keep}
                x, a = fed(dtype, 2, 3, 4), const(axes, np.int32)
                name = name_of(kind, dtype, axes, keep)
                yield Case(name, kind, [x, a], [out(dtype, scale)], "ReducerOptions", fields)
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        for axes, keep in (([1], False), ([0, 2], True), ([], False)):
            x, a = fed("?", 2, 3, 4), const(axes, np.int32)
            name = name_of(kind, axes, keep)
            yield Case(name, kind, [x, a], [out("?")], "ReducerOptions", {"keepDims": keep})
    for kind, option in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        for dtype in (*ALL, "i4", "?"):
            for place in ("i4", "i8"):
                code = {"i4": 2, "i8": 4}[place]
                x, y = fed(dtype, 3, 6), out(place)
                name = name_of(kind, dtype, place)
                yield Case(name, kind, [x, const(-1, np.int32)], [y], option, {"outputType": code})
    for dtype in (*ALL, *WHOLE):
        x = fed(dtype, 3, 6)
        ends = [out(dtype), out("i4")]
        yield Case(name_of("TOPK_V2", dtype), "TOPK_V2", [x, const(3, np.int32)], ends)
        for exclusive, reverse in ((False, False), (True, False), (True, True)):
            name = name_of("CUMSUM", dtype, exclusive, reverse)
            fields = {"exclusive": exclusive, "reverse": reverse}
            axis = const(-1, np.int32)
            yield Case(name, "CUMSUM", [x, axis], [out(dtype)], "CumsumOptions", fields)
