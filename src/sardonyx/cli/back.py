"""`sardonyx back`: an ONNX model as a framework's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["back"]


def back(
    model: Annotated[Path, typer.Argument(help="The ONNX model.", show_default=False)],
    to: Annotated[Literal["torch", "jax", "keras"], typer.Option("--to", help="The framework.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write, or a .keras file.")
    ],
) -> None:
    """An ONNX model becomes Python source of a framework, with its weights beside it.

    The folder has model.py, which needs the framework alone, and the weights. Names of the model are made into identifiers;
    nothing that it says is executed. Exit code 2 when an operator has no form in the framework.

    \b
    Examples:
        sardonyx back model.onnx --to torch -o folder
        sardonyx back model.onnx --to keras -o model.keras
    """
    from sardonyx import api
    from sardonyx.cli.console import plain, stdout, text

    if to == "keras":
        api.to_keras(model, file=output)
    else:
        (api.to_torch if to == "torch" else api.to_jax)(model, folder=output)
    stdout().print(text(f"{to}, written to {plain(output)}."))
