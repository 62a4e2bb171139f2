"""What was done to a model and what it cost: node by node, and in all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Accuracy", "NodeReport", "Report"]


@dataclass(frozen=True)
class NodeReport:
    """What became of one node.

    Attributes:
        node: as a person names it: `Conv 'layer1.0'`.
        op: its operator.
        scheme: the types it works with now, as `uint8 x int8`; `float32` where it was left alone.
        reason: why it was left alone; empty where it was not.
        sqnr: decibels of its own output over the error that quantizing it alone makes; None where not measured.
        change: by how much the model's outputs change (1 - cosine) with it alone quantized; None where not measured.
        source: the user's own line, where the exporter recorded one.
    """

    node: str
    op: str
    scheme: str
    reason: str = ""
    sqnr: float | None = None
    change: float | None = None
    source: str | None = None

    @property
    def is_quantized(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Accuracy:
    """How near the answers are to those of the model as it was.

    Attributes:
        samples: how many batches it was measured on.
        cosine: of the outputs, the worst of them.
        sqnr: decibels of the outputs over their error, the worst of them.
        metric: of the user, before and after; None where there was none.
    """

    samples: int
    cosine: float
    sqnr: float
    metric: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Report:
    """The account of a quantization.

    Attributes:
        method: as asked for, with its types: `static uint8 x int8`.
        nodes: those that were looked at, in the graph's order.
        bytes_before, bytes_after: of the serialized model, weights included.
        accuracy: None where there was nothing to measure it on.
        notes: what a reader should know, as that the calibration data were random.
    """

    method: str
    nodes: tuple[NodeReport, ...]
    bytes_before: int
    bytes_after: int
    accuracy: Accuracy | None = None
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[NodeReport, ...]:
        """Nodes that were left as they are, with their reasons."""
        return tuple(node for node in self.nodes if not node.is_quantized)

    @property
    def ranked(self) -> tuple[NodeReport, ...]:
        """Nodes whose sensitivity was measured, the most sensitive first."""
        measured = [node for node in self.nodes if node.change is not None]
        return tuple(sorted(measured, key=lambda n: (-(n.change or 0.0), n.sqnr or 0.0)))

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "accuracy": None if self.accuracy is None else self.accuracy.to_json(),
            "nodes": [node.to_json() for node in self.nodes],
            "notes": list(self.notes),
        }
