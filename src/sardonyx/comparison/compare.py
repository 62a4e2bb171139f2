"""The same inputs through two models, or one model on two engines: do the answers agree?

compare("a.onnx", "b.onnx").ok
compare("a.onnx", engines=("sardonyx", "onnxruntime")).outputs[0].max_abs
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.backends.reference import Value
from sardonyx.comparison.difference import Difference, differences
from sardonyx.comparison.engines import Opening, engine_version, open_engine
from sardonyx.comparison.inputs import (
    blame_sizes,
    describe_feeds,
    example_inputs,
    input_ports,
)
from sardonyx.comparison.reading import read_inputs
from sardonyx.errors import InputError, RunError, ShapeError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

__all__ = [
    "Comparison",
    "Inputs",
    "compare",
    "explain_inputs",
    "feeds_of_second",
    "pick_engines",
    "prepare_inputs",
    "reusable",
]

Inputs = Mapping[str, Any] | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Comparison:
    """Two sets of answers, output by output.

    Attributes:
        first, second: what was compared, as `model.onnx on sardonyx 0.1.0`.
        outputs: one difference an output, more for sequences and maps.
        notes: what a reader should know, as outputs that were paired by position.
    """

    first: str
    second: str
    outputs: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)

    def __str__(self) -> str:
        lines = [f"{self.first} against {self.second}: {'agree' if self.ok else 'DIFFER'}"]
        for output in self.outputs:
            verdict = "ok" if output.ok else output.reason
            lines.append(f"  {output.name}: max abs {output.max_abs:.3g} ({verdict})")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "first": self.first,
            "second": self.second,
            "outputs": [output.to_json() for output in self.outputs],
            "notes": list(self.notes),
        }


def compare(
    first: Source,
    second: Source | None = None,
    inputs: Inputs = None,
    *,
    engines: Sequence[str] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run both on the same inputs and compare every output.

    Args:
        first: a model.
        second: another one; None compares `first` with itself on two engines.
        inputs: arrays by input name, a file or folder to read, or None for seeded examples.
        engines: one name for both sides or two; by default sardonyx, and onnxruntime for the second
            side when there is one model.
        rtol, atol: instead of the tolerance of the element type.
        progress: hears (steps done, steps in all) while a model is compiled.
    """
    how = Opening(limits, progress=progress)
    left, right = pick_engines(engines, alone=second is None)
    first = reusable(first, limits)
    other = first if second is None else reusable(second, limits)
    feeds = prepare_inputs(first, inputs, seed=seed, dims=dims, limits=limits)
    renamed = feeds_of_second(feeds, first, other, limits)
    with explain_inputs(first, inputs, feeds, limits):
        answers = open_engine(left, first, how)(feeds)
        others = open_engine(right, other, how)(renamed)
    pairs, notes = _paired(answers, others)
    if inputs is None:
        shapes = ", ".join(f"{name} {text}" for name, text in describe_feeds(feeds).items())
        notes += (f"example inputs: {shapes or 'none'}",)
    return Comparison(
        first=_title(first, left),
        second=_title(other, right),
        outputs=tuple(d for name, a, b in pairs for d in differences(name, a, b, rtol, atol)),
        notes=notes,
    )


def reusable(source: Source, limits: Limits) -> Source:
    """A source that can be loaded more than once: a file object can be read but once."""
    return load(source, limits=limits) if hasattr(source, "read") else source


def prepare_inputs(
    source: Source,
    inputs: Inputs,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, Value]:
    """What to feed: given arrays, arrays from files, or seeded examples."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    model = load(source, limits=limits)
    if inputs is None:
        return example_inputs(model, seed=seed, dims=dims)
    return read_inputs(Path(inputs), model)


@contextmanager
def explain_inputs(
    source: Source, inputs: Inputs, feeds: Mapping[str, Value], limits: Limits = DEFAULT_LIMITS
) -> Iterator[None]:
    """Around a run: when it fails on example inputs, the error names the sizes that we guessed."""
    try:
        yield
    except (RunError, ShapeError) as error:
        if inputs is None:
            blame_sizes(error, load(source, limits=limits), feeds)
        raise


def pick_engines(engines: Sequence[str] | None, *, alone: bool) -> tuple[str, str]:
    """The engines of both sides; `alone`: one model is compared with itself."""
    if engines is None:
        return ("sardonyx", "onnxruntime") if alone else ("sardonyx", "sardonyx")
    if not 1 <= len(engines) <= 2 or (alone and len(engines) == 1):
        raise InputError(
            f"{len(engines)} engine{'s' * (len(engines) != 1)} for "
            f"{'one model' if alone else 'two models'}.",
            value=list(engines),
            hint="Give two, as sardonyx,onnxruntime.",
        )
    return engines[0], engines[-1]


def feeds_of_second(
    feeds: Mapping[str, Value], first: Source, second: Source, limits: Limits
) -> dict[str, Value]:
    """The feeds under the second model's names: the same, or else by position."""
    if second is first:
        return dict(feeds)
    names = [port.name for _, port in input_ports(load(second, limits=limits))]
    if set(feeds) == set(names):
        return dict(feeds)
    own = [port.name for _, port in input_ports(load(first, limits=limits))]
    if len(own) != len(names):
        raise InputError(
            f"the models have different inputs: {', '.join(own) or 'none'} against "
            f"{', '.join(names) or 'none'}.",
            where=f"model {_name(second)!r}",
        )
    return {new: feeds[old] for old, new in zip(own, names, strict=True) if old in feeds}


def _paired(
    answers: Mapping[str, Value], others: Mapping[str, Value]
) -> tuple[list[tuple[str, Value, Value]], tuple[str, ...]]:
    """Outputs that belong together: by name, or by position when the names differ."""
    if set(answers) == set(others):
        return [(name, answers[name], others[name]) for name in answers], ()
    if len(answers) != len(others):
        raise InputError(
            f"the models have different outputs: {', '.join(answers)} against {', '.join(others)}."
        )
    pairs = [(name, a, b) for (name, a), b in zip(answers.items(), others.values(), strict=True)]
    note = f"outputs paired by position: {', '.join(answers)} with {', '.join(others)}"
    return pairs, (note,)


def _name(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return Path(source).name[:120]
    return type(source).__name__


def _title(source: Source, engine: str) -> str:
    return f"{_name(source)} on {engine_version(engine)}"
