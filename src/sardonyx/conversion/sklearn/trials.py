"""The rows that a converted estimator is held to: the example, and others made from it.

    other values      every column mixed by itself, and real numbers moved a little
    at thresholds     exactly at splits of trees and edges of bins, and the next floats beside them
    missing values    where the estimator takes them
    unknown values    texts that were never seen, where the estimator takes them
    large values      a thousand times the example's
    one row

Rows that the estimator itself refuses are left out, and so are made rows whose two best classes lie closer together
than rounding: they have no one right label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from sardonyx.conversion.candidate import Trial
from sardonyx.conversion.sklearn.answers import Output
from sardonyx.conversion.sklearn.graph import TEXT
from sardonyx.conversion.sklearn.inputs import Rows
from sardonyx.conversion.sklearn.thresholds import thresholds_of

__all__ = ["trials_for"]

Feeds = dict[str, NDArray[Any]]

_ROWS = 120


def trials_for(
    model: Any,
    rows: Rows,
    examples: Sequence[Feeds],
    outputs: Sequence[Output],
    names: Mapping[str, str],
) -> tuple[Trial, ...]:
    """The examples as they are, then made rows.

    Args:
        names: of the model's inputs, by the port's name.
    """
    found = [
        ("the example" if not at else f"example {at + 1}", fed) for at, fed in enumerate(examples)
    ]
    generator = np.random.default_rng(0)
    for what, feeds in _made(model, rows, examples[0], generator):
        kept = _decided(model, rows, outputs, feeds)
        if kept is not None:
            found.append((what, kept))
    single = {name: value[:1] for name, value in examples[0].items()}
    if _decided(model, rows, outputs, single) is not None:
        found.append(("one row", single))
    return tuple(
        Trial(what, {names[name]: value for name, value in feeds.items()}) for what, feeds in found
    )


def _made(
    model: Any, rows: Rows, example: Feeds, generator: np.random.Generator
) -> Iterator[tuple[str, Feeds]]:
    mixed = _mixed(rows, example, generator)
    yield "other values", mixed
    jumps = _at_thresholds(model, rows, mixed)
    if jumps is not None:
        yield "values at thresholds", jumps
    if _takes_missing(model):
        yield "missing values", _with_missing(rows, mixed, generator)
    if any(port.dtype == TEXT for port in rows.ports):
        yield "unknown texts", _with_unknown(rows, mixed, generator)
    if any(port.dtype.kind == "f" for port in rows.ports):
        far = {
            port.name: mixed[port.name] * port.dtype.type(1000)
            if port.dtype.kind == "f"
            else mixed[port.name]
            for port in rows.ports
        }
        yield "large values", far


def _mixed(rows: Rows, example: Feeds, generator: np.random.Generator) -> Feeds:
    made = {}
    for port in rows.ports:
        value = example[port.name]
        columns = value.reshape(len(value), -1)
        picked = np.stack(
            [generator.choice(column, _ROWS) for column in columns.T], axis=1
        )  # every column by itself
        if port.dtype.kind == "f":
            picked = _moved(columns, picked, generator).astype(port.dtype)
        elif port.dtype == TEXT and port.width is None:
            picked = _rewritten(picked, generator)
        made[port.name] = picked.reshape(_ROWS, *value.shape[1:])
    return made


def _moved(
    columns: NDArray[Any], picked: NDArray[Any], generator: np.random.Generator
) -> NDArray[Any]:
    """Real numbers get others beside them; whole ones, which may be codes, stay."""
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(columns), columns, np.nan).astype(np.float64)
        whole = np.array([bool(np.all(c[np.isfinite(c)] % 1 == 0)) for c in finite.T])
        low, high = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)
        spread = np.where(whole, 0.0, np.nanstd(finite, axis=0))
    shift = generator.normal(0.0, 0.3, picked.shape) * spread
    return np.clip(picked + shift, low, high)


def _rewritten(picked: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Documents in other words: two in one, in capitals, with other signs between the words."""
    flat = picked.reshape(-1)
    for at in range(len(flat)):
        text = str(flat[at])
        way = at % 5
        if way == 1:
            text = f"{text} {generator.choice(flat)}"
        elif way == 2:
            text = text.upper()
        elif way == 3:
            text = text.replace(" ", ", ")
        elif way == 4:
            text = f"({text})!  "
        flat[at] = text
    return flat.reshape(picked.shape)


