"""What a caller wants converted, and how the result is to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.errors import InputError

__all__ = [
    "Axes",
    "Dynamic",
    "Example",
    "Request",
    "as_example",
    "check_alike",
    "chosen_names",
    "read_dynamic",
]

Axes: TypeAlias = Mapping[int, str]
Dynamic: TypeAlias = Mapping[str, Axes]


@dataclass(frozen=True)
class Example:
    """One call of the model: positional and keyword arguments, of any structure."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What to convert.

    Attributes:
        source: a live object of a framework, or the path of a file or folder of it.
        examples: calls of the model. Axes whose sizes differ between them are dynamic.
        dynamic: by input name, the names of the axes that stay open.
        input_names, output_names: instead of the framework's own, in order; empty to keep those.
        opset: of the result; None for what the frontend writes best.
        options: of the frontend alone, as a translation table for custom operators.
    """

    source: Any
    examples: tuple[Example, ...] = ()
    dynamic: Dynamic = field(default_factory=dict)
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    opset: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None

    def option(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)


def as_example(inputs: Any) -> Example:
    """A tuple is the positional arguments, a dict with text keys the keyword arguments, all else one argument.

    An `Example` says it outright, for a model whose only argument is itself a dict or a tuple.
    """
    if isinstance(inputs, Example):
        return inputs
    if isinstance(inputs, tuple):
        return Example(args=inputs)
    if type(inputs) is dict and all(isinstance(key, str) for key in inputs):
        return Example(kwargs=dict(inputs))
    return Example(args=(inputs,))


def read_dynamic(dynamic: Mapping[str, Axes | Sequence[str | None]] | None) -> Dynamic:
    """`{"x": {0: "batch"}}` or `{"x": ["batch", None, "time"]}`, as the first of the two.

    Raises:
        InputError: an axis is no number, or a name no text.
    """
    found: dict[str, Axes] = {}
    for name, axes in (dynamic or {}).items():
        pairs = axes.items() if isinstance(axes, Mapping) else enumerate(axes)
        named = {axis: symbol for axis, symbol in pairs if symbol is not None}
        for axis, symbol in named.items():
            if not isinstance(axis, int) or not isinstance(symbol, str) or not symbol:
                raise InputError(
                    f"the dynamic axes of {name[:80]!r} are not names by axis: {named!r:.120}.",
                    value=dynamic,
                    hint='Write them as {"x": {0: "batch", 2: "time"}}.',
                )
        found[name] = named
    return found


def chosen_names(
    asked: Sequence[str], found: tuple[str, ...], what: str, owner: str
) -> tuple[str, ...]:
    """The names that the user asked for; those that were found where none were.

    Args:
        what: they are of, as "outputs".
        owner: has those that were found, as "model".

    Raises:
        InputError: there are fewer or more, or two are the same.
    """
    if not asked:
        return found
    if len(asked) != len(found) or len(set(asked)) != len(asked):
        raise InputError(
            f"{len(asked)} names for {len(found)} {what}: {', '.join(asked)[:200]}.",
            value=tuple(asked),
            limit=len(found),
            hint=f"The {owner}'s own are: {', '.join(found)[:400]}; give each another name.",
        )
    return tuple(asked)


def check_alike(examples: Sequence[Sequence[str]], what: str) -> None:
    """Examples are made of the same things, as "tensors", by their names.

    Raises:
        InputError: one has others than the first.
    """
    first = examples[0]
    for index, other in enumerate(examples[1:], 2):
        if other != first:
            raise InputError(
                f"example {index} has the {what} {', '.join(other)}, and the first one {', '.join(first)}.",
                hint="Examples have the same structure; only sizes and values may differ.",
            )
