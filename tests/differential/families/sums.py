"""Operators that add up: reductions, products, softmax, normalisations, losses, windows of signals."""

from __future__ import annotations

import numpy as np
from tests.differential.graphs import Builder, Skip, family

REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]
EQUATIONS = (
    ("ij,jk->ik", "ij jk"),
    ("bij,bjk->bik", "bij bjk"),
    ("ij->ji", "ij"),
    ("ii->i", "ii"),
    ("ij->", "ij"),
    ("...ij,...jk->...ik", "pij jk"),
    ("i,j->ij", "i j"),
    ("ij,jk", "ij jk"),
    ("b...d,bd->b...", "bpqd bd"),
    ("iij->j", "iij"),
    ("a b , b c -> a c", "ab bc"),
    ("ij,jk,kl->il", "ij jk kl"),
    ("Ab,bA->A", "Ab bA"),
    ("ba", "ba"),
)


@family
def reduce(b: Builder) -> None:
    op = b.pick(REDUCTIONS)
    # What onnxruntime makes of empty sets keeps axes, and of logarithms of integers is its own.
    among = (
        ("float32", "float64") if "Log" in op or op == "ReduceL2" else ("float32", "int32", "int64")
    )
    x, values = b.tensor(b.dtype(op, among), least=0.1 if op == "ReduceLogSum" else -4, empty=0)
    axes = b.axes(values.ndim, least=0 if b.chance(0.2) else 1)
    attributes = b.some(keepdims=b.integer(0, 1))
    by_input = b.version(op) >= (13 if op == "ReduceSum" else 18)
    if not by_input:
        b.node(op, [x], **attributes, **({"axes": axes} if axes else {}))
        return
    attributes |= b.some(0.3, noop_with_empty_axes=b.integer(0, 1))
    b.node(op, [x, b.whole(axes)] if b.chance(0.8) else [x], **attributes)


@family
def cumulate(b: Builder) -> None:
    x, values = b.tensor(b.dtype("CumSum"), 1, 3)
    axis = b.put(np.array(b.axis(values.ndim), b.pick(["int32", "int64"])))
    b.node("CumSum", [x, axis], **b.some(exclusive=1, reverse=1))


