"""One line of the tables of all rules: a small model, and the operators that one rule alone leaves of it."""

from __future__ import annotations

from typing import NamedTuple

from tests.unit.passes.rules.table import text

__all__ = ["Row"]


class Row(NamedTuple):
    """A rule's example.

    Attributes:
        ports: inputs and outputs, as `float[N] x => float[N] y`.
        nodes: in the text of onnx.
        after: operators that are left, in order.
        constants: initializers.
    """

    ports: str
    nodes: str
    after: str
    constants: str = ""
    opset: int = 17

    def model(self) -> str:
        inputs, outputs = self.ports.split(" => ")
        listed = f"<{self.constants}>" if self.constants else ""
        return text(f"({inputs}) => ({outputs}) {listed} {{ {self.nodes} }}", self.opset)
