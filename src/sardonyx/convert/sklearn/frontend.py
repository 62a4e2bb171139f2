"""scikit-learn estimators, pipelines of them, and their files.

What each kind of estimator gives is in `answers`; how rows come in is in `inputs`. Real numbers are computed in
the type of the example's: float64 for float64 (and for whole numbers and texts alone), float32 for float32. Where
float32 does not verify, the inside is computed in float64; where float64 does not, the inputs are float32.
The rows are always a dynamic axis, `batch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.convert.candidate import Candidate, Feeds, Route
from sardonyx.convert.request import Request
from sardonyx.convert.sklearn.answers import check_fitted, expected, outputs_of
from sardonyx.convert.sklearn.assemble import assemble
from sardonyx.convert.sklearn.files import open_model
from sardonyx.convert.sklearn.inputs import Rows, read_rows
from sardonyx.convert.sklearn.trials import trials_for
from sardonyx.errors import InputError

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """The ways to convert an estimator, by the type that numbers are computed in."""
    model = open_model(request)
    check_fitted(model)
    if not request.examples:
        raise InputError(
            "there are no example rows.",
            hint="Give some: convert(model, X[:20]); their types become the model's.",
        )
    rows, given = read_rows(request.examples[0])
    single, double = np.dtype(np.float32), np.dtype(np.float64)

    def route(
        name: str, how: Rows, number: np.dtype[Any], result: np.dtype[Any], note: str
    ) -> Route:
        def make() -> Candidate:
            return _candidate(request, model, how, given, (number, result), note)

        return Route(name, make)

    if rows.narrow:
        inside = "float32 was not exact enough inside: the numbers are computed in float64."
        return (
            route("float32", rows, single, single, ""),
            route("float64 inside", rows, double, single, inside),
        )
    if not rows.wide:
        return (route("float64", rows, double, double, ""),)
    less = (
        "the inputs are float32, because float64 did not verify: "
        "answers are those of the estimator for the rounded values."
    )
    return (
        route("float64", rows, double, double, ""),
        route("float32", rows.narrowed(), single, single, less),
    )


def _candidate(
    request: Request,
    model: Any,
    rows: Rows,
    given: Any,
    types: tuple[np.dtype[Any], np.dtype[Any]],
    note: str,
) -> Candidate:
    feeds = rows.feeds(given)
    outputs = outputs_of(model, rows.restore(feeds))
    made = assemble(request, model, rows, outputs, types)
    answer = expected(model, outputs, made.dtypes)
    names = dict(zip(made.input_names, (port.name for port in rows.ports), strict=True))

    def answer_for(fed: Feeds) -> list[Any]:
        return answer(rows.restore({names[name]: value for name, value in fed.items()}))

    back = {port: name for name, port in names.items()}
    more = [rows.feeds(read_rows(further)[1]) for further in request.examples[1:]]
    trials = trials_for(model, rows, [feeds, *more], outputs, back)
    notes = (note,) if note else ()
    return Candidate(made.model, answer_for, trials, notes + made.notes)
