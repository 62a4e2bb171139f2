"""Recurrent layers, normalisations and products."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.differential.cases.case import Case, f, i, ints, pos

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def cell(
    op: str,
    version: int = 14,
    lens: Any = None,
    init: bool = False,
    peep: bool = False,
    **attributes: Any,
) -> Case:
    gates, states = GATES[op] * HIDDEN, 2 if op == "LSTM" else 1
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    inputs: list[Any] = [
        f(STEPS, BATCH, WIDTH) / 2,
        f(count, gates, WIDTH) / 2,
        f(count, gates, HIDDEN) / 2,
        f(count, 2 * gates) / 2 if version > 7 else None,
        lens,
        *(f(count, BATCH, HIDDEN) if init else None for _ in range(states)),
    ]
    if peep:
        inputs.append(f(count, 3 * HIDDEN))
    while inputs[-1] is None:
        inputs.pop()
    return Case(op, version, inputs, {"hidden_size": HIDDEN, **attributes}, 1 + states)


def recurrent() -> Iterator[Case]:
    lengths = np.array([5, 1, 3], np.int32)
    both = "bidirectional"
    for op, direction, lens in itertools.product(
        GATES, ("forward", "reverse", both), (None, lengths)
    ):
        yield cell(op, lens=lens, init=True, direction=direction)
        yield cell(op, version=7, lens=lens, direction=direction)
    for name in ("Relu", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"):
        yield cell("RNN", activations=[name])
    for name in ("LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Affine"):
        yield cell("RNN", activations=[name], activation_alpha=[0.3], activation_beta=[0.6])
    yield cell("RNN", clip=0.3, lens=lengths)
    yield cell("GRU", clip=0.3, lens=lengths)
    yield cell("GRU", linear_before_reset=1)
    yield cell("GRU", linear_before_reset=1, direction=both, lens=lengths, init=True)
    yield cell("LSTM", peep=True, init=True)
    yield cell("LSTM", peep=True)
    yield cell("LSTM", input_forget=1, init=True)
    yield cell(
        "LSTM",
        activations=["HardSigmoid", "LeakyRelu", "Elu"],
        activation_alpha=[0.3, 0.2, 0.7],
        activation_beta=[0.6],
    )


def normalizing() -> Iterator[Case]:
    for version in (7, 9, 14, 15):
        yield Case("BatchNormalization", version, [f(2, 4, 3, 3), f(4), f(4), f(4), pos(4)])
    yield Case(
        "BatchNormalization", 14, [f(2, 4, 3), f(4), f(4), f(4), pos(4)], {"training_mode": 1}, 3
    )
    yield Case("InstanceNormalization", 6, [f(2, 4, 3, 3), f(4), f(4)])
    for size in (1, 3, 5):
        yield Case(
            "LRN", 13, [f(2, 6, 3, 3)], {"size": size, "alpha": 0.1, "beta": 0.7, "bias": 1.5}
        )
    yield Case("LpNormalization", 1, [f(3, 4)], {"p": 1, "axis": 0})
    yield Case("LpNormalization", 1, [np.zeros((2, 3), np.float32)])
    for axis in (-1, 1, 0):
        shape = (3, 4, 5)[axis:]
        yield Case("LayerNormalization", 17, [f(3, 4, 5), f(*shape), f(*shape)], {"axis": axis}, 3)
    yield Case("GroupNormalization", 21, [f(2, 4, 3), f(4), f(4)], {"num_groups": 2})
    yield Case("GroupNormalization", 18, [f(2, 4, 3), f(2), f(2)], {"num_groups": 2})
    yield Case("MeanVarianceNormalization", 13, [f(2, 4, 3, 3)], {"axes": [2, 3]})
    yield Case("RMSNormalization", 23, [f(3, 4, 5), f(5)])


def products() -> Iterator[Case]:
    for a, b in (
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((2, 3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((3, 0), (0, 4)),
    ):
        yield Case("MatMul", 13, [f(*a), f(*b)])
    yield Case("MatMul", 13, [i(0, 9, 3, 4, dtype=np.int32), i(0, 9, 4, 2, dtype=np.int32)])
    for attributes in ({}, {"transA": 1}, {"transB": 1}, {"alpha": 0.5, "beta": 2.0}):
        a = f(4, 3) if "transA" in attributes else f(3, 4)
        b = f(5, 4) if "transB" in attributes else f(4, 5)
        yield Case("Gemm", 13, [a, b, f(5)], attributes)
        yield Case("Gemm", 11, [a, b], attributes)
        yield Case("Gemm", 7, [a, b, f(3, 1)], attributes)
    for equation, shapes in (
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (1, 4, 5)]),
        ("i,i,i->", [(3,), (3,), (3,)]),
        ("b i j , b j k -> b i k", [(2, 3, 4), (2, 4, 5)]),
    ):
        yield Case("Einsum", 12, [f(*shape) for shape in shapes], {"equation": equation})
    yield Case("Det", 11, [f(2, 3, 3)])


def decoding() -> Iterator[Case]:
    q, k, v = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)
    for attributes in ({}, {"is_causal": 1}, {"scale": 0.3}, {"softcap": 2.0}):
        yield Case("Attention", 23, [q, k, v], attributes)
    yield Case("Attention", 23, [q, k, v, f(3, 5)])
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    yield Case("Attention", 23, [f(1, 3, 16), f(1, 5, 8), f(1, 5, 8)], heads)
    for interleaved in (0, 1):
        positions = np.array([[0, 2, 5]])
        yield Case(
            "RotaryEmbedding", 23, [q, f(8, 2), f(8, 2), positions], {"interleaved": interleaved}
        )
    for mode, places in (("linear", ints(1, 4)), ("circular", ints(1, 5))):
        yield Case("TensorScatter", 24, [f(2, 6, 3), f(2, 2, 3), places], {"axis": 1, "mode": mode})
    for reduction in ("none", "sum", "mean"):
        given = {"reduction": reduction, "ignore_index": 1}
        target = np.array([[0, 2], [3, 1], [1, 1]])
        yield Case("NegativeLogLikelihoodLoss", 13, [f(3, 4, 2), target, pos(4)], given)
        yield Case("SoftmaxCrossEntropyLoss", 13, [f(3, 4, 2), target], given, 2)


FAMILIES = (
    recurrent,
    normalizing,
    products,
    decoding,
)
