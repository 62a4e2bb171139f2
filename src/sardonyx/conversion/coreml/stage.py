"""One model of a file, on features by name. The file knows one row; the graph has as many as it is given.

    Column      value (rows,)             a number or a text
                value (rows, width)       an array, its elements in one line
                … and keys                a dictionary: what each key has, 0 where a row does not have it

Numbers are float64 inside, as CoreML computes with them; what trees and probit give is float32, which every runtime has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.stored.graph import ML, Graph
from sardonyx.errors import ConvertError
from sardonyx.sizes import Size

__all__ = ["STAGES", "Column", "Key", "Stage", "stage"]

Key: TypeAlias = int | str


@dataclass(frozen=True)
class Column:
    """A feature of all rows; `keys` are those of a dictionary."""

    value: ir.Value
    keys: tuple[Key, ...] | None = None


class Stage:
    """A model with the features that it reads.

    Attributes:
        graph: to write into.
        kind: as the specification calls it.
        params: its message.
        description: of its inputs and outputs.
        columns: what it reads, in the order of the description.
    """

    def __init__(self, graph: Graph, model: Any, columns: Mapping[str, Column]) -> None:
        self.graph = graph
        self.kind: str = model.WhichOneof("Type")
        self.params = getattr(model, self.kind)
        self.description = model.description
        self.columns = dict(columns)

    def refuse(self, why: str, hint: str | None = None) -> ConvertError:
        return self.graph.refuse(why, hint)

    def op(self, kind: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        made: ir.Value = self.graph.op(kind, *inputs, **attributes)
        return made

    def ml(self, kind: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """An operator of ai.onnx.ml."""
        return self.op(kind, *inputs, domain=ML, **attributes)

    def numbers(self, name: str, array: Any) -> ir.Value:
        """Float64 numbers of the file."""
        return self.graph.parameter(f"{self.kind}.{name}", np.asarray(array, np.float64))

    def number(self, value: float) -> ir.Value:
        return self.graph.constant(value, np.float64)

    # ------------------------------------------------------------ what is read

    @property
    def rows(self) -> Size:
        return self.graph.shape(next(iter(self.columns.values())).value)[0]

    def only(self) -> Column:
        """The feature of a model that reads one."""
        if len(self.columns) != 1:
            raise self.refuse(f"it reads {len(self.columns)} features, not one.")
        return next(iter(self.columns.values()))

    def width(self, column: Column) -> int:
        return self.graph.size(column.value, 1) if self.graph.rank(column.value) == 2 else 1

    def matrix(self, column: Column) -> ir.Value:
        """A feature of numbers as float64, (rows, width)."""
        if self.graph.dtype(column.value).kind not in "fiu":
            raise self.refuse("it computes with a feature of texts.")
        value = self.graph.cast(column.value, np.float64)
        return value if self.graph.rank(value) == 2 else self.op("Unsqueeze", value, self._one())

    def features(self) -> ir.Value:
        """All that it reads side by side, (rows, features): features are counted through the inputs."""
        parts = [self.matrix(column) for column in self.columns.values()]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    # ------------------------------------------------------------ what is given

    def flat(self, value: ir.Value) -> ir.Value:
        """The one column of a matrix, (rows,)."""
        if self.graph.rank(value) == 1:
            return value
        if self.width(Column(value)) != 1:
            raise self.refuse(f"it gives {self.width(Column(value))} numbers in place of one.")
        return self.op("Squeeze", value, self._one())

    def output(self) -> str:
        """The name of the result of a model that gives one."""
        if len(self.description.output) != 1:
            raise self.refuse(f"it gives {len(self.description.output)} features, not one.")
        return str(self.description.output[0].name)

    def transformed(
        self, value: ir.Value, keys: tuple[Key, ...] | None = None
    ) -> dict[str, Column]:
        """A result in the form that the description has for it."""
        declared = self.description.output[0].type
        name, form = self.output(), declared.WhichOneof("Type")
        if form == "multiArrayType":
            whole = value if self.graph.rank(value) == 2 else self.matrix(Column(value))
            sizes = [int(size) for size in declared.multiArrayType.shape]
            width = self.width(Column(whole))
            if sizes and int(np.prod(sizes, dtype=object)) != width:
                raise self.refuse(f"it gives {width} numbers, and {sizes} are declared.")
            return {name: Column(whole)}
        if form == "dictionaryType":
            count = self.width(Column(value))
            return {name: Column(value, keys or tuple(range(count)))}
        if form == "doubleType":
            real = self.graph.dtype(value).kind == "f"
            return {name: Column(self.flat(value if real else self.graph.cast(value, np.float64)))}
        if form == "int64Type":
            return {name: Column(self.graph.cast(self.flat(value), np.int64))}
        if form == "stringType" and self.graph.dtype(value).kind == "O":
            return {name: Column(self.flat(value))}
        raise self.refuse(f"its output {name} is a {form}, which it cannot give.")

    def _one(self) -> ir.Value:
        return self.graph.integers([1])


Writer: TypeAlias = Callable[[Stage], dict[str, Column]]

STAGES: dict[str, Writer] = {}


def stage(kind: str) -> Callable[[Writer], Writer]:
    """Register how a kind of model is written."""

    def register(writer: Writer) -> Writer:
        STAGES[kind] = writer
        return writer

    return register
