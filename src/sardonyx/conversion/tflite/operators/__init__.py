"""The table of operators, one family a file; importing this package fills it."""

from __future__ import annotations

from sardonyx.conversion.tflite.operators import (
    control_flow,
    elementwise,
    gathers,
    layers,
    recurrent,
    reductions,
    spectra,
    strided_slice,
    views,
    windows,
)

__all__ = [
    "control_flow",
    "elementwise",
    "gathers",
    "layers",
    "recurrent",
    "reductions",
    "spectra",
    "strided_slice",
    "views",
    "windows",
]
