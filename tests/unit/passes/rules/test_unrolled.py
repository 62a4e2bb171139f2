"""Recurrent layers that were unrolled: which become one operator, what stands for their states, and which are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.unit.passes.rules.table import operators, optimized, refusals, same

from sardonyx.model.load import load
from sardonyx.passes.optimize import Settings, optimize

IN, SIZE, STEPS = 3, 2, 3
Shape = list[int | str | None]


class Layer:
    """An unrolled layer as exporters write it: x is (N, STEPS, IN), h and c are (N, SIZE)."""

    def __init__(self, gates: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        random = np.random.default_rng(gates)
        for name, shape in {
            "w": (IN, gates * SIZE), "r": (SIZE, gates * SIZE), "m": (IN + SIZE, gates * SIZE),
            "b": (gates * SIZE,), "q": (SIZE, SIZE), "back": (SIZE, IN),
        }.items():  # fmt: skip
            self.constant(name, random.normal(size=shape).astype(np.float32))
        for step in range(STEPS):
            self.constant(f"at{step}", np.array(step, dtype=np.int64))
        self.constant("parts", np.array([SIZE] * gates, dtype=np.int64))
        self.constant("one", np.ones((), np.float32))
        self.constant("zeros", np.zeros((2, SIZE), np.float32))
        self.constant("axis", np.array([1], dtype=np.int64))

    def constant(self, name: str, array: np.ndarray[Any, Any]) -> None:
        self.constants.append(numpy_helper.from_array(array, name))

    def op(self, op: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def split(self, value: str, gates: int) -> list[str]:
        names = [f"v{len(self.nodes)}_{gate}" for gate in range(gates)]
        self.nodes.append(helper.make_node("Split", [value, "parts"], names, axis=1))
        return names

    def row(self, step: int) -> str:
        return self.op("Gather", ["x", f"at{step}"], axis=1)

    def lstm(self, total: str, c: str) -> tuple[str, str]:
        i, f, g, o = self.split(total, 4)
        new = self.op("Mul", [self.op("Sigmoid", [i]), self.op("Tanh", [g])])
        c = self.op("Add", [self.op("Mul", [self.op("Sigmoid", [f]), c]), new])
        return self.op("Mul", [self.op("Sigmoid", [o]), self.op("Tanh", [c])]), c

    def both(self, x: str, h: str, r: str = "r") -> str:
        """As Keras writes the sum."""
        products = self.op("Add", [self.op("MatMul", [x, "w"]), self.op("MatMul", [h, r])])
        return self.op("Add", [products, "b"])

    def model(self, outputs: dict[str, Shape], batch: int | str = "N") -> onnx.ModelProto:
        ports = {"x": [batch, STEPS, IN], "h": [batch, SIZE], "c": [batch, SIZE]}
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ports.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            self.constants,
        )
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def lstm(*, zeros: bool = False, joined: bool = False) -> onnx.ModelProto:
    layer, h, c = Layer(4), "zeros" if zeros else "h", "zeros" if zeros else "c"
    for step in range(STEPS):
        x = layer.row(step)
        if joined:
            side_by_side = layer.op("Concat", [x, h], axis=1)
            total = layer.op("Add", [layer.op("MatMul", [side_by_side, "m"]), "b"])
        else:
            total = layer.both(x, h)
        h, c = layer.lstm(total, c)
    layer.op("Relu", [h], "y")
    return layer.model({"y": [None, SIZE]}, 2 if zeros else "N")


def gru(*, reset_before: bool) -> onnx.ModelProto:
    layer, h = Layer(3), "h"
    for step in range(STEPS):
        x = layer.op("Gemm", [layer.row(step), "w", "b"])
        r, z, n = layer.split(x, 3)
        s = layer.split(layer.op("Gemm", [h, "r", "b"]), 3)
        r, z = (
            layer.op("Sigmoid", [layer.op("Add", pair)])
            for pair in ([r, s[0]], [z, s[1]])
        )  # fmt: skip
        of_state = (
            layer.op("MatMul", [layer.op("Mul", [r, h]), "q"])
            if reset_before
            else layer.op("Mul", [r, s[2]])
        )
        n = layer.op("Tanh", [layer.op("Add", [n, of_state])])
        rest = layer.op("Mul", [layer.op("Sub", ["one", z]), n])
        h = layer.op("Add", [layer.op("Mul", [z, h]), rest])
    layer.op("Relu", [h], "y")
    return layer.model({"y": [None, SIZE]})


MERGED = {
    "an LSTM": (lstm(), ["Transpose", "Unsqueeze", "Unsqueeze", "LSTM", "Squeeze", "Relu"]),
    "from zeros, which were folded": (lstm(zeros=True), ["Transpose", "LSTM", "Squeeze", "Relu"]),
    "input and state side by side": (
        lstm(joined=True), ["Transpose", "Unsqueeze", "Unsqueeze", "LSTM", "Squeeze", "Relu"]
    ),
    "a GRU": (gru(reset_before=False), ["Transpose", "Unsqueeze", "GRU", "Squeeze", "Relu"]),
    "a GRU that resets first": (
        gru(reset_before=True), ["Transpose", "Unsqueeze", "GRU", "Squeeze", "Relu"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MERGED)
def test_merged(name: str) -> None:
    model, expected = MERGED[name]
    result = optimized(model, level=2)
    assert operators(result) == expected
    with warnings.catch_warnings():  # numpy tells of every NaN
        warnings.simplefilter("ignore", RuntimeWarning)
        same(model, result, steps=64)


def test_states_that_are_read_on_the_way() -> None:
    """A reader of the first state stands before the input of the second step; all states are stacked."""
    layer, h, c, wider = Layer(4), "h", "c", []
    for step in range(STEPS):
        x = layer.op("Neg", [layer.row(step)])
        h, c = layer.lstm(layer.both(x, h), c)
        layer.op("Exp", [h], f"y{step}")
        wider.append(layer.op("Unsqueeze", [h, "axis"]))
    layer.op("Concat", wider, "y", axis=1)
    layer.op("Relu", [c], "last")
    model = layer.model({f"y{step}": [None, SIZE] for step in range(STEPS)} | {
        "y": [None, STEPS, SIZE], "last": [None, SIZE]})  # fmt: skip
    result = optimized(model, level=2)
    found = operators(result)
    assert found.count("LSTM") == 1
    assert {"Sigmoid", "Tanh", "MatMul", "Gemm"}.isdisjoint(found)
    assert found.count("Transpose") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        same(model, result, steps=64)


def decoder() -> Layer:
    layer, h, c, x = Layer(4), "h", "c", "first"
    layer.op("Gather", ["x", "at0"], "first", axis=1)
    for _ in range(STEPS):
        h, c = layer.lstm(layer.both(x, h), c)
        x = layer.op("MatMul", [h, "back"])
    layer.op("Relu", [h], "y")
    return layer


def gate_is_read() -> Layer:
    layer, h, c = Layer(4), "h", "c"
    for step in range(STEPS):
        total = layer.both(layer.row(step), h)
        h, c = layer.lstm(total, c)
    layer.op("Add", [layer.op("ReduceMax", [total], keepdims=0), h], "y")
    return layer


def large_offset() -> Layer:
    layer, h, c = Layer(4), "h", "c"
    layer.constants = [one for one in layer.constants if one.name != "b"]
    layer.constant("b", np.full(4 * SIZE, 1e38, np.float32))
    for step in range(STEPS):
        h, c = layer.lstm(layer.both(layer.row(step), h), c)
    layer.op("Relu", [h], "y")
    return layer


REFUSED = {
    "its own answers come in": (decoder(), "computed from the state of an earlier one"),
    "a gate is read": (gate_is_read(), "which is inside of a step"),
    "a large offset": (large_offset(), "whether it overflows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    layer, reason = REFUSED[name]
    result = optimized(layer.model({"y": [None, SIZE]}), level=2)
    assert "LSTM" not in operators(result)
    assert any(reason in one for one in refusals(result, "unrolled-lstm"))


def test_steps_that_are_not_of_one_layer() -> None:
    """Other weights, an LSTM's other state from elsewhere or read on the way: no step follows the one before."""
    for spoilt in ("weights", "state", "reader"):
        layer, h, c = Layer(4), "h", "c"
        layer.constant("r2", np.ones((SIZE, 4 * SIZE), np.float32))
        for step in range(2):
            total = layer.both(layer.row(step), h, "r2" if spoilt == "weights" and step else "r")
            h, made = layer.lstm(total, c)
            c = "c" if spoilt == "state" else made
            if spoilt == "reader":
                layer.op("Relu", [c], f"c{step}")
        layer.op("Relu", [h], "y")
        read = {f"c{step}": [None, SIZE] for step in range(2) if spoilt == "reader"}
        result = optimized(layer.model({"y": [None, SIZE], **read}), level=2)
        assert "LSTM" not in operators(result), spoilt


def test_it_is_one_rewrite() -> None:
    """All states change their places at once: there is no model in between."""
    model = lstm()
    whole = optimize(load(model), Settings(2))
    assert whole.ledger.entries["unrolled-lstm"].matches == 1
    for limit in range(whole.ledger.rewrites):
        result = optimize(load(model), Settings(2, limit=limit))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            same(model, result, steps=64)
