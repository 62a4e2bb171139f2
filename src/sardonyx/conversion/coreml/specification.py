"""`.mlmodel` files as messages of coremltools.

The messages are all that is needed of coremltools: its own package is not imported, which takes seconds, warns of every other
framework, and looks for Apple's libraries.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from sardonyx.errors import InputError, MissingExtraError

__all__ = ["message_class", "read_specification"]

_PACKAGE = "_sardonyx_coreml_messages"
_MOST_BYTES = (1 << 31) - 1  # that protocol buffers can hold


def message_class(module: str, name: str) -> Any:
    """A class of coremltools.proto, as `message_class("Model_pb2", "Model")`.

    Raises:
        MissingExtraError: coremltools is not installed.
    """
    if _PACKAGE not in sys.modules:
        found = importlib.util.find_spec("coremltools")
        if found is None or not found.submodule_search_locations:
            raise MissingExtraError(
                "coremltools is not installed.", hint='Run: pip install "sardonyx[coreml]"'
            )
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(Path(found.submodule_search_locations[0]) / "proto")]
        sys.modules[_PACKAGE] = package
    return getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)


def read_specification(path: Path) -> Any:
    """The model of a file.

    Raises:
        InputError: the file is damaged, or of another kind.
    """
    model = message_class("Model_pb2", "Model")()
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"it has more than {_MOST_BYTES:,} bytes.", where=str(path))
        model.ParseFromString(path.read_bytes())
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}.", where=str(path)) from error
    except DecodeError as error:
        raise InputError(f"the file is damaged: {error}.", where=str(path)) from error
    if not model.WhichOneof("Type"):
        raise InputError("it holds no model.", where=str(path))
    return model
