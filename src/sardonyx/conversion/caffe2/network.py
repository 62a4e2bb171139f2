"""Caffe2's networks: a list of operators, read and written blobs by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.conversion.stored.wire import Message
from sardonyx.errors import InputError

__all__ = ["Network", "Operator", "read_network"]

_MOST_BYTES = 1 << 33


@dataclass(frozen=True)
class Operator:
    """One operator; blobs that it writes may have been written before."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Network:
    """The operators in the order of running, and the blobs that come and go."""

    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def read_network(path: Path) -> Network:
    """The network of a file.

    Raises:
        InputError: the file is damaged, or of another kind.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"it has more than {_MOST_BYTES:,} bytes.", where=str(path))
        message = Message(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}.", where=str(path)) from error
    operators = tuple(_operator(each, index) for index, each in enumerate(message.messages(2)))
    return Network(operators, tuple(message.texts(7)), tuple(message.texts(8)))


def _operator(message: Message, index: int) -> Operator:
    outputs = tuple(message.texts(2))
    name = message.text(3) or (outputs[0] if outputs else str(index))
    return Operator(
        message.text(4) or "",
        name,
        tuple(message.texts(1)),
        outputs,
        {each.text(1) or "": _value(each) for each in message.messages(5)},
    )


def _value(message: Message) -> Any:
    """A number, a text, or a list of these; many floats stay an array."""
    if 5 in message:
        return message.floats(5)
    if 6 in message:
        return message.integers(6)
    if 7 in message:
        return message.blobs(7)
    if 4 in message:
        return message.text(4)
    if 3 in message:
        return message.integers(3)[-1]
    if 2 in message:
        return float(message.floats(2)[-1])
    return []  # a list of nothing is not written
