"""Running a model over calibration data, and looking at values inside of it.

    feeds ─► Session of the model, the looked-at values among its outputs ─► observers      batch after batch

Every batch is reduced at once: what is remembered does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.backends.values import Value
from sardonyx.errors import InputError, RunError
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import Array
from sardonyx.runtime.session import Session

__all__ = ["Answers", "Progress", "Sink", "observe", "probe"]

Answers = Sequence[Value]

Progress = Callable[[str, int, int | None], None]  # what is done, how many of how many
Sink = Callable[[Array], None]
_EXTREMES = ("ReduceMin", "ReduceMax")


def probe(
    model: ir.Model, names: Iterable[str], extremes: Collection[str] = ()
) -> tuple[ir.Model, Mapping[str, Sequence[int]]]:
    """A copy of the model that also gives the named values, and where among its outputs they are.

    Args:
        extremes: those of which the smallest and the largest number are enough: they are found where they are made.
    """
    copy = model.clone()
    copy.meta.update(model.meta)
    graph = copy.graph
    known = {value.name: value for node in graph for value in node.outputs}
    places: dict[str, Sequence[int]] = {v.name or "": [n] for n, v in enumerate(graph.outputs)}
    for name in names:
        if name in extremes:
            places[name] = range(len(graph.outputs), len(graph.outputs) + 2)
            graph.outputs.extend(_reduced(graph, known[name], op) for op in _EXTREMES)
        elif name not in places:
            places[name] = [len(graph.outputs)]
            graph.outputs.append(known[name])
    return copy, places


def _reduced(graph: ir.Graph, value: ir.Value, op: str) -> ir.Value:
    node = ir.Node("", op, [value], [ir.AttrInt64("keepdims", 0)])
    (found,) = node.outputs
    found.name = f"sardonyx.{op}.{value.name}"
    found.type, found.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([])
    graph.append(node)
    return found


def observe(
    model: ir.Model,
    sinks: Mapping[str, Sequence[Sink]],
    data: CalibrationData,
    progress: Progress,
    *,
    finite: bool = True,
    extremes: Collection[str] = (),
) -> list[Answers]:
    """Show the named values, of every batch, to those who want to see them; the model's answers to `data.sample`.

    Args:
        finite: whether an infinite number is an error, as NaN always is.
        extremes: values of which the smallest and the largest number of a batch are all that is shown.

    Raises:
        RunError: a value is not a number, or infinite.
        InputError: there are no data, or they do not fit.
    """
    fed = {value.name for value in model.graph.inputs}
    probed, places = probe(model, (name for name in sinks if name not in fed), extremes)
    own = len(model.graph.outputs)
    session = Session(probed)
    answers: list[Answers] = []
    for number, feeds in enumerate(data):
        results = session.run(None, feeds)
        if number < len(data.sample):
            answers.append(results[:own])
        for name, wanted in sinks.items():
            value = feeds.get(name) if name in fed else _gathered(results, places[name])
            if value is None:  # an input that has a value of its own, and was not fed
                given = model.graph.initializers[name].const_value
                value = None if given is None else given.numpy()
            assert isinstance(value, np.ndarray)
            _check(name, value, number, is_input=name in fed, finite=finite)
            for sink in wanted:
                sink(value)
        progress("calibrating", number + 1, data.length)
    return answers


def _gathered(results: Sequence[Value], places: Sequence[int]) -> Value:
    """A value, or the numbers that stand for it."""
    if len(places) == 1:
        return results[places[0]]
    return np.array([results[place] for place in places])


def _check(name: str, value: Array, batch: int, *, is_input: bool, finite: bool) -> None:
    if value.dtype.kind != "f":
        return
    # A sum is finite where all numbers are, and seldom overflows where they are: then one looks closer.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(value.sum(dtype=np.float64)) or np.isfinite(value).all():
            return
    what = "NaN" if np.isnan(value).any() else "infinite"
    if what == "infinite" and not finite:
        return
    if is_input:
        raise InputError(
            f"it has numbers that are {what}.",
            where=f"calibration batch {batch}, input {name!r}",
            hint="Leave such inputs out: no range covers them.",
        )
    raise RunError(
        f"the model's own numbers are {what} here, before anything is quantized.",
        where=f"calibration batch {batch}, value {name!r}",
        hint="Look at this batch's inputs, or leave it out: no range covers such numbers.",
    )
