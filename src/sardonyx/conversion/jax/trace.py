"""The jaxpr of a function: its primitives for arrays of the example's types, with symbols for open axes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax import export
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr

from sardonyx.conversion.jax.complex_numbers import without_complex
from sardonyx.conversion.jax.failure import explain
from sardonyx.conversion.jax.reference import Reference
from sardonyx.conversion.jax.table import jaxpr_of
from sardonyx.conversion.request import Dynamic

__all__ = ["Traced", "trace"]

_RESERVED = frozenset({"floordiv", "mod", "max", "min"})  # what JAX writes sizes with


@dataclass(frozen=True)
class Traced:
    """A jaxpr, and the shapes of its arguments.

    Attributes:
        jaxpr: with the arrays that the function holds as its constants.
        shapes: of the arguments: numbers, and JAX's symbols where an axis is open.
        symbols: JAX's names of them → the user's.
    """

    jaxpr: ClosedJaxpr
    shapes: tuple[tuple[Any, ...], ...]
    symbols: Mapping[str, str]


def trace(
    reference: Reference, feeds: Mapping[str, Any], dynamic: Dynamic, constraints: Sequence[str]
) -> Traced:
    """Run the function on no numbers at all, and keep what it does.

    Raises:
        ConvertError: what it does depends on numbers, or on a size that is open.
    """
    names = _names(dynamic)
    texts = []
    for name in reference.names:
        open_axes = dynamic.get(name, {})
        sizes = enumerate(feeds[name].shape)
        texts.append([names[open_axes[a]] if a in open_axes else str(s) for a, s in sizes])
    told = [_renamed(constraint, names) for constraint in constraints]
    scope = export.SymbolicScope(told)
    shapes = tuple(
        tuple(export.symbolic_shape(", ".join(text), scope=scope)) if text else () for text in texts
    )
    given: list[Any] = [
        ShapedArray(shape, feeds[name].dtype)
        for name, shape in zip(reference.names, shapes, strict=True)
    ]
    try:
        jaxpr = jaxpr_of(reference.flat, *given)
    except Exception as error:  # the user's code, on what is no number
        raise explain(error) from error
    return Traced(without_complex(jaxpr), shapes, {name: symbol for symbol, name in names.items()})


def _names(dynamic: Dynamic) -> dict[str, str]:
    """The user's names of sizes → names that JAX takes."""
    found: dict[str, str] = {}
    for axes in dynamic.values():
        for symbol in axes.values():
            if symbol in found:
                continue
            plain = re.sub(r"\W", "_", symbol)
            if not plain.isidentifier() or keyword.iskeyword(plain) or plain in _RESERVED:
                plain = f"size_{plain}"
            while plain in found.values():
                plain += "_"
            found[symbol] = plain
    return found


def _renamed(constraint: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), constraint)
