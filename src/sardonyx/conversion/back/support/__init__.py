"""Functions whose source goes into generated programs.

Each is read as text, and written below the imports of a program that calls it. They are written over what torch,
jax.numpy and keras.ops have in common: `xp` is one of these, and `words` has what goes by one name in all programs but
is written by each framework for itself.
"""

from __future__ import annotations

from sardonyx.conversion.back.support import (
    arithmetic,
    attention,
    classical,
    control_flow,
    gathering,
    losses,
    normalizing,
    padding,
    quantizing,
    recurrent,
    resizing,
    sampling,
    sequences,
    signals,
    trees,
)

__all__ = ["HELPERS"]

_MODULES = (
    arithmetic,
    classical,
    attention,
    control_flow,
    gathering,
    losses,
    normalizing,
    padding,
    quantizing,
    recurrent,
    resizing,
    trees,
    sampling,
    sequences,
    signals,
)
HELPERS = frozenset(name for module in _MODULES for name in module.__all__)
