"""Categories and dictionaries as numbers, and features side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Key, Stage, stage

__all__ = ["keys_of"]

_IGNORE = 1  # OneHotEncoder.HandleUnknown
_MOST_KEYS = 1 << 20


@stage("oneHotEncoder")
def one_hot(stage: Stage) -> dict[str, Column]:
    """What is no category has zeros, or is an error: of the model as it was of the file."""
    params, column = stage.params, stage.only()
    which = params.WhichOneof("CategoryType")
    categories = list(getattr(params, which).vector) if which else []
    if not categories or len(set(categories)) != len(categories):
        raise stage.refuse(f"it has {len(set(categories))} different categories.")
    name = "cats_strings" if which == "stringCategories" else "cats_int64s"
    value = _of_type(stage, column, texts=which == "stringCategories")
    zeros = int(params.handleUnknown == _IGNORE)
    made = stage.ml("OneHotEncoder", value, **{name: categories}, zeros=zeros)
    return stage.transformed(stage.graph.cast(made, np.float64))


@stage("categoricalMapping")
def mapping(stage: Stage) -> dict[str, Column]:
    params = stage.params
    texts = params.WhichOneof("MappingType") == "stringToInt64Map"
    found = dict(getattr(params, "stringToInt64Map" if texts else "int64ToStringMap").map)
    default = params.WhichOneof("ValueOnUnknown")
    if default != ("int64Value" if texts else "strValue") or not found:
        raise stage.refuse("it stops at what is not in its map, which no ONNX operator does.")
    keys, values = zip(*sorted(found.items()), strict=True)
    attributes: dict[str, Any] = {
        "keys_strings" if texts else "keys_int64s": list(keys),
        "values_int64s" if texts else "values_strings": list(values),
        "default_int64" if texts else "default_string": getattr(params, default),
    }
    value = _of_type(stage, stage.only(), texts=texts)
    return stage.transformed(stage.ml("LabelEncoder", value, **attributes))


def _of_type(stage: Stage, column: Column, *, texts: bool) -> ir.Value:
    """A feature of one text or one integer a row."""
    is_text = stage.graph.dtype(column.value).kind == "O"
    if is_text != texts:
        raise stage.refuse(f"it reads {'texts' if texts else 'integers'}, and is given others.")
    value = stage.flat(column.value)
    return value if texts else stage.graph.cast(value, np.int64)


@stage("dictVectorizer")
def dictionary(stage: Stage) -> dict[str, Column]:
    """The value of every key; 0 of those that a row does not have."""
    column, wanted = stage.only(), _wanted(stage.params)
    if not wanted or len(set(wanted)) != len(wanted):
        raise stage.refuse("it has no keys, or some of them twice.")
    if column.keys is None:
        raise stage.refuse("it reads no dictionary.")
    unknown = [key for key in column.keys if key not in wanted]
    if unknown:
        raise stage.refuse(f"its dictionary has keys that it does not know: {unknown[:4]!r:.80}.")
    return stage.transformed(_rearranged(stage, column, wanted))


def _rearranged(stage: Stage, column: Column, wanted: Sequence[Key]) -> ir.Value:
    """The dictionary's columns in another order; zeros for keys that it never has."""
    value, keys = stage.matrix(column), column.keys or ()
    if keys == tuple(wanted):
        return value
    place = {key: at for at, key in enumerate(keys)}
    padded = stage.op("Pad", value, stage.graph.integers([0, 0, 0, 1]))
    places = stage.graph.integers([place.get(key, len(keys)) for key in wanted])
    return stage.op("Gather", padded, places, axis=1)


def _wanted(params: Any) -> tuple[Key, ...]:
    which = params.WhichOneof("Map")
    return tuple(getattr(params, which).vector) if which else ()


@stage("featureVectorizer")
def vectorizer(stage: Stage) -> dict[str, Column]:
    """Features side by side; a dictionary by its integer keys."""
    parts = []
    for entry in stage.params.inputList:
        name, width = str(entry.inputColumn), int(entry.inputDimensions)
        column = stage.columns.get(name)
        if column is None:
            raise stage.refuse(f"it reads {name[:80]!r}, which is none of its inputs.")
        if column.keys is not None:
            if width > _MOST_KEYS or any(key not in range(width) for key in column.keys):
                raise stage.refuse(f"the keys of {name[:80]!r} are not below {width}.")
            parts.append(_rearranged(stage, column, range(width)))
            continue
        if stage.width(column) != width:
            raise stage.refuse(
                f"{name[:80]!r} has {stage.width(column)} elements, and {width} are declared."
            )
        parts.append(stage.matrix(column))
    if not parts:
        raise stage.refuse("it puts no features together.")
    return stage.transformed(parts[0] if len(parts) == 1 else stage.op("Concat", *parts, axis=1))


def keys_of(model: Any, name: str) -> tuple[Key, ...] | None:
    """The keys that a dictionary may have which a model reads by this name; None where it does not tell."""
    kind = model.WhichOneof("Type")
    if kind == "dictVectorizer":
        return _wanted(model.dictVectorizer)
    if kind == "featureVectorizer":
        for entry in model.featureVectorizer.inputList:
            if entry.inputColumn == name:
                return tuple(range(min(int(entry.inputDimensions), _MOST_KEYS)))
    return None
