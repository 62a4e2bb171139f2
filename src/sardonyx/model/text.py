"""Models in ONNX's text syntax: `<ir_version: 10, opset_import: ["" : 21]> agraph (float[N] x) => …`

onnx's parser recurses over brackets on the C stack and ends the process when they nest too deep, so the
brackets are counted first.
"""

from __future__ import annotations

import re

import onnx
import onnx.parser

from sardonyx.errors import FormatError, LimitError
from sardonyx.model.limits import Limits

__all__ = ["is_text", "parse_text"]

# Strings and comments hide brackets from the parser, so they hide them from the count.
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|#[^\n]*|[(\[{]|[)\]}]', re.DOTALL)
_LEADING = re.compile(rb"(?:\xef\xbb\xbf)?\s*[<#]")


def is_text(data: bytes | memoryview) -> bool:
    """Neither '<' nor '#' starts a protobuf message: they would begin or end a group, which ONNX has none of."""
    return _LEADING.match(data) is not None


def parse_text(data: bytes | memoryview, limits: Limits) -> onnx.ModelProto:
    """Parse ONNX text, or refuse it with the place that is wrong."""
    limits.check("text_bytes", len(data), "bytes of text", "text")
    try:
        text = str(data, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"the text is not UTF-8 at byte {error.start:,}.", where="text", value=error.start
        ) from None
    if "\0" in text:  # the parser would stop there, and take what came before for the whole
        raise FormatError(f"a NUL character at {text.index(chr(0)):,}.", where="text")
    _check_nesting(text, 4 * limits.graph_depth)
    try:
        return onnx.parser.parse_model(text)
    except onnx.parser.ParseError as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise FormatError(
            f"the ONNX text does not parse: {' '.join(shown.split())[:400]}", where="text"
        ) from None
    except Exception as error:  # numbers out of range come as C++'s own exceptions, of many types
        raise FormatError(
            f"the ONNX text does not parse: {str(error)[:400]}.", where="text"
        ) from None


def _check_nesting(text: str, most: int) -> None:
    depth = deepest = 0
    for token in _BRACKET.finditer(text):
        if token[0] in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in ")]}":
            depth -= 1
    if deepest > most:
        raise LimitError(
            f"brackets nest {deepest:,} deep; the limit is {most} (4 × Limits.graph_depth).",
            where="text",
            value=deepest,
            limit=most,
        )
