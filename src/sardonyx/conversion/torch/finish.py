"""An exporter's model, as the user asked for it: names, order, symbols, opset, and traces that show the user's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.torch.source_lines import keep_user_lines, point_at_test
from sardonyx.errors import ConvertError
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["DEFAULT_OPSET", "Wanted", "finish"]

DEFAULT_OPSET = 20
_SYMBOL = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Wanted:
    """How the result is to look.

    Attributes:
        inputs, outputs: names in order.
        dynamic: the names of open axes, by input name.
        opset: of the result.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic: Dynamic
    opset: int


def finish(model: ir.Model, wanted: Wanted) -> ir.Model:
    """The model with the names that are wanted. Its weights are copies: training on changes nothing in it."""
    _strip_wrapper(model)
    _separate_outputs(model.graph)
    _rename_symbols(model, _symbols(model.graph.inputs, wanted))
    _declare(model.graph, wanted)
    if len(model.graph.outputs) != len(wanted.outputs):
        raise ConvertError(
            f"the exporter wrote {len(model.graph.outputs)} outputs, and the model gives {len(wanted.outputs)}."
        )
    ports = (*model.graph.inputs, *model.graph.outputs)
    _rename(model, dict(zip(ports, (*wanted.inputs, *wanted.outputs), strict=True)))
    for initializer in model.graph.initializers.values():
        if initializer.const_value is not None:
            array = np.array(initializer.const_value.numpy())
            dtype = initializer.const_value.dtype
            initializer.const_value = ir.tensor(array, dtype=dtype, name=initializer.name)
    nodes = list(_nodes(model))
    for node in nodes:
        keep_user_lines(node)
    for node in nodes:
        point_at_test(node)
    if model.graph.opset_imports.get("") != wanted.opset:
        model = optimize(model, Settings(0, opset=wanted.opset)).model
    return model


def _strip_wrapper(model: ir.Model) -> None:
    """Weights go by the names that they have in the user's module."""
    taken = {value.name for value in _values(model)}
    for value in list(model.graph.initializers.values()):
        short = (value.name or "").removeprefix("model.")
        if short != value.name and short and short not in taken:
            value.name = short
            taken.add(short)


def _separate_outputs(graph: ir.Graph) -> None:
    """Every output is a value of its own that a node computes; one given twice, or an input given back, is copied."""
    seen: set[ir.Value] = set()
    for index, output in enumerate(graph.outputs):
        if output in seen or output.producer() is None:
            node = ir.node("Identity", [output])
            copy = node.outputs[0]
            copy.shape, copy.type = output.shape, output.type
            graph.append(node)
            graph.outputs[index] = copy
        seen.add(output)


def _declare(graph: ir.Graph, wanted: Wanted) -> None:
    """Open axes are open, whatever the exporter made of them."""
    for value, name in zip(graph.inputs, wanted.inputs, strict=True):
        if value.shape is None:
            continue
        dims = list(value.shape.dims)
        for axis, symbol in wanted.dynamic.get(name, {}).items():
            dims[axis] = ir.SymbolicDim(symbol)
        value.shape = ir.Shape(dims)


def _symbols(inputs: Sequence[ir.Value], wanted: Wanted) -> dict[str, str]:
    """The exporter's names of sizes → the user's; the first name wins where the exporter has one for two."""
    found: dict[str, str] = {}
    for value, name in zip(inputs, wanted.inputs, strict=True):
        for axis, symbol in wanted.dynamic.get(name, {}).items():
            dim = None if value.shape is None else value.shape[axis]
            text = dim.value if isinstance(dim, ir.SymbolicDim) else None
            if text is not None and _SYMBOL.fullmatch(text):
                found.setdefault(text, symbol)
    return found


def _rename_symbols(model: ir.Model, names: Mapping[str, str]) -> None:
    for value in _values(model):
        if value.shape is None:
            continue
        dims: list[int | ir.SymbolicDim] = []
        for dim in value.shape.dims:
            if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
                renamed = _SYMBOL.sub(lambda m: names.get(m[0], m[0]), dim.value)
                dim = ir.SymbolicDim(renamed)
            dims.append(dim)
        value.shape = ir.Shape(dims)


def _rename(model: ir.Model, names: Mapping[ir.Value, str]) -> None:
    """Give values their names; another value that has one of them makes way."""
    taken = {value.name or "" for value in _values(model)} | set(names.values())
    wanted = set(names.values())
    for value in _values(model):
        if value.name in wanted and names.get(value) != value.name:
            count = 1
            while f"{value.name}_{count}" in taken:
                count += 1
            taken.add(f"{value.name}_{count}")
            value.name = f"{value.name}_{count}"
    for value, name in names.items():
        value.name = name


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    yield from ir.traversal.RecursiveGraphIterator(model.graph)
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function)


def _values(model: ir.Model) -> list[ir.Value]:
    """Every value of the graph and of its bodies, once."""
    found: dict[ir.Value, None] = dict.fromkeys(model.graph.inputs)
    found.update(dict.fromkeys(model.graph.initializers.values()))
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        found.update(dict.fromkeys(node.outputs))
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                body = attribute.as_graph()
                found.update(dict.fromkeys(body.inputs))
                found.update(dict.fromkeys(body.initializers.values()))
    return list(found)
