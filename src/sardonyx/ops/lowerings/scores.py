"""How the classifiers and regressors of ai.onnx.ml turn raw scores into what they put out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.nodes import Const, Expr, apply, const
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size

__all__ = ["TRANSFORMS", "largest_score", "numbers", "store_labels", "store_scores"]

Scores: TypeAlias = Callable[[Size], Expr]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
NO_VOTE = 1e-7  # a score below this counts as none for SOFTMAX_ZERO


def numbers(site: Site, values: Sequence[float], like: Expr | None = None) -> Scores:
    """Constants of the model by number, in the type of `like` (f32 without one)."""
    dtype = "f32" if like is None else like.dtype
    if len(values) == 1:
        return lambda k: const(float(values[0]), dtype)
    table = site.table(np.array(values, np.float64 if dtype == "f64" else np.float32))
    return lambda k: site.b.load(table, k)


def store_scores(
    site: Site, transform: str, row: Size, count: Size, score: Scores, output: int = 0
) -> None:
    """A row of scores, after `post_transform`."""
    b = site.b
    if transform in ("SOFTMAX", "SOFTMAX_ZERO"):
        _store_softmax(site, transform, row, count, score, output)
        return
    change = {"LOGISTIC": lambda v: apply("sigmoid", v), "PROBIT": _probit}.get(transform)
    if change is None and transform not in ("NONE", ""):
        site.refuse(f"post_transform {transform!r} is unknown")
    with b.loop(count, "vector") as k:
        value = b.let(score(k))
        site.store((row, k), value if change is None else change(value), output)


def _store_softmax(
    site: Site, transform: str, row: Size, count: Size, score: Scores, output: int
) -> None:
    b = site.b
    first = b.let(score(0))
    top = b.local(first)
    with b.loop(count, "vector") as k:
        b.set(top, maximum(top, score(k)))

    def exponential(k: Size) -> Expr:
        value = b.let(score(k))
        made = apply("exp", value - top)
        if transform == "SOFTMAX":
            return made
        # A score of 0 stays 0: the class had no vote.
        return where(apply("abs", value) > NO_VOTE, made, value * apply("exp", -top))

    total = b.local(const(0, first.dtype))
    with b.loop(count, "vector") as k:
        b.set(total, total + exponential(k))
    with b.loop(count, "vector") as k:
        share = exponential(k) / where(apply("eq", total, 0), 1, total)
        site.store((row, k), where(apply("eq", total, 0), 0.5, share), output)


def _probit(score: Expr) -> Expr:
    """√2 × erf⁻¹(2 p - 1), by Winitzki's approximation, as every engine computes it."""
    x = 2 * cast(score, "f64") - 1
    log = apply("log", (1 - x) * (1 + x))
    half = 2 / (math.pi * 0.147) + 0.5 * log
    inverse = apply("sign", x) * apply("sqrt", apply("sqrt", half * half - log / 0.147) - half)
    return cast(1.41421356 * inverse, score.dtype)


def largest_score(site: Site, count: Size, score: Scores) -> Expr:
    """The number of the largest score, the first of equals."""
    b = site.b
    top, best = b.local(score(0)), b.local(Const(0, "i64"))
    with b.loop(count) as k:
        value = b.let(score(k))
        b.set(best, where(value > top, b.size(k), best))
        b.set(top, where(value > top, value, top))
    return best


def store_labels(site: Site, labels: Sequence[int], row: Size, chosen: Expr) -> None:
    """The label of the chosen class, as the first output."""
    b = site.b
    if tuple(labels) == tuple(range(len(labels))):
        site.store((row,), chosen)
        return
    table = site.table(np.array(labels, np.int64))
    site.store((row,), b.load(table, b.index(chosen, len(labels))))
