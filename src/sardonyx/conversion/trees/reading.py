"""What the readers of all three libraries need."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.trees.forest import Array, Category, Column, Label, Lookup
from sardonyx.errors import ConvertError, InputError, MissingExtraError

__all__ = ["ColumnBook", "class_labels", "file_of", "library", "quietly", "two_axes"]


def library(name: str) -> Any:
    """The library as it is installed.

    Raises:
        MissingExtraError: it is not.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{name} cannot be imported: {error}.", hint='Run: pip install "sardonyx[trees]"'
        ) from error


def file_of(source: object) -> Path | None:
    """The path, where the source is one.

    Raises:
        InputError: there is no such file.
    """
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    if not path.is_file():
        raise InputError("there is no such file.", where=str(path), value=path)
    return path


class ColumnBook:
    """The prepared columns that the nodes of an ensemble ask for, each once."""

    def __init__(self, features: int) -> None:
        self.features = features
        self._numbers: dict[Column, int] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self._numbers)

    def number(self, column: Column) -> int:
        return self._numbers.setdefault(column, self.features + len(self._numbers))

    def member(
        self,
        feature: int,
        codes: Sequence[int],
        *,
        missing: bool = False,
        toward_zero: bool = False,
    ) -> int:
        """The column that is 1 where the feature is one of these categories, and 0 elsewhere."""
        size = max(codes, default=-1) + 1
        table = np.zeros(size + 2)
        table[list(codes)] = 1
        table[-1] = missing
        digit = Category(feature, size, toward_zero)
        return self.number(Lookup((digit,), tuple(table.tolist())))


def class_labels(classes: Any, count: int, where: str) -> tuple[Label, ...]:
    """The labels of a classifier, as ONNX has them: integers or texts.

    Raises:
        ConvertError: there are none for `count` classes, or they are of another kind.
    """
    labels = np.asarray(classes).reshape(-1)
    if len(labels) != count:
        raise ConvertError(
            f"it has {len(labels)} class labels for {count} classes.",
            where=where,
            value=labels,
            hint="Train it on data that have every class.",
        )
    if all(isinstance(label, str) for label in labels.tolist()):
        return tuple(str(label) for label in labels.tolist())
    try:
        numbers = labels.astype(np.int64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or not (numbers == labels).all():
        raise ConvertError(
            f"its class labels are neither integers nor texts: {labels.tolist()!r:.80}.",
            where=where,
            value=labels,
            hint="Train it on labels of integers or texts.",
        )
    return tuple(numbers.tolist())


def two_axes(answer: Any) -> Array:
    """(rows, values), also where the library leaves out an axis of one value."""
    array = np.asarray(answer)
    return array.reshape(len(array), -1)


def quietly(call: Callable[[], Any]) -> Any:
    """A library's answer without its warnings, as of feature names that an array does not have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()
