"""The table that the families of layers fill."""

from __future__ import annotations

from sardonyx.conversion.stored.layer import Table

__all__ = ["CHANNELS", "TABLE"]

TABLE = Table("CoreML", {"isUpdatable"})
CHANNELS = -3  # the axis of channels, whatever the rank
