"""The rows of the user's example as named inputs of a model, and back.

An array is one input `X` [batch, features] of its own type; texts alone are `X` [batch]. Columns of a DataFrame,
and of an array that mixes texts and numbers, are inputs [batch, 1] of their own names and types. A missing text
is the empty text in ONNX, which has no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.request import Example
from sardonyx.conversion.sklearn.graph import TEXT
from sardonyx.errors import InputError

__all__ = ["Port", "Rows", "read_rows"]

_HINT = "Give some rows, as a numpy array or a DataFrame: convert(model, X[:20])."


@dataclass(frozen=True)
class Port:
    """One input of the model.

    Attributes:
        name: of the input.
        dtype: of its elements in the model; `object` for texts.
        width: of an array; None for texts alone, [batch].
        own: the type that the estimator is given: a column's own one, or the array's.
        missing: what the estimator is given for an empty text: a missing one where the example has such.
    """

    name: str
    dtype: np.dtype[Any]
    width: int | None
    own: Any
    missing: Any = ""


@dataclass(frozen=True)
class Rows:
    """How rows come in.

    Attributes:
        ports: the model's inputs.
        columns: of a DataFrame; None for arrays.
        mixed: an array of texts and numbers.
    """

    ports: tuple[Port, ...]
    columns: tuple[Any, ...] | None = None
    mixed: bool = False

    @property
    def wide(self) -> bool:
        """Whether an input is float64."""
        return any(port.dtype == np.float64 for port in self.ports)

    @property
    def narrow(self) -> bool:
        """Whether an input is float32 and none is wider."""
        return not self.wide and any(port.dtype == np.float32 for port in self.ports)

    def narrowed(self) -> Rows:
        """With float32 in the place of float64."""
        single = np.dtype(np.float32)
        ports = (
            replace(port, dtype=single) if port.dtype == np.float64 else port for port in self.ports
        )
        return replace(self, ports=tuple(ports))

    def widened(self) -> Rows:
        """With float32 inputs whose values the estimator is given as float64."""
        double = np.dtype(np.float64)
        ports = (
            replace(port, own=double) if port.own == np.float32 else port for port in self.ports
        )
        return replace(self, ports=tuple(ports))

    def feeds(self, rows: Any) -> dict[str, NDArray[Any]]:
        """The model's inputs for these rows."""
        if self.columns is not None:
            found = [rows[column] for column in self.columns]
            return {
                port.name: _column(values, port).reshape(-1, 1)
                for port, values in zip(self.ports, found, strict=True)
            }
        array = np.asarray(rows)
        if self.mixed:
            return {
                port.name: _column(array[:, place], port).reshape(-1, 1)
                for place, port in enumerate(self.ports)
            }
        (port,) = self.ports
        made = _column(array.reshape(-1), port).reshape(array.shape)
        return {port.name: np.ascontiguousarray(made)}

    def restore(self, feeds: Feeds) -> Any:
        """What the estimator is given for these inputs."""
        if self.columns is not None:
            series = {
                column: _series(np.asarray(feeds[port.name]).reshape(-1), port)
                for column, port in zip(self.columns, self.ports, strict=True)
            }
            return pd.DataFrame(series)
        if self.mixed:
            columns = [
                _texts(np.asarray(feeds[port.name]).reshape(-1), port)
                if port.dtype == TEXT
                else np.asarray(feeds[port.name]).reshape(-1).astype(port.own)
                for port in self.ports
            ]
            made = np.empty((len(columns[0]), len(columns)), dtype=object)
            for place, column in enumerate(columns):
                made[:, place] = list(column)
            return made
        (port,) = self.ports
        array = np.asarray(feeds[port.name])
        if port.dtype == TEXT:
            return _texts(array.reshape(-1), port).reshape(array.shape)
        return array.astype(port.own)


