"""MXNet's `-symbol.json`: nodes in the order of running, their operands and attributes.

Attributes are texts. Where they stand has changed: under "param" before 0.9, then "attr", and now "attrs".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.errors import InputError

__all__ = ["Node", "Symbol", "read_symbol"]

_MOST_BYTES = 1 << 28
_INTEGER = re.compile(r"[+-]?\d{1,18}L?")
_VARIABLE = "null"


@dataclass(frozen=True)
class Node:
    """One operator, or a variable.

    Attributes:
        inputs: (node, output) of every operand.
        attributes: numbers, flags, texts, tuples of them; None where the text says so.
    """

    kind: str
    name: str
    inputs: tuple[tuple[int, int], ...]
    attributes: Mapping[str, Any]

    @property
    def is_variable(self) -> bool:
        return self.kind == _VARIABLE


@dataclass(frozen=True)
class Symbol:
    """A network: its nodes, and which of their outputs are its answers."""

    nodes: tuple[Node, ...]
    heads: tuple[tuple[int, int], ...]


def read_symbol(path: Path) -> Symbol:
    """The network of a file.

    Raises:
        InputError: the file is no symbol of MXNet.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"it has more than {_MOST_BYTES:,} bytes.", where=str(path))
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}.", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is no JSON: {str(error)[:120]}.", where=str(path)) from error
    try:
        nodes = tuple(_node(each) for each in content["nodes"])
        heads = tuple(_entry(each) for each in content["heads"])
        for index, node in enumerate(nodes):
            if any(not 0 <= source < index for source, _ in node.inputs):
                raise ValueError(f"{node.name} reads what comes after it")
        if not heads or any(not 0 <= source < len(nodes) for source, _ in heads):
            raise ValueError("its outputs are none of its nodes")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(
            f"it is no symbol of MXNet: {type(error).__name__}: {str(error)[:120]}.",
            where=str(path),
            hint="Save it again with symbol.save or HybridBlock.export.",
        ) from error
    return Symbol(nodes, heads)


def _node(stored: Mapping[str, Any]) -> Node:
    texts: dict[str, Any] = {}
    for place in ("attr", "attrs", "param"):
        texts.update(stored.get(place) or {})
    return Node(
        str(stored["op"]),
        str(stored["name"]),
        tuple(_entry(each) for each in stored["inputs"]),
        {key: parse(str(text)) for key, text in texts.items()},
    )


def _entry(stored: Any) -> tuple[int, int]:
    source, output = stored[0], stored[1]
    if type(source) is not int or type(output) is not int or output < 0:
        raise ValueError(f"{stored!r:.40} names no output of a node")
    return source, output


def parse(text: str) -> Any:
    """An attribute's text as what it stands for: None, a flag, a number, a tuple of these, or the text itself."""
    text = text.strip()
    if text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        inner = text[1:-1].strip().rstrip(",")
        return tuple(parse(part) for part in inner.split(",")) if inner else ()
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("L"))
    try:
        return float(text)
    except ValueError:
        return text
