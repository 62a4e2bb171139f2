"""An exporter's model, as the user asked for it: names, order, open axes, opset, and weights by the model's names."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tensorflow.export import port
from sardonyx.conversion.tensorflow.subject import Subject
from sardonyx.errors import ConvertError
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.runtime.folding import MAX_FOLDED_BYTES, fold_node

__all__ = ["finish"]

# Orders of axes that weights are stored in: as they are, of products, of convolutions.
_ORDERS = ((), (1, 0), (3, 2, 0, 1), (2, 3, 0, 1), (2, 1, 0))


def finish(model: ir.Model, subject: Subject, opset: int | None) -> ir.Model:
    """The model with the names that are wanted, without the transposes that its layers came with."""
    graph = model.graph
    if len(graph.outputs) != len(subject.outputs):
        raise ConvertError(
            f"the exporter wrote {len(graph.outputs)} outputs, and the model gives {len(subject.outputs)}."
        )
    _make_way(model, {*subject.inputs, *subject.outputs})
    _set_inputs(graph, subject)
    for index, (value, name) in enumerate(zip(list(graph.outputs), subject.outputs, strict=True)):
        node = ir.node("Identity", [value])
        copy = node.outputs[0]
        copy.name, copy.type, copy.shape = name, value.type, None
        graph.append(node)
        graph.outputs[index] = copy
    _name_weights(graph, subject)
    fold = partial(fold_node, most=MAX_FOLDED_BYTES)
    return optimize(model, Settings(2, opset=opset), evaluate=fold).model


def _set_inputs(graph: ir.Graph, subject: Subject) -> None:
    """In the user's order; an input that nothing reads is there too."""
    found = {(value.name or "").partition(":")[0]: value for value in graph.inputs}
    ports = []
    for index, (name, spec) in enumerate(zip(subject.inputs, subject.specs, strict=True)):
        dtype = ir.DataType.from_numpy(np.dtype(spec.dtype.as_numpy_dtype))
        value = found.pop(port(index), None) or ir.Value()
        axes = subject.dynamic.get(name, {})
        value.name, value.type = name, ir.TensorType(dtype)
        value.shape = ir.Shape([axes.get(axis, size) for axis, size in enumerate(spec.shape)])
        ports.append(value)
    if found:
        raise ConvertError(f"the exporter has inputs that the model has not: {', '.join(found)}.")
    graph.inputs.clear()
    graph.inputs.extend(ports)


def _make_way(model: ir.Model, names: set[str]) -> None:
    """Other values that have one of these names get another one."""
    for value in _values(model):
        if value.name in names:
            value.name = f"{value.name}_inner"


def _values(model: ir.Model) -> list[ir.Value]:
    found = [*model.graph.inputs, *model.graph.initializers.values()]
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        found += node.outputs
    return found


def _name_weights(graph: ir.Graph, subject: Subject) -> None:
    """A weight goes by the name that the user's model has for it, known by its numbers."""
    by_bytes: dict[tuple[tuple[int, ...], bytes], str] = {}
    for name, variable in subject.variables.items():
        array = np.asarray(variable)
        for order in _ORDERS:
            if not order or len(order) == array.ndim:
                turned: Any = array.transpose(order) if order else array
                by_bytes.setdefault((turned.shape, turned.tobytes()), name)
    taken = {value.name for value in graph.initializers.values()}
    for value in list(graph.initializers.values()):
        if value.const_value is None or value.const_value.size < 2:
            continue
        array = value.const_value.numpy()
        found = by_bytes.get((array.shape, array.tobytes()))
        if found is not None and found not in taken:
            value.name = found
            taken.add(found)
