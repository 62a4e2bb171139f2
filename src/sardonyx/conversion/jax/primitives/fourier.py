"""The Fourier transform of pairs of real and imaginary parts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.complex_numbers import DFT
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []


@primitive(DFT.name)
def transform(site: Site, x: ir.Value) -> ir.Value:
    axis = site.graph.constant(int(site.params["axis"]), np.int64)
    flags = {name: int(site.params[name]) for name in ("inverse", "onesided")}
    return site.graph.op("DFT", x, None, axis, **flags)
