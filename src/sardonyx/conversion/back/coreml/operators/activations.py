"""Activations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_PLAIN = {
    "Relu": "ReLU",
    "Sigmoid": "sigmoid",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Tanh": "tanh",
}
_EXACT, _TANH = 0, 1  # GeluLayerParams.GeluMode


def _activation(step: Step, kind: str, **fields: Any) -> str:
    return step.layer("activation", step[0], **{kind: fields})


def _plain(step: Step) -> str:
    return _activation(step, _PLAIN[step.node.op_type])


def leaky_relu(step: Step) -> str:
    return _activation(step, "leakyReLU", alpha=step.number("alpha", 0.01))


def elu(step: Step) -> str:
    return _activation(step, "ELU", alpha=step.number("alpha", 1.0))


def celu(step: Step) -> str:
    alpha = step.number("alpha", 1.0)
    made = step.layer("activation", step.scaled(step[0], 1 / alpha), ELU={"alpha": 1.0})
    return step.scaled(made, alpha)


def selu(step: Step) -> str:
    made = _activation(step, "ELU", alpha=step.number("alpha", 1.67326319217681884765625))
    return step.scaled(made, step.number("gamma", 1.05070102214813232421875))


def hard_sigmoid(step: Step) -> str:
    slope, shift = step.number("alpha", 0.2), step.number("beta", 0.5)
    return _activation(step, "sigmoidHard", alpha=slope, beta=shift)


def hard_swish(step: Step) -> str:
    gate = _activation(step, "sigmoidHard", alpha=1 / 6, beta=0.5)
    return step.layer("multiplyBroadcastable", step[0], gate)


def swish(step: Step) -> str:
    gate = step.scaled(step[0], step.number("alpha", 1.0))
    gate = step.layer("activation", gate, sigmoid={})
    return step.layer("multiplyBroadcastable", step[0], gate)


def gelu(step: Step) -> str:
    mode = _TANH if step.word("approximate", "none", "tanh") == "tanh" else _EXACT
    return step.layer("gelu", step[0], mode=mode)


def thresholded_relu(step: Step) -> str:
    """CoreML's own keeps the threshold itself too."""
    above = step.layer("greaterThan", step[0], alpha=step.number("alpha", 1.0))
    return step.layer("whereBroadcastable", above, step[0], step.constant([0.0]))


def prelu(step: Step) -> str:
    """By CoreML's own where the slopes are of channels; as a sum of both sides elsewhere."""
    slope, shape = step.numbers(1), step.shape(1)
    if slope is not None and step.rank(0) == 4 and len(shape) == 3 and shape[1:] == (1, 1):
        return _activation(step, "PReLU", alpha=slope)
    zero = step.constant([0.0])
    below = step.layer("minBroadcastable", step[0], zero)
    left = step.layer("multiplyBroadcastable", step[1], below)
    return step.layer("addBroadcastable", _activation(step, "ReLU"), left)


ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_PLAIN, _plain),
    "Celu": celu,
    "Elu": elu,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "Selu": selu,
    "Swish": swish,
    "ThresholdedRelu": thresholded_relu,
}
