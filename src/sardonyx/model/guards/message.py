"""A look at a ModelProto that was parsed elsewhere: the rules of `wire`, part by part.

It may be larger than protobuf can write, when its external data was read into it; so no whole is ever made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
from google.protobuf.message import EncodeError

from sardonyx.errors import FormatError, LimitError
from sardonyx.model.guards.wire import Walk, is_repeated, kind_of
from sardonyx.model.limits import Limits

__all__ = ["check_message"]


def check_message(model: onnx.ModelProto, limits: Limits) -> None:
    """Refuse text that is not UTF-8, deep nesting, and more than the limits."""
    try:
        _check_parts(model, Walk(memoryview(b""), limits))
    except UnicodeDecodeError as error:  # older protobuf refuses to give it, newer gives bytes
        raise FormatError(f"text that is not UTF-8: {error}.", where="model") from None


def _check_parts(model: onnx.ModelProto, walk: Walk) -> None:
    _check(walk, model, ["model"], skip=("graph",))
    _check(walk, model.graph, ["model", "graph"], skip=("initializer",))
    path = ["model", "graph", "initializer"]
    for tensor in model.graph.initializer:  # without its data, which is looked at later
        for name in ("name", "doc_string"):
            _check_text(getattr(tensor, name), [*path, name])
        for name in ("external_data", "metadata_props"):
            _walk(walk, getattr(tensor, name), [*path, name])


def _check(walk: Walk, holder: Any, path: list[str], skip: tuple[str, ...]) -> None:
    for field, content in holder.ListFields():
        if field.name in skip:
            continue
        if field.type == field.TYPE_MESSAGE:
            parts = content if is_repeated(field) else (content,)
            _walk(walk, parts, [*path, field.name])
        elif field.type == field.TYPE_STRING:
            _check_text(content, [*path, field.name])


def _walk(walk: Walk, parts: Iterable[Any], path: list[str]) -> None:
    for part in parts:
        try:
            data = part.SerializePartialToString()
        except EncodeError as error:
            raise LimitError(
                f"protobuf cannot write this part of the model: {error}.", where=".".join(path)
            ) from None
        walk.part(data, kind_of(part.DESCRIPTOR), list(path))


def _check_text(text: str | bytes, path: list[str]) -> None:
    if isinstance(text, bytes):
        raise FormatError(
            f"text that is not UTF-8: …{text[:40]!r}….",
            where=".".join(path),
            hint="The file it came from is damaged.",
        )
