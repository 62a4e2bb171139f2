"""Entries that all operator tables share: what is said differs from framework to framework, not when it is said."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.common import (
    attention,
    choosing,
    classical,
    control_flow,
    elementwise,
    gathering,
    losses,
    machines,
    normalizing,
    pooling,
    products,
    quantizing,
    recurrent,
    reducing,
    resizing,
    sampling,
    scores,
    sequences,
    signals,
    slicing,
    trees,
    views,
)
from sardonyx.conversion.back.language import Entry

__all__ = ["COMMON"]

COMMON: Mapping[str, Entry] = {
    **elementwise.ENTRIES,
    **views.ENTRIES,
    **slicing.ENTRIES,
    **gathering.ENTRIES,
    **reducing.ENTRIES,
    **choosing.ENTRIES,
    **products.ENTRIES,
    **pooling.ENTRIES,
    **normalizing.ENTRIES,
    **resizing.ENTRIES,
    **quantizing.ENTRIES,
    **recurrent.ENTRIES,
    **control_flow.ENTRIES,
    **classical.ENTRIES,
    **scores.ENTRIES,
    **trees.ENTRIES,
    **machines.ENTRIES,
    **attention.ENTRIES,
    **sampling.ENTRIES,
    **losses.ENTRIES,
    **sequences.ENTRIES,
    **signals.ENTRIES,
}
