"""Every mix of quantized and float nodes, in one compiled model: which node is quantized is an input.

    x ─┬─ Conv(x, w) ───────────────┐
       └─ Conv(Q/DQ(x), Q/DQ(w)) ── Where(switches[i], ·, ·) ─ …       noise[i], signal[i]: sums of squares

To try a mix is to run it: nothing is compiled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.values import Value
from sardonyx.quantization.data import Feeds
from sardonyx.quantization.grid import Array
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.recipe import Recipe, node_input, quantize_node
from sardonyx.quantization.targets import Target
from sardonyx.runtime.session import Session

__all__ = ["Switchboard"]

_SWITCHES, _NOISE, _SIGNAL = "sardonyx.switches", "sardonyx.noise", "sardonyx.signal"


class Switchboard:
    """Runs a model with any of its targets quantized."""

    def __init__(self, recipe: Recipe) -> None:
        self.size = len(recipe.targets)
        self._outputs = len(recipe.model.graph.outputs)
        self._session = Session(_Wiring(recipe).wire())

    def run(self, quantized: Sequence[bool] | Array, feeds: Feeds) -> list[Value]:
        """The model's answers with these targets quantized."""
        return self._run(quantized, feeds)[: self._outputs]

    def noise(self, feeds: Feeds) -> tuple[Array, Array]:
        """Sums of squares at every target's output, each by itself on float inputs: of the error, and of the truth."""
        *_, noise, signal = self._run(np.zeros(self.size, np.bool_), feeds)
        assert isinstance(noise, np.ndarray)
        assert isinstance(signal, np.ndarray)
        return noise, signal

    def _run(self, quantized: Sequence[bool] | Array, feeds: Feeds) -> list[Value]:
        switches = np.asarray(quantized, np.bool_)
        return self._session.run(None, {**feeds, _SWITCHES: switches})


class _Wiring:
    """Puts the forks into a copy of the model."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._writer = Writer(recipe.model)
        self._switches = ir.Value(
            name=_SWITCHES,
            type=ir.TensorType(ir.DataType.BOOL),
            shape=ir.Shape([len(recipe.targets)]),
        )
        self._one = self._writer.initializer("sardonyx.one", np.array([1], np.int64))
        self._noise: list[ir.Value] = []
        self._signal: list[ir.Value] = []

    def wire(self) -> ir.Model:
        graph, writer, recipe = self._writer.model.graph, self._writer, self._recipe
        graph.inputs.append(self._switches)
        others = [self._fork(number, target) for number, target in enumerate(recipe.targets)]
        rounded: dict[ir.Value, ir.Value] = {}
        for target in recipe.targets if recipe.rewrite is None else ():
            for number in target.activations:
                value = node_input(target, number)
                if value not in rounded:
                    rounded[value] = writer.pair(value, recipe.grids[value.name or ""])
        for target, other in zip(recipe.targets, others, strict=True):
            quantize_node(writer, recipe, target, other, rounded)
        for name, sums in ((_NOISE, self._noise), (_SIGNAL, self._signal)):
            joined = writer.call("Concat", sums, name, axis=0)
            joined.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
            graph.append(joined)
            graph.outputs.append(joined.outputs[0])
        return writer.model

    def _fork(self, number: int, target: Target) -> ir.Node:
        """Beside the node a copy to be quantized, and the choice between the two; the copy."""
        writer, twin = self._writer, self._writer.node(target.node)
        truth = twin.outputs[0]
        other = ir.Node(twin.domain, twin.op_type, twin.inputs, twin.attributes.values())
        other.name = other.outputs[0].name = writer.fresh(f"{truth.name}.other")
        answer = other.outputs[0]
        answer.type, answer.shape = truth.type, truth.shape
        index = writer.initializer("sardonyx.number", np.array(number, np.int64))
        switch = writer.call("Gather", [self._switches, index], f"{truth.name}.switch")
        chosen = writer.call("Where", [switch.outputs[0], answer, truth], f"{truth.name}.chosen")
        made = [other, switch, chosen]
        error = self._then(made, "Sub", answer, truth)
        self._noise.append(self._square(made, error))
        self._signal.append(self._square(made, truth))
        writer.stand_in(truth, chosen.outputs[0], made)
        writer.replace(target.node.outputs[0], chosen.outputs[0])
        return other

    def _square(self, made: list[ir.Node], value: ir.Value) -> ir.Value:
        total = self._then(made, "ReduceSumSquare", value, keepdims=0)
        return self._then(made, "Reshape", total, self._one)

    def _then(self, made: list[ir.Node], op: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        node = self._writer.call(op, inputs, f"sardonyx.{op}", **attributes)
        made.append(node)
        return node.outputs[0]
