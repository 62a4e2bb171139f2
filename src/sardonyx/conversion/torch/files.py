"""Files of torch: exported programs, scripts, saved modules, and weights with the class that they belong to."""

from __future__ import annotations

import importlib
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sardonyx.conversion.request import Request
from sardonyx.errors import InputError

__all__ = ["open_file"]


def open_file(request: Request) -> Any:
    """The model in a file. Options: `class` ("package.module:Class" or the class itself) with `arguments` for its
    constructor, where the file has weights alone; `trust` to load a pickled module, which can run any code.

    Raises:
        InputError: the file is damaged or none of torch's, its weights do not fit the class, it has weights alone and no
            class was named, or it has a pickle that is not trusted.
    """
    path = request.path
    assert path is not None
    entries = _entries(path)
    jit: Any = torch.jit
    if any(entry.endswith("/constants.pkl") for entry in entries):
        return _read(path, lambda: jit.load(str(path), map_location="cpu"))
    if path.suffix == ".pt2" or any("exported_program" in entry for entry in entries):
        return _read(path, lambda: torch.export.load(str(path)))
    return _from_pickle(path, request.options)


def _entries(path: Path) -> list[str]:
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def _read(path: Path, load: Any) -> Any:
    try:
        return load()
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(f"torch cannot read the file: {text}.", where=str(path)) from error


def _from_pickle(path: Path, options: Mapping[str, Any]) -> Any:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        if not options.get("trust"):
            raise InputError(
                "the file has a pickled module, and loading it can run any code that it names.",
                where=str(path),
                hint='If you trust it, add --trust (options={"trust": True}); better, save it with torch.export.save.',
            ) from None
        loaded = _read(path, lambda: torch.load(path, map_location="cpu", weights_only=False))
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(f"torch cannot read the file: {text}.", where=str(path)) from error
    if isinstance(loaded, torch.nn.Module) or not isinstance(loaded, Mapping):
        return loaded
    return _with_class(path, loaded, options)


def _with_class(path: Path, loaded: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    weights = next(
        (
            loaded[k]
            for k in ("state_dict", "model_state_dict", "model")
            if isinstance(loaded.get(k), Mapping)
        ),
        loaded,
    )
    named = options.get("class")
    if named is None:
        some = ", ".join(list(map(str, weights))[:3])
        raise InputError(
            f"the file has weights alone ({some}, …), and not the module that they belong to.",
            where=str(path),
            hint=f"Name the class: sardonyx convert net.py:Net --weights {path.name} "
            '(options={"class": "package.module:Net", "arguments": {…}}).',
        )
    kind = _find_class(named) if isinstance(named, str) else named
    module = kind(**(options.get("arguments") or {}))
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(
            f"the weights do not fit {named if isinstance(named, str) else kind.__qualname__}: {text}",
            where=str(path),
            hint='Give the constructor its arguments: options={"arguments": {…}}.',
        ) from None
    return module


def _find_class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"there is no class {name[:120]!r}: {error}.",
            value=name,
            hint="Write it as 'package.module:Class'; its folder must be on PYTHONPATH.",
        ) from None
    return found
