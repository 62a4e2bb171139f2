"""Normalizations."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.common.slicing import padded
from sardonyx.conversion.back.common.views import reshaped
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text
from sardonyx.conversion.back.support.normalizing import (
    inverse_deviation,
    local_response_norm,
    mean_variance_normalize,
    normalize,
)
from sardonyx.sizes import Size

__all__ = ["ENTRIES"]


def _channels(text: str, after: int) -> str:
    """A vector of the channels, laid along the second axis."""
    return f"{text}[{', '.join([':', *['None'] * after])}]" if after else text


def _batch(step: Step) -> str:
    if step.flag("training_mode"):
        step.refuse("it trains (training_mode = 1)", "Export the model for inference.")
    epsilon = step.number("epsilon", 1e-5)
    x, scale, bias, mean, variance = (step[index] for index in range(5))
    if "batch_norm" in step.writer.language.phrases:
        return step.say("batch_norm", x, scale, bias, mean, variance, epsilon)
    after = step.rank(0) - 2
    spread = step.say("sqrt", f"({variance} + {epsilon})")
    factor = _channels(f"({scale} / {spread})", after)
    return f"({x} - {_channels(mean, after)}) * {factor} + {_channels(bias, after)}"


def _normalized(step: Step, x: str, axes: tuple[int, ...], default: float = 1e-5) -> str:
    return f"{step.use(normalize)}({x}, {tuple_text(axes)}, {step.number('epsilon', default)})"


def _instance(step: Step) -> str:
    rank = step.rank(0)
    after = rank - 2
    text = _normalized(step, step[0], tuple(range(2, rank)))
    return f"{text} * {_channels(step[1], after)} + {_channels(step[2], after)}"


def _group(step: Step) -> str:
    shape = step.shape(0)
    groups = step.call.int_attr("num_groups", 1)
    if "group_norm" in step.writer.language.phrases:
        return step.say(
            "group_norm", step[0], groups, step[1], step[2], step.number("epsilon", 1e-5)
        )
    apart: list[Size] = [shape[0], groups, shape[1] // groups, *shape[2:]]
    inner = reshaped(step, step[0], apart)
    text = reshaped(step, _normalized(step, inner, tuple(range(2, len(apart)))), list(shape))
    after = len(shape) - 2
    return f"{text} * {_channels(step[1], after)} + {_channels(step[2], after)}"


def _layer(step: Step) -> list[str]:
    if not step.wants(1) and not step.wants(2):
        return [_layer_norm(step)]
    axes = tuple_text(range(step.axis(default=-1), step.rank(0)))
    mean = step.say("mean", step[0], axes, True)
    epsilon = step.number("epsilon", 1e-5)
    return [_layer_norm(step), mean, f"{step.use(inverse_deviation)}({step[0]}, {axes}, {epsilon})"]


def _layer_norm(step: Step) -> str:
    rank, axis = step.rank(0), step.axis(default=-1)
    epsilon = step.number("epsilon", 1e-5)
    if "layer_norm" in step.writer.language.phrases and step.call.shape(1) == step.shape(0)[axis:]:
        sizes = [step.size(one) for one in step.shape(0)[axis:]]
        bias = step[2] if step.has(2) else "None"
        return step.say("layer_norm", step[0], tuple_text(sizes), step[1], bias, epsilon)
    text = f"{_normalized(step, step[0], tuple(range(axis, rank)))} * {step[1]}"
    return f"{text} + {step[2]}" if step.has(2) else text


def _mean_variance(step: Step) -> str:
    axes = step.call.axes(step.call.ints_attr("axes") or (0, 2, 3), step.rank(0))
    return f"{step.use(mean_variance_normalize)}({step[0]}, {tuple_text(axes)})"


def _lp(step: Step) -> str:
    axis, power = step.axis(default=-1), step.call.int_attr("p", 2)
    x = step[0]
    if power == 1:
        size = step.say("sum", step.say("abs", x), tuple_text([axis]), True)
    else:
        size = step.say("sqrt", step.say("sum", f"({x} * {x})", tuple_text([axis]), True))
    # A vector of zeros stays one.
    return f"{x} / {step.say('where', f'{size} == 0', step.say('full_like', size, '1', step.output_type()), size)}"


def _local_response(step: Step) -> str:
    rank = step.rank(0)
    size = step.call.int_attr("size", 1)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = padded(step, f"{step[0]} * {step[0]}", {1: (before, after)}, rank, "0")
    alpha, beta, bias = (
        step.number(name, default)
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    return f"{step.use(local_response_norm)}({step[0]}, {squares}, {size}, {alpha}, {beta}, {bias})"


ENTRIES: Mapping[str, Entry] = {
    "BatchNormalization": _batch,
    "InstanceNormalization": _instance,
    "GroupNormalization": _group,
    "LayerNormalization": _layer,
    "LpNormalization": _lp,
    "MeanVarianceNormalization": _mean_variance,
    "LRN": _local_response,
}
