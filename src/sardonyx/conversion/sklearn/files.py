"""Estimators from files. A pickle runs code of whoever wrote it, so it is opened only where the user trusts it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from sardonyx.conversion.request import Request
from sardonyx.errors import ConvertError, InputError, MissingExtraError

__all__ = ["open_model"]


def open_model(request: Request) -> Any:
    """The estimator of a request.

    Raises:
        InputError: the file is a pickle and nobody said that it may be trusted, or it cannot be read.
        MissingExtraError: skops is not installed.
    """
    path = request.path
    if path is None:
        return request.source
    if path.suffix == ".skops":
        return _open_skops(path, bool(request.option("trust")))
    if not request.option("trust"):
        raise InputError(
            "a pickle runs the code of whoever wrote it, so it is not opened unasked.",
            where=str(path),
            hint="If you trust the file, add --trust (options={'trust': True}); a .skops file needs no such trust.",
        )
    joblib: Any = importlib.import_module("joblib")
    try:
        return joblib.load(path)
    except Exception as error:  # whatever a pickle may raise
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"the file does not open: {text}",
            where=str(path),
            hint="Open it with the versions of Python and scikit-learn that wrote it.",
        ) from error


def _open_skops(path: Path, trust: bool) -> Any:
    try:
        skops: Any = importlib.import_module("skops.io")
    except ImportError:
        raise MissingExtraError(
            "skops is not installed.", where=str(path), hint="Run: pip install skops"
        ) from None
    unknown = skops.get_untrusted_types(file=path)
    if unknown and not trust:
        raise ConvertError(
            f"the file has types that are not known to be safe: {', '.join(unknown[:5])}.",
            where=str(path),
            hint="If you trust them, add --trust (options={'trust': True}).",
        )
    return skops.load(path, trusted=unknown)
