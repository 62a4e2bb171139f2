"""Strings at a session's border: callers have strings, compiled code has their numbers.

A model's own strings have numbers from 0 on. Others that a run meets get the numbers behind those, for this run
alone: they are equal to themselves and to nothing else, and come out as they went in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.backends.values import Value
from sardonyx.plan.plan import Texts

__all__ = ["TextTable"]

Array = np.ndarray[Any, np.dtype[Any]]

_STRINGS = frozenset({str, np.str_})


class TextTable:
    """The strings of one model. Nothing of it changes while it is in use."""

    def __init__(self, texts: Texts) -> None:
        self.inputs = frozenset(texts.inputs)
        self._outputs = texts.outputs
        self._numbers = {text: number for number, text in enumerate(texts.known)}
        self._known = _objects(texts.known)

    def number_all(self, inputs: Sequence[Value], met: dict[str, int]) -> list[Value]:
        """A run's inputs, checked before, with numbers for strings; `met` keeps those the model does not know."""
        return [
            self._numbered(value, met)
            if position in self.inputs and isinstance(value, np.ndarray)
            else value
            for position, value in enumerate(inputs)
        ]

    def number_checked(self, array: Array, met: dict[str, int]) -> Array | None:
        """The numbers of an array as the caller gave it; None where it is not plainly strings."""
        if array.dtype.kind not in "OU":
            return None
        items = array.ravel().tolist()
        if not _STRINGS.issuperset(map(type, items)):
            return None
        found = list(map(self._numbers.get, items))
        if None in found:
            try:
                self._meet(items, found, met)
            except UnicodeError:  # lone surrogates; a lookup that finds something has none
                return None
        return np.array(found, np.int64).reshape(array.shape)

    def spell(self, outputs: list[Value], met: dict[str, int]) -> list[Value]:
        """A run's outputs with the strings that their numbers stand for."""
        if not self._outputs:
            return outputs
        table = np.concatenate([self._known, _objects(tuple(met))]) if met else self._known
        for position in self._outputs:
            numbers = np.asarray(outputs[position])
            outputs[position] = table[numbers.reshape(-1)].reshape(numbers.shape)
        return outputs

    def _numbered(self, array: Array, met: dict[str, int]) -> Array:
        items = array.ravel().tolist()
        found = list(map(self._numbers.get, items))
        if None in found:
            self._meet(items, found, met)
        return np.array(found, np.int64).reshape(array.shape)

    def _meet(self, items: list[str], found: list[int | None], met: dict[str, int]) -> None:
        first = len(self._numbers)
        for place, number in enumerate(found):
            if number is None:
                text = items[place].encode().decode()
                found[place] = met.setdefault(text, first + len(met))


def _objects(texts: Sequence[str]) -> Array:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array
