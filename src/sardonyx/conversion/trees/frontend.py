"""XGBoost, LightGBM and CatBoost: objects and files, by our own readers.

The input is one array `X` (batch, features): float64 where the example is, else float32. Categories are numbers; the
notes say which is which. No example is needed: a model is held to the library's answers on rows at its own
thresholds, with missing values and categories that training never saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Feeds, Route, Trial
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.trees.catboost import convert_catboost
from sardonyx.conversion.trees.conversion import InputType, TreeConversion
from sardonyx.conversion.trees.forest import Array, Ensemble
from sardonyx.conversion.trees.lightgbm import convert_lightgbm
from sardonyx.conversion.trees.probing import probe_rows, score_rounding
from sardonyx.conversion.trees.xgboost import convert_xgboost
from sardonyx.errors import ConvertError, InputError
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["routes"]

_ROWS = 2000
_READERS: Mapping[str, Callable[..., TreeConversion]] = {
    "xgboost": convert_xgboost,
    "lightgbm": convert_lightgbm,
    "catboost": convert_catboost,
}
_ENDINGS = {".json": "xgboost", ".ubj": "xgboost", ".txt": "lightgbm", ".cbm": "catboost"}


def routes(request: Request) -> Sequence[Route]:
    """The one way: the library's own dump of the model.

    Raises:
        InputError: the example is not rows of numbers.
        ConvertError: the model cannot be read or expressed.
    """
    name = _library(request)
    examples = [_rows(example) for example in request.examples]
    double = bool(examples) and all(rows.dtype == np.float64 for rows in examples)
    input_type: InputType = "float64" if double else "float32"
    options = {"categories": request.option("categories")} if name == "catboost" else {}
    conversion = _READERS[name](request.source, input_type=input_type, **options)
    return [Route("its own dump", lambda: _candidate(request, conversion, input_type, examples))]


def _library(request: Request) -> str:
    if request.path is not None:
        name = _ENDINGS.get(request.path.suffix, "")
    else:
        homes = {base.__module__.partition(".")[0] for base in type(request.source).__mro__}
        name = next((home for home in _READERS if home in homes), "")
    if not name:
        raise ConvertError(
            f"neither XGBoost, LightGBM nor CatBoost made {request.source!r:.80}.",
            value=request.source,
            hint=f"Files end in {', '.join(_ENDINGS)}.",
        )
    return name


def _rows(example: Example) -> Array:
    """An array of numbers; a DataFrame of numbers counts as one."""
    given = [*example.args, *example.kwargs.values()]
    hint = "Give rows of numbers; for a category its number, as the conversion's notes tell."
    if len(given) != 1:
        raise InputError(f"the example has {len(given)} inputs, not one array of rows.", hint=hint)
    try:
        rows = np.asarray(given[0])
        rows = rows if rows.dtype == np.float64 else rows.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"the example is not of numbers: {error}.", hint=hint) from error
    if rows.ndim != 2:
        raise InputError(
            f"the example has shape {list(rows.shape)}, not [rows, features].", hint=hint
        )
    return rows


def _candidate(
    request: Request, conversion: TreeConversion, input_type: InputType, examples: Sequence[Array]
) -> Candidate:
    model = _as_asked(request, conversion.model)
    name = model.graph.inputs[0].name or ""
    dtype = np.dtype(input_type)

    def answer(feeds: Feeds) -> list[Any]:
        return [
            value.astype(np.float32) if value.dtype.kind == "f" else _plain_text(value)
            for value in conversion.answer(np.asarray(feeds[name]))
        ]

    hard = probe_rows(conversion.ensemble, _ROWS, input_type=input_type)
    made = [
        ("at thresholds, missing, unseen", _decided(conversion, hard)),
        ("one row", hard[:1]),
    ]
    given = [
        ("the example" if not at else f"example {at + 1}", rows.astype(dtype))
        for at, rows in enumerate(examples)
    ]
    trials = tuple(Trial(what, {name: rows}) for what, rows in [*given, *made] if len(rows))
    return Candidate(model, answer, trials, conversion.notes)


def _plain_text(value: Array) -> Array:
    return value.astype(object) if value.dtype.kind in "OUT" else value


def _decided(conversion: TreeConversion, rows: Array) -> Array:
    """Rows whose label does not hang on rounding: two classes closer than that have no one right label."""
    ensemble: Ensemble = conversion.ensemble
    if ensemble.head.kind not in ("binary", "classes"):
        return rows
    probabilities = np.sort(conversion.answer(rows)[1], axis=1)
    apart = probabilities[:, -1] - probabilities[:, -2]
    kept: Array = rows[apart > np.minimum(4 * score_rounding(ensemble, rows)[:, 0], 1e-3)]
    return kept


def _as_asked(request: Request, model: ir.Model) -> ir.Model:
    """The names, the batch's symbol and the opset that were asked for."""
    graph = model.graph
    for what, ports, names in (
        ("input", graph.inputs, request.input_names),
        ("output", graph.outputs, request.output_names),
    ):
        if names and len(names) != len(ports):
            raise InputError(
                f"{len(names)} {what} names are given, and the model has {len(ports)} {what}s.",
                value=names,
                limit=len(ports),
            )
        for port, wanted in zip(ports, names, strict=False):
            port.name = wanted
    first = graph.inputs[0].name or ""
    for key, axes in request.dynamic.items():
        if key != first or set(axes) - {0}:
            raise InputError(
                f"{key!r:.80} has no open axes {sorted(set(axes) - {0})}.",
                value=dict(request.dynamic),
                hint=f"The rows of {first} are the only open axis: {{{first!r}: {{0: 'batch'}}}}.",
            )
        for port in (*graph.inputs, *graph.outputs):
            assert port.shape is not None
            port.shape = ir.Shape([axes.get(0, "batch"), *list(port.shape)[1:]])
    if request.opset is not None and request.opset != graph.opset_imports[""]:
        return optimize(model, Settings(0, opset=request.opset)).model
    return model
