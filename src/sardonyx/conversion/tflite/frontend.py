"""TensorFlow Lite: a .tflite file, operator by operator. Reading it needs no TensorFlow; proving the result does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from sardonyx.comparison.tolerance import Tolerance
from sardonyx.conversion.candidate import Candidate, Feeds, Route, Trial
from sardonyx.conversion.request import Request
from sardonyx.conversion.tflite.assemble import Pieces, assemble, cut_apart
from sardonyx.conversion.tflite.interpreter import Interpreter
from sardonyx.conversion.tflite.quantized import is_quantized
from sardonyx.conversion.tflite.reading import read_model
from sardonyx.conversion.tflite.schema import Array, Subgraph, Tensor
from sardonyx.conversion.tflite.subject import Subject, open_subject
from sardonyx.conversion.tflite.walk import check_operators
from sardonyx.conversion.trials import make_trials
from sardonyx.errors import InputError, MissingExtraError

__all__ = ["read_bytes", "routes"]

# Kernels of integers round by tables and fixed-point factors, and not all alike: one step off is right.
_STEPS_OF_ONE = 1.0
# End to end such steps add up; every operator by itself has been held to one.
_STEPS_IN_ALL = 5.0
# Reals that meet weights of 8 bits are rounded on the way: one that falls on the next step is off by 1/127 of the largest.
_ROUNDED_REALS = Tolerance(rtol=1e-2, of_largest=1e-2)

_PIECES_CHECKED = 2  # trials


def routes(request: Request) -> Sequence[Route]:
    """Nothing is written before the route is made.

    Raises:
        InputError: the file is damaged, or the examples do not fit.
        ConvertError: it has operators that cannot be written.
    """
    data, where = read_bytes(request)
    model = read_model(data, where)
    check_operators(model)
    subject = open_subject(model, request)
    return [Route("its operators", lambda: _candidate(subject, data, request.opset))]


def read_bytes(request: Request) -> tuple[bytes, str]:
    """The file, given by its path or as bytes, and what errors call it.

    Raises:
        InputError: it cannot be read.
    """
    source = request.source
    if isinstance(source, bytes | bytearray):
        return bytes(source), "the model"
    if not isinstance(source, Path):
        raise InputError(f"a {type(source).__name__} is no .tflite file, nor the bytes of one.")
    try:
        return source.read_bytes(), source.name
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}.", where=str(source)) from None


class _Reference:
    """The interpreter behind named feeds; it is loaded when the first answer is asked for."""

    def __init__(self, subject: Subject, data: bytes) -> None:
        self._subject, self._data = subject, data
        self._graph = subject.model.subgraphs[subject.number]

    @cached_property
    def _interpreter(self) -> Interpreter:
        return self._opened()

    def _opened(self) -> Interpreter:
        signature = self._subject.signature if self._subject.number else None
        return Interpreter(self._data, self._graph.inputs, self._graph.outputs, signature)

    @property
    def is_installed(self) -> bool:
        try:
            return self._interpreter is not None
        except MissingExtraError:
            return False

    def _after(self, runs: Sequence[Feeds]) -> Interpreter:
        """An interpreter that has answered these. There is no way to set its variables but to run it from the start."""
        if not self._subject.variables:
            return self._interpreter
        fresh = self._opened()
        for feeds in runs:
            fresh.answer(self._arrays(feeds))
        return fresh

    def _arrays(self, feeds: Feeds) -> list[Array]:
        return [np.asarray(feeds[name]) for name in self._subject.inputs]

    def answer(self, feeds: Feeds) -> Sequence[Array]:
        """The outputs, and what the run leaves in variables."""
        left = [variable.last for variable in self._subject.carried]
        return self.values(feeds, [*self._graph.outputs, *(n for n in left if n is not None)])

    def values(self, feeds: Feeds, indices: Sequence[int]) -> Sequence[Array]:
        before = feeds.before if isinstance(feeds, _Continued) else ()
        return self._after(before).values(self._arrays(feeds), indices)


class _Continued(dict[str, Array]):
    """Feeds of a run that goes on from what the runs before it have left."""

    def __init__(self, feeds: Feeds, before: Sequence[Feeds], left: Mapping[str, Array]) -> None:
        super().__init__({name: np.asarray(value) for name, value in feeds.items()} | {**left})
        self.before = tuple(before)


def _in_a_row(subject: Subject, reference: _Reference, trials: Sequence[Trial]) -> list[Trial]:
    """The first begins anew, every other one goes on from the one before it."""
    names = [variable.name for variable in subject.carried]
    made, runs, left = [], list[Feeds](), dict[str, Array]()
    for trial in trials:
        feeds = _Continued(trial.feeds, runs, left)
        made.append(Trial(f"{trial.what}, run {len(runs) + 1}", feeds))
        answers = reference.answer(feeds)
        left = dict(zip(names, answers[len(subject.outputs) :], strict=True))
        runs.append(trial.feeds)
    return made


def _candidate(subject: Subject, data: bytes, opset: int | None) -> Candidate:
    reference = _Reference(subject, data)
    trials, notes = make_trials("file", reference.answer, subject.examples, subject.dynamic)
    if subject.carried and reference.is_installed:
        trials = tuple(_in_a_row(subject, reference, trials))
    graph = subject.model.subgraphs[subject.number]
    rounded = _rounds(graph)
    steps = _steps_behind(graph, _STEPS_IN_ALL)
    left = [variable.last for variable in subject.carried if variable.last is not None]
    names, numbers = (*subject.outputs, *subject.left), (*graph.outputs, *left)
    tolerances = {
        name: steps(number, graph.tensors[number])
        for name, number in zip(names, numbers, strict=True)
        if rounded and graph.tensors[number].dtype.kind != "b"
    }
    return Candidate(
        assemble(subject, opset),
        reference.answer,
        trials,
        (*subject.notes, *notes),
        {name: found for name, found in tolerances.items() if found is not None},
        _pieces(subject, reference, trials) if rounded and reference.is_installed else None,
    )


def _rounds(graph: Subgraph) -> bool:
    """Whether integers that stand for reals are computed with."""
    return any(is_quantized(tensor) for tensor in graph.tensors)


def _steps_behind(graph: Subgraph, count: float) -> Callable[[int, Tensor], Tolerance | None]:
    """How far a tensor may be off: so many steps of its own, or of what it was dequantized from."""
    makers = {number: operator for operator in graph.operators for number in operator.outputs}

    def find(number: int, tensor: Tensor) -> Tolerance | None:
        if is_quantized(tensor):
            return Tolerance(atol=count)
        if tensor.dtype.kind != "f":
            return None
        maker = makers.get(number)
        if maker is None:
            return None
        given = [graph.tensors[i] for i in maker.inputs if i >= 0]
        if maker.kind == "DEQUANTIZE" and given[0].quantization is not None:
            return Tolerance(atol=count * float(given[0].quantization.scale.max()), rtol=1e-6)
        return _ROUNDED_REALS

    return find


def _pieces(subject: Subject, reference: _Reference, trials: Sequence[Trial]) -> Candidate:
    """Every operator on the values that the interpreter has for its inputs."""
    pieces = cut_apart(subject)
    graph = subject.model.subgraphs[subject.number]
    steps = _steps_behind(graph, _STEPS_OF_ONE)
    found = {number: steps(number, pieces.tensors[number]) for number in pieces.made}
    made = [
        Trial(f"every operator by itself, {trial.what}", _Fed(reference, trial.feeds, pieces))
        for trial in trials[:_PIECES_CHECKED]
    ]

    def answer(feeds: Feeds) -> Sequence[Array]:
        assert isinstance(feeds, _Fed)
        return reference.values(feeds.outer, pieces.made)

    tolerances = {f"out.{n}": tolerance for n, tolerance in found.items() if tolerance is not None}
    return Candidate(pieces.model, answer, tuple(made), (), tolerances)


class _Fed(dict[str, Array]):
    """What the operators of a run read, with the feeds of that run."""

    def __init__(self, reference: _Reference, outer: Feeds, pieces: Pieces) -> None:
        values = reference.values(outer, pieces.fed)
        super().__init__((f"in.{n}", v) for n, v in zip(pieces.fed, values, strict=True))
        self.outer = outer
