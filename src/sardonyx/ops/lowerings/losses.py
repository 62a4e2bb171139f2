"""The losses of classifiers: each target picks one class's logarithm of a probability.

loss[target] = -log p[class] * weight[class]        then as it is, the sum, or the weighted mean
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.loops.build import cast
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.folding import Folding
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.reductions import largest
from sardonyx.sizes import Size, product

__all__ = ["NEGATIVE_LOG_LIKELIHOOD", "SOFTMAX_CROSS_ENTROPY"]

SCORES, TARGETS, WEIGHTS = range(3)
NO_CLASS = "target {value} is none of {limit} classes"
EXP_WORK = 16


class Losses:
    """The losses of all targets: stored as they are, or gathered to be added up."""

    def __init__(self, site: Site) -> None:
        self.site, self.b = site, site.b
        self.dtype: Dtype = sum_dtype(site.dtype(SCORES))
        self.shape, targets = site.shape(SCORES), site.shape(TARGETS)
        self.targets = (self.shape[0], *self.shape[2:])
        for axis, (size, wanted) in enumerate(zip(targets, self.targets, strict=True)):
            require_equal(site, size, wanted, f"axis {axis} of the targets and the scores'")
        if site.call.has(WEIGHTS):
            require_equal(site, site.shape(WEIGHTS)[0], self.shape[1], "weights and classes")
        self.reduction = site.call.str_attr("reduction", "mean")
        if self.reduction not in ("none", "sum", "mean"):
            site.refuse(f"reduction {self.reduction!r} is unknown")
        self.gathers = self.reduction != "none"
        self.memory = [
            site.scratch(self.dtype, product(self.targets)) for _ in range(2 if self.gathers else 0)
        ]

    def visit(self, position: Position, log: Callable[[Position], Expr]) -> None:
        """The loss of the target at this position of the scores, whatever class that has."""
        b, site, classes = self.b, self.site, self.shape[1]
        at = (position[0], *position[2:])
        target = b.let(cast(site.read(TARGETS, at), "i64"))
        loss, weight = (b.local(const(0, self.dtype)) for _ in range(2))
        ignored = site.call.attr("ignore_index")
        counted = const(True, "bool") if ignored is None else apply("ne", target, int(ignored))
        with b.when(counted):
            limit = b.size(classes)
            b.fail_if((target < 0) | (target >= limit), NO_CLASS, target, limit)
            chosen = b.index(target, classes)
            factor: Expr = const(1, self.dtype)
            if site.call.has(WEIGHTS):
                factor = site.operand(WEIGHTS, (chosen,))
            b.set(weight, factor)
            b.set(loss, -log((position[0], chosen, *position[2:])) * weight)
        if not self.gathers:
            site.store(at, loss)
            return
        place = flatten(at, self.targets)
        b.store(self.memory[0], place, loss)
        b.store(self.memory[1], place, weight)

    def finish(self) -> None:
        if not self.gathers:
            return
        loss, weight = (self._sum(memory) for memory in self.memory)
        self.site.store((), loss if self.reduction == "sum" else loss / weight)

    def _sum(self, memory: str) -> Expr:
        b = self.b
        total = b.local(const(0, self.dtype))
        with b.loop(product(self.targets), "vector") as place:
            b.set(total, total + b.load(memory, place))
        return total


def _negative_log_likelihood(site: Site) -> None:
    losses, b = Losses(site), site.b
    with b.parallel(losses.targets, 4) as (n, *rest):
        first: Size = 0
        losses.visit((n, first, *rest), lambda at: site.operand(SCORES, at))
    losses.finish()


def _softmax_cross_entropy(site: Site) -> None:
    losses, b = Losses(site), site.b
    dtype = losses.dtype
    folding = Folding(b, losses.shape, (1,))
    with folding.sets(work=EXP_WORK):
        top = largest(folding, lambda at: site.operand(SCORES, at), dtype)
        total = folding.sum(dtype, lambda at: apply("exp", site.operand(SCORES, at) - top.get()))
        log = folding.derive(dtype, lambda at: apply("log", total.get()))

        def log_of(at: Position) -> Expr:
            return site.operand(SCORES, at) - top.get() - log.get()

        folding.for_sets(lambda at: losses.visit(at, log_of))
        if len(site.outputs) > 1:
            folding.each(lambda at: site.store(at, log_of(at), 1))
    losses.finish()


NEGATIVE_LOG_LIKELIHOOD = Nest(_negative_log_likelihood)
SOFTMAX_CROSS_ENTROPY = Nest(_softmax_cross_entropy)
