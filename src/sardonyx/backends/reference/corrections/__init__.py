"""Our own implementations, where `onnx.reference` has none, departs from the standard, or crawls."""

from __future__ import annotations

from sardonyx.backends.reference.corrections import constants, gather_scatter, sequences
from sardonyx.backends.reference.corrections.table import CORRECTIONS, Correction, find_correction

__all__ = ["CORRECTIONS", "Correction", "find_correction"]

# Importing a family registers it.
_FAMILIES = (constants, gather_scatter, sequences)
