"""Einsum as a batched matrix product.

    bhid,bhjd->bhij      batch b, h    rows i    columns j    inner d
    nctv,cvw->ntw        batch n       rows t    columns w    inner c, v: no matrix as it lies
    ij->ji, ii->i        no product of two: a batch of sums, one for each element of the result

A label is a letter, or the number of a dimension under `...`, counted from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, const
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Contraction, Parts, Position, Product, Site
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.sizes import Size, product

__all__ = ["einsum_product"]

Label: TypeAlias = "str | int"
Labels: TypeAlias = tuple[Label, ...]
# The operands' terms, the result's, the letters' sizes, and the dimensions under `...`.
Parsed: TypeAlias = tuple[Sequence[str], str, Mapping[str, Size], Shape]


@dataclass(frozen=True)
class Equation:
    """The labels of every operand's and the result's dimensions, and their sizes."""

    operands: tuple[Labels, ...]
    result: Labels
    sizes: Mapping[Label, Size]

    def inner(self) -> Labels:
        """What is summed over, in the order of appearance."""
        named = dict.fromkeys(label for operand in self.operands for label in operand)
        return tuple(label for label in named if label not in self.result)

    def of(self, operand: int) -> Labels:
        """The labels that an operand varies along."""
        return tuple(label for label in self.operands[operand] if self.sizes[label] != 1)

    def shape(self, labels: Labels) -> tuple[Size, ...]:
        return tuple(self.sizes[label] for label in labels)


def _term(text: str, dots: int) -> Labels:
    before, found, after = text.partition("...")
    return (*before, *(range(-dots, 0) if found else ()), *after)


def _equation(site: Site, parsed: Parsed) -> Equation:
    """The equation with `...` written out; sizes of 1 stretch to those of the same label."""
    terms, result, letters, hidden = parsed
    operands = []
    for index, term in enumerate(terms):
        dots = len(site.shape(index)) - len(term.replace("...", ""))
        operands.append(_term(term, dots))
    sizes: dict[Label, Size] = dict(letters.items())
    sizes |= {axis - len(hidden): size for axis, size in enumerate(hidden)}
    return Equation(tuple(operands), _term(result, len(hidden)), sizes)


def _describe(site: Site, parse: Callable[[Site], Parsed]) -> Contraction:
    equation = _equation(site, parse(site))
    split = _as_product(equation)
    if split is not None:
        return _contraction(site, equation, *split)
    inner = equation.inner()
    if len(equation.operands) > 2 and len(inner) > 1:
        site.refuse("a product of three operands or more is worked out in steps")
    return _sums(site, equation, inner)


def _as_product(equation: Equation) -> tuple[Labels, Labels, Labels, Labels] | None:
    """Batch, row, column and inner labels; None where it is no product of two operands."""
    if len(equation.operands) != 2:
        return None
    left, right = equation.of(0), equation.of(1)
    shared = [label for label in left if label in right]
    summed = [label for label in right if label in shared and label not in equation.result]
    if not _side_by_side(right, summed):
        summed = [label for label in shared if label not in equation.result]
    inner = tuple(dict.fromkeys(summed))
    alone = [label for label in (*left, *right) if label not in shared]
    if any(label not in equation.result for label in alone):
        return None
    rows = _run(left, [label for label in left if label not in right])
    columns = _run(right, [label for label in right if label not in left])
    taken = {*rows, *columns}
    varies = [label for label in equation.result if equation.sizes[label] != 1]
    batch = tuple(label for label in varies if label not in taken)
    return batch, rows, columns, inner


def _side_by_side(operand: Labels, labels: Sequence[Label]) -> bool:
    """Whether that is how an operand has them: those of the second one are weights most often, which stay as they are."""
    return any(
        operand[at : at + len(labels)] == tuple(labels)
        for at in range(len(operand) - len(labels) + 1)
    )


def _run(operand: Labels, own: Sequence[Label]) -> Labels:
    """The last of an operand's own labels that lie side by side: they are one dimension."""
    run = 0
    while run < len(own):
        tail = tuple(own[len(own) - run - 1 :])
        start = operand.index(tail[0])
        if operand[start : start + len(tail)] != tail or operand.count(tail[0]) > 1:
            break
        run += 1
    return tuple(own[len(own) - run :])


def _contraction(
    site: Site, equation: Equation, batch: Labels, rows: Labels, columns: Labels, inner: Labels
) -> Contraction:
    def places(labels: Labels, at: Size) -> dict[Label, Size]:
        shape = equation.shape(labels)
        return dict(zip(labels, unflatten(at, shape, site.b.ranges), strict=True))

    def reader(operand: int, first: Labels, second: Labels) -> Callable[..., Expr]:
        def read(at: Position, m: Size, k: Size) -> Expr:
            where = dict(zip(batch, at, strict=True)) | places(first, m) | places(second, k)
            return _read(site, equation, operand, where)

        return read

    def position(at: Position, m: Size, n: Size) -> Position:
        where = dict(zip(batch, at, strict=True)) | places(rows, m) | places(columns, n)
        return tuple(where.get(label, 0) for label in equation.result)

    def along(operand: int) -> tuple[int, ...]:
        """Which of the batch's labels the operand has, those left out that it has once for all."""
        sizes = zip(equation.operands[operand], site.shape(operand), strict=True)
        own = {label for label, size in sizes if size != 1}
        return tuple(number for number, label in enumerate(batch) if label in own)

    parts = Parts(
        equation.shape(rows), equation.shape(inner), equation.shape(columns), (along(0), along(1))
    )
    return Contraction(
        batch=equation.shape(batch),
        rows=product(parts.rows),
        columns=product(parts.columns),
        inner=product(parts.inner),
        dtype=sum_dtype(site.dtype(0)),
        a=reader(0, rows, inner),
        b=reader(1, inner, columns),
        finish=lambda at, m, n, total: total,
        out=position,
        parts=parts,
    )


def _read(site: Site, equation: Equation, operand: int, where: Mapping[Label, Size]) -> Expr:
    labels, shape = equation.operands[operand], site.shape(operand)
    at = tuple(where[label] if equation.sizes[label] != 1 else 0 for label in labels)
    return site.operand(operand, site.spread(shape, at, equation.shape(labels)))


def _sums(site: Site, equation: Equation, inner: Labels) -> Contraction:
    """A sum of its own for every element of the result."""
    result, dtype = equation.result, sum_dtype(site.dtype(0))

    def read(at: Position, m: Size, k: Size) -> Expr:
        summed = unflatten(k, equation.shape(inner), site.b.ranges)
        where = dict(zip((*result, *inner), (*at, *summed), strict=True))
        factors = [_read(site, equation, n, where) for n in range(len(equation.operands))]
        return reduce(lambda a, b: a * b, factors)

    return Contraction(
        batch=equation.shape(result),
        rows=1,
        columns=1,
        inner=product(equation.shape(inner)),
        dtype=dtype,
        a=read,
        b=lambda at, k, n: const(1, dtype),
        finish=lambda at, m, n, total: total,
        out=lambda at, m, n: at,
    )


def einsum_product(parse: Callable[[Site], Parsed]) -> Product:
    """The lowering of Einsum, by its parser."""
    return Product(lambda site: _describe(site, parse))
