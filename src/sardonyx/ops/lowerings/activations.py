"""The activations that recurrent operators name, with their alpha, beta and clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx.loops.build import maximum, minimum, where
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.lowering import Site

__all__ = ["Activation", "read_activations"]

Activation: TypeAlias = Callable[[Expr], Expr]

# name: (default alpha, default beta, function of x, alpha, beta); None takes no such parameter.
_FUNCTIONS: dict[str, tuple[float | None, float | None, Callable[[Expr, float, float], Expr]]] = {
    "relu": (None, None, lambda x, a, b: maximum(x, 0)),
    "tanh": (None, None, lambda x, a, b: apply("tanh", x)),
    "sigmoid": (None, None, lambda x, a, b: apply("sigmoid", x)),
    "softsign": (None, None, lambda x, a, b: x / (1.0 + apply("abs", x))),
    "softplus": (None, None, lambda x, a, b: apply("softplus", x)),
    "affine": (1.0, 0.0, lambda x, a, b: x * a + b),
    "leakyrelu": (0.01, None, lambda x, a, b: where(x < 0, x * a, x)),
    "thresholdedrelu": (1.0, None, lambda x, a, b: where(x > a, x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: apply("tanh", x * b) * a),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: minimum(maximum(x * a + b, 0), 1)),
    "elu": (1.0, None, lambda x, a, b: where(x < 0, apply("expm1", x) * a, x)),
}


def read_activations(
    site: Site, default: Sequence[str], directions: int
) -> list[tuple[Activation, ...]]:
    """The activations of each direction; those of directions that are alike are the same objects.

    `activation_alpha` and `activation_beta` are consumed in the order of the activations that take one.
    """
    call = site.call
    # The schema's default of RNN names two activations even for one direction.
    given = call.node.attributes.get("activations") is not None
    names = [_text(name) for name in call.attr("activations")] if given else [*default] * directions
    if len(names) != len(default) * directions:
        site.refuse(f"{len(names)} activations for {directions} directions of {len(default)}")
    alphas, betas = (list(call.attr(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    clip = float(call.attr("clip") or 0.0)
    made: dict[tuple[str, float, float], Activation] = {}
    found = []
    for name in names:
        if name.lower() not in _FUNCTIONS:
            site.refuse(f"activation {name!r} is unknown")
        alpha, beta, function = _FUNCTIONS[name.lower()]
        a = float(alphas.pop(0)) if alpha is not None and alphas else alpha or 0.0
        b = float(betas.pop(0)) if beta is not None and betas else beta or 0.0
        key = (name.lower(), a, b)
        found.append(made.setdefault(key, _activation(site, function, a, b, clip)))
    count = len(default)
    return [tuple(found[i : i + count]) for i in range(0, len(found), count)]


def _text(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _activation(
    site: Site, function: Callable[[Expr, float, float], Expr], a: float, b: float, clip: float
) -> Activation:
    def apply_to(x: Expr) -> Expr:
        clipped = minimum(maximum(x, -clip), clip) if clip else x
        return site.b.let(function(site.b.let(clipped), a, b))

    return apply_to
