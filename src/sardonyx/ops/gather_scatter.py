"""Operators that take elements by index, or put them there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, bytes_of, total
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Values, as_array
from sardonyx.ops.lowerings.gathering import GATHER, GATHER_ELEMENTS, GATHER_ND
from sardonyx.ops.lowerings.scattering import SCATTER_ELEMENTS, SCATTER_ND, TENSOR_SCATTER
from sardonyx.ops.plain import move_all

__all__ = ["OPERATORS"]


def gather(call: Call) -> list[Facts]:
    data, indices = call.input(0).shape, call.input(1).shape
    if data is None or indices is None:
        return [call.out(None)]
    if not data:
        call.fail("data is a scalar; there is nothing to index")
    axis = call.axis(call.int_attr("axis"), len(data))
    _check_indices(call, data[axis], axis)
    return [call.out((*data[:axis], *indices, *data[axis + 1 :]))]


def _check_indices(call: Call, size: object, axis: int) -> None:
    wanted = as_array(call.input(1))
    if wanted is None or wanted.size == 0 or not isinstance(size, int):
        return
    low, high = int(wanted.min()), int(wanted.max())
    if not -size <= low <= high < size:
        bad = low if low < -size else high
        call.fail(f"index {bad} is outside dimension {axis} of {size}")


def gather_values(call: Call, output: Facts) -> Values | None:
    value, indices = call.value(0), as_array(call.input(1))
    if value is None or indices is None:
        return None
    return np.asarray(
        np.take(value, indices.astype(np.int64), axis=call.int_attr("axis")), dtype=object
    )


def gather_elements(call: Call) -> list[Facts]:
    data, indices = call.input(0).shape, call.input(1).shape
    if data is not None and indices is not None:
        if len(data) != len(indices):
            call.fail(
                f"data and indices must have one rank, but have {len(data)} and {len(indices)}"
            )
        axis = call.axis(call.int_attr("axis"), len(data))
        for at, (size, count) in enumerate(zip(data, indices, strict=True)):
            if at != axis and isinstance(size, int) and isinstance(count, int) and count > size:
                call.fail(f"indices reach {count} along dimension {at}, but data has only {size}")
    return [call.out(indices)]


def gather_nd(call: Call) -> list[Facts]:
    data, indices = call.input(0).shape, call.input(1).shape
    if data is None or indices is None:
        return [call.out(None)]
    if not data or not indices:
        call.fail("data and indices need at least one dimension each")
    batch, depth = call.int_attr("batch_dims"), indices[-1]
    if not 0 <= batch < min(len(data), len(indices)):
        call.fail(f"batch_dims is {batch}, but must be below both ranks")
    if not isinstance(depth, int):
        return [call.out(None)]
    if not 0 < depth <= len(data) - batch:
        call.fail(f"indices have {depth} coordinates for {len(data) - batch} dimensions")
    lead = tuple(
        call.agree(a, b, f"batch dimension {axis}")
        for axis, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True))
    )
    return [call.out((*lead, *indices[batch:-1], *data[batch + depth :]))]


def indexed_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Indices are read, and of the data only what is taken."""
    taken = bytes_of(outputs[0])
    return Cost(0, 0, total([taken, bytes_of(call.input(1))]), taken)


def scatter_elements(call: Call) -> list[Facts]:
    data, indices, updates = (call.input(index).shape for index in range(3))
    if data is not None and indices is not None and len(data) != len(indices):
        call.fail(f"data and indices must have one rank, but have {len(data)} and {len(indices)}")
    if data is not None:
        call.axis(call.int_attr("axis"), len(data))
    if indices is not None and updates is not None:
        if len(indices) != len(updates):
            call.fail(f"indices and updates have ranks {len(indices)} and {len(updates)}")
        for axis, (a, b) in enumerate(zip(indices, updates, strict=True)):
            call.agree(a, b, f"dimension {axis} of indices and updates")
    return [call.same()]


def scatter_nd(call: Call) -> list[Facts]:
    data, indices, updates = (call.input(index).shape for index in range(3))
    if data is not None and indices:
        depth = indices[-1]
        if isinstance(depth, int):
            if depth > len(data):
                call.fail(f"indices have {depth} coordinates for {len(data)} dimensions")
            expected = (*indices[:-1], *data[depth:])
            if updates is not None:
                if len(updates) != len(expected):
                    call.fail(f"updates have rank {len(updates)}, but {len(expected)} is needed")
                for axis, (a, b) in enumerate(zip(expected, updates, strict=True)):
                    call.agree(a, b, f"dimension {axis} of updates and what indices select")
    return [call.same()]


def scatter_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """All data moves once; updates are read and written on top."""
    copied, updates = bytes_of(call.input(0)), bytes_of(call.input(2))
    flops = call.input(2).elements if call.str_attr("reduction", "none") != "none" else 0
    read = total([copied, updates, bytes_of(call.input(1))])
    return Cost(0, flops, read, bytes_of(outputs[0]))


def tensor_scatter(call: Call) -> list[Facts]:
    past, update = call.input(0).shape, call.input(1).shape
    if past is not None and update is not None:
        if len(past) != len(update):
            call.fail(f"past_cache and update have ranks {len(past)} and {len(update)}")
        axis = call.axis(call.int_attr("axis", -2), len(past))
        if axis == 0:
            call.fail("axis 0 is the batch; it cannot be the sequence")
        for at, (a, b) in enumerate(zip(past, update, strict=True)):
            if at != axis:
                call.agree(a, b, f"dimension {at} of past_cache and update")
            elif isinstance(a, int) and isinstance(b, int) and b > a:
                call.fail(f"update has {b} positions, but past_cache only {a}")
    return [call.same()]


OPERATORS = (
    Operator("Gather", "opaque", gather, gather_values, indexed_cost, GATHER),
    Operator("GatherElements", "opaque", gather_elements, None, indexed_cost, GATHER_ELEMENTS),
    Operator("GatherND", "opaque", gather_nd, None, indexed_cost, GATHER_ND),
    Operator("Scatter", "opaque", scatter_elements, None, scatter_cost, SCATTER_ELEMENTS),
    Operator("ScatterElements", "opaque", scatter_elements, None, scatter_cost, SCATTER_ELEMENTS),
    Operator("ScatterND", "opaque", scatter_nd, None, scatter_cost, SCATTER_ND),
    Operator("TensorScatter", "opaque", tensor_scatter, None, move_all, TENSOR_SCATTER),
)
