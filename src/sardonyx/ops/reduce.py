"""Operators that fold dimensions away: reductions, arg-reductions, running sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from sardonyx.ops.axes import reduced_axes
from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape, Values, as_array, objects
from sardonyx.ops.lowerings.reductions import ARG, REDUCTIONS, RUNNING
from sardonyx.ops.plain import flops_per_input
from sardonyx.ops.values import symbolic_extreme

__all__ = ["OPERATORS"]


def reduction(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    axes, keep = reduced_axes(call, len(shape)), bool(call.int_attr("keepdims", 1))
    if axes is None:
        return [call.out(_unknown_axes(call, len(shape), keep))]
    return [call.out(without(shape, axes, keep))]


def without(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    if keep:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def _unknown_axes(call: Call, rank: int, keep: bool) -> Shape | None:
    if keep:
        return call.fresh_shape(rank)
    listed = call.shape(1)
    if listed is None or not listed or not isinstance(listed[0], int) or listed[0] == 0:
        return None  # how many axes there are is not known, or none may mean all
    return call.fresh_shape(rank - listed[0])


def arg_reduction(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    axis = call.axis(call.int_attr("axis"), len(shape))
    if shape[axis] == 0:
        call.fail(f"dimension {axis} is empty, so it has no largest or smallest element")
    return [call.out(without(shape, (axis,), bool(call.int_attr("keepdims", 1))))]


def running(call: Call) -> list[Facts]:
    shape, axis = call.input(0).shape, call.integers(1)
    if shape is not None and axis:
        call.axis(axis[0], len(shape))
    return [call.same()]


def reduction_values(call: Call, output: Facts) -> Values | None:
    facts = call.input(0)
    value, shape = facts.value, facts.shape
    if value is None or shape is None:
        return None
    axes = reduced_axes(call, len(shape))
    if axes is None:
        return None
    keep = bool(call.int_attr("keepdims", 1))
    array = as_array(facts)
    numeric = NUMERIC[call.node.op_type]
    if array is not None:
        if array.size == 0 and call.node.op_type in ("ReduceMax", "ReduceMin"):
            return None
        with np.errstate(all="ignore"):
            folded = numeric(array, axis=axes, keepdims=keep)
        return np.asarray(folded).astype(array.dtype).astype(object)
    return _fold_symbolic(call.node.op_type, value, axes, output)


def _fold_symbolic(op: str, value: Values, axes: tuple[int, ...], output: Facts) -> Values | None:
    if op == "ReduceMean" or any(isinstance(element, float) for element in value.flat):
        return None
    kept = [axis for axis in range(value.ndim) if axis not in axes]
    rows = value.transpose([*kept, *axes]).reshape(
        int(np.prod([value.shape[axis] for axis in kept], dtype=int)), -1
    )
    folded = [reduce(SYMBOLIC[op], row[1:], row[0]) for row in rows]
    if any(element is None for element in folded) or output.shape is None:
        return None
    return objects(folded, tuple(dim for dim in output.shape if isinstance(dim, int)))


def _larger(a: Any, b: Any) -> Any:
    return symbolic_extreme("max", a, b)


def _smaller(a: Any, b: Any) -> Any:
    return symbolic_extreme("min", a, b)


NUMERIC: dict[str, Any] = {
    "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod, "ReduceSum": np.sum,
}  # fmt: skip
SYMBOLIC: dict[str, Any] = {
    "ReduceMax": _larger,
    "ReduceMin": _smaller,
    "ReduceProd": lambda a, b: a * b,
    "ReduceSum": lambda a, b: a + b,
}


FLOPS = {
    "ReduceL1": 2, "ReduceL2": 2, "ReduceLogSumExp": 3, "ReduceSumSquare": 2,
}  # fmt: skip

OPERATORS = (
    *(
        Operator(
            name,
            "reduction",
            reduction,
            reduction_values if name in NUMERIC else None,
            flops_per_input(FLOPS.get(name, 1)),
            lowering,
        )
        for name, lowering in REDUCTIONS.items()
    ),
    *(
        Operator(name, "reduction", arg_reduction, cost=flops_per_input(1), lower=lowering)
        for name, lowering in ARG.items()
    ),
    *(
        Operator(name, "reduction", running, cost=flops_per_input(1), lower=lowering)
        for name, lowering in RUNNING.items()
    ),
)
