"""What came out of a run: a line about each output, and all of them in a file."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from sardonyx.backends.reference import SparseTensor, Value
from sardonyx.errors import SaveError

__all__ = ["check_folder", "save_json", "save_outputs", "summarize"]

Array = np.ndarray[Any, np.dtype[Any]]
_MOST_CLASSES = 100_000
_MOST_SHOWN = 8


def summarize(name: str, value: Value) -> Iterator[dict[str, Any]]:
    """Type, shape and range of a value as plain data; containers give a row for each of their parts."""
    if isinstance(value, list):
        yield _row(
            name, "sequence", (len(value),), f"{len(value)} element{'s' * (len(value) != 1)}"
        )
        for index, item in enumerate(value[:_MOST_SHOWN]):
            yield from summarize(f"{name}[{index}]", item)
    elif isinstance(value, dict):
        best = max(value, key=lambda key: value[key], default=None)
        note = f"largest: {best!r} ({value[best]:.5g})" if best is not None else "empty"
        yield _row(name, "map", (len(value),), note)
    elif value is None:
        yield _row(name, "optional", (), "no value")
    else:
        yield _tensor_row(
            name, value.dense() if isinstance(value, SparseTensor) else np.asarray(value)
        )


def _row(name: str, kind: str, shape: tuple[int, ...], note: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "shape": list(shape),
        "min": None,
        "mean": None,
        "max": None,
        "note": note,
    }


def _tensor_row(name: str, array: Array) -> dict[str, Any]:
    if array.dtype == object:
        shown = ", ".join(map(repr, array.reshape(-1)[:3]))
        return _row(name, "string", array.shape, shown + (", …" if array.size > 3 else ""))
    row = _row(name, array.dtype.name, array.shape)
    if not array.size or array.dtype.kind == "c":
        return row
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        ends = array if array.dtype.kind in "iu" else finite  # large integers are no floats
        row |= {
            "min": ends.min().item(),
            "mean": float(finite.mean()),
            "max": ends.max().item(),
        }
    notes = []
    odd = array.size - finite.size
    if odd:
        notes.append(f"{odd:,} not finite")
    if _is_scores(array):
        notes.append(_winners(numbers))
    row["note"] = "; ".join(notes)
    return row


def _is_scores(array: Array) -> bool:
    """A vector of class scores, or a batch of them."""
    is_float = array.dtype.kind == "f" or array.dtype.name.startswith(("float", "bfloat"))
    return is_float and 1 <= array.ndim <= 2 and 2 <= array.shape[-1] <= _MOST_CLASSES


def _winners(scores: Array) -> str:
    rows = scores.reshape(-1, scores.shape[-1])
    best = [str(int(index)) for index in np.argmax(rows[:_MOST_SHOWN], axis=-1)]
    return f"argmax {', '.join(best)}" + (", …" if len(rows) > _MOST_SHOWN else "")


def check_folder(path: Path) -> None:
    """Refuse a file whose folder is not there before the work is done, and not after."""
    if not path.parent.is_dir():
        raise SaveError("its folder does not exist.", where=f"file {str(path)!r}")


def save_outputs(path: Path, values: Mapping[str, Value]) -> None:
    """Write everything to one .npz, which appears whole or not at all.

    Types that numpy cannot store are widened without loss (bfloat16 to float32, int4 to int8).
    """
    arrays = {key: array for name, value in values.items() for key, array in _flat(name, value)}
    _save(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def save_json(path: Path, content: Any) -> None:
    """Write JSON to a file, which appears whole or not at all."""
    text = json.dumps(content, allow_nan=False)
    _save(path, lambda file: file.write(text.encode()))


def _save(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise SaveError(
            f"{error.strerror}.", where=f"file {str(path)!r}", hint="Nothing was written."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def _flat(name: str, value: Value) -> Iterator[tuple[str, Array]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}", item)
    elif isinstance(value, dict):
        yield f"{name}.keys", np.array(list(value.keys()))
        yield f"{name}.values", np.array(list(value.values()))
    elif value is not None:
        yield (
            name,
            _storable(value.dense() if isinstance(value, SparseTensor) else np.asarray(value)),
        )


def _storable(array: Array) -> Array:
    if array.dtype == object:
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.int8 if "int" in array.dtype.name else np.float32)
