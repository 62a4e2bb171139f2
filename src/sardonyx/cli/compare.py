"""`sardonyx compare`: do two models, or two engines, give the same answers?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from sardonyx.comparison.bisect import Deviation
    from sardonyx.comparison.compare import Comparison

__all__ = ["compare", "show_comparison"]


def compare(
    first: Annotated[Path, typer.Argument(help="A model.", show_default=False)],
    second: Annotated[
        Path | None,
        typer.Argument(
            help="Another model; without it, the first on two engines.", show_default=False
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            help="sardonyx, onnxruntime, reference: one for both models, or two with a comma between."
        ),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option(help="A .npy, .npz or .pb file, or a folder of them.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of example inputs.")] = 0,
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Size of a dynamic dimension; may be repeated."),
    ] = None,
    rtol: Annotated[
        float | None, typer.Option(help="Relative tolerance, instead of the type's own.", min=0)
    ] = None,
    atol: Annotated[
        float | None, typer.Option(help="Absolute tolerance, instead of the type's own.", min=0)
    ] = None,
    bisect: Annotated[
        bool,
        typer.Option("--bisect", help="Where they differ, find the first node whose values do."),
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Do two models, or two engines, give the same answers?

    Both run on the same inputs, and every output is compared. Exit code 1 when they differ.

    \b
    Examples:
        sardonyx compare model.onnx optimized.onnx
        sardonyx compare model.onnx --engines sardonyx,onnxruntime --dim batch=2
        sardonyx compare model.onnx optimized.onnx --bisect
    """
    from sardonyx import api
    from sardonyx.cli.console import compiling, parse_dims, print_json, progress_bar, stdout

    names = None if engines is None else [name.strip() for name in engines.split(",")]
    with progress_bar("comparing") as (progress, _):
        result = api.compare(
            first,
            second,
            inputs,
            engines=names,
            seed=seed,
            dims=parse_dims(dim),
            rtol=rtol,
            atol=atol,
            bisect=bisect,
            progress=compiling(progress),
        )
    if json_output:
        print_json(result.to_json())
    else:
        show_comparison(result, stdout())
    if not result.ok:
        raise typer.Exit(1)


def show_comparison(result: Comparison, console: Console) -> None:
    """The comparison as a table and a verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, text

    console.print(Text.assemble(plain(result.first), (" against ", "dim"), plain(result.second)))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("output", "type", "shape", "max abs", "max rel", "cosine", "differ", ""):
        right = name in ("max abs", "max rel", "cosine", "differ")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for output in result.outputs:
        verdict = text("ok", "green") if output.ok else text(output.reason, "bold red")
        table.add_row(
            text(output.name),
            text(output.dtype),
            text(list(output.shape), "cyan"),
            f"{output.max_abs:.2g}",
            f"{output.max_rel:.2g}",
            f"{output.cosine:.6f}",
            f"{output.mismatched:,}",
            verdict,
        )
    console.print(table)
    for note in result.notes:
        console.print(text(note, "dim"))
    deviation = getattr(result, "deviation", None)
    if deviation is not None:
        _show_deviation(deviation, console)
    allowed = sorted({f"{o.dtype}: {o.tolerance}" for o in result.outputs})
    if result.ok:
        console.print(Text.assemble(("They agree", "bold green"), f" ({'; '.join(allowed)})."))
    else:
        wrong = sum(not output.ok for output in result.outputs)
        console.print(
            Text.assemble(
                ("They differ", "bold red"),
                f" in {wrong} of {len(result.outputs)} outputs ({'; '.join(allowed)}).",
            )
        )


def _show_deviation(deviation: Deviation, console: Console) -> None:
    """The first node whose values differ, with what it read."""
    from rich.text import Text

    from sardonyx.cli.console import plain

    source = f" ({deviation.source})" if deviation.source else ""
    console.print(
        Text.assemble(("First deviation: ", "bold red"), plain(deviation.node), plain(source))
    )
    for one in (*deviation.inputs, deviation.difference):
        verdict = "agrees" if one.ok else one.reason
        line = f"  {'reads' if one.ok else 'makes'} {one.name} {one.dtype}{list(one.shape)}: "
        console.print(Text.assemble(plain(line), plain(f"{verdict}, max abs {one.max_abs:.2g}")))
    if len(deviation.suspects) > 1:
        names = ", ".join(deviation.suspects)
        console.print(plain(f"  Names in between differ; it may be any of: {names}"))
