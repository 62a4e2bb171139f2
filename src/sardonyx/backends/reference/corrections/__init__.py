"""Our own implementations, where `onnx.reference` has none, departs from the standard, or crawls."""

from __future__ import annotations

from sardonyx.backends.reference.corrections import (
    arithmetic,
    casting,
    constants,
    conv,
    decoding,
    folding,
    gather_scatter,
    generating,
    legacy,
    losses,
    ml_features,
    ml_linear,
    ml_trees,
    normalization,
    ordering,
    padding,
    pointwise,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    resize,
    sampling,
    sequences,
    shaping,
    signal,
    strings,
)
from sardonyx.backends.reference.corrections.table import CORRECTIONS, Correction, find_correction

__all__ = ["CORRECTIONS", "Correction", "find_correction"]

# Importing a family registers it.
_FAMILIES = (
    arithmetic,
    casting,
    constants,
    conv,
    decoding,
    folding,
    gather_scatter,
    generating,
    legacy,
    losses,
    ml_features,
    ml_linear,
    ml_trees,
    normalization,
    ordering,
    padding,
    pointwise,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    resize,
    sampling,
    sequences,
    shaping,
    signal,
    strings,
)
