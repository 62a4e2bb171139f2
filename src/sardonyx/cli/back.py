"""`sardonyx back`: an ONNX model as a framework's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["back"]


def back(
    model: Annotated[Path, typer.Argument(help="The ONNX model.", show_default=False)],
    to: Annotated[
        Literal["torch", "jax", "keras", "coreml"], typer.Option("--to", help="The framework.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder to write, or a .keras or .mlmodel file."),
    ],
    dim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZE", help="Of coreml: a dimension that gets this size for good."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify", help="Of coreml: hold its layers to the model's answers."
        ),
    ] = True,
) -> None:
    """An ONNX model becomes Python source of a framework, with its weights beside it, or a Core ML file.

    The folder has model.py, which needs the framework alone, and the weights. Names of the model are made into identifiers;
    nothing that it says is executed. Core ML runs on macOS and iOS alone: its file is written, read back and held to the
    model's answers, and not run. Exit code 2 when an operator has no form in the framework.

    \b
    Examples:
        sardonyx back model.onnx --to torch -o folder
        sardonyx back model.onnx --to keras -o model.keras
        sardonyx back model.onnx --to coreml --dim batch=1 -o model.mlmodel
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_dims, plain, stdout, text
    from sardonyx.errors import InputError

    if to == "coreml":
        _to_coreml(model, output, parse_dims(dim), verify)
        return
    if dim or not verify:
        raise InputError(f"--dim and --no-verify are of coreml, and it is {to} that was asked for.")
    if to == "keras":
        api.to_keras(model, file=output)
    else:
        (api.to_torch if to == "torch" else api.to_jax)(model, folder=output)
    stdout().print(text(f"{to}, written to {plain(output)}."))


def _to_coreml(model: Path, output: Path, dims: dict[str, int], verify: bool) -> None:
    from sardonyx import api
    from sardonyx.cli.console import plain, stdout, text

    written = api.to_coreml(model, file=output, dims=dims, verify=verify)
    for note in written.notes:
        stdout().print(text(f"{note}.", "dim"))
    what = f"coreml, {written.layers:,} layers, specification version {written.version}"
    proof = written.verification
    held = (
        "not verified"
        if proof is None
        else f"{len(proof.trials)} trials, max abs {proof.max_abs:.1e}"
    )
    stdout().print(text(f"{what}, {held}, written to {plain(output)}."))
