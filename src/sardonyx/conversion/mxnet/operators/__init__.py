"""What MXNet's operators are in ONNX, one family a file."""

from __future__ import annotations

import importlib

from sardonyx.conversion.mxnet.operators.table import TABLE

__all__ = ["TABLE"]

for _family in (
    "elementwise",
    "indices",
    "layers",
    "normalization",
    "recurrent",
    "reductions",
    "views",
):
    importlib.import_module(f"{__name__}.{_family}")
