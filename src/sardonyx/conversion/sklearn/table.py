"""The rows that an estimator is given: columns of several types side by side, as a DataFrame has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.conversion.sklearn.graph import TEXT, Graph, Tensor, concat
from sardonyx.errors import ConvertError

__all__ = ["Part", "Table", "table_of"]


@dataclass(frozen=True)
class Part:
    """Columns of one type: a tensor [batch, width], and the columns' names where they have some."""

    tensor: Tensor
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Parts side by side."""

    parts: tuple[Part, ...]

    @property
    def graph(self) -> Graph:
        return self.parts[0].tensor.graph

    @property
    def width(self) -> int:
        return sum(part.tensor.width for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns; empty where one has none."""
        names = [name for part in self.parts for name in part.names]
        return tuple(names) if len(names) == self.width else ()

    @property
    def matrix(self) -> Tensor:
        """All columns as one tensor of numbers."""
        number = self.graph.number
        for part in self.parts:
            if part.tensor.dtype == TEXT:
                raise ConvertError(
                    f"texts (column {', '.join(part.names) or '?'}) meet an estimator of numbers."
                )
        return concat([part.tensor.cast(number) for part in self.parts])

    def column(self, place: int) -> Tensor:
        """One column [batch, 1], of its own type."""
        for part in self.parts:
            if place < part.tensor.width:
                return part.tensor.columns([place])
            place -= part.tensor.width
        raise ConvertError(f"there is no column {place} beyond the table.")

    def select(self, places: Sequence[int]) -> Table:
        """Some columns, in this order; neighbours of one part stay together."""
        runs: list[tuple[int, list[int]]] = []
        starts: list[int] = []
        at = 0
        for part in self.parts:
            starts.append(at)
            at += part.tensor.width
        for place in places:
            index = max(i for i, start in enumerate(starts) if start <= place)
            if not runs or runs[-1][0] != index:
                runs.append((index, []))
            runs[-1][1].append(place - starts[index])
        return Table(tuple(self._slice(index, columns) for index, columns in runs))

    def _slice(self, index: int, columns: list[int]) -> Part:
        part = self.parts[index]
        names = tuple(part.names[column] for column in columns) if part.names else ()
        return Part(part.tensor.columns(columns), names)


def table_of(tensor: Tensor, names: tuple[str, ...] = ()) -> Table:
    """A table of one part."""
    return Table((Part(tensor, names),))
