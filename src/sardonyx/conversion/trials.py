"""The inputs that a conversion is checked on: those that the framework itself takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.open_axes import sizes_of
from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.variations import other_values, refused_sizes, sized_trial
from sardonyx.errors import InputError, MissingExtraError

__all__ = ["make_trials"]

# Strided models take only multiples of something: the first step that the model takes is used.
_STEPS = (1, 2, 4, 8, 16, 32)


def make_trials(
    what: str, answer: Callable[[Feeds], Sequence[Any]], examples: Sequence[Feeds], dynamic: Dynamic
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """The examples, other values, other signs, and other sizes of open axes; and what the user should know of them.

    Args:
        what: it is that answers, as "file" or "model".

    Raises:
        InputError: it fails on its own example.
        ConvertError: it takes no other sizes than those of the example.
    """
    generator = np.random.default_rng(0)
    trials = []
    for index, feeds in enumerate(examples):
        title = "the example" if index == 0 else f"example {index + 1}"
        try:
            answer(feeds)
        except MissingExtraError:  # the check will say so, where one is asked for
            return tuple(Trial("the example", feeds) for feeds in examples), ()
        except Exception as error:  # a framework may raise anything
            text = " ".join(str(error).split())[:300]
            raise InputError(
                f"the {what} itself fails on {title}: {text}.", hint="Give inputs that it runs on."
            ) from error
        trials.append(Trial(title, feeds))
    first = examples[0]
    varied = Trial("other values", other_values(first, generator))
    if _runs(answer, varied.feeds):
        trials.append(varied)
    trials += _negated(answer, first)
    if not dynamic:
        return tuple(trials), ()
    sized = _other_sizes(answer, first, dynamic, generator)
    if not sized and len(examples) == 1:
        raise refused_sizes(what, answer, first, dynamic)
    return (*trials, *sized), () if sized else (f"no other sizes were accepted by the {what}",)


def _runs(answer: Callable[[Feeds], object], feeds: Feeds) -> bool:
    try:
        answer(feeds)
    except Exception:  # such inputs are none of its inputs
        return False
    return True


def _negated(answer: Callable[[Feeds], Sequence[Any]], feeds: Feeds) -> list[Trial]:
    """The other sign of floats: an example of one sign shows nothing of the other.

    Only where the answers are finite: what a NaN becomes on its way through sums is nobody's promise.
    """
    other = {
        name: np.asarray(-value)
        for name, value in feeds.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }
    if not other or not _runs(answer, {**feeds, **other}):
        return []
    answers = [np.asarray(each) for each in answer({**feeds, **other})]
    if not all(np.isfinite(each.astype(np.float64)).all() for each in answers):
        return []
    return [Trial("floats negated", {**feeds, **other})]


def _other_sizes(
    answer: Callable[[Feeds], object],
    first: Feeds,
    dynamic: Dynamic,
    generator: np.random.Generator,
) -> list[Trial]:
    sizes = sizes_of(first, dynamic)
    grown = [{n: s + step * (1 + i) for i, (n, s) in enumerate(sizes.items())} for step in _STEPS]
    # Sizes that must stay equal, or in a ratio.
    scaled = [{name: size * factor for name, size in sizes.items()} for factor in (2, 3)]
    for asked in (*grown, *scaled):
        trial = sized_trial(first, dynamic, asked, generator)
        if _runs(answer, trial.feeds):
            return [trial]
    return []
