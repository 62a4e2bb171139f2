"""Long sizes get a name of their own.

    (broadcast((height + 1)//4, (height + 3)//4) + 1)//2        becomes        size.3

Products of such sizes outgrow what index arithmetic can hold. A name stands for the number, which is
computed once when a run binds its sizes; two sizes that were equal still are. Sizes that come up
during the run keep their form: whoever asks for them must see what they depend on.
"""

from __future__ import annotations

from dataclasses import replace

from sardonyx.ops.facts import Facts
from sardonyx.passes.shapes import Shapes
from sardonyx.sizes import Expr, Size, symbol, symbols

__all__ = ["name_sizes"]

LONG = 60  # characters


def name_sizes(shapes: Shapes) -> tuple[Shapes, tuple[tuple[str, Size], ...]]:
    """The facts with short sizes only, and what the new names stand for."""
    names: dict[Expr, Expr] = {}

    def short(size: Size) -> Size:
        if not isinstance(size, Expr) or len(str(size)) <= LONG:
            return size
        if size.lone_symbol is not None or not symbols(size) <= shapes.input_symbols:
            return size
        if size not in names:
            names[size] = symbol(f"size.{len(names)}")
        return names[size]

    def renamed(facts: Facts) -> Facts:
        if facts.kind != "tensor" or facts.shape is None:
            return facts
        shape = tuple(short(size) for size in facts.shape)
        return facts if shape == facts.shape else replace(facts, shape=shape)

    changed = shapes.mapped(renamed)
    definitions = tuple((str(name), size) for size, name in names.items())
    return (changed, definitions) if names else (shapes, ())
