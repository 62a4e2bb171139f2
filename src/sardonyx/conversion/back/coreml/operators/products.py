"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.conversion.back.coreml.network import Array
from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.ops.facts import Shape
from sardonyx.sizes import Size, product

__all__ = ["ENTRIES", "inner"]

_ROWS = 3  # axes of what innerProduct takes along its last axis


def inner(step: Step, blob: str, rank: int, weight: Array, bias: Array | None = None) -> str:
    """`blob @ weight + bias`, of a constant matrix [inputs, outputs]."""
    inputs, outputs = weight.shape
    shared = {} if bias is None else {"hasBias": True, "bias": bias}
    if rank <= _ROWS:
        return step.layer(
            "innerProduct",
            blob,
            inputChannels=inputs,
            outputChannels=outputs,
            weights=weight.T,
            **shared,
        )
    # In the order of columns, as the specification has it.
    return step.layer(
        "batchedMatmul",
        blob,
        weightMatrixFirstDimension=inputs,
        weightMatrixSecondDimension=outputs,
        weights=weight.T,
        **shared,
    )


def matmul(step: Step) -> str:
    left, right = step.rank(0), step.rank(1)
    weight = step.numbers(1) if right == 2 else None
    if weight is not None:
        return inner(step, step[0], left, weight.astype(np.float32))
    a = step.expand_dims(step[0], [0]) if left == 1 else step[0]
    b = step.expand_dims(step[1], [1]) if right == 1 else step[1]
    made = step.layer("batchedMatmul", a, b)
    if left > 1 and right > 1:
        return made
    shape = step.output_shape()
    last = ((1,) if left == 1 else ()) + ((1,) if right == 1 else ())
    whole: Shape = (*shape, *last) if right == 1 else (*shape[:-1], 1, *shape[-1:])
    return step.reshape(made, whole, shape)


def gemm(step: Step) -> str:
    """alpha·A·B + beta·C."""
    alpha, beta = step.number("alpha", 1.0), step.number("beta", 1.0)
    a = step.transpose(step[0], (1, 0)) if step.flag("transA") else step[0]
    weight = step.numbers(1)
    if weight is None:
        made = step.layer("batchedMatmul", a, step[1], transposeB=step.flag("transB"))
        made = step.scaled(made, alpha)
        return _with_bias(step, made, beta)
    matrix = alpha * (weight.T if step.flag("transB") else weight).astype(np.float32)
    bias = step.numbers(2) if step.has(2) else None
    if bias is not None and bias.size == matrix.shape[1] and bias.shape[-1:] == matrix.shape[1:]:
        return inner(step, a, 2, matrix, beta * bias.astype(np.float32).reshape(-1))
    return _with_bias(step, inner(step, a, 2, matrix), beta)


def _with_bias(step: Step, made: str, beta: float) -> str:
    if not step.has(2):
        return made
    return step.layer("addBroadcastable", made, step.scaled(step[2], beta))


def einsum(step: Step) -> str:
    """Operand after operand: letters that nothing behind asks for are summed in a product of matrices."""
    equation = step.call.str_attr("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    plain = all(one.isalpha() for one in equation.replace("->", "").replace(",", ""))
    if not plain or any(len(set(term)) != len(term) for term in terms) or len(terms) != step.count:
        step.refuse("its equation has ellipses or takes diagonals")
    if not arrow:
        result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    sizes = {
        letter: size
        for index, term in enumerate(terms)
        for letter, size in zip(term, step.shape(index), strict=True)
    }
    blob, letters = step[0], terms[0]
    for index in range(1, step.count):
        later = set(result).union(*terms[index + 1 :])
        blob, letters = _contract(step, (blob, letters), (step[index], terms[index]), later, sizes)
    gone = [place for place, letter in enumerate(letters) if letter not in result]
    if gone:
        blob = step.layer("reduceSum", blob, axes=gone, keepDims=True)
        kept = "".join(letter for letter in letters if letter in result)
        ones = tuple(1 if c not in result else sizes[c] for c in letters)
        blob = step.reshape(blob, ones, tuple(sizes[c] for c in kept))
        letters = kept
    return step.transpose(blob, [letters.index(letter) for letter in result])


def _contract(
    step: Step,
    one: tuple[str, str],
    other: tuple[str, str],
    later: set[str],
    sizes: Mapping[str, Size],
) -> tuple[str, str]:
    """Two operands as one: [both…, left, inner] times [both…, inner, right]."""
    (a, left), (b, right) = one, other
    both = [c for c in left if c in right and c in later]
    summed = [c for c in left if c in right and c not in later]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]

    def arranged(blob: str, letters: str, *groups: list[str]) -> str:
        order = [*both, *(c for group in groups for c in group)]
        turned = step.transpose(blob, [letters.index(c) for c in order])
        before = tuple(sizes[c] for c in order)
        after = (*(sizes[c] for c in both), *(product([sizes[c] for c in g]) for g in groups))
        return step.reshape(turned, before, after)

    made = step.layer(
        "batchedMatmul", arranged(a, left, rows, summed), arranged(b, right, summed, columns)
    )
    flat = (
        *(sizes[c] for c in both),
        product([sizes[c] for c in rows]),
        product([sizes[c] for c in columns]),
    )
    letters = "".join([*both, *rows, *columns])
    return step.reshape(made, flat, tuple(sizes[c] for c in letters)), letters


ENTRIES: Mapping[str, Entry] = {"Einsum": einsum, "Gemm": gemm, "MatMul": matmul}
