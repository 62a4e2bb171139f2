"""What CoreML's models other than networks are in ONNX, one family a file."""

from __future__ import annotations

import importlib

from sardonyx.conversion.coreml.stage import STAGES

__all__ = ["STAGES"]

for _family in ("encoding", "linear", "machines", "scaling", "trees"):
    importlib.import_module(f"{__name__}.{_family}")
