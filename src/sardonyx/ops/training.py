"""Losses and optimisers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved, total
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowerings import losses
from sardonyx.ops.lowerings.determinants import DET
from sardonyx.ops.lowerings.optimizers import OPTIMIZERS
from sardonyx.ops.plain import flops_per_input

__all__ = ["OPERATORS"]

TRAINING = "ai.onnx.preview.training"


def loss(call: Call) -> list[Facts]:
    """One number, or with reduction='none' one for each target."""
    scores, targets = call.input(0).shape, call.input(1).shape
    if scores is not None and len(scores) < 2:
        call.fail(f"scores have rank {len(scores)}, but batch and classes are needed")
    if scores is not None and targets is not None:
        if len(targets) != len(scores) - 1:
            call.fail(f"targets have rank {len(targets)}, but scores have rank {len(scores)}")
        call.agree(scores[0], targets[0], "the batches of scores and targets")
        for axis, (a, b) in enumerate(zip(scores[2:], targets[1:], strict=True)):
            call.agree(a, b, f"dimension {axis + 2} of scores and targets")
    if call.str_attr("reduction", "mean") != "none":
        value = call.out(())
    elif targets is None and scores is not None:
        value = call.out((scores[0], *scores[2:]))
    else:
        value = call.out(targets)
    return [value, call.out(scores, 1)]


def update(states: int, call: Call) -> list[Facts]:
    """R, T, then tensors, gradients and each kind of state; new tensors and states come out."""
    given = list(call.inputs[2:])
    if len(given) % (states + 2):
        call.fail(
            f"{len(given)} inputs after R and T do not divide into tensors, gradients and "
            f"{states} kinds of state"
        )
    tensors = len(given) // (states + 2)
    kept = [*given[:tensors], *given[2 * tensors :]]
    return [
        call.out(
            None if facts is None else facts.shape, index, None if facts is None else facts.dtype
        )
        for index, facts in enumerate(kept)
    ]


def update_cost(flops: int, call: Call, outputs: Sequence[Facts]) -> Cost:
    elements = total(facts.elements for facts in outputs)
    return moved(call.inputs, outputs, flops=None if elements is None else elements * flops)


def gradient(call: Call) -> list[Facts]:
    """With respect to each of `xs`, which are the first inputs."""
    inputs = [call.input(index) for index in range(len(call.attr("xs", ())))]
    return [call.out(facts.shape, index, facts.dtype) for index, facts in enumerate(inputs)]


def determinant(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    if len(shape) < 2:
        call.fail(f"input of rank {len(shape)} is not a matrix")
    call.agree(shape[-2], shape[-1], "the two sides of the matrices")
    return [call.out(shape[:-2])]


def determinant_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Elimination takes n³/3 multiply-accumulates a matrix."""
    count, shape = call.input(0).elements, call.shape(0)
    if count is None or shape is None:
        return moved(call.inputs, outputs, macs=None)
    return moved(call.inputs, outputs, macs=count * shape[-1] // 3)


OPERATORS = (
    Operator(
        "NegativeLogLikelihoodLoss",
        "reduction",
        loss,
        None,
        flops_per_input(1),
        losses.NEGATIVE_LOG_LIKELIHOOD,
    ),
    Operator(
        "SoftmaxCrossEntropyLoss",
        "reduction",
        loss,
        None,
        flops_per_input(6),
        losses.SOFTMAX_CROSS_ENTROPY,
    ),
    Operator("Det", "opaque", determinant, None, determinant_cost, DET),
    *(
        Operator(
            name,
            "opaque",
            partial(update, states),
            None,
            partial(update_cost, flops),
            OPTIMIZERS[name],
            domain=TRAINING,
        )
        for name, states, flops in (("Adagrad", 1, 7), ("Adam", 2, 6), ("Momentum", 1, 4))
    ),
    Operator("Gradient", "opaque", gradient, domain=TRAINING),
)
