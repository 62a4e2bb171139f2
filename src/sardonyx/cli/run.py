"""`sardonyx run`: a model on inputs from files or a seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sardonyx.cli.precision import Precision

if TYPE_CHECKING:
    from sardonyx.backends.reference import Value

__all__ = ["run"]


def run(
    model: Annotated[
        Path,
        typer.Argument(help="The .onnx file, or a library of `build`.", show_default=False),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Option(help="A .npy, .npz or .pb file, or a folder of them; may be repeated."),
    ] = None,
    random: Annotated[
        int, typer.Option(help="The seed of example inputs, when no --inputs are given.")
    ] = 0,
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Size of a dynamic dimension; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the outputs to this .npz file.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(help="Stop after so many seconds.", min=0)
    ] = None,
    byte_budget: Annotated[
        str | None, typer.Option(help="Memory that the run may hold, as 512MiB.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of the run; all usable cores by default.", min=1)
    ] = None,
    precision: Precision = "float32",
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a model and say what came out.

    \b
    Examples:
        sardonyx run model.onnx --inputs image.npy --output answer.npz
        sardonyx run model.onnx --random 1 --dim batch=4 --deadline 10
        sardonyx run out/libmodel.so --inputs image.npy
    """
    from sardonyx.cli.console import (
        compiling,
        parse_bytes,
        parse_dims,
        progress_bar,
    )
    from sardonyx.cli.libraries import is_shared_library, run_library
    from sardonyx.cli.outputs import check_folder
    from sardonyx.comparison.compare import explain_inputs
    from sardonyx.runtime.session import Session

    budget = None if byte_budget is None else parse_bytes(byte_budget)
    if output is not None:
        check_folder(output)
    dims = parse_dims(dim)
    if is_shared_library(model):
        named, note = run_library(model, inputs or [], threads)
        _report(model, named, output, note, as_json=json_output)
        return
    with progress_bar("opening") as (progress, _):
        session = Session(model, threads=threads, precision=precision, progress=compiling(progress))
    feeds = _feeds(session, inputs or [], random, dims)
    given = feeds if inputs else None
    with progress_bar("running"), explain_inputs(session.model, given, feeds):
        answers = session.run(None, feeds, timeout=deadline, byte_budget=budget)
    named = dict(zip([port.name for port in session.outputs], answers, strict=True))
    _report(model, named, output, as_json=json_output)


def _report(
    model: Path, named: dict[str, Value], output: Path | None, note: str = "", *, as_json: bool
) -> None:
    from sardonyx.cli.console import print_json, stdout, text
    from sardonyx.cli.outputs import save_outputs, summarize

    if output is not None:
        save_outputs(output, named)
    rows = [row for name, value in named.items() for row in summarize(name, value)]
    if as_json:
        print_json({"model": str(model), "outputs": rows, **({"note": note} if note else {})})
        return
    _show(rows, output)
    if note:
        stdout().print(text(note, "dim"))


def _feeds(session: Any, paths: list[Path], seed: int, dims: dict[str, int]) -> dict[str, Value]:
    from sardonyx.comparison.inputs import example_inputs
    from sardonyx.comparison.reading import read_inputs
    from sardonyx.errors import InputError

    if not paths:
        return example_inputs(session.model, seed=seed, dims=dims)
    if dims:
        raise InputError("--dim is for example inputs; given inputs have their own shapes.")
    feeds: dict[str, Value] = {}
    for path in paths:
        feeds.update(read_inputs(path, session.model))
    return feeds


def _show(rows: list[dict[str, Any]], output: Path | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import stdout, text

    console = stdout()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("output", "type", "shape", "min", "mean", "max", ""):
        table.add_column(name, justify="right" if name in ("min", "mean", "max") else "left")
    for row in rows:
        table.add_row(
            text(row["name"]),
            text(row["type"]),
            text(row["shape"], "cyan"),
            *(_number(row[key]) for key in ("min", "mean", "max")),
            text(row["note"], "bold"),
        )
    console.print(table)
    if output is not None:
        console.print(text(f"written to {output}", "dim"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
