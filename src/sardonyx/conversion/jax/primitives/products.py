"""dot_general: any product of two tensors, as MatMul of what stays, what is summed, and what both have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, dtype_of
from sardonyx.conversion.jax.primitives.views import move_axes, reshape_to
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []

_MATMUL = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class _Side:
    """An operand's axes by what becomes of them."""

    shape: tuple[Dim, ...]
    batch: tuple[int, ...]
    summed: tuple[int, ...]

    @property
    def free(self) -> tuple[int, ...]:
        taken = {*self.batch, *self.summed}
        return tuple(axis for axis in range(len(self.shape)) if axis not in taken)

    def sizes(self, axes: tuple[int, ...]) -> tuple[Dim, ...]:
        return tuple(self.shape[axis] for axis in axes)


def _joined(dims: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


@primitive("dot_general")
def dot_general(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    graph, out = site.graph, site.outs[0]
    (sum_x, sum_y), (batch_x, batch_y) = site.params["dimension_numbers"]
    left = _Side(site.ins[0].shape, tuple(map(int, batch_x)), tuple(map(int, sum_x)))
    right = _Side(site.ins[1].shape, tuple(map(int, batch_y)), tuple(map(int, sum_y)))
    kind = _type_of_sums(site, x, y)
    x, y = graph.cast(x, kind), graph.cast(y, kind)
    if not left.summed:  # an outer product
        return graph.cast(_outer(graph, x, y, left, right), out.dtype)
    # Rows of x may keep their axes where y has none of its own beside the columns: MatMul broadcasts.
    stacked = not left.batch and len(left.free) != 1
    rows = _operand(graph, x, left, summed_last=True, keep_free=stacked)
    columns = _operand(graph, y, right, summed_last=False, keep_free=False)
    made = graph.op("MatMul", rows, columns)
    whole = len(left.free) == 1 or (stacked and len(left.free) > 1)
    if not (whole and len(right.free) == 1):
        made = reshape_to(graph, made, out.shape)
    return graph.cast(made, out.dtype)


def _type_of_sums(site: Site, x: ir.Value, y: ir.Value) -> np.dtype[Any]:
    """Where JAX adds up in a wider type, the operands are widened first, which is exact."""
    wanted: np.dtype[Any] = np.dtype(site.outs[0].dtype)
    given = [dtype_of(x), dtype_of(y)]
    if wanted.itemsize < max(d.itemsize for d in given):
        wanted = given[0] if given[0].itemsize >= given[1].itemsize else given[1]
    if wanted.name in _MATMUL:
        return wanted
    if wanted.kind == "f" or wanted.name.startswith("float8"):
        return np.dtype(np.float32)
    return np.dtype(np.uint32 if wanted.kind == "u" else np.int32)


def _operand(
    graph: Graph, x: ir.Value, side: _Side, *, summed_last: bool, keep_free: bool
) -> ir.Value:
    """[batch…, free, summed] or [batch…, summed, free], with several axes joined into one."""
    middle, last = (side.free, side.summed) if summed_last else (side.summed, side.free)
    x = move_axes(graph, x, (*side.batch, *middle, *last))
    if len(side.summed) == 1 and (len(side.free) == 1 or (keep_free and side.free)):
        return x
    free = side.sizes(side.free) if keep_free and side.free else (_joined(side.sizes(side.free)),)
    summed = (_joined(side.sizes(side.summed)),)
    parts = (*free, *summed) if summed_last else (*summed, *free)
    return reshape_to(graph, x, (*side.sizes(side.batch), *parts))


def _outer(graph: Graph, x: ir.Value, y: ir.Value, left: _Side, right: _Side) -> ir.Value:
    """No axis is summed: elements are multiplied with new axes between them."""
    x = move_axes(graph, x, (*left.batch, *left.free))
    y = move_axes(graph, y, (*right.batch, *right.free))
    if right.free and len(left.shape):
        behind = [len(left.shape) + place for place in range(len(right.free))]
        x = graph.op("Unsqueeze", x, graph.constant(behind, np.int64))
    if left.free and len(right.shape):
        between = [len(left.batch) + place for place in range(len(left.free))]
        y = graph.op("Unsqueeze", y, graph.constant(between, np.int64))
    return graph.op("Mul", x, y)
