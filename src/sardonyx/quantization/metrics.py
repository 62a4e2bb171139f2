"""What a user measures a model by: a function of something that runs, or labels and the name of a task.

metric = labelled("classification", data, labels)
metric(session)        # 0.93
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from sardonyx.backends.values import Value
from sardonyx.errors import InputError
from sardonyx.quantization.data import CalibrationData, Feeds
from sardonyx.quantization.grid import Array
from sardonyx.quantization.options import require

__all__ = ["TASKS", "Metric", "Mixed", "Runs", "labelled", "read_metric"]


class Runs(Protocol):
    """What a metric is given: a session, or a mix that runs like one."""

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Value]: ...


Metric = Callable[[Runs], float]


class Mixed:
    """A mix of quantized and float nodes, with the face of a session."""

    def __init__(self, answer: Callable[[Feeds], list[Value]], outputs: Sequence[str]) -> None:
        self._answer = answer
        self._outputs = list(outputs)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Value]:
        found = dict(zip(self._outputs, self._answer(feeds), strict=True))
        return [found[name] for name in output_names or self._outputs]


def _top(count: int) -> Callable[[Array, Array], float]:
    def score(answer: Array, labels: Array) -> float:
        best = np.argsort(-answer.reshape(len(labels), -1), axis=1)[:, :count]
        return float((best == labels.reshape(-1, 1)).any(axis=1).sum())

    return score


TASKS: Mapping[str, Callable[[Array, Array], float]] = {
    "classification": _top(1),
    "top-5": _top(5),
}


def labelled(task: str, data: CalibrationData, labels: Iterable[Any]) -> Metric:
    """The share of right answers: the first output has a score for each class.

    Args:
        labels: the numbers of the right classes, in the order of the data: all in one array, or in several.
    """
    require("task", task, TASKS)
    expected = np.concatenate([np.asarray(one).reshape(-1) for one in labels] or [np.empty(0)])

    def metric(session: Runs) -> float:
        right = 0.0
        begin = 0
        for feeds in data:
            answer = session.run(None, feeds)[0]
            assert isinstance(answer, np.ndarray)
            end = begin + len(answer)
            if end > len(expected):
                raise InputError(
                    f"there are {len(expected)} labels, and more samples than that.",
                    hint="Give the right class of every sample, in the order of the data.",
                )
            right += TASKS[task](answer, expected[begin:end])
            begin = end
        return right / max(begin, 1)

    return metric


def read_metric(
    metric: Metric | str | None, labels: Iterable[Any] | None, data: CalibrationData | None
) -> Metric | None:
    """The metric as a user names it."""
    if labels is not None and data is not None:
        return labelled(metric if isinstance(metric, str) else "classification", data, labels)
    if isinstance(metric, str):
        require("metric", metric, TASKS)
        raise InputError(f"metric={metric!r} needs labels.", hint="One array of labels a batch.")
    return metric
