"""How parts of a model are called in messages: short, quoted, with nothing in them that a terminal obeys."""

from __future__ import annotations

import onnx

__all__ = ["name_of", "quote", "shorten"]

_MOST = 120


def shorten(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def quote(name: str) -> str:
    """A name from a model, as it may be shown: `'layer1.0'`."""
    return repr(shorten(name))


def name_of(node: onnx.NodeProto) -> str:
    """`Conv 'layer1.0'`; a node without a name goes by its first output: `Conv '→ y'`."""
    name = node.name or next((f"→ {o}" for o in node.output if o), "")
    domain = "" if node.domain in ("", "ai.onnx") else f"{_plain(node.domain)}::"
    return f"{domain}{_plain(node.op_type or 'node')} {quote(name)}"


def _plain(text: str) -> str:
    return shorten(text) if text.isprintable() else quote(text)
