"""Reductions, arg-reductions and running sums.

A reduction is three lines: where it starts, what an element adds, and what the end makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.nodes import Const, Dtype, Expr, apply, const
from sardonyx.loops.operations import INTEGERS, UNSIGNED
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.ops.axes import reduced_axes
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.folding import Cell, Folding
from sardonyx.ops.lowerings.late_axes import LateFolding
from sardonyx.sizes import Size

__all__ = ["ARG", "REDUCTIONS", "RUNNING", "extreme_index", "largest", "lowest"]


@dataclass(frozen=True)
class Fold:
    """finish(start + step(x) + step(x) + …), with `join` for the plus.

    Attributes:
        dtype: the type of the sum, from the type of the elements to compute with.
    """

    step: Callable[[Expr], Expr]
    join: Callable[[Expr, Expr], Expr]
    start: Callable[[Dtype], Const]
    finish: Callable[[Site, Expr, Size], Expr]
    dtype: Callable[[Dtype], Dtype]


def lowest(dtype: Dtype) -> Const:
    """What every element is at least."""
    if dtype in INTEGERS:
        return const(int(np.iinfo(NUMPY_TYPES[dtype]).min), dtype)
    return const(dtype != "bool" and -math.inf, dtype)


def highest(dtype: Dtype) -> Const:
    if dtype in INTEGERS:
        return const(int(np.iinfo(NUMPY_TYPES[dtype]).max), dtype)
    return const(dtype == "bool" or math.inf, dtype)


def _larger(a: Expr, b: Expr) -> Expr:
    return a | b if a.dtype == "bool" else maximum(a, b)


def _smaller(a: Expr, b: Expr) -> Expr:
    return a & b if a.dtype == "bool" else minimum(a, b)


def _number(value: int) -> Callable[[Dtype], Const]:
    return lambda dtype: const(value, dtype)


def _itself(dtype: Dtype) -> Dtype:
    return dtype


def _real(dtype: Dtype) -> Dtype:
    """Roots and logarithms of integers are taken in f64."""
    return "f64" if dtype in INTEGERS else dtype


def _widest(dtype: Dtype) -> Dtype:
    """The mean of integers divides a sum that cannot wrap before it is divided."""
    return "u64" if dtype in UNSIGNED else "i64" if dtype in INTEGERS else dtype


def _done(site: Site, total: Expr, size: Size) -> Expr:
    return total


def _mean(site: Site, total: Expr, size: Size) -> Expr:
    return total / cast(site.b.size(size), total.dtype)


def _log(site: Site, total: Expr, size: Size) -> Expr:
    return apply("log", cast(total, _real(total.dtype)))


def _root(site: Site, total: Expr, size: Size) -> Expr:
    return apply("sqrt", total)


def _sum(a: Expr, b: Expr) -> Expr:
    return a + b


def _sum_of(
    step: Callable[[Expr], Expr] = lambda v: v,
    finish: Callable[[Site, Expr, Size], Expr] = _done,
    dtype: Callable[[Dtype], Dtype] = _itself,
) -> Fold:
    return Fold(step, _sum, _number(0), finish, dtype)


FOLDS: dict[str, Fold] = {
    "ReduceSum": _sum_of(),
    "ReduceMean": _sum_of(finish=_mean, dtype=_widest),
    "ReduceL1": _sum_of(lambda v: v if v.dtype in UNSIGNED else apply("abs", v)),
    "ReduceL2": _sum_of(lambda v: v * v, _root, _real),
    "ReduceSumSquare": _sum_of(lambda v: v * v),
    "ReduceLogSum": _sum_of(finish=_log),
    "ReduceProd": Fold(lambda v: v, lambda a, b: a * b, _number(1), _done, _itself),
    "ReduceMax": Fold(lambda v: v, _larger, lowest, _done, _itself),
    "ReduceMin": Fold(lambda v: v, _smaller, highest, _done, _itself),
}


def _folding(site: Site) -> tuple[Folding, Callable[[Position], Position]]:
    """The sets of a Reduce operator, and where in the result the fold of one belongs."""
    shape = site.shape(0)
    axes = reduced_axes(site.call, len(shape))
    if axes is None:
        late = LateFolding(site)
        return late, lambda position: late.result
    folding = Folding(site.b, shape, axes, site.input_order(0))
    if site.call.int_attr("keepdims", 1):
        return folding, lambda position: position
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    return folding, lambda position: tuple(position[axis] for axis in kept)


def _reduce(rule: Fold) -> Nest:
    def build(site: Site) -> None:
        folding, result = _folding(site)
        dtype = rule.dtype(_computed(site.dtype(0)))
        if rule.finish is _mean and dtype in INTEGERS:
            _refuse_empty(site, folding.size, "the mean of no integers")

        def term(position: Position) -> Expr:
            return rule.step(site.b.let(cast(site.operand(0, position), dtype)))

        with folding.sets():
            if rule.join is _sum:
                total = folding.sum(dtype, term)
            else:
                total = folding.fold(
                    rule.start(dtype), lambda so_far, at: rule.join(so_far, term(at))
                )

            def store(position: Position) -> None:
                site.store(result(position), rule.finish(site, total.get(), folding.size))

            folding.for_sets(store)

    return Nest(build, reads_once=True)


def _computed(dtype: Dtype) -> Dtype:
    return "f32" if dtype in ("f16", "bf16") else dtype


def _refuse_empty(site: Site, size: Size, reason: str) -> None:
    if isinstance(size, int) and size:
        return
    size_now = site.b.size(size)
    site.b.fail_if(apply("eq", size_now, 0), reason, size_now)


def _log_sum_exp(site: Site) -> None:
    """The largest element leaves the exponentials, so that they do not overflow."""
    folding, result = _folding(site)
    dtype = _real(_computed(site.dtype(0)))

    def read(position: Position) -> Expr:
        return cast(site.operand(0, position), dtype)

    with folding.sets(work=16):
        top = largest(folding, read, dtype)
        shift = folding.derive(dtype, lambda position: _finite(top.get()))
        total = folding.sum(dtype, lambda at: apply("exp", read(at) - shift.get()))
        folding.for_sets(lambda at: site.store(result(at), apply("log", total.get()) + shift.get()))


def _finite(value: Expr) -> Expr:
    """The value, or 0 where it is infinite or NaN; the exponentials then say so themselves."""
    return where(apply("eq", value - value, 0), value, 0)


def largest(folding: Folding, read: Callable[[Position], Expr], dtype: Dtype) -> Cell:
    return folding.fold(lowest(dtype), lambda top, at: maximum(top, read(at)))


def extreme_index(
    site: Site,
    folding: Folding,
    *,
    find_largest: bool = True,
    last: bool = False,
) -> Cell:
    """The number, within its set, of the first or last element that no other beats.

    Two passes that both vectorise: the extreme itself (NaN beats all), then where it is.
    """
    dtype = _computed(site.dtype(0))
    start, pick = (lowest, maximum) if find_largest else (highest, minimum)
    best = folding.fold(start(dtype), lambda top, at: pick(top, site.operand(0, at)))

    def matches(value: Expr) -> Expr:
        same = apply("eq", value, best.get())
        return same if dtype in INTEGERS else same | apply("isnan", value)

    nowhere = const(0, "i64") if last else site.b.size(folding.size)
    choose = maximum if last else minimum

    def find(found: Expr, at: Position) -> Expr:
        number = site.b.size(folding.flat(at))
        return choose(found, where(matches(site.operand(0, at)), number, nowhere))

    return folding.fold(nowhere, find)


def _arg(find_largest: bool) -> Nest:
    def build(site: Site) -> None:
        shape = site.shape(0)
        axis = site.call.axis(site.call.int_attr("axis"), len(shape))
        keep = bool(site.call.int_attr("keepdims", 1))
        _refuse_empty(site, shape[axis], "an axis of size {value} has no extreme element")
        folding = Folding(site.b, shape, (axis,), site.input_order(0))
        with folding.sets(work=2):
            last = bool(site.call.int_attr("select_last_index"))
            index = extreme_index(site, folding, find_largest=find_largest, last=last)

            def store(position: Position) -> None:
                result = position if keep else position[:axis] + position[axis + 1 :]
                site.store(result, index.get())

            folding.for_sets(store)

    return Nest(build)


def _running(neutral: int, join: Callable[[Expr, Expr], Expr]) -> Nest:
    """out[k] is the sum, or product, of the elements up to k, or after it where reversed."""

    def build(site: Site) -> None:
        rank, axes = len(site.shape(0)), site.call.integers(1)
        if axes:
            along(site, site.call.axis(axes[0], rank))
            return
        given = site.b.let(cast(site.read(1, (0,) * len(site.shape(1))), "i64"))
        outside = (given < -rank) | (given >= rank)
        reason = "axis {value} is outside the rank {limit}"
        site.b.fail_if(outside, reason, given, rank)
        for axis in range(rank):
            with site.b.when(apply("eq", given, axis) | apply("eq", given, axis - rank)):
                along(site, axis)

    def along(site: Site, axis: int) -> None:
        shape = site.shape(0)
        reverse = bool(site.call.int_attr("reverse"))
        exclusive = bool(site.call.int_attr("exclusive"))
        folding = Folding(site.b, shape, (axis,), site.input_order(0))

        def step(total: Expr, position: Position) -> Expr:
            at = list(position)
            if reverse:
                at[axis] = shape[axis] - 1 - at[axis]
            joined = site.b.let(join(total, site.operand(0, at)))
            site.store(at, total if exclusive else joined)
            return joined

        with folding.sets():
            folding.fold(const(neutral, _computed(site.dtype(0))), step, kind="serial")

    return Nest(build, reads_once=True)


REDUCTIONS: dict[str, Nest] = {
    **{name: _reduce(rule) for name, rule in FOLDS.items()},
    "ReduceLogSumExp": Nest(_log_sum_exp),
}
ARG = {"ArgMax": _arg(True), "ArgMin": _arg(False)}
RUNNING = {
    "CumSum": _running(0, lambda a, b: a + b),
    "CumProd": _running(1, lambda a, b: a * b),
}
