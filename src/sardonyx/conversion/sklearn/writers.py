"""What each estimator computes, by class and method; `estimators/` has the entries.

    @writes("predict", LinearRegression, Ridge)
    def linear(model, table):
        return table.matrix @ model.coef_.T + model.intercept_

An estimator without an entry is borrowed from skl2onnx as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sardonyx.conversion.sklearn.graph import TEXT, Tensor
from sardonyx.conversion.sklearn.table import Table, table_of
from sardonyx.errors import ConvertError

__all__ = [
    "Writer",
    "find_writer",
    "labelled",
    "predict",
    "refuse",
    "scores",
    "title",
    "transform",
    "write",
    "writes",
]

# A method's graph: a tensor, or a table where columns differ in type, or a list of tensors, one an output.
Writer: TypeAlias = Callable[[Any, Table], Any]

_WRITERS: dict[tuple[type, str], Writer] = {}


def writes(method: str, *classes: type) -> Callable[[Writer], Writer]:
    """Register the graph of a method of these classes."""

    def register(writer: Writer) -> Writer:
        for cls in classes:
            _WRITERS[cls, method] = writer
        return writer

    return register


def find_writer(model: Any, method: str) -> Writer | None:
    """The entry for an object, or for what its class is made from."""
    for cls in type(model).__mro__:
        if (cls, method) in _WRITERS:
            return _WRITERS[cls, method]
    return None


def write(method: str, model: Any, table: Table) -> Any:
    """The graph of `model.method(table)`.

    Raises:
        ConvertError: nobody knows how to write it.
    """
    writer = find_writer(model, method)
    if writer is None:
        from sardonyx.conversion.sklearn.borrowed import borrow  # it calls back here

        return borrow(method, model, table)
    return writer(model, table)


def predict(model: Any, table: Table) -> Tensor:
    answer: Tensor = write("predict", model, table)
    return answer


def scores(method: str, model: Any, table: Table) -> Tensor:
    """predict_proba or decision_function, where it is one tensor."""
    answer = write(method, model, table)
    if not isinstance(answer, Tensor):
        raise refuse(model, f"{method} of several outputs cannot be used inside another estimator")
    return answer


def transform(model: Any, table: Table) -> Table:
    """The table after a transformer, with the columns' names where scikit-learn would pass a DataFrame on."""
    answer = write("transform", model, table)
    made = table_of(answer) if isinstance(answer, Tensor) else answer
    if not isinstance(made, Table):
        raise refuse(model, "its transform gives no table")
    return made


def labelled(model: Any, classes: Any, index: Tensor) -> Tensor:
    """Classes by their index."""
    graph = index.graph
    if classes.dtype.kind in "iu":
        return graph.constant(classes, "int64").take(index)
    if classes.dtype.kind == "f":
        return graph.constant(classes, graph.number).take(index)
    if classes.dtype.kind == "b":
        return graph.constant(classes).take(index)
    if classes.dtype.kind in "US" or all(isinstance(label, str) for label in classes):
        return graph.constant([str(label) for label in classes], TEXT).take(index)
    raise refuse(model, f"its classes are of mixed types: {list(classes)[:4]!r}")


def title(model: Any) -> str:
    return type(model).__name__


def refuse(model: Any, why: str, hint: str | None = None) -> ConvertError:
    """The error that says what cannot be written."""
    return ConvertError(why if why.endswith(".") else f"{why}.", where=title(model), hint=hint)
