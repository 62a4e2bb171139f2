"""The inputs that a converted file is checked on: those that the interpreter takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.open_axes import sizes_of
from sardonyx.conversion.tflite.subject import Subject
from sardonyx.conversion.variations import other_values, refused_sizes, sized_trial
from sardonyx.errors import InputError, MissingExtraError

__all__ = ["make_trials"]

# Strided models take only multiples of something: the first step that the file takes is used.
_STEPS = (1, 2, 4, 8, 16, 32)


def make_trials(
    subject: Subject, answer: Callable[[Feeds], object]
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """The examples, other values, and other sizes of open axes; and what the user should know of them.

    Raises:
        InputError: the interpreter fails on the example.
        ConvertError: it takes no other sizes than those of the example, for an axis that the user opened.
    """
    generator = np.random.default_rng(0)
    trials = []
    for index, feeds in enumerate(subject.examples):
        what = "the example" if index == 0 else f"example {index + 1}"
        try:
            answer(feeds)
        except MissingExtraError:  # the check will say so, where one is asked for
            return tuple(Trial("the example", feeds) for feeds in subject.examples), ()
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise InputError(
                f"TensorFlow Lite itself fails on {what}: {text}.",
                hint="Give inputs that it runs on.",
            ) from error
        trials.append(Trial(what, feeds))
    first = subject.examples[0]
    varied = Trial("other values", other_values(first, generator))
    if _runs(answer, varied.feeds):
        trials.append(varied)
    if not subject.dynamic:
        return tuple(trials), ()
    sized = _other_sizes(subject, answer, generator)
    if not sized and len(subject.examples) == 1:
        raise refused_sizes("file", answer, first, subject.dynamic)
    return (*trials, *sized), () if sized else ("no other sizes were accepted by the file",)


def _runs(answer: Callable[[Feeds], object], feeds: Feeds) -> bool:
    try:
        answer(feeds)
    except Exception:  # such inputs are none of its inputs
        return False
    return True


def _other_sizes(
    subject: Subject, answer: Callable[[Feeds], object], generator: np.random.Generator
) -> list[Trial]:
    first, dynamic = subject.examples[0], subject.dynamic
    sizes = sizes_of(first, dynamic)
    grown = [{n: s + step * (1 + i) for i, (n, s) in enumerate(sizes.items())} for step in _STEPS]
    # Sizes that must stay equal, or in a ratio.
    scaled = [{name: size * factor for name, size in sizes.items()} for factor in (2, 3)]
    for asked in (*grown, *scaled):
        trial = sized_trial(first, dynamic, asked, generator)
        if _runs(answer, trial.feeds):
            return [trial]
    return []
