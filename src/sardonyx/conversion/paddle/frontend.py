"""Paddle: paddle2onnx writes the model, Paddle itself answers for it, both in their own environment."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Feeds, Route
from sardonyx.conversion.paddle.environment import PaddlePython, find_paddle
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.subject import Subject, open_subject
from sardonyx.conversion.variations import trials_of
from sardonyx.errors import InputError
from sardonyx.model.load import load
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["routes"]

_PROGRAMS = ("inference.json", "inference.pdmodel")


def routes(request: Request) -> Sequence[Route]:
    """The one way: paddle2onnx.

    Raises:
        InputError: a file is missing, or the examples do not fit.
        MissingExtraError: no Python with Paddle is named.
        ConvertError: paddle2onnx fails.
    """
    program, params = _files(request)
    python = find_paddle(request.option("paddle_python"))
    with tempfile.TemporaryDirectory(prefix="sardonyx-paddle-") as folder:
        model = load(python.convert(program, params, Path(folder), request.opset).read_bytes())
    names = [value.name or "" for value in model.graph.inputs]
    outputs = [value.name or "" for value in model.graph.outputs]
    subject = open_subject(request, "Paddle", names, outputs)
    return [
        Route("paddle2onnx", lambda: _candidate(model, subject, names, python, program, params))
    ]


def _files(request: Request) -> tuple[Path, Path]:
    path = request.path
    if path is None:
        raise InputError(
            "Paddle models are converted from their files.",
            hint="Save it with paddle.jit.save, and give the .json or .pdmodel file or its folder.",
        )
    if path.is_dir():
        path = next((path / name for name in _PROGRAMS if (path / name).is_file()), path)
    params = path.with_suffix(".pdiparams")
    if not params.is_file():
        raise InputError(f"there is no {params.name} beside it.", where=str(path))
    return path.resolve(), params.resolve()


def _candidate(
    model: ir.Model,
    subject: Subject,
    own: Sequence[str],
    python: PaddlePython,
    program: Path,
    params: Path,
) -> Candidate:
    made = model.clone()
    for ports, names in (
        (made.graph.inputs, subject.names),
        (made.graph.outputs, subject.outputs),
    ):
        for port, name in zip(ports, names, strict=True):
            port.name = name
    _close_axes(made, subject)
    made = optimize(made, Settings(1)).model
    trials = trials_of(subject.examples, subject.dynamic)
    back = dict(zip(subject.names, own, strict=True))
    asked = [{back[name]: value for name, value in trial.feeds.items()} for trial in trials]
    recorded: list[list[Any]] = []

    def answer(feeds: Feeds) -> list[Any]:
        if not recorded:  # all trials in one process: starting Paddle takes seconds
            recorded.extend(python.run(program, params, asked))
        return recorded[next(at for at, trial in enumerate(trials) if trial.feeds is feeds)]

    return Candidate(made, answer, trials)


def _close_axes(model: ir.Model, subject: Subject) -> None:
    """Axes that the program leaves open take the user's names, or the example's sizes."""
    for port in model.graph.inputs:
        assert port.name is not None
        axes = subject.dynamic.get(port.name, {})
        sizes = np.asarray(subject.examples[0][port.name]).shape
        port.shape = ir.Shape([axes.get(axis, size) for axis, size in enumerate(sizes)])
    for value in (*model.graph.outputs, *(o for node in model.graph for o in node.outputs)):
        value.shape = None
