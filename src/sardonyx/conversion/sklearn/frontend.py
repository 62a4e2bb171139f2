"""scikit-learn estimators, pipelines of them, and their files.

What each kind of estimator gives is in `answers`; how rows come in is in `inputs`. Real numbers are computed in
the type of the example's: float64 for float64 (and for whole numbers and texts alone), float32 for float32. Where
float32 does not verify, the inside is computed in float64; where float64 does not, the inputs are float32.
The rows are always a dynamic axis, `batch`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Candidate, Feeds, Route
from sardonyx.conversion.request import Request
from sardonyx.conversion.sklearn.answers import Output, check_fitted, expected, outputs_of
from sardonyx.conversion.sklearn.assemble import assemble
from sardonyx.conversion.sklearn.files import open_model
from sardonyx.conversion.sklearn.inputs import Rows, read_rows
from sardonyx.conversion.sklearn.trials import trials_for
from sardonyx.errors import ConvertError, InputError

__all__ = ["routes"]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class _Way:
    """One type to compute in: of the inputs, of the inside, of the results; and what the user is told of it."""

    name: str
    rows: Rows
    number: np.dtype[Any]
    result: np.dtype[Any]
    note: str = ""


def routes(request: Request) -> Sequence[Route]:
    """The ways to convert an estimator, by the type that numbers are computed in.

    Raises:
        InputError: it is not fitted, there are no example rows, or the file may not be opened.
        ConvertError: no way can write it, for one and the same reason.
    """
    model = open_model(request)
    check_fitted(model)
    if not request.examples:
        raise InputError(
            "there are no example rows.",
            hint="Give some: convert(model, X[:20]); their types become the model's.",
        )
    rows, given = read_rows(request.examples[0])
    outputs = outputs_of(model, rows.restore(rows.feeds(given)))
    single = _answers_in_float32(model, outputs, rows.restore(rows.feeds(given)))
    ways = [_route(request, model, outputs, given, way) for way in _ways(rows, single)]
    _refuse_once(ways)
    return ways


def _answers_in_float32(model: Any, outputs: Sequence[Output], given: Any) -> bool:
    """Whether the estimator rounds its answers to float32, whatever it is given."""
    answers = [getattr(model, output.method)(given) for output in outputs]
    return any(getattr(answer, "dtype", None) == np.float32 for answer in answers)


def _ways(rows: Rows, single: bool) -> list[_Way]:
    if rows.narrow:
        inside = (
            "float32 was not exact enough inside: the numbers are computed in float64, and "
            "compared with the estimator's answers for the same values as float64."
        )
        return [
            _Way("float32", rows, _SINGLE, _SINGLE),
            _Way("float64 inside", rows.widened(), _DOUBLE, _SINGLE, inside),
        ]
    double = [_Way("float64", rows, _DOUBLE, _DOUBLE)]
    if single:
        own = "answers are float32, as the estimator's own are."
        double.append(_Way("float64 inside", rows, _DOUBLE, _SINGLE, own))
    if not rows.wide:
        return double
    less = (
        "the inputs are float32, because float64 did not verify: "
        "answers are those of the estimator for the rounded values."
    )
    return [
        *double,
        _Way("float32", rows.narrowed(), _SINGLE, _SINGLE, less),
        _Way("float32, float64 inside", rows.narrowed(), _DOUBLE, _SINGLE, less),
    ]


def _route(request: Request, model: Any, outputs: Sequence[Output], given: Any, way: _Way) -> Route:
    make = functools.cache(lambda: _candidate(request, model, outputs, given, way))
    return Route(way.name, make)


def _refuse_once(ways: Sequence[Route]) -> None:
    """What no way can write for one and the same reason is refused with it, once."""
    reasons = []
    for way in ways:
        try:
            way.make()
        except ConvertError as error:
            reasons.append(error)
        except Exception:  # told when the way is tried
            return
        else:
            return
    if len({str(error) for error in reasons}) == 1:
        raise reasons[0]


def _candidate(
    request: Request, model: Any, outputs: Sequence[Output], given: Any, way: _Way
) -> Candidate:
    rows = way.rows
    feeds = rows.feeds(given)
    made = assemble(request, model, rows, outputs, (way.number, way.result))
    answer = expected(model, outputs, made.dtypes)
    names = dict(zip(made.input_names, (port.name for port in rows.ports), strict=True))

    def answer_for(fed: Feeds) -> list[Any]:
        return answer(rows.restore({names[name]: value for name, value in fed.items()}))

    back = {port: name for name, port in names.items()}
    more = [rows.feeds(read_rows(further)[1]) for further in request.examples[1:]]
    trials = trials_for(model, rows, [feeds, *more], outputs, back)
    notes = (way.note,) if way.note else ()
    return Candidate(made.model, answer_for, trials, notes + made.notes)
