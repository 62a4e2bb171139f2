"""One row of the conversion matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.conversion.convert import Converted
from sardonyx.conversion.request import Request

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """A model to convert.

    Attributes:
        name: as the table shows it.
        request: builds the model and what is asked of the conversion.
        check: looks at the result beyond its answers (names, axes); raises AssertionError.
        refusal: what the refusal must say, for what ONNX cannot express; "" where it must convert.
    """

    name: str
    request: Callable[[], Request]
    check: Callable[[Converted], None] | None = None
    refusal: str = ""
