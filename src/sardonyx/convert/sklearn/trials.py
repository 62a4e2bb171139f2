"""The rows that a converted estimator is held to: the example, and others made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from sardonyx.convert.candidate import Trial
from sardonyx.convert.sklearn.answers import Output
from sardonyx.convert.sklearn.inputs import Rows

__all__ = ["trials_for"]


def trials_for(
    model: Any,
    rows: Rows,
    examples: Sequence[dict[str, NDArray[Any]]],
    outputs: Sequence[Output],
    names: Mapping[str, str],
) -> tuple[Trial, ...]:
    first = examples[0]
    made = [
        Trial("the example" if not at else f"example {at + 1}", fed)
        for at, fed in enumerate(examples)
    ]
    made.append(Trial("one row", {name: value[:1] for name, value in first.items()}))
    return tuple(Trial(t.what, {names[n]: v for n, v in t.feeds.items()}) for t in made)