def read_rows(example: Example) -> tuple[Rows, Any]:
    """How the rows of an example come in, and the rows themselves.

    Raises:
        InputError: there are none, or they are nothing that a model could be fed.
    """
    rows = example.args[0] if example.args else dict(example.kwargs)
    if len(example.args) > 1 or (example.args and example.kwargs):
        raise InputError("an estimator takes one table of rows, and there is more.", hint=_HINT)
    if isinstance(rows, Mapping):
        rows = pd.DataFrame({name: np.asarray(values).reshape(-1) for name, values in rows.items()})
    if isinstance(rows, pd.Series):
        rows = rows.to_numpy(dtype=object if rows.dtype.kind not in "biuf" else None)
    if hasattr(rows, "toarray"):
        raise InputError("the example is a sparse matrix.", hint="Give X.toarray().")
    if isinstance(rows, pd.DataFrame):
        _check_rows(len(rows))
        if len({str(name) for name in rows.columns}) != len(rows.columns):
            raise InputError("two columns have the same name.", value=list(rows.columns))
        ports = tuple(_port(str(name), rows[name]) for name in rows.columns)
        return Rows(ports, tuple(rows.columns)), rows
    return _read_array(np.asarray(rows))


def _read_array(array: NDArray[Any]) -> tuple[Rows, Any]:
    if array.ndim not in (1, 2):
        raise InputError(f"the rows have shape {list(array.shape)}.", value=array.shape, hint=_HINT)
    _check_rows(len(array))
    if array.dtype.kind in "US":
        array = array.astype(object)
    width = None if array.ndim == 1 else array.shape[1]
    if array.dtype != TEXT:
        return Rows((_port("X", pd.Series(array.reshape(-1)), width),)), array
    if width is None:
        return Rows((_port("X", pd.Series(array), None),)), array
    kinds = [pd.Series(array[:, place]).infer_objects() for place in range(width)]
    ports = [_port(f"x{place}", values) for place, values in enumerate(kinds)]
    if all(port.dtype == TEXT for port in ports):
        missing = next((port.missing for port in ports if port.missing != ""), "")
        return Rows((Port("X", TEXT, width, TEXT, missing),)), array
    return Rows(tuple(ports), mixed=True), array


def _check_rows(count: int) -> None:
    if count == 0:
        raise InputError("the example has no rows.", hint=_HINT)


def _port(name: str, values: pd.Series[Any], width: int | None = 1) -> Port:
    own: Any = values.dtype
    kind: Any = own.categories.dtype if isinstance(own, pd.CategoricalDtype) else own
    plain = getattr(kind, "numpy_dtype", kind)  # Int64 of pandas is int64 here
    if isinstance(kind, pd.StringDtype) or plain == TEXT:
        found = [item for item in values if not _is_missing(item)]
        if not all(isinstance(item, str) for item in found):
            odd = next(type(item).__name__ for item in found if not isinstance(item, str))
            raise InputError(f"column {name!r} has elements of type {odd}.", value=name)
        gone = next((item for item in values if _is_missing(item)), "")
        if _is_missing(gone) and "" in found:
            raise InputError(
                f"column {name!r} has missing texts and empty ones, which are the same in ONNX.",
                hint="Fill one of the two with another text before fitting.",
            )
        return Port(name, TEXT, width, own, gone)
    dtype = np.dtype(plain)
    if dtype.kind not in "biuf":
        raise InputError(f"column {name!r} is {dtype}, which no model takes.", value=name)
    if dtype.kind in "biu" and values.isna().any():
        dtype = np.dtype(np.float64)
    if dtype == np.float16:
        dtype = np.dtype(np.float32)
    return Port(name, dtype, width, own)


def _is_missing(item: Any) -> bool:
    return item is None or item is pd.NA or (isinstance(item, float) and np.isnan(item))


def _column(values: Any, port: Port) -> NDArray[Any]:
    if port.dtype != TEXT:
        gone = np.nan if port.dtype.kind == "f" else 0
        numbers: NDArray[Any] = pd.Series(values).to_numpy(dtype=port.dtype, na_value=gone)
        return numbers
    items = ["" if _is_missing(item) else str(item) for item in values]
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def _texts(values: NDArray[Any], port: Port) -> NDArray[Any]:
    """Empty texts are missing ones, for an estimator that has seen some."""
    made = np.empty(len(values), dtype=object)
    made[:] = [port.missing if item == "" else item for item in values]
    return made


def _series(values: NDArray[Any], port: Port) -> pd.Series[Any]:
    if port.dtype == TEXT:
        return pd.Series(_texts(values, port), dtype=port.own)
    if isinstance(port.own, np.dtype):
        return pd.Series(values.astype(port.own))
    return pd.Series(values).astype(port.own)
