"""In which order the axes of each stored value lie in memory, over the whole graph.

Convolutions read and write channels last. What works on their results keeps that order, and so do
pools and the like. A product whose result is transposed writes it so; everything else is row-major. A
value that a convolution wants in the other order is copied once, by a step of its own.
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.ops.lowering import (
    Convolution,
    Element,
    IntegerConvolution,
    Nest,
    Product,
    TransposedConvolution,
)
from sardonyx.plan.flow import Control
from sardonyx.plan.graph import Graph, Work
from sardonyx.plan.group import Group, Grouping
from sardonyx.plan.plan import Order

__all__ = ["channels_last", "choose_orders", "fits_a_kernel"]


def channels_last(rank: int) -> Order:
    """(batch, channels, spatial…) with the channels innermost."""
    return (0, *range(2, rank), 1)


def choose_orders(graph: Graph, grouping: Grouping) -> dict[ir.Value, Order]:
    """Values that are not row-major. The caller's own are always row-major."""
    orders: dict[ir.Value, Order] = {}
    for group in grouping.groups:
        if isinstance(group.root.lowering, Control):
            continue
        shape = graph.facts(group.result).shape
        if shape is None or not 3 <= len(shape) <= 5:
            continue
        if group.result not in grouping.stored or group.result in graph.outputs:
            continue
        if group.result in graph.flow.aliases:
            continue
        if _wants_channels_last(graph, group, orders, len(shape)):
            orders[group.result] = channels_last(len(shape))
        elif isinstance(group.root.lowering, Product):
            orders.update(_turned(graph, group.result))
    return orders


def fits_a_kernel(graph: Graph, filters: ir.Value) -> bool:
    """Whether a kernel of the backend may take these filters: they are constant, or at least their sizes are."""
    shape = graph.facts(filters).shape
    if shape is None or not all(isinstance(size, int) for size in shape):
        return False
    return filters in graph.constants or 0 not in shape


def _turned(graph: Graph, value: ir.Value) -> dict[ir.Value, Order]:
    """A product's result lies as the one Transpose that reads it has its axes: heads side by side again."""
    readers = graph.readers.get(value, [])
    if len(readers) != 1 or readers[0].node.op_type != "Transpose":
        return {}
    perm = readers[0].call.ints_attr("perm")
    kept = perm is not None and perm[-1] == len(perm) - 1  # rows are written, and read, as runs
    return {value: perm} if perm is not None and kept else {}


def _wants_channels_last(
    graph: Graph, group: Group, orders: dict[ir.Value, Order], rank: int
) -> bool:
    work = group.root
    if isinstance(work.lowering, (Convolution, TransposedConvolution)):
        filters = work.node.inputs[1]
        return filters is not None and fits_a_kernel(graph, filters)
    if isinstance(work.lowering, IntegerConvolution):
        return work.node.inputs[work.lowering.operands.b] in graph.constants
    if work.node.op_type == "Transpose" or any(one.outputs[0].shape is None for one in group.tail):
        return False
    if not isinstance(work.lowering, (Element, Nest)):
        return False
    return any(
        source in orders and len(orders[source]) == rank for source in _sources(graph, work, orders)
    )


def _sources(graph: Graph, work: Work, orders: dict[ir.Value, Order]) -> list[ir.Value]:
    """Stored values that a work reads, through the elements that were written into it."""
    found: list[ir.Value] = []
    pending = [work]
    seen = {work}
    while pending:
        for value in pending.pop().reads:
            producer = graph.producer.get(value)
            if value in orders:
                found.append(value)
            elif producer is not None and producer not in seen and _is_read_through(producer):
                seen.add(producer)
                pending.append(producer)
    return found


def _is_read_through(work: Work) -> bool:
    return isinstance(work.lowering, Element) and work.node.op_type != "Transpose"
