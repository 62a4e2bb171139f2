"""Every tensor that a model stores, wherever it hides: initializers, attributes and defaults, in graphs and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

import onnx_ir as ir

from sardonyx.model.carried.sparse import SparseTensor
from sardonyx.model.contents import bodies_in

__all__ = ["replace_tensors", "stored_tensors"]


def stored_tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Each tensor as the model has it; of a sparse one, the whole and then its parts."""
    for body in bodies_in(model):
        if isinstance(body, ir.Graph):
            for value in body.initializers.values():
                if value.const_value is not None:
                    yield from _with_parts(value.const_value)
        for attributes in _attributes(body):
            for attribute in attributes.values():
                for tensor in _tensors(attribute):
                    yield from _with_parts(tensor)


def replace_tensors(
    model: ir.Model, replace: Callable[[ir.TensorProtocol, bool], ir.TensorProtocol]
) -> None:
    """Put `replace(tensor, is_initializer)` in the place of every tensor, in place."""
    for body in bodies_in(model):
        if isinstance(body, ir.Graph):
            for value in body.initializers.values():
                if value.const_value is not None:
                    value.const_value = replace(value.const_value, True)
        for attributes in _attributes(body):
            for name, attribute in list(attributes.items()):
                old = _tensors(attribute)
                new = [replace(tensor, False) for tensor in old]
                if any(a is not b for a, b in zip(old, new, strict=True)):
                    held = new[0] if attribute.type == ir.AttributeType.TENSOR else new
                    attributes[name] = ir.Attr(
                        name, attribute.type, held, doc_string=attribute.doc_string
                    )


def _attributes(body: ir.Graph | ir.Function) -> Iterator[MutableMapping[str, ir.Attr]]:
    if isinstance(body, ir.Function):
        yield body.attributes
    for node in body:
        yield node.attributes


def _tensors(attribute: ir.Attr) -> list[ir.TensorProtocol]:
    if attribute.is_ref() or attribute.value is None:
        return []
    if attribute.type == ir.AttributeType.TENSOR:
        return [attribute.value]
    return list(attribute.value) if attribute.type == ir.AttributeType.TENSORS else []


def _with_parts(tensor: ir.TensorProtocol) -> Iterator[ir.TensorProtocol]:
    yield tensor
    if isinstance(tensor, SparseTensor):
        yield from (tensor.values, tensor.indices)
