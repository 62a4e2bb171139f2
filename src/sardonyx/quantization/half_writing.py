"""Writing a model with some nodes in half precision: constants stored so, and casts where types meet."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.quantization.half import HalfPlan
from sardonyx.quantization.targets import constant_of

__all__ = ["write_half"]

_FLOAT = ir.DataType.FLOAT


def write_half(model: ir.Model, plan: HalfPlan, dtype: ir.DataType) -> ir.Model:
    """The model with these nodes in half precision; inputs and outputs keep their types."""
    copy = model.clone()
    copy.meta.update(model.meta)
    graph = copy.graph
    twins = dict(zip(model.graph, graph, strict=True))
    places = {twins[node]: where for node, where in plan.converted.items()}
    half = {node.outputs[n] for node, (_, gives) in places.items() for n in gives}
    casts: dict[tuple[ir.Value, bool], ir.Value] = {}
    first = next(iter(graph))

    def cast(value: ir.Value, to_half: bool) -> ir.Value:
        key = (value, to_half)
        if key not in casts:
            casts[key] = _cast(graph, first, value, dtype if to_half else _FLOAT)
        return casts[key]

    for node in list(copy.graph.all_nodes()):
        takes = places[node][0] if node in places else frozenset()
        for number, value in enumerate(node.inputs):
            if value is None or value.dtype not in (_FLOAT, None):
                continue
            if number in takes and value not in half:
                node.replace_input_with(number, cast(value, True))
            elif number not in takes and value in half:
                node.replace_input_with(number, cast(value, False))
    for number, value in enumerate(graph.outputs):
        if value in half:
            wide = cast(value, False)
            value.name, wide.name = f"{value.name}.half", value.name
            wide.shape, wide.type = value.shape, ir.TensorType(_FLOAT)
            graph.outputs[number] = wide
    for value in half:
        value.type = ir.TensorType(dtype)
    unread = [
        n
        for n, v in graph.initializers.items()
        if not v.uses() and not v.is_graph_output() and not v.is_graph_input()
    ]
    for name in unread:
        del graph.initializers[name]
    return copy


def _cast(graph: ir.Graph, first: ir.Node, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    """The value in another type: a constant as another constant, what is computed by a Cast."""
    constant = constant_of(value)
    name = f"{value.name}.{dtype.name.lower()}"
    if constant is not None:
        tensor = ir.tensor(constant.astype(dtype.numpy()), dtype=dtype, name=name)
        made = ir.Value(name=name, const_value=tensor, type=ir.TensorType(dtype), shape=value.shape)
        graph.register_initializer(made)
        return made
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", dtype)])
    node.name = node.outputs[0].name = name
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(dtype), value.shape
    producer = value.producer()
    if producer is None:
        graph.insert_before(first, [node])
    else:
        graph.insert_after(producer, [node])
    return node.outputs[0]
