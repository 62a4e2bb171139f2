"""A value as a sum of products with constant matrices, and of constant rows: whatever nodes an exporter wrote it with.

    Add(Gemm(x, W, b), MatMul(h, R))[:, 4:8]    →   x · W[:, 4:8] + h · R[:, 4:8] + b[4:8]

Products of values that lie side by side are taken apart: [x h] · M is x · M[:n] + h · M[n:].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rules.slices import parts_of_split

__all__ = ["Array", "LinearSum", "Matrix", "linear_sum"]

Array = npt.NDArray[Any]
_MOST_TERMS = 16
_DEEPEST = 16
_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0}


@dataclass(frozen=True)
class Matrix:
    """Some rows and columns of a constant matrix; equal where they are the same part of the same constant."""

    constant: ir.Value
    is_turned: bool
    rows: tuple[int, int]
    columns: tuple[int, int]

    def array(self, draft: Draft) -> Array | None:
        """Its elements, the other way round: a row for each output."""
        whole = draft.constant(self.constant)
        if whole is None:
            return None
        whole = whole if self.is_turned else whole.T
        return whole[slice(*self.columns), slice(*self.rows)]


@dataclass(frozen=True)
class LinearSum:
    """A sum of two axes.

    Attributes:
        products: what is multiplied with which matrix.
        offset: what is added to each column, in float64.
        nodes: that compute it.
    """

    products: tuple[tuple[ir.Value, Matrix], ...]
    offset: Array
    nodes: tuple[ir.Node, ...]


def linear_sum(value: ir.Value | None, draft: Draft) -> LinearSum | None:
    """The sum that a value is; None where it is not one, or larger than any exporter writes it."""
    shape = draft.shape(value)
    if shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        return None
    return _Reading(draft).columns(value, (0, shape[1]), 0)


class _Reading:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def columns(
        self, value: ir.Value | None, wanted: tuple[int, int], depth: int
    ) -> LinearSum | None:
        """The sum that some columns of a value are."""
        offset = self._offset(value, wanted)
        if offset is not None:
            return LinearSum((), offset, ())
        node = None if value is None else value.producer()
        if node is None or value is None or normal_domain(node.domain) or depth > _DEEPEST:
            return None
        match node.op_type:
            case "Split":
                return self._part(node, value, wanted, depth)
            case "Add" if self.draft.opset >= 7:
                terms = [self._broadcast(term, node, wanted, depth + 1) for term in node.inputs]
                return _together(terms, wanted, node)
            case "MatMul" | "Gemm":
                return self._product(node, wanted, depth)
        return None

    def _offset(self, value: ir.Value | None, wanted: tuple[int, int]) -> Array | None:
        """Columns of a constant whose rows are all the same."""
        constant = self.draft.constant(value) if self.draft.is_constant(value) else None
        if constant is None or constant.dtype != np.float32 or constant.size == 0:
            return None
        if constant.ndim > 2 or (constant.ndim == 2 and (constant != constant[:1]).any()):
            return None
        row = constant.reshape(-1)[: constant.shape[-1]] if constant.ndim else constant.reshape(1)
        if row.size == 1:
            return np.full(wanted[1] - wanted[0], row[0], np.float64)
        return row[slice(*wanted)].astype(np.float64)

    def _broadcast(
        self, term: ir.Value | None, node: ir.Node, wanted: tuple[int, int], depth: int
    ) -> LinearSum | None:
        """A term of an Add, which must have the whole shape unless it is constant."""
        found = self.columns(term, wanted, depth)
        if found is None or not found.products:
            return found
        same = self.draft.shape(term) == self.draft.shape(node.outputs[0])
        return found if same else None

    def _part(
        self, node: ir.Node, value: ir.Value, wanted: tuple[int, int], depth: int
    ) -> LinearSum | None:
        found = parts_of_split(node, self.draft)
        if found is None or found[0] != 1:
            return None
        begin = found[1][list(node.outputs).index(value)]
        whole = self.columns(node.inputs[0], (begin + wanted[0], begin + wanted[1]), depth + 1)
        return None if whole is None else _together([whole], wanted, node)

    def _product(self, node: ir.Node, wanted: tuple[int, int], depth: int) -> LinearSum | None:
        draft = self.draft
        left, right = node.inputs[:2]
        if draft.rank(left) != 2 or draft.rank(right) != 2 or not draft.is_constant(right):
            return None
        is_gemm = node.op_type == "Gemm"
        if is_gemm and any(draft.attribute(node, key, one) != one for key, one in _PLAIN.items()):
            return None
        is_turned = is_gemm and bool(draft.attribute(node, "transB", 0))
        shape = draft.shape(right)
        rows = None if shape is None else shape[1 if is_turned else 0]
        if left is None or right is None or not isinstance(rows, int):
            return None
        terms = [
            LinearSum(
                ((part, Matrix(right, is_turned, between, wanted)),),
                np.zeros(wanted[1] - wanted[0]),
                inside,
            )
            for part, between, inside in self._side_by_side(left, rows)
        ]
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        added = [] if bias is None else [self._broadcast(bias, node, wanted, depth + 1)]
        return _together([*terms, *added], wanted, node)

    def _side_by_side(
        self, left: ir.Value, rows: int
    ) -> list[tuple[ir.Value, tuple[int, int], tuple[ir.Node, ...]]]:
        """The values that one consists of, and the rows of the matrix that they are multiplied with."""
        joined = self.draft.made_by(left, "Concat")
        if joined is None or self.draft.attribute(joined, "axis", 1) not in (1, -1):
            return [(left, (0, rows), ())]
        parts: list[tuple[ir.Value, tuple[int, int], tuple[ir.Node, ...]]] = []
        begin = 0
        for part in joined.inputs:
            shape = self.draft.shape(part)
            size = None if shape is None else shape[1]
            if part is None or not isinstance(size, int):
                return [(left, (0, rows), ())]
            parts.append((part, (begin, begin + size), (joined,)))
            begin += size
        return parts


def _together(
    terms: Iterable[LinearSum | None], wanted: tuple[int, int], node: ir.Node
) -> LinearSum | None:
    """The sum of some, which a node computes."""
    products: list[tuple[ir.Value, Matrix]] = []
    offset = np.zeros(wanted[1] - wanted[0])
    nodes: dict[ir.Node, None] = {node: None}
    for term in terms:
        if term is None:
            return None
        products += term.products
        offset = offset + term.offset
        nodes.update(dict.fromkeys(term.nodes))
    return (
        LinearSum(tuple(products), offset, tuple(nodes)) if len(products) <= _MOST_TERMS else None
    )
