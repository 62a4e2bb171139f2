"""Einsum as the operators that it stands for, where that is one product with at most one Transpose.

Einsum<"bij,bjk->bik">(x, y)        →   MatMul(x, y)
Einsum<"bhqd,bhkd->bhqk">(q, k)     →   MatMul(q, Transpose(k))
Einsum<"ij->ji">(x)                 →   Transpose(x)
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES"]

_TYPES = (
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
    ir.DataType.FLOAT16,
    ir.DataType.INT32,
    ir.DataType.INT64,
)
_MOST_TRANSPOSES = 1  # of values; a constant is turned before the run


def _letters(equation: str, inputs: int) -> tuple[list[str], str] | None:
    """The letters of every input and of the output; None for ellipses, diagonals and what is not one."""
    plain = equation.replace(" ", "")
    left, arrow, right = plain.partition("->")
    terms = left.split(",")
    if len(terms) != inputs or not all(c.isalpha() or c in ",->" for c in plain):
        return None
    if any(len(set(term)) != len(term) for term in (*terms, right)):
        return None
    if not arrow:  # letters that appear once, in the order of the alphabet
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    return (terms, right) if set(right) <= set(left) else None


@rule("Einsum", bound=ROUNDED)
def einsum_as_product(node: ir.Node, draft: Draft) -> Outcome:
    """Einsum of two inputs that is a product of matrices is MatMul, of one input Transpose."""
    found = _letters(str(draft.attribute(node, "equation", "")), len(node.inputs))
    if found is None:
        return Refusal("the equation has ellipses or takes diagonals")
    terms, result = found
    ranks = [draft.rank(value) for value in node.inputs]
    if ranks != [len(term) for term in terms]:
        return Refusal("the ranks of its inputs are not known")
    if draft.dtype(node.outputs[0]) not in _TYPES:
        return None
    if len(terms) == 1:
        if sorted(terms[0]) != sorted(result):
            return Refusal("it takes a sum of one input")
        return _turned(node.inputs[0], terms[0], result, draft)
    if len(terms) != 2:
        return Refusal(f"it takes {len(terms)} inputs")
    return _product(node, terms, result, draft)


def _product(node: ir.Node, terms: list[str], result: str, draft: Draft) -> Outcome:
    first, second = (set(term) for term in terms)
    batch = [c for c in result if c in first and c in second]
    summed = [c for c in terms[0] if c in second and c not in result]
    rows = [c for c in result if c in first and c not in second]
    columns = [c for c in result if c in second and c not in first]
    if (first ^ second) - set(result):
        return Refusal("it takes a sum of one input")
    if len(summed) != 1 or len(columns) != 1 or not (len(rows) == 1 or (rows and not batch)):
        return Refusal("it is not a product of matrices")
    shapes = [draft.shape(value) for value in node.inputs]
    for letter in (*batch, *summed):
        sizes = [
            shape[term.index(letter)]
            for shape, term in zip(shapes, terms, strict=True)
            if shape is not None
        ]
        if len(sizes) < 2 or sizes[0] != sizes[1]:
            return Refusal(f"the sizes of {letter!r} are not known to be equal")
    orders = [[*batch, *rows, *summed], [*batch, *summed, *columns]]
    made = [*batch, *rows, *columns]
    turns = sum(
        list(term) != order and not draft.is_constant(value)
        for term, order, value in zip(terms, orders, node.inputs, strict=True)
    )
    if turns + (made != list(result)) > _MOST_TRANSPOSES:
        return Refusal("it would take more than one Transpose")
    values = [
        _turned(value, term, "".join(order), draft)
        for value, term, order in zip(node.inputs, terms, orders, strict=True)
    ]
    return _turned(draft.call("MatMul", *values), "".join(made), result, draft)


def _turned(value: ir.Value | None, term: str, wanted: str, draft: Draft) -> ir.Value:
    """A value whose axes have these letters, in another order."""
    assert value is not None, "an input of Einsum"
    if term == wanted:
        return value
    return draft.call("Transpose", value, perm=[term.index(letter) for letter in wanted])


RULES = (einsum_as_product,)