@family
def softmax(b: Builder) -> None:
    op = b.pick(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    x, values = b.tensor(b.dtype(op), 1, empty=0)
    axis = b.axis(values.ndim, 11)
    b.node(op, [x], axis=axis, **(b.some(p=b.integer(1, 2)) if op == "LpNormalization" else {}))


@family
def matmul(b: Builder) -> None:
    dtype = b.dtype("MatMul", ["float32", "float64", "int32", "uint64"])
    rows, inner, columns = b.integers(3, 1, 4)
    batch = b.shape(0, 2, empty=0)
    left, right = [*batch, rows, inner], [*b.broadcasting(batch), inner, columns]
    if b.chance(0.15):
        left = [inner]
    if b.chance(0.15):
        right = [inner]
    b.node("MatMul", [b.put(b.array(dtype, left), False), b.new(dtype, right)])


@family
def gemm(b: Builder) -> None:
    dtype = b.dtype("Gemm", ["float32", "float64"])
    rows, inner, columns = b.integers(3, 1, 4)
    turn_a, turn_b = b.chance(), b.chance()
    a = b.new(dtype, [inner, rows] if turn_a else [rows, inner])
    inputs = [a, b.new(dtype, [columns, inner] if turn_b else [inner, columns])]
    if b.opset < 11 or b.chance(0.7):
        shapes = [[rows, columns], [columns], [1, columns], [rows, 1], [1], []]
        inputs.append(b.new(dtype, b.pick(shapes)))
    b.node("Gemm", inputs, transA=int(turn_a), transB=int(turn_b), **b.some(alpha=0.5, beta=-1.5))


@family
def einsum(b: Builder) -> None:
    dtype = b.dtype("Einsum", ["float32", "float64", "int64"])
    equation, operands = b.pick(EQUATIONS)
    size = {letter: b.integer(1, 4) for letter in "abcdijklpqA"}
    arrays = [b.new(dtype, [size[letter] for letter in part]) for part in operands.split()]
    b.node("Einsum", arrays, equation=equation)


@family
def normalize(b: Builder) -> None:
    op = b.pick(["BatchNormalization", "InstanceNormalization", "LRN"])
    dtype = b.dtype(op, ["float32"])
    shape = [b.integer(1, 2), b.integer(1, 4), *b.integers(2, 1, 4)]
    x, channels = b.new(dtype, shape), shape[1]
    attributes = b.some(epsilon=1e-2)
    if op == "LRN":
        b.node(op, [x], size=b.pick([1, 3, 5]), **b.some(alpha=0.5, beta=0.6, bias=2.0))
    elif op == "InstanceNormalization":
        b.node(op, [x, b.new(dtype, [channels]), b.new(dtype, [channels])], **attributes)
    else:
        parameters = [b.new(dtype, [channels]) for _ in range(3)]
        parameters.append(b.new(dtype, [channels], 0.5, 3))
        train = b.version(op) >= 14 and b.chance(0.3)
        if train:
            attributes |= {"training_mode": 1, **b.some(momentum=0.7)}
        b.node(op, [x, *parameters], 3 if train else 1, **attributes)


@family
def normalize_layers(b: Builder) -> None:
    op = b.pick(["LayerNormalization", "RMSNormalization", "GroupNormalization"])
    dtype = b.dtype(op, ["float32"])
    shape = [b.integer(1, 2), b.integer(1, 4), *b.integers(2, 1, 4)]
    attributes = b.some(epsilon=1e-2)
    if op == "GroupNormalization":
        groups = b.integer(1, 3)
        shape[1] = groups * b.integer(1, 2)
        count = shape[1] if b.version(op) >= 21 else groups
        inputs = [b.new(dtype, shape), b.new(dtype, [count]), b.new(dtype, [count])]
        (y,) = b.node(op, inputs, num_groups=groups, **attributes)
        b.types[y] = dtype
        return
    axis = b.axis(4)
    scale = shape[axis:] if b.chance(0.8) else [1] * len(shape[axis:])
    inputs, outputs = [b.new(dtype, shape), b.new(dtype, scale)], 1
    if op == "LayerNormalization":
        inputs.append(b.new(dtype, scale) if b.chance() else "")
        outputs = b.integer(1, 3)
    b.node(op, inputs, outputs, axis=axis, **attributes)


@family
def losses(b: Builder) -> None:
    op = b.pick(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    dtype = b.dtype(op, ["float32", "float64"])
    count, classes, rest = b.integer(1, 3), b.integer(1, 4), b.shape(0, 2, empty=0)
    target = b.rng.integers(0, classes, [count, *rest])
    attributes = b.some(0.7, reduction=b.pick(["none", "sum", "mean"]))
    if b.chance(0.3):
        attributes["ignore_index"] = b.pick([-1, 0, 100])
        target = np.where(b.rng.random(target.shape) < 0.3, attributes["ignore_index"], target)
        target.reshape(-1)[0] = classes - 1  # the mean of nothing is 0 / 0
        if classes - 1 == attributes["ignore_index"]:
            raise Skip
    inputs = [b.new(dtype, [count, classes, *rest]), b.put(target)]
    if b.chance():
        inputs.append(b.new(dtype, [classes], 0.2, 2))
    b.node(op, inputs, 2 if op[0] == "S" and b.chance() else 1, **attributes)


@family
def transforms(b: Builder) -> None:
    op = b.pick(["DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow", "Det"])
    version = b.version(op)
    if op == "DFT":
        parts = b.pick([1, 2])
        x = b.put(
            b.array("float32", [b.integer(1, 2), b.integer(2, 6), b.integer(2, 5), parts]), False
        )
        length = b.put(np.array(b.integer(2, 7)), True) if b.chance() else ""
        way = b.pick([{}, {"inverse": 1}, {"onesided": 1} if parts == 1 else {}])
        if version >= 20:
            b.node(op, [x, length, b.put(np.array(b.pick([1, 2, -2, -3])), True)], **way)
        else:
            b.node(op, [x, length], axis=b.pick([1, 2]), **way)
    elif op == "STFT":
        length = b.integer(3, 6)
        signal = b.new("float32", [b.integer(1, 2), b.integer(8, 16), 1])
        window = b.new("float32", [length]) if b.chance() else ""
        step, size = (b.put(np.array(value), True) for value in (b.integer(1, 4), length))
        b.node(op, [signal, step, window, size], **b.some(onesided=b.integer(0, 1)))
    elif op == "Det":
        order = b.integer(1, 3)
        matrices = b.array("float32", [*b.shape(0, 2, empty=0), order, order])
        b.node(op, [b.put(matrices + 9 * np.eye(order, dtype=np.float32), False)])
    else:
        size = b.put(np.array(b.integer(3, 9), b.pick(["int32", "int64"])))
        b.node(op, [size], **b.some(periodic=b.integer(0, 1)))
