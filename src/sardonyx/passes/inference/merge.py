"""What is known where two ways meet: branches of If, and the turns of a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sardonyx.ops.facts import VARYING, Facts, Shape, Values, element_symbols
from sardonyx.sizes import Expr, Size, symbols

__all__ = ["conceal", "merge", "prepend", "without_value"]

Fresh = Callable[[int], Expr]


def merge(a: Facts, b: Facts, fresh: Fresh) -> Facts:
    """What holds of both; dimensions that differ become `fresh(axis)`."""
    if a == b:
        return a
    if a.kind != b.kind:
        return Facts()
    element = None
    if a.kind == "sequence" and (0,) in (a.shape, b.shape):
        element = b.element if a.shape == (0,) else a.element  # no elements, no contradiction
    elif a.element is not None and b.element is not None:
        element = merge(a.element, b.element, _inner_fresh(a, fresh))
    dtype = a.dtype if a.dtype == b.dtype else None
    value = a.value if replace(a, shape=None) == replace(b, shape=None) else None
    return Facts(a.kind, dtype, _merge_shapes(a.shape, b.shape, fresh), value, element)


def _inner_fresh(facts: Facts, fresh: Fresh) -> Fresh:
    """In a sequence every element may have its own size; an optional holds one value."""
    return _varying if facts.kind == "sequence" else fresh


def _varying(axis: int) -> Expr:
    return VARYING


def _merge_shapes(a: Shape | None, b: Shape | None, fresh: Fresh) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else fresh(axis) for axis, (x, y) in enumerate(zip(a, b, strict=True)))


def without_value(facts: Facts) -> Facts:
    return facts if facts.value is None else facts.with_value(None)


def prepend(facts: Facts, size: Size, axis: int = 0) -> Facts:
    """A stack of such tensors along a new axis."""
    if facts.shape is None:
        return without_value(facts)
    at = axis if axis >= 0 else axis + len(facts.shape) + 1
    return replace(facts, shape=(*facts.shape[:at], size, *facts.shape[at:]), value=None)


def conceal(facts: Facts, prefix: str, fresh: Fresh) -> Facts:
    """Forget symbols that mean something only inside a subgraph."""
    element = facts.element
    if element is not None:
        element = conceal(element, prefix, _inner_fresh(facts, fresh))
    shape = facts.shape
    if shape is not None:
        shape = tuple(
            fresh(axis) if _is_inner(size, prefix) else size for axis, size in enumerate(shape)
        )
    value = None if _holds_inner(facts.value, prefix) else facts.value
    return replace(facts, shape=shape, value=value, element=element)


def _is_inner(size: Size, prefix: str) -> bool:
    return isinstance(size, Expr) and any(name.startswith(prefix) for name in symbols(size))


def _holds_inner(value: Values | None, prefix: str) -> bool:
    if value is None:
        return False
    return any(
        name.startswith(prefix) for element in value.flat for name in element_symbols(element)
    )