def _at_thresholds(model: Any, rows: Rows, mixed: Feeds) -> Feeds | None:
    found = thresholds_of(model)
    places = _places(rows)
    cells: list[tuple[str, int, Any]] = []
    for column, values in found.items():
        if column >= len(places) or places[column][2].kind != "f":
            continue
        name, at, dtype = places[column]
        for value in values:
            exact = dtype.type(value)
            beside = (np.nextafter(exact, -np.inf), exact, np.nextafter(exact, np.inf))
            cells += [(name, at, each) for each in beside if np.isfinite(each)]
    if not cells:
        return None
    size = min(len(cells), 20 * _ROWS)
    made = {name: value[np.arange(size) % len(value)].copy() for name, value in mixed.items()}
    for row, (name, at, value) in enumerate(cells[:size]):
        made[name][row, at] = value
    return made


def _places(rows: Rows) -> list[tuple[str, int, np.dtype[Any]]]:
    return [(port.name, at, port.dtype) for port in rows.ports for at in range(port.width or 1)]


def _takes_missing(model: Any) -> bool:
    try:
        return bool(get_tags(model).input_tags.allow_nan)
    except Exception:  # of another library's estimator
        return False


def _with_missing(rows: Rows, mixed: Feeds, generator: np.random.Generator) -> Feeds:
    made = {}
    for port in rows.ports:
        value = mixed[port.name].copy()
        gaps = generator.random(value.shape) < 0.15
        if port.dtype.kind == "f":
            value[gaps] = np.nan
        elif port.dtype == TEXT and port.missing != "":
            value[gaps] = ""
        made[port.name] = value
    return made


def _with_unknown(rows: Rows, mixed: Feeds, generator: np.random.Generator) -> Feeds:
    made = {}
    for port in rows.ports:
        value = mixed[port.name].copy()
        if port.dtype == TEXT:
            value[generator.random(value.shape) < 0.2] = "zzyzx unseen"
        made[port.name] = value
    return made


def _decided(model: Any, rows: Rows, outputs: Sequence[Output], feeds: Feeds) -> Feeds | None:
    """The rows that the estimator takes, and whose label is beyond rounding; None where there are none."""
    given = rows.restore(feeds)
    methods = {output.method for output in outputs}
    try:
        answers = {method: getattr(model, method)(given) for method in sorted(methods)}
    except Exception:  # the estimator refuses such rows, by whatever error
        return None
    count = len(next(iter(feeds.values())))
    if any(answer.shape[0] != count for answer in answers.values() if hasattr(answer, "shape")):
        return None  # SparsePCA drops the axis of a single row
    close = np.zeros(count, dtype=bool)
    if "predict" in methods and len(methods) > 1:
        for method in methods - {"predict"}:
            close |= _close(method, answers[method], 1e-4 if rows.narrow else 1e-10)
    if close.all():
        return None
    return {name: value[~close] for name, value in feeds.items()}


def _close(method: str, answer: Any, share: float) -> NDArray[np.bool_]:
    """Rows whose decision hangs on rounding: not where classes tie exactly, which is a case of its own."""
    found = answer if isinstance(answer, list) else [answer]
    near = np.zeros(len(found[0]), dtype=bool)
    for each in found:
        array = np.asarray(each.toarray() if hasattr(each, "toarray") else each, np.float64)
        if array.ndim == 1:
            margin, size = np.abs(array), np.abs(array).max(initial=0.0)
        elif array.ndim == 2 and array.shape[1] > 1:
            ordered = np.sort(array if method != "transform" else -array, axis=1)
            margin, size = ordered[:, -1] - ordered[:, -2], np.abs(array).max(initial=0.0)
        else:
            continue
        near |= (margin > 0.0) & (margin < share * max(size, 1e-300))
    return near
