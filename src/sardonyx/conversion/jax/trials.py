"""The inputs that a converted function is checked on: those that the function itself takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.jax.failure import explain, reads_numbers
from sardonyx.conversion.jax.reference import Reference
from sardonyx.conversion.open_axes import sizes_of
from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.variations import other_values, refused_sizes, sized_trial
from sardonyx.errors import InputError, SardonyxError
from sardonyx.sizes import evaluate, parse

__all__ = ["make_trials"]

# Strided models take only multiples of something: the first step that the function takes is used.
_STEPS = (1, 2, 4, 8, 16, 32, 64)


def make_trials(
    reference: Reference,
    examples: Sequence[Feeds],
    dynamic: Dynamic,
    constraints: Sequence[str] = (),
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """The examples, other values, other signs, and other sizes; and what the user should know of them.

    Raises:
        InputError: the function fails on its own example.
        ConvertError: it takes no other sizes than those of the example.
    """
    generator = np.random.default_rng(0)
    trials = []
    for index, feeds in enumerate(examples):
        what = "the example" if index == 0 else f"example {index + 1}"
        _run_example(reference, feeds, what)
        trials.append(Trial(what, feeds))
    first = examples[0]
    trials.append(Trial("other values", other_values(first, generator)))
    trials.extend(_negated(reference, first))
    notes: tuple[str, ...] = ()
    if dynamic:
        sized = _other_sizes(reference, first, dynamic, constraints, generator)
        trials.extend(sized)
        if not sized and len(examples) == 1:
            raise refused_sizes("function", reference.answer, first, dynamic)
        if not sized:
            notes = ("no other sizes than those of the examples were accepted by the function",)
    return tuple(trials), notes


def _run_example(reference: Reference, feeds: Feeds, what: str) -> None:
    try:
        reference.answer(feeds)
    except Exception as error:  # the user's code may raise anything
        if reads_numbers(error):
            raise explain(error) from error
        text = " ".join(str(error).split())[:300]
        raise InputError(
            f"the function itself fails on {what}, under jax.jit: {type(error).__name__}: {text}.",
            hint="Give inputs that it runs on, and what is no array as a Python value.",
        ) from error


def _runs_on(reference: Reference, feeds: Feeds) -> bool:
    try:
        reference.answer(feeds)
    except Exception:  # such inputs are none of its inputs
        return False
    return True


def _negated(reference: Reference, feeds: Feeds) -> list[Trial]:
    """The other sign of floats, and of integers: an example of one sign shows nothing of the other.

    Only where the answers are finite: what a NaN becomes on its way through sums is nobody's promise.
    """
    found = []
    for what, kinds in (("floats", "fV"), ("integers", "i")):
        other = {
            name: np.asarray(-value)
            for name, value in feeds.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in kinds
        }
        if not other:
            continue
        answers = reference.answer({**feeds, **other})
        if all(np.isfinite(np.asarray(answer, np.float64)).all() for answer in answers):
            found.append(Trial(f"{what} negated", {**feeds, **other}))
    return found


def _allowed(sizes: Mapping[str, int], constraints: Sequence[str]) -> bool:
    """Whether sizes are such as the user promised; what we cannot read, JAX has."""
    for constraint in constraints:
        parts = re.split(r"(>=|<=|==)", constraint)
        if len(parts) != 3:
            continue
        try:
            left, right = (evaluate(parse(parts[side].strip()), sizes) for side in (0, 2))
        except (ValueError, KeyError, SardonyxError):
            continue
        if not {">=": left >= right, "<=": left <= right, "==": left == right}[parts[1]]:
            return False
    return True


def _other_sizes(
    reference: Reference,
    feeds: Feeds,
    dynamic: Dynamic,
    constraints: Sequence[str],
    generator: np.random.Generator,
) -> list[Trial]:
    sizes = sizes_of(feeds, dynamic)
    grown = [
        {n: size + step * (1 + i) for i, (n, size) in enumerate(sizes.items())} for step in _STEPS
    ]
    # Sizes that must stay equal, or in a ratio.
    scaled = [{name: size * factor for name, size in sizes.items()} for factor in (2, 3)]
    found: list[Trial] = []
    for asked in (*grown, *scaled):
        if not _allowed(asked, constraints):
            continue
        trial = sized_trial(feeds, dynamic, asked, generator)
        if _runs_on(reference, trial.feeds):
            found.append(trial)
            break
    ones = sized_trial(feeds, dynamic, dict.fromkeys(sizes, 1), generator)
    single = any(s != 1 for s in sizes.values()) and _allowed(dict.fromkeys(sizes, 1), constraints)
    if single and _runs_on(reference, ones.feeds):
        found.append(ones)
    return found
