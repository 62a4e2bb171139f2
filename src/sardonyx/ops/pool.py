"""Pools over windows, over everything, and over regions of interest."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowerings.pooling import (
    AVERAGE_POOL,
    GLOBAL_AVERAGE_POOL,
    GLOBAL_LP_POOL,
    GLOBAL_MAX_POOL,
    LP_POOL,
    MAX_POOL,
    MAX_UNPOOL,
)
from sardonyx.ops.lowerings.regions import MAX_ROI_POOL, ROI_ALIGN
from sardonyx.ops.plain import data_decides, flops_per_input, move_all
from sardonyx.ops.window import read_window
from sardonyx.sizes import product

__all__ = ["OPERATORS"]


def pool(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None), call.out(None, 1)]
    if len(shape) < 3:
        call.fail(f"input of rank {len(shape)} has no spatial dimension (batch, channels, …)")
    window = read_window(call, len(shape) - 2, None)
    pooled = (*shape[:2], *window.slide(call, shape[2:], bool(call.int_attr("ceil_mode"))))
    return [call.out(pooled), call.out(pooled, 1)]


def pool_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """One operation for each element under the window."""
    count, kernel = outputs[0].elements, call.ints_attr("kernel_shape")
    flops = None if count is None or kernel is None else count * product(kernel)
    return moved(call.inputs, outputs, flops=flops)


def global_pool(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    if len(shape) < 2:
        call.fail(f"input of rank {len(shape)} has no channels (batch, channels, …)")
    return [call.out((*shape[:2], *(1 for _ in shape[2:])))]


def max_unpool(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if call.has(2):
        explicit = call.vector(2)
        if explicit is not None:
            return [call.out(explicit)]
        return [call.out(None if shape is None else call.fresh_shape(len(shape)))]
    if shape is None:
        return [call.out(None)]
    window = read_window(call, len(shape) - 2, None)
    return [call.out((*shape[:2], *window.spread(shape[2:], (0,) * (len(shape) - 2))))]


def roi_align(call: Call) -> list[Facts]:
    x, rois, batch = call.need_rank(0, 4), call.need_rank(1, 2), call.need_rank(2, 1)
    count = call.fresh(0) if rois is None else rois[0]
    if batch is not None:
        count = call.agree(count, batch[0], "rois and batch_indices")
    channels = call.fresh(1) if x is None else x[1]
    return [
        call.out(
            (count, channels, call.int_attr("output_height", 1), call.int_attr("output_width", 1))
        )
    ]


def roi_align_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Bilinear samples, `sampling_ratio` squared for each element; 0 lets data decide."""
    count, ratio = outputs[0].elements, call.int_attr("sampling_ratio")
    known = count is not None and ratio > 0
    return moved(
        call.inputs,
        outputs,
        flops=count * ratio * ratio * 8 if known and count is not None else None,
    )


def max_roi_pool(call: Call) -> list[Facts]:
    x, rois, pooled = call.need_rank(0, 4), call.need_rank(1, 2), call.ints_attr("pooled_shape")
    if pooled is None or len(pooled) != 2:
        call.fail(f"pooled_shape is {pooled}, but two sizes are needed")
    count = call.fresh(0) if rois is None else rois[0]
    return [call.out((count, call.fresh(1) if x is None else x[1], *pooled))]


OPERATORS = (
    Operator("AveragePool", "reduction", pool, cost=pool_cost, lower=AVERAGE_POOL),
    Operator("LpPool", "reduction", pool, cost=pool_cost, lower=LP_POOL),
    Operator("MaxPool", "reduction", pool, cost=pool_cost, lower=MAX_POOL),
    Operator(
        "GlobalAveragePool",
        "reduction",
        global_pool,
        cost=flops_per_input(1),
        lower=GLOBAL_AVERAGE_POOL,
    ),
    Operator(
        "GlobalLpPool", "reduction", global_pool, cost=flops_per_input(1), lower=GLOBAL_LP_POOL
    ),
    Operator(
        "GlobalMaxPool", "reduction", global_pool, cost=flops_per_input(1), lower=GLOBAL_MAX_POOL
    ),
    Operator("MaxUnpool", "opaque", max_unpool, cost=move_all, lower=MAX_UNPOOL),
    Operator("RoiAlign", "opaque", roi_align, cost=roi_align_cost, lower=ROI_ALIGN),
    Operator("MaxRoiPool", "opaque", max_roi_pool, cost=data_decides, lower=MAX_ROI_POOL),
)
