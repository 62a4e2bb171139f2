"""The option of commands that open a session: what its answers may lose."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["Precision"]

# The words of `runtime.chosen`, which takes longer to import than `--help` should.
Precision = Annotated[
    Literal["strict", "float32", "fast", "bfloat16"],
    typer.Option(
        help="What answers may lose: fast and bfloat16 lose more than float32, where there are kernels for them."
    ),
]
