"""`sardonyx bench`: how long a run takes, alone or against another engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.comparison.bench import Bench

__all__ = ["bench"]


def bench(
    model: Annotated[Path, typer.Argument(help="The .onnx file.", show_default=False)],
    against: Annotated[
        str | None, typer.Option(help="An engine to take turns with, as onnxruntime.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="The engine to time: sardonyx, onnxruntime or reference.")
    ] = "sardonyx",
    repeat: Annotated[int, typer.Option(help="Timed calls of each engine.", min=1)] = 20,
    warmup: Annotated[int, typer.Option(help="Calls before each block of timed ones.", min=0)] = 2,
    inputs: Annotated[
        Path | None, typer.Option(help="A .npy, .npz or .pb file, or a folder of them.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of example inputs.")] = 0,
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Size of a dynamic dimension; may be repeated."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the times as JSON.")] = False,
) -> None:
    """Time a model, alone or against another engine.

    Two engines take turns in short blocks, so that a busy machine treats both alike.

    \b
    Example:
        sardonyx bench model.onnx --against onnxruntime --dim batch=1 --repeat 50
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_dims, print_json, progress_bar
    from sardonyx.comparison.bench import Schedule

    with progress_bar("timing") as (progress, task):
        result = api.bench(
            model,
            engine=engine,
            against=against,
            inputs=inputs,
            seed=seed,
            dims=parse_dims(dim),
            schedule=Schedule(repeat=repeat, warmup=warmup),
            tell=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if json_output:
        print_json(result.to_json())
    else:
        _show(result)


def _show(result: Bench) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout, text

    console = stdout()
    shapes = ", ".join(f"{name}: {shape}" for name, shape in result.shapes.items())
    console.print(Text.assemble((plain(result.name), "bold"), f"  {plain(shapes)}"))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    columns = ("min", "median", "mean", "p90", "p99")
    table.add_column("engine")
    for name in (*columns, "calls"):
        table.add_column(name, justify="right")
    for timing in result.timings:
        times = (
            timing.minimum,
            timing.median,
            timing.mean,
            timing.percentile(90),
            timing.percentile(99),
        )
        table.add_row(text(timing.engine), *map(_time_text, times), str(len(timing.seconds)))
    console.print(table)
    if result.ratio is not None:
        ratio = result.ratio
        console.print(
            Text.assemble(
                plain(result.timings[0].engine),
                " takes ",
                (f"{ratio.median:.3g} ×", "bold"),
                f" the time of {plain(result.timings[1].engine)} "
                f"({ratio.lowest:.3g} to {ratio.highest:.3g} over {ratio.rounds} "
                f"round{'s' * (ratio.rounds != 1)}).",
            )
        )
    for name, content in result.machine.items():
        console.print(text(f"{name}: {content}", "dim"))


def _time_text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return (
                f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds:,.0f} s"
            )
    return f"{seconds * 1e6:.2g} µs"
