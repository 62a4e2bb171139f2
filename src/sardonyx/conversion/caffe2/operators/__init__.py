"""What Caffe2's operators are in ONNX, one family a file."""

from __future__ import annotations

import importlib

from sardonyx.conversion.caffe2.operators.table import FILLS, TABLE

__all__ = ["FILLS", "TABLE"]

for _family in ("elementwise", "fills", "layers", "views", "windows"):
    importlib.import_module(f"{__name__}.{_family}")
