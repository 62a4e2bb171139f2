"""A nest on images whose channels lie last, read and stored through that layout, interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.ops.harness import Case, close, run_reference

import sardonyx as sx
from sardonyx.loops.build import Builder
from sardonyx.loops.index import flatten
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Dtype, Expr
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.ops import find_operator
from sardonyx.ops.call import Call
from sardonyx.ops.lowering import (
    Convolution,
    IntegerConvolution,
    Nest,
    Position,
    Site,
    TransposedConvolution,
    loop_dtype,
)
from sardonyx.passes.shapes import infer_shapes
from sardonyx.sizes import Size, evaluate


def channels_last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def agree_channels_last(case: Case) -> None:
    """Input 0 and output 0 have their channels last; everything else lies as usual."""
    model = sx.load(case.model())
    shapes, (node,) = infer_shapes(model), model.graph
    call = Call(node, [None if v is None else shapes.of(v) for v in node.inputs], case.opset)
    outputs = [shapes.of(value) for value in node.outputs]
    operator = find_operator("", node.op_type, case.opset)
    assert operator is not None
    lowering = operator.lower
    own = isinstance(lowering, (Convolution, IntegerConvolution, TransposedConvolution))
    nest = lowering.nest if own else lowering
    assert isinstance(nest, Nest)

    b, memory = Builder(), []
    expected = [np.asarray(one) for one in run_reference(model, case.feeds())]

    def order(position: Any, first: bool) -> list[Any]:
        axes = channels_last(len(position)) if first else range(len(position))
        return [position[axis] for axis in axes]

    def add(array: np.ndarray, dtype: Dtype, role: Any) -> str:
        memory.append(array.reshape(-1))
        return b.buffer(dtype, role)

    names: dict[int, str] = {}
    for index, x in enumerate(case.inputs):
        if x is not None:
            laid = x.transpose(channels_last(x.ndim)) if index == 0 else x
            kind = loop_dtype(call.input(index).dtype)
            names[index] = add(np.ascontiguousarray(laid), kind, "in")
    results = [
        add(np.zeros(want.size, want.dtype), loop_dtype(facts.dtype), "out")
        for want, facts in zip(expected, outputs, strict=True)
    ]

    def read(index: int, position: Position) -> Expr:
        shape = case.inputs[index].shape  # type: ignore[union-attr]
        at = flatten(order(position, index == 0), order(shape, index == 0))
        return b.load(names[index], at)

    def store(output: int, position: Position, value: Expr) -> None:
        shape = expected[output].shape
        b.store(
            results[output], flatten(order(position, output == 0), order(shape, output == 0)), value
        )

    def scratch(dtype: Dtype, size: Size) -> str:
        return add(np.zeros(evaluate(size, {}), NUMPY_TYPES[dtype]), dtype, "scratch")

    nest.build(Site(call, outputs, b, read, store, scratch=scratch, channels_last=True))
    interpret(b.kernel(), memory, {})
    for number, want in enumerate(expected):
        got = memory[len(names) + number]
        if number:
            got = got.reshape(want.shape)
        else:
            axes = channels_last(want.ndim)
            got = got.reshape([want.shape[axis] for axis in axes]).transpose(np.argsort(axes))
        close(got, want, f"{case.op} with channels last")
