"""The model under inspection, with the facts that more than one rule asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import onnx_ir as ir

from sardonyx.errors import SardonyxError
from sardonyx.inspection.findings import Finding, Severity
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops.facts import Facts
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.sizes import Size

__all__ = ["Checksum", "StoredTensor", "Subject", "about"]


@dataclass(frozen=True)
class Checksum:
    """What the model says the SHA-1 of one of its data files is."""

    location: str
    sha1: str


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in the model: an initializer, or one that a node carries as an attribute."""

    where: str  # as a person would name it
    tensor: ir.TensorProtocol
    node: ir.Node | None = None  # the node whose attribute it is


class Subject:
    """A model and what can be said about it without running it."""

    def __init__(self, model: ir.Model, checksums: tuple[Checksum, ...] = ()) -> None:
        self.model = model
        self.checksums = checksums

    @cached_property
    def bodies(self) -> tuple[ir.Graph | ir.Function, ...]:
        """The main graph and the functions; their subgraphs are reached through `nodes`."""
        return (self.model.graph, *self.model.functions.values())

    @cached_property
    def nodes(self) -> tuple[ir.Node, ...]:
        """Every node, those in subgraphs and functions too."""
        return tuple(node for body in self.bodies for node in body.all_nodes())

    @cached_property
    def tensors(self) -> tuple[StoredTensor, ...]:
        """Every tensor that the model stores."""
        return tuple(self._tensors())

    @cached_property
    def opsets(self) -> dict[str, int]:
        return {normal_domain(d): v for d, v in self.model.opset_imports.items()}

    @cached_property
    def inference(self) -> tuple[Shapes | None, SardonyxError | None]:
        """The shapes, or why there are none."""
        try:
            return infer_shapes(self.model), None
        except SardonyxError as error:
            return None, error

    @property
    def shapes(self) -> Shapes | None:
        return self.inference[0]

    def facts(self, value: ir.Value) -> Facts | None:
        """What is known of a value; None inside functions, whose callers decide, and without shapes."""
        if self.shapes is None:
            return None
        try:
            return self.shapes.of(value)
        except KeyError:
            return None

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """The element type of a tensor, inferred or else declared."""
        if value is None:
            return None
        facts = self.facts(value)
        found = facts.dtype if facts is not None else None
        return found if found is not None else value.dtype

    def elements(self, value: ir.Value) -> Size | None:
        facts = self.facts(value)
        return facts.elements if facts is not None else None

    def version_of(self, node: ir.Node) -> int | None:
        """The opset version that a node of the main graph is written in."""
        return self.opsets.get(normal_domain(node.domain))

    def _tensors(self) -> Iterator[StoredTensor]:
        for graph in self.model.graphs():
            for name, value in graph.initializers.items():
                if value.const_value is not None:
                    yield StoredTensor(f"tensor {name[:120]!r}", value.const_value)
        for node in self.nodes:
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    continue
                where = describe(node)
                if node.op_type != "Constant":
                    where = f"attribute {attribute.name[:120]!r} of {where}"
                if attribute.type == ir.AttributeType.TENSOR:
                    yield StoredTensor(where, attribute.as_tensor(), node)
                elif attribute.type == ir.AttributeType.TENSORS:
                    for tensor in attribute.as_tensors():
                        yield StoredTensor(where, tensor, node)


def about(
    node: ir.Node, severity: Severity, rule: str, message: str, hint: str | None = None
) -> Finding:
    """A finding about a node, with its name and source line."""
    return Finding(severity, rule, message, describe(node), source_line(node), hint)
