"""Fourier transforms, and the parts of complex numbers, which are pairs of floats along one more axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.table import Site, operator

__all__ = ["part"]


@operator("RFFT2D", takes_pairs=True)
def rfft2d(site: Site) -> ir.Value:
    """Of the last two axes, cut or filled up with zeros to the lengths that are given."""
    graph, rank = site.graph, site.rank(0)
    lengths = site.constant(1, "the list of lengths").reshape(-1).tolist()
    if len(lengths) != 2 or min(lengths) < 1 or rank < 2:
        raise site.refuse(f"it transforms {rank} axes with the lengths {lengths}.")
    height, width = (graph.constant(length, np.int64) for length in lengths)
    pairs = graph.op("Unsqueeze", site.real(0), graph.constant([-1], np.int64))
    along_width = graph.constant(rank - 1, np.int64)
    made = graph.op("DFT", pairs, width, along_width, onesided=1)
    return graph.op("DFT", made, height, graph.constant(rank - 2, np.int64))


def part(site: Site, index: int) -> ir.Value:
    """The real parts (0) or the imaginary ones (1)."""
    return site.graph.op("Gather", site.raw(0), site.graph.constant(index, np.int64), axis=-1)


@operator("REAL", "IMAG", takes_pairs=True)
def parts(site: Site) -> ir.Value:
    return part(site, 0 if site.operator.kind == "REAL" else 1)


@operator("COMPLEX_ABS", takes_pairs=True)
def length(site: Site) -> ir.Value:
    axis = site.graph.constant([-1], np.int64)
    return site.graph.op("ReduceL2", site.raw(0), axis, keepdims=0)
