"""Steps of training: new weights and new states from old ones, element by element.

Inputs are the learning rate, the number of the step, and then all weights, all gradients, and all states
of each kind; outputs are the new weights and the new states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.loops.build import cast, where
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.lowering import Element, Position, Site

__all__ = ["OPTIMIZERS"]


@dataclass(frozen=True)
class _Step:
    """One weight: its value, its gradient with the penalty on its size, and its states."""

    site: Site
    x: Expr
    gradient: Expr
    states: Sequence[Expr]
    rate: Expr
    number: Expr

    def attr(self, name: str, default: float = 0.0) -> float:
        return float(self.site.call.attr(name, default))


Rule = Callable[[_Step], tuple[Expr, ...]]  # the new weight, and the new states


def _optimizer(kinds: int, rule: Rule) -> Element:
    def value(site: Site, position: Position) -> Expr:
        tensors = (len(site.call.inputs) - 2) // (kinds + 2)
        kind, which = divmod(site.output, tensors)
        found = [site.operand(2 + which + tensors * block, position) for block in range(kinds + 2)]
        x, gradient, *states = (site.b.let(element) for element in found)
        with site.b.once():
            rate, number = (
                site.b.let(cast(site.operand(index, (0,) * len(site.shape(index))), x.dtype))
                for index in (0, 1)
            )
        penalty = float(site.call.attr("norm_coefficient", 0.0))
        step = _Step(site, x, site.b.let(penalty * x + gradient), states, rate, number)
        return rule(step)[kind]

    return Element(value, weight=16)


def _adagrad(step: _Step) -> tuple[Expr, Expr]:
    rate = step.rate / (1.0 + step.number * step.attr("decay_factor"))
    squares = step.site.b.let(step.states[0] + step.gradient * step.gradient)
    size = apply("sqrt", squares) + step.attr("epsilon")
    return step.x - rate * step.gradient / size, squares


def _adam(step: _Step) -> tuple[Expr, Expr, Expr]:
    b, (mean, squares) = step.site.b, step.states
    alpha, beta = step.attr("alpha", 0.9), step.attr("beta", 0.999)
    mean = b.let(alpha * mean + (1 - alpha) * step.gradient)
    squares = b.let(beta * squares + (1 - beta) * (step.gradient * step.gradient))
    size = apply("sqrt", squares) + step.attr("epsilon")
    corrected = (
        step.rate
        * apply("sqrt", 1.0 - apply("pow", beta, step.number))
        / (1.0 - apply("pow", alpha, step.number))
    )
    rate = where(step.number > 0, corrected, step.rate)
    moved = step.x - rate * (mean / size)
    return (1 - step.attr("norm_coefficient_post")) * moved, mean, squares


def _momentum(step: _Step) -> tuple[Expr, Expr]:
    alpha, beta = step.attr("alpha"), step.attr("beta")
    first = where(step.number > 0, step.gradient * beta, step.gradient)
    speed = step.site.b.let(alpha * step.states[0] + first)
    if step.site.call.str_attr("mode") == "nesterov":
        return step.x - step.rate * (step.gradient + alpha * speed), speed
    return step.x - step.rate * speed, speed


OPTIMIZERS = {
    "Adagrad": _optimizer(1, _adagrad),
    "Adam": _optimizer(2, _adam),
    "Momentum": _optimizer(1, _momentum),
}
