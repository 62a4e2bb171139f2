"""`sardonyx prune`: channels, weights or ranks taken out of a model, with what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.pruning.report import PruningReport

__all__ = ["prune"]


def prune(
    model: Annotated[Path, typer.Argument(help="The .onnx file.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the pruned model.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="channels, magnitude, pattern or low-rank.")
    ] = "channels",
    share: Annotated[
        str, typer.Option(metavar="N%", help="How much goes, of every layer.")
    ] = "50%",
    pattern: Annotated[
        str, typer.Option(metavar="N:M", help="Of --method pattern: N of every M weights stay.")
    ] = "2:4",
    multiple: Annotated[
        int, typer.Option(metavar="N", help="Channels that stay are a multiple of this.", min=1)
    ] = 8,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Inputs to measure the loss on: .npy, .npz or a folder."),
    ] = None,
    max_drop: Annotated[
        str | None,
        typer.Option(
            metavar="N%", help="The most that the outputs' cosine may fall; prunes less to hold it."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A node or operator that stays as it is."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Take channels, weights or ranks out of a model, and say what it cost.

    Channels are taken out through the whole graph: the result is smaller and less work on any runtime. Without
    --data, nothing says what it costs; after pruning, models are usually trained on.

    \b
    Examples:
        sardonyx prune model.onnx --share 30% --data batches/ -o small.onnx
        sardonyx prune model.onnx --method low-rank --max-drop 1% --data rows.npz -o thin.onnx
    """
    from sardonyx import api
    from sardonyx.cli.console import plain, print_json, progress_bar
    from sardonyx.model.save import save

    with progress_bar("pruning") as (progress, task):
        result = api.prune(
            model,
            data,
            method=method,
            share=_share(share),
            pattern=_pattern(pattern),
            multiple=multiple,
            exclude=exclude or (),
            max_drop=None if max_drop is None else _share(max_drop),
            tell=lambda what: progress.update(task, description=plain(what)),
        )
    if output is not None:
        save(result.model, output)
    if json_output:
        print_json(result.report.to_json())
    else:
        _show(result.report, output)


def _share(text: str) -> float:
    """`30%` or `0.3`."""
    from sardonyx.errors import InputError

    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"{text[:40]!r} is no share.", hint="As in: 30% or 0.3.") from None


def _pattern(text: str) -> tuple[int, int]:
    from sardonyx.errors import InputError

    keep, _, of = text.partition(":")
    try:
        return int(keep), int(of)
    except ValueError:
        raise InputError(f"{text[:40]!r} is no pattern.", hint="As in: 2:4.") from None


def _show(report: PruningReport, output: Path | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import plain, size_label, stdout, text

    console = stdout()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("layer", report.counted, "left", "stays because"):
        table.add_column(name, justify="right" if name in (report.counted, "left") else "left")
    for layer in report.layers:
        where = f"{layer.node}  {layer.source}" if layer.source else layer.node
        table.add_row(
            text(where), f"{layer.before:,}", f"{layer.after:,}", text(layer.reason, "dim")
        )
    console.print(table)
    for note in report.notes:
        console.print(text(note, "dim"))
    console.print(
        text(
            f"{report.method}: {report.bytes_before:,} -> {report.bytes_after:,} bytes, "
            f"{size_label(report.work_before, 'MAC')} -> {size_label(report.work_after, 'MAC')}"
        )
    )
    accuracy = report.accuracy
    if accuracy is None:
        console.print(text("The loss was not measured: give --data.", "yellow"))
    else:
        console.print(text(f"Cosine to the outputs before: {accuracy.cosine:.5f}"))
    if output is not None:
        console.print(text(f"Written to {plain(output)}."))
