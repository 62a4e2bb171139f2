"""How parts of a model are called in messages: short, quoted, with nothing in them that a terminal obeys."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

__all__ = ["name_of", "quote", "shorten", "title"]

_MOST = 120


def shorten(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def quote(name: str) -> str:
    """A name from a model, as it may be shown: `'layer1.0'`."""
    return repr(shorten(name))


def name_of(node: onnx.NodeProto) -> str:
    """`Conv 'layer1.0'`; a node without a name goes by its first output: `Conv '→ y'`."""
    return title(node.domain, node.op_type, node.name, node.output)


def title(domain: str, op_type: str, name: str | None, outputs: Iterable[str]) -> str:
    shown = name or next((f"→ {output}" for output in outputs if output), "")
    prefix = "" if domain in ("", "ai.onnx") else f"{_plain(domain)}::"
    return f"{prefix}{_plain(op_type or 'node')}" + (f" {quote(shown)}" if shown else "")


def _plain(text: str) -> str:
    return shorten(text) if text.isprintable() else quote(text)
