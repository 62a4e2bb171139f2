"""What the environment says, read in one place and handed on as one frozen object.

SARDONYX_CACHE=/fast/disk SARDONYX_CC="zig cc" sardonyx doctor
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sardonyx.errors import InputError

__all__ = ["VARIABLES", "Environment", "read_environment"]

# Every variable that Sardonyx reads, and what it is for; `sardonyx doctor` prints the ones that are set.
VARIABLES: Mapping[str, str] = {
    "SARDONYX_CACHE": "the cache folder, instead of $XDG_CACHE_HOME/sardonyx",
    "SARDONYX_CACHE_LIMIT": "how much the cache may hold, as in 20G or 500M, instead of 10G or a fifth of the disk",
    "SARDONYX_CC": "the C compiler, instead of the one that pip brings",
    "SARDONYX_PADDLE_PYTHON": "the Python that has paddlepaddle and paddle2onnx, for `convert`",
    "SARDONYX_TRACEBACK": "1 shows Python tracebacks instead of one-line errors",
}

_FOLDERS = ("XDG_CACHE_HOME", "HOME")  # where a user's caches are

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_BYTES = r"(\d{1,12}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?"


class Environment(NamedTuple):
    """The settings that a user makes outside of any call.

    Attributes:
        cache_dir: where compiled work is kept between runs.
        cache_limit: bytes that the cache may hold, when the user said how many.
        compiler: the C compiler as an argument list, when the user chose one.
        traceback: show Python tracebacks where a command would print one line.
        is_set: the names of the variables above that have a value.
        paddle_python: the Python that has Paddle, when the user named one.
    """

    cache_dir: Path
    cache_limit: int | None = None
    compiler: tuple[str, ...] | None = None
    traceback: bool = False
    is_set: tuple[str, ...] = ()
    paddle_python: str | None = None


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """The settings in the process's environment, or in `variables`; an empty value is no value.

    Raises:
        InputError: a variable cannot be understood.
    """
    source = os.environ if variables is None else variables
    given = {name: text for name in (*VARIABLES, *_FOLDERS) if (text := source.get(name))}
    compiler = _words(given["SARDONYX_CC"]) if "SARDONYX_CC" in given else ()
    return Environment(
        cache_dir=_cache_dir(given),
        cache_limit=_bytes("SARDONYX_CACHE_LIMIT", given),
        compiler=compiler or None,
        paddle_python=given.get("SARDONYX_PADDLE_PYTHON"),
        traceback=given.get("SARDONYX_TRACEBACK", "0") not in ("0", "false", "no"),
        is_set=tuple(name for name in VARIABLES if name in given),
    )


def _cache_dir(given: Mapping[str, str]) -> Path:
    own = given.get("SARDONYX_CACHE")
    if own is not None:
        return Path(own).expanduser().absolute()
    # The XDG specification: a relative XDG_CACHE_HOME is to be ignored.
    shared = Path(given.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():
        shared = Path(given.get("HOME", "~")).expanduser() / ".cache"
    return shared / "sardonyx"


def _bytes(name: str, given: Mapping[str, str]) -> int | None:
    if name not in given:
        return None
    match = re.fullmatch(_BYTES, given[name].strip(), re.IGNORECASE)
    if match is None:
        text = given[name][:80]
        raise InputError(
            f"{name} is {text!r}, which is not a size.", value=text, hint="As in: 20G, 500M"
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _words(text: str) -> tuple[str, ...]:
    """An argument list, split as a shell would but never run by one; unbalanced quotes are one word."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError:
        return (text,)
