"""Single weights made zero, and wide matrices written as products of thin ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from sardonyx.model.source import describe, source_line
from sardonyx.pruning.channels import Array, constant_of
from sardonyx.pruning.report import LayerReport

__all__ = ["factorize", "zero_pattern", "zero_smallest"]

_LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
Excluded = Callable[[ir.Node], str]


def zero_smallest(model: ir.Model, share: float, excluded: Excluded) -> list[LayerReport]:
    """The smallest weights of every layer become zero."""

    def mask(weight: Array, axis: int) -> Array:
        size = np.abs(weight.astype(np.float64))
        count = int(weight.size * share)
        kept = np.ones(weight.size, bool)
        kept[np.argsort(size, axis=None, kind="stable")[:count]] = False
        return kept.reshape(weight.shape)

    return _zero(model, mask, excluded)


def zero_pattern(model: ir.Model, keep: int, of: int, excluded: Excluded) -> list[LayerReport]:
    """Of every few weights in a row along the summed axis, the largest are kept: 2 of 4, as some hardware skips."""

    def mask(weight: Array, axis: int) -> Array:
        rows = np.moveaxis(np.abs(weight.astype(np.float64)), axis, -1)
        whole = rows.shape[-1] // of * of  # what is left over at the end is kept
        runs = rows[..., :whole].reshape(*rows.shape[:-1], -1, of)
        order = np.argsort(-runs, axis=-1, kind="stable")
        kept = np.ones(runs.shape, bool)
        np.put_along_axis(kept, order[..., keep:], False, -1)
        full = np.ones(rows.shape, bool)
        full[..., :whole] = kept.reshape(*rows.shape[:-1], whole)
        return np.moveaxis(full, -1, axis)

    return _zero(model, mask, excluded)


def _zero(
    model: ir.Model, mask: Callable[[Array, int], Array], excluded: Excluded
) -> list[LayerReport]:
    reports: dict[ir.Value, LayerReport] = {}
    for node, value, weight in _weights(model):
        if value in reports:
            continue  # tied weights are pruned once
        before, why = int(np.count_nonzero(weight)), excluded(node)
        after = before
        if not why:
            pruned = np.where(mask(weight, _summed_axis(node)), weight, weight.dtype.type(0))
            value.const_value = ir.tensor(pruned, name=value.name)
            after = int(np.count_nonzero(pruned))
        reports[value] = LayerReport(
            describe(node), node.op_type, before, after, why, source_line(node)
        )
    return list(reports.values())


def factorize(model: ir.Model, share: float, excluded: Excluded) -> list[LayerReport]:
    """MatMul and Gemm by a constant matrix, as two by thinner ones, where that is less work.

    The rank is what leaves `1 - share` of the multiply-adds.
    """
    reports = []
    for node, value, weight in list(_weights(model)):
        if node.op_type not in ("MatMul", "Gemm") or weight.ndim != 2:
            continue
        turned = node.op_type == "Gemm" and bool(_int(node, "transB"))
        matrix = weight.T if turned else weight
        full = min(matrix.shape)
        rank = int((1 - share) * matrix.size / sum(matrix.shape))
        why = excluded(node) or _obstacle(node, value, rank)
        if not why:
            left, right = _factors(matrix, rank)
            _write(node, left, right.T if turned else right)
        found = describe(node), node.op_type, full, full if why else rank, why, source_line(node)
        reports.append(LayerReport(*found))
    return reports


def _obstacle(node: ir.Node, value: ir.Value, rank: int) -> str:
    if rank < 1:
        return "too small to be factorized"
    if node.op_type == "Gemm" and _int(node, "transA"):
        return "its first operand is transposed"
    return "" if len(value.uses()) == 1 else f"{value.name!r} is read elsewhere too"


def _factors(matrix: Array, rank: int) -> tuple[Array, Array]:
    """The nearest product of that rank, by the eigenvectors of the smaller Gram matrix: what is lost to its square lies
    far below the singular values that are kept."""
    if matrix.shape[0] < matrix.shape[1]:
        left, right = _factors(matrix.T, rank)
        return right.T, left.T
    wide = matrix.astype(np.float64)
    _, vectors = np.linalg.eigh(wide.T @ wide)
    kept = vectors[:, ::-1][:, :rank]
    left = wide @ kept
    balance = np.sqrt(np.linalg.norm(left, axis=0))
    balance[balance == 0.0] = 1.0
    return (left / balance).astype(matrix.dtype), (kept * balance).T.astype(matrix.dtype)


def _write(node: ir.Node, left: Array, right: Array) -> None:
    """`node` multiplies by the right factor, and a MatMul before it by the left one."""
    graph, (x, weight) = node.graph, node.inputs[:2]
    assert isinstance(graph, ir.Graph)
    assert x is not None
    assert weight is not None
    thin = _constant(graph, f"{weight.name}.left", left, weight)
    before = ir.Node("", "MatMul", [x, thin], name=f"{node.name or weight.name}.left")
    before.outputs[0].name = f"{node.outputs[0].name}.left"
    graph.insert_before(node, before)
    node.replace_input_with(0, before.outputs[0])
    node.replace_input_with(1, _constant(graph, f"{weight.name}.right", right, weight))


def _constant(graph: ir.Graph, name: str, array: Array, like: ir.Value) -> ir.Value:
    tensor = ir.tensor(np.ascontiguousarray(array), name=name)
    value = ir.Value(name=name, type=like.type, shape=ir.Shape(array.shape), const_value=tensor)
    graph.register_initializer(value)
    return value


def _weights(model: ir.Model) -> Iterator[tuple[ir.Node, ir.Value, Array]]:
    for node in model.graph:
        if node.op_type in _LAYERS and len(node.inputs) > 1 and (value := node.inputs[1]):
            weight = constant_of(value)
            if weight is not None and weight.ndim > 1 and weight.dtype.kind == "f":
                yield node, value, weight


def _summed_axis(node: ir.Node) -> int:
    if node.op_type in ("Conv", "Gemm") and (node.op_type == "Conv" or _int(node, "transB")):
        return 1
    return 0 if node.op_type != "MatMul" else -2


def _int(node: ir.Node, name: str) -> int:
    found = node.attributes.get(name)
    return 0 if found is None else found.as_int()
