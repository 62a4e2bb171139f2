"""A model as a Keras 3 model: one layer over keras.ops, with the weights as its own.

A saved model holds the graph as ONNX without its weights, and the program is written again from it when it is loaded:
no code is read from the file.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.keras.language import KERAS
from sardonyx.conversion.back.prepare import prepare_back
from sardonyx.conversion.back.source import load_source, module_source
from sardonyx.conversion.back.text import function_lines
from sardonyx.conversion.back.weights import weight_array
from sardonyx.conversion.back.writer import Program, write
from sardonyx.errors import UnsupportedError
from sardonyx.model.load import load

__all__ = ["OnnxLayer", "make_model"]

_TITLE = "An ONNX model over keras.ops, written by Sardonyx."
_SMALL = 1 << 10  # elements of tensors that a graph keeps: settings and shapes are among them


@keras.saving.register_keras_serializable(package="sardonyx")
class OnnxLayer(keras.layers.Layer):  # type: ignore[misc]
    """A graph as a layer. `source` is its program."""

    def __init__(self, graph: str, trained: list[str], **options: Any) -> None:
        super().__init__(**{**options, "autocast": False})  # float16 stays what it is
        self.graph = graph
        self.trained = list(trained)
        model = load(zlib.decompress(base64.b64decode(graph)))
        self._take_in(model)

    def _take_in(self, model: ir.Model) -> None:
        prepared, shapes = prepare_back(model, KERAS)
        program = write(prepared, shapes, KERAS, "apply")
        self.source = _source(program)
        self._apply = load_source(self.source, "keras")["apply"]
        self._named = {}
        for name, weight in program.weights.items():
            array = weight_array(weight)
            kind = array.dtype.name
            wide = kind == "int64" and keras.backend.backend() == "jax"
            self._named[name] = self.add_weight(
                shape=array.shape,
                dtype="int32" if wide else kind,
                trainable=name in self.trained,
                name=name,
                initializer="zeros",
            )
        self.built = True

    def fill(self, arrays: dict[str, Any]) -> None:
        """Give the weights their numbers."""
        for name, array in arrays.items():
            self._named[name].assign(array)

    def call(self, *inputs: Any) -> Any:
        given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        return self._apply({n: w.value for n, w in self._named.items()}, *given)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return {**config, "graph": self.graph, "trained": self.trained}


def make_model(model: ir.Model) -> Any:
    """A `keras.Model` that computes what the model does; `model.source` is its program."""
    prepared, shapes = prepare_back(model, KERAS)
    program = write(prepared, shapes, KERAS, "apply")
    trained = [name for name, weight in program.weights.items() if weight.trained]
    layer = OnnxLayer(_graph(prepared, program), trained, name="onnx")
    layer.fill({name: weight_array(one) for name, one in program.weights.items()})
    inputs = []
    for value in prepared.graph.inputs:
        if value.name in program.inputs:
            facts = shapes.of(value)
            if facts.shape is None or facts.dtype is None:
                raise UnsupportedError(
                    "keras: its rank or type is not known.",
                    where=f"input {(value.name or '')[:80]!r}",
                )
            sizes = [size if isinstance(size, int) else None for size in facts.shape]
            kind = facts.dtype.numpy().name
            inputs.append(keras.Input(batch_shape=tuple(sizes), dtype=kind))
    if not inputs:
        raise UnsupportedError("keras: the model has no inputs, and Keras has no such models.")
    outputs = layer(*inputs)
    made = keras.Model(inputs if len(inputs) != 1 else inputs[0], outputs)
    made.source = layer.source
    return made


def _source(program: Program) -> str:
    lines = list(function_lines(program.function, ["p"]))
    return module_source(KERAS, _TITLE, program.helpers, lines)


def _graph(model: ir.Model, program: Program) -> str:
    """The graph as text, with zeros in the place of large weights."""
    copy = model.clone()
    large = {one.original for one in program.weights.values() if one.tensor.size > _SMALL}
    for name, value in copy.graph.initializers.items():
        tensor = value.const_value
        if name in large and tensor is not None:
            zeros = np.zeros(tuple(tensor.shape.numpy()), tensor.dtype.numpy())
            value.const_value = ir.Tensor(zeros, tensor.dtype, name=name)
    proto = ir.serde.serialize_model(copy)
    return base64.b64encode(zlib.compress(proto.SerializeToString())).decode("ascii")
