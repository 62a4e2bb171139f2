"""The activations that recurrent operators name, with their alpha, beta and clip."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

__all__ = ["Activation", "make_activations"]

Activation: TypeAlias = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    """The side of exp that cannot overflow."""
    e = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1, e) / (1 + e)
    return result.astype(x.dtype, copy=False)


def softplus(x: Array) -> Array:
    result: Array = np.logaddexp(x, np.zeros((), x.dtype))
    return result


# name: (default alpha, default beta, function of x, alpha, beta); None takes no such parameter.
_FUNCTIONS: dict[str, tuple[float | None, float | None, Callable[[Array, float, float], Array]]] = {
    "relu": (None, None, lambda x, a, b: np.maximum(x, 0)),
    "tanh": (None, None, lambda x, a, b: np.tanh(x)),
    "sigmoid": (None, None, lambda x, a, b: sigmoid(x)),
    "softsign": (None, None, lambda x, a, b: x / (1 + np.abs(x))),
    "softplus": (None, None, lambda x, a, b: softplus(x)),
    "affine": (1.0, 0.0, lambda x, a, b: a * x + b),
    "leakyrelu": (0.01, None, lambda x, a, b: np.where(x < 0, a * x, x)),
    "thresholdedrelu": (1.0, None, lambda x, a, b: np.where(x > a, x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: a * np.tanh(b * x)),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "elu": (1.0, None, lambda x, a, b: np.where(x < 0, a * np.expm1(x), x)),
}


def make_activations(
    call: Call, default: tuple[str, ...], directions: int
) -> list[list[Activation]]:
    """The activations of each direction.

    `activation_alpha` and `activation_beta` are consumed in the order of the activations that
    take one.
    """
    # The schema's default of RNN names two activations even for one direction.
    given = "activations" in call.operator.node.attributes
    names = list(call.attr("activations")) if given else list(default * directions)
    if len(names) != len(default) * directions:
        raise RunError(
            f"{len(names)} activations for {directions} directions of {len(default)}",
            value=names,
            limit=len(default) * directions,
        )
    alphas = list(call.attr("activation_alpha") or ())
    betas = list(call.attr("activation_beta") or ())
    clip = call.attr("clip")
    made = [_make(name, alphas, betas, clip) for name in names]
    return [made[i : i + len(default)] for i in range(0, len(made), len(default))]


def _make(name: str, alphas: list[float], betas: list[float], clip: float | None) -> Activation:
    if name.lower() not in _FUNCTIONS:
        raise RunError(f"activation {name!r} is unknown", value=name, limit=sorted(_FUNCTIONS))
    alpha, beta, function = _FUNCTIONS[name.lower()]
    if alpha is not None and alphas:
        alpha = alphas.pop(0)
    if beta is not None and betas:
        beta = betas.pop(0)

    def activation(x: Array) -> Array:
        clipped = np.clip(x, -clip, clip) if clip else x
        return function(clipped, alpha or 0.0, beta or 0.0).astype(x.dtype, copy=False)

    return activation
