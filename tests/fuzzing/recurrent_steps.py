"""Steps that write recurrent layers out, cell by cell, as exporters do; and values cut into rows and stacked again."""

from __future__ import annotations

import numpy as np
from onnx import helper
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["STEPS"]


class _Cells:
    """Writes one cell after the other with the same weights; now and then something is not the same."""

    def __init__(self, make: Maker, gates: int, inputs: int, size: int) -> None:
        self.make, self.size = make, size
        self.is_turned, self.has_bias = make.chance(0.5), make.chance(0.8)
        self.spoil = make.chance(0.15)
        self.weights = [self._pair(rows, gates * size) for rows in (inputs, size)]

    def _pair(self, rows: int, columns: int) -> tuple[str, str]:
        shape = (columns, rows) if self.is_turned else (rows, columns)
        return self.make.floats(*shape), self.make.floats(columns)

    def op(self, name: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """A node whose outputs no other step sees, but for those of a spoilt layer; the first one's name."""
        made = [self.make.name() for _ in range(outputs)]
        self.make.nodes.append(helper.make_node(name, list(inputs), made, **attributes))
        return made[0]

    def product(self, which: int, value: str) -> str:
        weight, bias = self.weights[which]
        if self.is_turned:
            given = [bias] if self.has_bias else []
            return self.op("Gemm", value, weight, *given, transB=1)
        product = self.op("MatMul", value, weight)
        return self.op("Add", product, bias) if self.has_bias else product

    def parts(self, value: str, count: int) -> list[str]:
        names = [self.make.name() for _ in range(count)]
        sizes = [self.size] * count
        given = [self.make.ints(*sizes)] if self.make.opset >= 13 else []
        old = {} if self.make.opset >= 13 else {"split": sizes}
        self.make.nodes.append(helper.make_node("Split", [value, *given], names, axis=1, **old))
        return names

    def lstm(self, x: str, h: str, c: str, shape: tuple[int, int]) -> tuple[str, str]:
        i, f, g, o = self.parts(self.op("Add", self.product(0, x), self.product(1, h)), 4)
        kept = self.op("Mul", self.op("Sigmoid", f), c)
        new = self.op("Mul", self.op("Sigmoid", i), self.op("Tanh", g))
        c = self.op("Add", kept, new)
        if self.spoil:
            self.make.values.append((c, shape))
        return self.op("Mul", self.op("Sigmoid", o), self.op("Tanh", c)), c

    def gru(self, x: str, h: str, form: str) -> str:
        of_x, of_h = self.parts(self.product(0, x), 3), self.parts(self.product(1, h), 3)
        r, z = (self.op("Sigmoid", self.op("Add", of_h[gate], of_x[gate])) for gate in (0, 1))
        n = self.op("Tanh", self.op("Add", of_x[2], self.op("Mul", r, of_h[2])))
        if form == "difference":
            return self.op("Add", self.op("Mul", self.op("Sub", h, n), z), n)
        one = self.make.constant(np.ones((), np.float32))
        rest = self.op("Mul", self.op("Sub", one, z), n)
        return self.op("Add", self.op("Mul", z, h), rest)

    def rnn(self, x: str, h: str, activation: str) -> str:
        return self.op(activation, self.op("Add", self.product(0, x), self.product(1, h)))


def _rows(make: Maker, x: str, shape: tuple[int, ...], axis: int, count: int) -> list[str]:
    """What is at each index of an axis."""
    rest = tuple(size for index, size in enumerate(shape) if index != axis)
    indices = [
        make.constant(np.array(index - (shape[axis] if make.chance(0.1) else 0), dtype=np.int64))
        for index in range(count)
    ]
    return [make.call("Gather", [x, index], rest, axis=axis) for index in indices]


@of_rank(3)
def unrolled(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    axis = make.pick(0, 1)
    if 0 in shape or shape[axis] < 2:
        return
    batch, size, count = shape[1 - axis], make.pick(1, 2, 3), min(shape[axis], make.pick(2, 3, 4))
    kind = make.pick("lstm", "gru", "rnn")
    cells = _Cells(make, {"lstm": 4, "gru": 3, "rnn": 1}[kind], shape[2], size)
    rows = _rows(make, x, shape, axis, count)
    if make.chance(0.2):  # not of one value
        rows = [make.call(make.pick("Relu", "Neg"), [row], (batch, shape[2])) for row in rows]
    states = [make.floats(*make.pick((batch, size), (batch, size), (1, size))) for _ in range(2)]
    if make.chance(0.4):
        states = [make.constant(np.zeros((batch, size), np.float32))] * 2
    elif make.chance(0.6):
        begin = make.call("MatMul", [rows[0], make.floats(shape[2], size)], (batch, size))
        states = [begin, begin]
    h, c = states
    form, activation = (
        make.pick("difference", "blend"),
        make.pick("Tanh", "Tanh", "Relu", "Sigmoid"),
    )
    hidden = []
    for index, row in enumerate(rows):
        if cells.spoil and index == 1 and make.chance(0.3):
            cells.weights.reverse()  # of another shape, or other weights
            if shape[2] != size:
                cells.weights.reverse()
        if kind == "lstm":
            h, c = cells.lstm(row, h, c, (batch, size))
        else:
            h = cells.gru(row, h, form) if kind == "gru" else cells.rnn(row, h, activation)
        hidden.append(h)
    read = hidden if make.chance(0.6) else hidden[-1:]
    _put_together(make, read, (batch, size), make.pick(0, 1, 2))


def _put_together(make: Maker, values: list[str], shape: tuple[int, ...], axis: int) -> None:
    wider = (*shape[:axis], 1, *shape[axis:])
    new = [axis] if make.opset < 13 else None
    parts = [
        make.call("Unsqueeze", [value], wider, axes=new)
        if new
        else make.call("Unsqueeze", [value, make.ints(axis)], wider)
        for value in values
    ]
    make.call("Concat", parts, (*shape[:axis], len(parts), *shape[axis:]), axis=axis)


@of_rank(3)
def rows_stacked(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    axis = make.pick(0, 1, 2)
    if 0 in shape:
        return
    rows = _rows(make, x, shape, axis, make.pick(shape[axis], max(1, shape[axis] - 1)))
    if make.chance(0.2):
        rows.reverse()
    rest = tuple(size for index, size in enumerate(shape) if index != axis)
    _put_together(make, rows, rest, make.pick(axis, 0, 1, 2))


STEPS: tuple[Step, ...] = (unrolled, unrolled, rows_stacked)
