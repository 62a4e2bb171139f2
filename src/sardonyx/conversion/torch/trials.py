"""The inputs that a converted module is checked on: those that the module itself takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.open_axes import sizes_of
from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.torch.branches import Explored, explore, variations
from sardonyx.conversion.torch.reference import Reference
from sardonyx.conversion.variations import other_values, refused_sizes, sized_trial
from sardonyx.errors import ConvertError, InputError, SardonyxError

__all__ = ["Trials", "make_trials", "runs_on"]

# Strided models take only multiples of something: the first step that the model takes is used.
_STEPS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Trials:
    """Inputs to check on, what the user should know of them, and what data decide."""

    trials: tuple[Trial, ...]
    notes: tuple[str, ...]
    explored: Explored


def make_trials(reference: Reference, examples: Sequence[Feeds], dynamic: Dynamic) -> Trials:
    """The examples, other values, and other sizes: larger ones, and 1 where the model takes it.

    Raises:
        InputError: the model does not run on its own example.
        ConvertError: its answers are random, or no other size works.
    """
    generator = np.random.default_rng(0)
    trials = []
    for index, feeds in enumerate(examples):
        what = "the example" if index == 0 else f"example {index + 1}"
        _run_example(reference, feeds, what)
        trials.append(Trial(what, feeds))
    _refuse_random(reference, examples[0])
    first = examples[0]
    trials.extend(_other_values(reference, first, generator))
    trials.extend(_negated(reference, first))
    notes: list[str] = []
    if dynamic:
        sized = _other_sizes(reference, first, dynamic, generator)
        trials.extend(sized)
        if not sized and len(examples) == 1:
            raise refused_sizes("model", reference.run, first, dynamic)
        if not sized:
            notes.append("no other sizes than those of the examples were accepted by the model")
    explored = explore(reference, examples)
    more = explored.trials
    if explored.points:
        # Numbers taken from tensors count too, where no turn depends on them.
        more = (*more, *variations(reference, first, max(0, 4 - len(more))))
        notes.append(f"data decide in Python at {', '.join(explored.lines())}")
    notes.extend(
        f"no input was found that takes the other turn at {line}: that way is not checked"
        for line in explored.unseen
    )
    return Trials((*trials, *more), tuple(notes), explored)


def _other_values(
    reference: Reference, feeds: Feeds, generator: np.random.Generator
) -> list[Trial]:
    """With everything changed, or only the floats where integers and masks must stay as they are."""
    floats = {n: v for n, v in feeds.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f"}
    for _ in range(3):
        varied = other_values(feeds, generator)
        if runs_on(reference, varied):
            return [Trial("other values", varied)]
    varied = {**feeds, **other_values(floats, generator)}
    return [Trial("other values", varied)] if floats and runs_on(reference, varied) else []


def _negated(reference: Reference, feeds: Feeds) -> list[Trial]:
    """The other sign of floats, and of integers: an example of one sign shows nothing of the other.

    Only where the answers are finite, since torch and ONNX need not agree on where a NaN goes.
    """
    found = []
    for what, kinds in (("floats", "f"), ("integers", "i")):
        other = {
            name: np.asarray(-value)
            for name, value in feeds.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in kinds
        }
        try:
            answers = reference.answer({**feeds, **other}) if other else ()
        except Exception:  # none of the model's inputs
            continue
        if answers and all(np.isfinite(np.asarray(a, np.float64)).all() for a in answers):
            found.append(Trial(f"{what} negated", {**feeds, **other}))
    return found


def _run_example(reference: Reference, feeds: Feeds, what: str) -> None:
    try:
        reference.run(feeds)
    except SardonyxError:  # a module of ours, which says it better
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(
            f"the model itself fails on {what}: {type(error).__name__}: {text}.",
            hint="Give inputs that it runs on.",
        ) from error


def _refuse_random(reference: Reference, feeds: Feeds) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = reference.answer(feeds)
        torch.manual_seed(2)
        second = reference.answer(feeds)
    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            raise ConvertError(
                f"output {index} is random: two runs on the same inputs differ, so no answer can be proved equal.",
                hint="Give the random numbers as an input of forward.",
            )


def runs_on(reference: Reference, feeds: Feeds) -> bool:
    """Whether the model itself takes these inputs."""
    try:
        reference.run(feeds)
    except Exception:  # the model's own checks: such inputs are none of its inputs
        return False
    return True


def _other_sizes(
    reference: Reference, feeds: Feeds, dynamic: Dynamic, generator: np.random.Generator
) -> list[Trial]:
    sizes = sizes_of(feeds, dynamic)
    found: list[Trial] = []
    for step in _STEPS:
        grown = {name: size + step * (1 + i) for i, (name, size) in enumerate(sizes.items())}
        trial = sized_trial(feeds, dynamic, grown, generator)
        if runs_on(reference, trial.feeds):
            found.append(trial)
            break
    else:
        # Sizes that must stay equal, or in a ratio.
        for factor in (2, 3):
            grown = {name: size * factor for name, size in sizes.items()}
            trial = sized_trial(feeds, dynamic, grown, generator)
            if runs_on(reference, trial.feeds):
                found.append(trial)
                break
    ones = sized_trial(feeds, dynamic, dict.fromkeys(sizes, 1), generator)
    if any(size != 1 for size in sizes.values()) and runs_on(reference, ones.feeds):
        found.append(ones)
    return found
