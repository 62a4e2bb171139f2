"""One node of a model on its way back, as any framework's operator table reads it."""

from __future__ import annotations

from typing import NoReturn

import onnx_ir as ir

from sardonyx.conversion.back.refusal import refusal
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape
from sardonyx.passes.shapes import Shapes

__all__ = ["NodeReader"]


class NodeReader:
    """What a node says, and what is known of its inputs and outputs.

    Attributes:
        call: its attributes, and what is known about its inputs.
        outputs: what is known about its outputs.
        framework: that it is written for, as refusals name it.
    """

    def __init__(self, node: ir.Node, version: int, shapes: Shapes, framework: str) -> None:
        facts = [None if value is None else shapes.of(value) for value in node.inputs]
        self.node = node
        self.call = Call(node, facts, version)
        self.outputs = [shapes.of(value) for value in node.outputs]
        self.framework = framework

    def refuse(self, reason: str, hint: str | None = None) -> NoReturn:
        """Say why this node cannot be written."""
        raise refusal(self.node, f"{self.framework}: {reason}", hint)

    def word(self, name: str, default: str, *allowed: str) -> str:
        """An attribute that is one of a few words; nothing else of a model's text is ever written."""
        value = self.call.str_attr(name, default)
        if value not in (default, *allowed):
            self.refuse(f"attribute {name} is {value[:40]!r}")
        return value

    def flag(self, name: str, default: int = 0) -> bool:
        return bool(self.call.int_attr(name, default))

    def axis(self, default: int = 0, *, name: str = "axis") -> int:
        """An axis of the first input, counted from the front."""
        return self.call.axis(self.call.int_attr(name, default), self.rank(0))

    def has(self, index: int) -> bool:
        return self.call.has(index)

    def wants(self, output: int) -> bool:
        """Whether anybody reads an output."""
        if output >= len(self.node.outputs) or not self.node.outputs[output].name:
            return False
        value = self.node.outputs[output]
        return bool(value.uses()) or value.is_graph_output()

    @property
    def count(self) -> int:
        """Of inputs."""
        return len(self.node.inputs)

    def facts(self, index: int) -> Facts:
        return self.call.input(index)

    def shape(self, index: int) -> Shape:
        """The shape of an input; a rank that only a run would tell is refused."""
        found = self.call.shape(index)
        if found is None:
            self.refuse(f"the rank of input {index} is not known before a run")
        return found

    def rank(self, index: int) -> int:
        return len(self.shape(index))
