"""Products with bias that stand side by side on one input of many axes, as of queries, keys and values: Gemms of its rows.

Where each is reshaped next, only the shared input needs a Reshape more, and every bias is part of a Gemm. This comes last:
rules for attention look for the products as they were.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES"]

_GEMM_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16})


class _Product(NamedTuple):
    rows: ir.Value
    weight: ir.Value
    bias: ir.Value
    width: int  # of a row


@rule("Reshape", bound=ROUNDED)
def products_of_rows(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul, Add and Reshape, several on one input, are Gemms of its rows."""
    found = _product(node, draft)
    if found is None:
        return None
    flat = _flat(found.rows, draft)
    if flat is None and _count(found.rows, draft) < 2:
        return Refusal("it is the only product of its input that is reshaped")
    shape = draft.shape(node.outputs[0])
    if shape is None or sum(not isinstance(size, int) for size in shape) > 1:
        return Refusal("more than one size of the result is known only in the run")
    if 0 in shape:
        return Refusal("the result is empty")
    if flat is None:
        flat = draft.call("Reshape", found.rows, draft.ints([-1, found.width]))
    target = [size if isinstance(size, int) else -1 for size in shape]
    made = draft.call("Gemm", flat, found.weight, found.bias)
    return draft.call("Reshape", made, draft.ints(target))


def _product(node: ir.Node, draft: Draft) -> _Product | None:
    """The parts of Reshape(Add(MatMul(rows, weight), bias)), where nothing else reads a value inside of it."""
    add = draft.made_by(node.inputs[0], "Add")
    if add is None or not draft.is_only_use(add.outputs[0]):
        return None
    for side in (0, 1):
        product = draft.made_by(add.inputs[side], "MatMul")
        bias = add.inputs[1 - side]
        if product is None or bias is None or not draft.is_only_use(product.outputs[0]):
            continue
        rows, weight = product.inputs
        if rows is None or weight is None or draft.dtype(rows) not in _GEMM_TYPES:
            continue
        sizes = draft.shape(weight)
        if sizes is None or len(sizes) != 2 or not isinstance(sizes[0], int) or 0 in sizes:
            continue
        if (draft.rank(rows) or 0) > 2 and draft.shape(bias) == (sizes[1],):
            return _Product(rows, weight, bias, sizes[0])
    return None


def _count(rows: ir.Value, draft: Draft) -> int:
    """How many products of this value would be Gemms."""
    count = 0
    for reader, _ in rows.uses():
        for add, _ in reader.outputs[0].uses() if reader.op_type == "MatMul" else ():
            for last, index in add.outputs[0].uses() if add.op_type == "Add" else ():
                found = _product(last, draft) if last.op_type == "Reshape" and not index else None
                count += found is not None and found.rows is rows
    return count


def _flat(rows: ir.Value, draft: Draft) -> ir.Value | None:
    """The rows that another product of this value reads already."""
    for reader, index in rows.uses():
        if reader.op_type != "Reshape" or reader.domain or index or reader.graph is not rows.graph:
            continue
        made = reader.outputs[0]
        if draft.rank(made) == 2 and any(user.op_type == "Gemm" for user, _ in made.uses()):
            shape, width = draft.shape(made), draft.shape(rows)
            if shape is not None and width is not None and shape[-1] == width[-1]:
                return made
    return None


RULES = (products_of_rows,)
