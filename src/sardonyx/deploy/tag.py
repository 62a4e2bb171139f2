"""How a shared artifact is told from any other library: one name beside its own, where the prefix of all others stands."""

from __future__ import annotations

__all__ = ["TAG"]

TAG = "sardonyx_artifact"
