"""What is to be converted: the part of the model, its inputs, and what the result is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.huggingface.answers import Eager
from sardonyx.conversion.huggingface.examples import TOTAL, Array, Input, draw_feeds
from sardonyx.conversion.huggingface.folders import open_folder
from sardonyx.conversion.huggingface.given import Given, fit_inputs, read_example, sizes_of
from sardonyx.conversion.huggingface.part import Part
from sardonyx.conversion.huggingface.parts import part_of
from sardonyx.conversion.huggingface.tasks import check_model, kind_of
from sardonyx.conversion.request import Dynamic, Request, chosen_names
from sardonyx.conversion.torch.finish import DEFAULT_OPSET, Wanted
from sardonyx.errors import InputError

__all__ = ["Subject", "open_subject"]

_OPTIONS = ("part", "pooling", "normalize")


@dataclass(frozen=True)
class Subject:
    """A model of transformers, ready to be exported.

    Attributes:
        model: as the user has it.
        eager: its own answers.
        feeds: to export on: no open axis has size 0 or 1, or the size of another.
        wanted: how the result is to look.
        trials: what it is checked on.
        notes: what the user should know.
    """

    model: PreTrainedModel
    eager: Eager
    feeds: Feeds
    wanted: Wanted
    trials: tuple[Trial, ...]
    notes: tuple[str, ...]


def open_subject(request: Request) -> Subject:
    """Look at the model, find or make its inputs, and run it on them.

    Raises:
        InputError: there is no such part or option, or the inputs do not fit.
        ConvertError: the model is none that can be converted.
    """
    options = dict(request.options)
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise InputError(
            f"there is no option {unknown[0]!r:.80} for Hugging Face models.",
            value=unknown[0],
            hint=f"There are: {', '.join(_OPTIONS)}.",
        )
    source = request.source
    if request.path is not None:
        source, found = open_folder(request.path)
        options = {**found, **options}
    model = check_model(source)
    examples = [read_example(model, example) for example in request.examples]
    constants = examples[0].constants if examples else {}
    part = part_of(model, kind_of(model), options, constants)
    inputs = fit_inputs(part.inputs, [each.feeds for each in examples]) if examples else part.inputs
    if not inputs:
        raise InputError(
            f"how a {type(model).__name__} is called is not known.",
            where=type(model).__name__,
            hint="Give example inputs: sardonyx.convert(model, {'input_ids': ids, …}).",
        )
    symbols = _Symbols.of(request, inputs, _typical(part, inputs, examples))
    names = chosen_names(
        request.input_names, tuple(each.name for each in inputs), "inputs", "model"
    )
    renamed = {theirs: ours for ours, theirs in zip(names, (i.name for i in inputs), strict=True)}
    eager = Eager(model, part.call, dict(zip(names, (i.name for i in inputs), strict=True)))

    def draw(sizes: Mapping[str, int], seed: int, feeds: Mapping[str, Array] = {}) -> Feeds:
        drawn = {**draw_feeds(inputs, {**sizes, **symbols.closed}, seed), **feeds}
        return {renamed[name]: np.ascontiguousarray(drawn[name]) for name in renamed}

    sizes = symbols.sizes
    trials = [Trial("the example", draw(sizes, 0))] if not examples else []
    for index, each in enumerate(examples):
        what = "the example" if index == 0 else f"example {index + 1}"
        trials.append(Trial(what, draw(sizes_of(inputs, each.feeds), index, each.feeds)))
    trials.append(Trial("other values", draw(sizes, 101)))
    trials += [
        Trial(title, draw(other, 200 + index))
        for index, (title, other) in enumerate(symbols.others(part.others))
    ]
    what = "the example" if examples else "inputs made from its config"
    hint = "Give inputs that it runs on: sardonyx.convert(model, {'input_ids': ids, …})."
    outputs = tuple(_run(eager, trials[0].feeds, what, hint))
    wanted = Wanted(
        names,
        chosen_names(request.output_names, outputs, "outputs", "model"),
        {renamed[name]: axes for name, axes in symbols.axes(inputs).items()},
        request.opset or DEFAULT_OPSET,
    )
    feeds = draw({**{name: max(size, 2) for name, size in sizes.items()}, **part.sizes}, 7)
    _run(
        eager,
        feeds,
        "inputs of other sizes",
        "Name the axes that may change: dynamic={'input_ids': {0: 'batch'}}.",
    )
    notes = [*part.notes, *_told(model, part, wanted, constants)]
    return Subject(model, eager, feeds, wanted, tuple(trials), tuple(notes))


@dataclass(frozen=True)
class _Symbols:
    """The open axes: what the user calls them, and what they are where they are closed.

    Attributes:
        names: ours → the user's, of those that stay open.
        closed: ours → the one size that it has.
        sizes: of all of them in the example.
    """

    names: Mapping[str, str]
    closed: Mapping[str, int]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, request: Request, inputs: Sequence[Input], sizes: Mapping[str, int]) -> _Symbols:
        """All are open, or those that the user names."""
        ours = dict.fromkeys(
            axis
            for each in inputs
            for axis in each.shape
            if isinstance(axis, str) and axis != TOTAL
        )
        if not request.dynamic:
            return cls({name: name for name in ours}, {}, sizes)
        called = dict(zip(request.input_names, inputs, strict=False))
        called.update({each.name: each for each in inputs})
        names: dict[str, str] = {}
        for name, axes in request.dynamic.items():
            if name not in called:
                raise InputError(
                    f"there is no input {name[:80]!r} to have dynamic axes.",
                    value=name,
                    hint=f"The inputs are: {', '.join(each.name for each in inputs)}.",
                )
            shape = called[name].shape
            for axis, symbol in axes.items():
                own = shape[axis] if -len(shape) <= axis < len(shape) else None
                if not isinstance(own, str):
                    raise InputError(
                        f"axis {axis} of {name!r} cannot be dynamic: its size is the model's own ({own}).",
                        value=axis,
                        hint="Give two examples that differ in it, where the model takes other sizes.",
                    )
                if own != TOTAL:
                    names[own] = symbol
        return cls(names, {name: sizes[name] for name in ours if name not in names}, sizes)

    def axes(self, inputs: Sequence[Input]) -> Dynamic:
        found = {}
        for each in inputs:
            named = {
                i: self._name(axis) for i, axis in enumerate(each.shape) if isinstance(axis, str)
            }
            found[each.name] = {i: name for i, name in named.items() if name is not None}
        return {name: axes for name, axes in found.items() if axes}

    def _name(self, axis: str) -> str | None:
        if axis != TOTAL:
            return self.names.get(axis)
        both = ("past_sequence", "sequence")
        if all(part in self.closed for part in both):
            return None
        return " + ".join(self.names.get(part) or str(self.closed[part]) for part in both)

    def others(self, sizes: Sequence[Mapping[str, int]]) -> list[tuple[str, Mapping[str, int]]]:
        """Sizes to check on, without those that closed axes make the same."""
        found: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
        for each in sizes:
            known = {**self.sizes, **each, **self.closed}
            shown = tuple((self.names[name], known[name]) for name in self.names)
            if known != dict(self.sizes):
                found.setdefault(shown, known)
        return [(", ".join(f"{n} {s}" for n, s in shown), known) for shown, known in found.items()]


def _typical(part: Part, inputs: Sequence[Input], examples: Sequence[Given]) -> dict[str, int]:
    """The sizes of the first example, or of the ones that are made; of axes that only the user has, too."""
    found = dict(part.sizes)
    if examples:
        found.update(sizes_of(inputs, examples[0].feeds))
    used = {axis for each in inputs for axis in each.shape}
    if TOTAL in used:
        used |= {"past_sequence", "sequence"}
    return {name: size for name, size in found.items() if name in used}


def _run(eager: Eager, feeds: Feeds, what: str, hint: str) -> Sequence[str]:
    try:
        return list(eager.run(feeds))
    except InputError:
        raise
    except Exception as error:  # of the model, which may raise anything
        text = " ".join(str(error).split())[:300]
        raise InputError(
            f"the model itself fails on {what}: {type(error).__name__}: {text}.",
            where=type(eager.model).__name__,
            hint=hint,
        ) from error


def _told(
    model: PreTrainedModel, part: Part, wanted: Wanted, constants: Mapping[str, Any]
) -> list[str]:
    notes = []
    if part.name != "model":
        notes.append(f"this is the part {part.name!r} of {type(model).__name__}")
    if model.training:
        notes.append("converted as for inference (eval mode); the model was in training mode")
    if constants:
        fixed = ", ".join(f"{name}={value!r:.40}" for name, value in constants.items())
        notes.append(f"constants of the example stay as they are: {fixed}")
    symbols = dict.fromkeys(s for axes in wanted.dynamic.values() for s in axes.values())
    notes.append(f"dynamic axes: {', '.join(symbols) or 'none'}")
    return notes
