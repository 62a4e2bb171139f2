"""Example calls of a model, as a command line can say them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.request import Example
from sardonyx.errors import InputError, MissingExtraError

__all__ = ["parse_dynamic", "read_calls"]

_SPEC = re.compile(r"(?P<name>[^=]+)=(?P<dtype>[a-z]+\d*)\[(?P<sizes>[\d,\s]*)\]")
_AXIS = re.compile(r"(?P<name>.+):(?P<axis>\d+)=(?P<symbol>[A-Za-z_]\w*)")
_MOST_ELEMENTS = 1 << 30


def read_calls(files: list[Path], specs: list[str]) -> list[Example]:
    """One call for each file, or one for all the seeded inputs together.

    Raises:
        InputError: both were given, a file cannot be read, or a text is not name=type[sizes].
    """
    if files and specs:
        raise InputError("example inputs come from --inputs or from --input, not from both.")
    if specs:
        generator = np.random.default_rng(0)
        return [Example(kwargs=dict(_seeded(spec, generator) for spec in specs))]
    return [_read(path) for path in files]


def parse_dynamic(pairs: list[str]) -> dict[str, dict[int, str]]:
    """`["x:0=batch"]` as names by axis.

    Raises:
        InputError: a text has another form.
    """
    found: dict[str, dict[int, str]] = {}
    for pair in pairs:
        match = _AXIS.fullmatch(pair)
        if match is None:
            raise InputError(
                f"--dynamic {pair!r} is not name:axis=symbol.",
                value=pair,
                hint="As in: --dynamic x:0=batch",
            )
        found.setdefault(match["name"], {})[int(match["axis"])] = match["symbol"]
    return found


def _seeded(spec: str, generator: np.random.Generator) -> tuple[str, Any]:
    match = _SPEC.fullmatch(spec)
    try:
        dtype = np.dtype(match["dtype"]) if match else None
    except TypeError:
        dtype = None
    if match is None or dtype is None:
        raise InputError(
            f"--input {spec!r} is not name=type[sizes].",
            value=spec,
            hint="As in: --input x=float32[1,3,224,224]",
        )
    shape = tuple(int(size) for size in match["sizes"].split(",") if size.strip())
    if np.prod(shape, dtype=object) > _MOST_ELEMENTS:
        raise InputError(f"--input {spec!r} is too large for an example.", value=spec)
    if dtype.kind == "f":
        return match["name"], generator.normal(size=shape).astype(dtype)
    return match["name"], generator.integers(0, 2 if dtype.kind == "b" else 10, shape).astype(dtype)


def _read(path: Path) -> Example:
    try:
        if path.suffix == ".csv":
            return Example(args=(_read_table(path),))
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return Example(args=(found,))
        with found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"it cannot be read: {error}.", where=str(path), hint="Give a .npy, .npz or .csv file."
        ) from error
    if all(re.fullmatch(r"arr_\d+", name) for name in arrays):
        return Example(args=tuple(arrays[f"arr_{index}"] for index in range(len(arrays))))
    return Example(kwargs=arrays)


def _read_table(path: Path) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(
            "pandas is not installed.", hint='Run: pip install "sardonyx[sklearn]"'
        ) from None
    return pandas.read_csv(path)
