"""What was taken out of a model, layer by layer, and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sardonyx.quantization.report import Accuracy
from sardonyx.sizes import Size

__all__ = ["LayerReport", "PruningReport"]


@dataclass(frozen=True)
class LayerReport:
    """What became of one layer.

    Attributes:
        node: as a person names it: `Conv 'layer1.0'`.
        op: its operator.
        before, after: channels that it makes, weights that are not zero, or its rank, as the method has it.
        reason: why it was left alone; empty where it was not.
        source: the user's own line, where the exporter recorded one.
    """

    node: str
    op: str
    before: int
    after: int
    reason: str = ""
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PruningReport:
    """The account of a pruning.

    Attributes:
        method: as asked for: `channels 50%`.
        counted: what `before` and `after` of a layer count.
        layers: in the graph's order.
        share: that was taken; under `max_drop` it may be less than was asked for.
        bytes_before, bytes_after: of the serialized model, weights included.
        work_before, work_after: multiply-adds of one run, a number or an expression over open sizes.
        accuracy: None where there was nothing to measure it on.
        notes: what a reader should know.
    """

    method: str
    counted: str
    layers: tuple[LayerReport, ...]
    share: float
    bytes_before: int
    bytes_after: int
    work_before: Size = 0
    work_after: Size = 0
    accuracy: Accuracy | None = None
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[LayerReport, ...]:
        """Layers that were left as they are, with their reasons."""
        return tuple(layer for layer in self.layers if layer.reason)

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["work_before"], found["work_after"] = (
            size if isinstance(size, int) else str(size)
            for size in (self.work_before, self.work_after)
        )
        return found
