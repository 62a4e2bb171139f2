"""Where each node of a model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Placement"]


@dataclass(frozen=True)
class Placement:
    """Where one node runs, and why there."""

    node: str
    op: str
    backend: Literal["native", "reference"]
    reason: str
    source: str | None  # the user's own line, where the exporter recorded one
