"""What `inspect` answers: plain frozen data, with sizes that are numbers or expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx.errors import ShapeError
from sardonyx.inspection.readable import bytes_text, count_text, size_text
from sardonyx.sizes import Size, evaluate, substitute, symbols

__all__ = [
    "ControlFlow",
    "Inspection",
    "NodeRow",
    "PortRow",
    "Totals",
    "WeightRow",
    "add_up",
    "bind",
]

_STAND_IN = 32


def bind(size: Size | None, dims: Mapping[str, int]) -> Size | None:
    """The size with the given dimensions put in; what is not known stays None."""
    return size if size is None or not dims else substitute(size, dims)


def add_up(sizes: Iterable[Size | None]) -> Size:
    """The sum of what is known."""
    total: Size = 0
    for size in sizes:
        if size is not None:
            total = total + size
    return total


def _weigh(size: Size | None) -> int:
    """A number to rank by: dimensions without a value count as if each were 32."""
    if size is None:
        return 0
    try:
        return evaluate(size, dict.fromkeys(symbols(size), _STAND_IN))
    except ShapeError:  # dimensions that cannot be equal, here forced to be
        return 0


def _json(size: Size | str | None) -> int | str | None:
    return size if size is None or isinstance(size, int) else str(size)


@dataclass(frozen=True)
class PortRow:
    """An input or output: `PortRow("x", "tensor(float)", (batch, 64))`."""

    name: str
    type: str
    shape: tuple[Size | str | None, ...] | None  # None: the rank is not known

    @property
    def shape_text(self) -> str:
        if self.shape is None:
            return "[...]" if self.type.startswith("tensor(") else ""
        return "[" + ", ".join("?" if d is None else str(d) for d in self.shape) + "]"

    def to_json(self) -> dict[str, Any]:
        shape = None if self.shape is None else [_json(d) for d in self.shape]
        return {"name": self.name, "type": self.type, "shape": shape}


@dataclass(frozen=True)
class WeightRow:
    """The initializers of one element type."""

    dtype: str
    tensors: int
    elements: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "tensors": self.tensors,
            "elements": self.elements,
            "bytes": self.bytes,
        }


@dataclass(frozen=True)
class NodeRow:
    """One node and what it costs; a cost is None where no rule or no size is known."""

    name: str
    op: str
    source: str | None
    inside: str | None  # the If, Loop or Scan that it belongs to
    outputs: tuple[str, ...]
    macs: Size | None
    flops: Size | None
    bytes_read: Size | None
    bytes_written: Size | None

    @property
    def known(self) -> bool:
        costs = (self.macs, self.flops, self.bytes_read, self.bytes_written)
        return not any(cost is None for cost in costs)

    @property
    def bytes_moved(self) -> Size | None:
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "op": self.op,
            "source": self.source,
            "inside": self.inside,
            "outputs": list(self.outputs),
            "macs": _json(self.macs),
            "flops": _json(self.flops),
            "bytes_read": _json(self.bytes_read),
            "bytes_written": _json(self.bytes_written),
        }


@dataclass(frozen=True)
class ControlFlow:
    """How much of the model lies in bodies of If, Loop and Scan."""

    bodies: int
    nodes: int


@dataclass(frozen=True)
class Totals:
    """The sums over all nodes; bodies of If, Loop and Scan are counted as if each ran once.

    Attributes:
        macs, flops, bytes_read, bytes_written: sums of what is known.
        unknown: nodes with a cost that is not known; the sums leave those costs out.
        control_flow: what was counted once though it may run often, or never.
    """

    macs: Size
    flops: Size
    bytes_read: Size
    bytes_written: Size
    unknown: int
    control_flow: ControlFlow

    def to_json(self) -> dict[str, Any]:
        return {
            "macs": _json(self.macs),
            "flops": _json(self.flops),
            "bytes_read": _json(self.bytes_read),
            "bytes_written": _json(self.bytes_written),
            "nodes_with_unknown_cost": self.unknown,
            "nodes_in_control_flow": self.control_flow.nodes,
        }


@dataclass(frozen=True)
class Inspection:
    """Everything that `inspect` can say about a model.

    Attributes:
        name: the file, or what the model came as.
        file_bytes: of the model file itself; None for a model that came otherwise.
        external_files: data files beside it, with their sizes.
        operators: nodes by operator, as written (functions are counted once, not per call).
        nodes: one row a node, functions written out at their calls.
        dims: the values that the caller gave to symbolic dimensions.
    """

    name: str
    file_bytes: int | None
    external_files: dict[str, int]
    ir_version: int
    producer: str
    model_version: int
    opsets: dict[str, int]
    functions: tuple[str, ...]
    metadata: dict[str, str]
    inputs: tuple[PortRow, ...]
    outputs: tuple[PortRow, ...]
    weights: tuple[WeightRow, ...]
    operators: dict[str, int]
    nodes: tuple[NodeRow, ...]
    totals: Totals
    dims: dict[str, int]

    @property
    def parameters(self) -> int:
        """Elements of all initializers."""
        return sum(row.elements for row in self.weights)

    @property
    def weight_bytes(self) -> int:
        return sum(row.bytes for row in self.weights)

    @property
    def initializers(self) -> int:
        return sum(row.tensors for row in self.weights)

    def most_expensive(self, count: int) -> list[NodeRow]:
        """The nodes that compute most; among equals, those that move most."""

        def order(row: NodeRow) -> tuple[int, int]:
            return (-2 * _weigh(row.macs) - _weigh(row.flops), -_weigh(row.bytes_moved))

        return sorted(self.nodes, key=order)[:count]

    def __str__(self) -> str:
        totals = self.totals
        return (
            f"{self.name}: {len(self.nodes)} nodes, {count_text(self.parameters)} parameters "
            f"({bytes_text(self.weight_bytes)}), {size_text(totals.macs, 'MAC')}, "
            f"{size_text(totals.bytes_read, 'B')} read, {size_text(totals.bytes_written, 'B')} written"
        )

    def to_json(self) -> dict[str, Any]:
        """The same as plain data: sizes are numbers, or text where they depend on a dimension."""
        return {
            "name": self.name,
            "file_bytes": self.file_bytes,
            "external_files": dict(self.external_files),
            "ir_version": self.ir_version,
            "producer": self.producer,
            "model_version": self.model_version,
            "opsets": dict(self.opsets),
            "functions": list(self.functions),
            "metadata": dict(self.metadata),
            "inputs": [port.to_json() for port in self.inputs],
            "outputs": [port.to_json() for port in self.outputs],
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "initializers": self.initializers,
            "weights": [row.to_json() for row in self.weights],
            "operators": dict(self.operators),
            "dims": dict(self.dims),
            "totals": self.totals.to_json(),
            "nodes": [row.to_json() for row in self.nodes],
        }
