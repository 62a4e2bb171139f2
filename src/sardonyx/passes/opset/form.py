"""A node while it is written anew for another version: its operator, inputs and attributes, to be edited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft

__all__ = ["Form"]


@dataclass
class Form:
    """What stands in a node, before any of it is changed in the graph.

    Attributes:
        node: as it is.
        draft: what is known of its values, and where new tensors and nodes are written down.
        source, target: versions of the operator set.
        op, inputs, attributes: of the node to be.
    """

    node: ir.Node
    draft: Draft
    source: int
    target: int
    op: str
    inputs: list[ir.Value | None]
    attributes: dict[str, ir.Attr]

    @classmethod
    def of(cls, node: ir.Node, draft: Draft, source: int, target: int) -> Form:
        return cls(
            node, draft, source, target, node.op_type, list(node.inputs), dict(node.attributes)
        )

    def rises_over(self, version: int) -> bool:
        """Whether a change that came with this version lies on the way up."""
        return self.source < version <= self.target

    def falls_under(self, version: int) -> bool:
        """Whether a change that came with this version lies on the way down."""
        return self.target < version <= self.source

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute's plain value."""
        found = self.attributes.get(name)
        if found is None or found.is_ref():
            return default
        value = found.value
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def take(self, name: str, default: Any = None) -> Any:
        """An attribute's plain value; the node to be has it no more."""
        value = self.get(name, default)
        self.attributes.pop(name, None)
        return value

    def put(self, name: str, value: Any) -> None:
        """Give the node to be an attribute; None is left out."""
        if value is not None:
            self.attributes[name] = ir.convenience.convert_attributes({name: value})[0]

    def input(self, index: int) -> ir.Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def set_input(self, index: int, value: ir.Value | None) -> None:
        self.inputs += [None] * (index + 1 - len(self.inputs))
        self.inputs[index] = value

    def cut_inputs(self, count: int) -> None:
        """Keep so many inputs, without those at the end that are not there."""
        del self.inputs[count:]
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()

    def tensor(self, array: npt.ArrayLike, dtype: ir.DataType) -> ir.Value:
        """A new initializer of this type; what does not fit into it is rounded."""
        with np.errstate(over="ignore"):
            return self.draft.tensor(np.asarray(array).astype(dtype.numpy()), dtype)

    def is_read(self, output: int) -> bool:
        """Whether anything reads this output of the node."""
        if output >= len(self.node.outputs):
            return False
        value = self.node.outputs[output]
        return bool(value.uses()) or value.is_graph_output()
