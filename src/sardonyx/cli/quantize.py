"""`sardonyx quantize`: a smaller and faster model, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from sardonyx.quantization.report import Accuracy, NodeReport, Report

__all__ = ["quantize"]

_SHOWN = 20  # nodes in a table


def quantize(
    model: Annotated[Path, typer.Argument(help="The model.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the result.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="static, dynamic, weight-only, float16, bfloat16 or float8.")
    ] = "static",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Calibration data: an .npz or .npy file, or a folder of them, one a batch."
        ),
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME=LOW..HIGH",
            help="Instead of data: random numbers in this range.",
        ),
    ] = None,
    activations: Annotated[str, typer.Option(help="uint8, int8, uint16 or int16.")] = "uint8",
    weights: Annotated[str, typer.Option(help="int8 or uint8.")] = "int8",
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="One scale for all channels of the weights.")
    ] = False,
    symmetric: Annotated[
        bool | None,
        typer.Option(
            "--symmetric/--asymmetric", help="Whether zero is in the middle of the range."
        ),
    ] = None,
    calibration: Annotated[
        str, typer.Option(help="minmax, percentile, entropy or mse.")
    ] = "minmax",
    percentile: Annotated[float, typer.Option(help="For that calibration.")] = 99.99,
    bits: Annotated[int, typer.Option(help="Of weights alone: 8 or 4.")] = 8,
    block: Annotated[
        int | None,
        typer.Option(help="Of weights alone: how many of a column share a scale; 0 for all."),
    ] = None,
    algorithm: Annotated[str, typer.Option(help="Of weights alone: rtn, gptq or awq.")] = "rtn",
    smooth: Annotated[
        float | None,
        typer.Option(help="Even out channels before products (SmoothQuant); 0.8 is a good start."),
    ] = None,
    equalize: Annotated[
        bool, typer.Option("--equalize", help="Even out channels between convolutions.")
    ] = False,
    correct_bias: Annotated[
        bool, typer.Option("--correct-bias", help="Take back what rounding adds on average.")
    ] = False,
    attention: Annotated[
        bool,
        typer.Option("--attention", help="Quantize products of two computed values, too."),
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A node or operator to leave alone; may be repeated."),
    ] = None,
    max_drop: Annotated[
        str | None,
        typer.Option(
            help="How much the metric may fall, as 1% or 0.01: nodes stay in float for it."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION|TASK",
            help="A function of something with a session's run; or classification or top-5, with --labels.",
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="An .npy file with the right class of every sample.")
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Measure every node by itself.")
    ] = False,
    faster: Annotated[
        bool,
        typer.Option(
            "--faster", help="Leave nodes in float that are slower quantized here, by timing."
        ),
    ] = False,
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Size of a dynamic dimension of random data."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """A smaller and faster model, and what it cost.

    The result is standard ONNX. What could not be quantized, or had to stay in float to hold --max-drop, is listed with
    the reason.

    \b
    Examples:
        sardonyx quantize model.onnx --data batches/ -o small.onnx
        sardonyx quantize model.onnx --data batches/ --max-drop 1% --labels classes.npy -o small.onnx
        sardonyx quantize model.onnx --method weight-only --bits 4 -o small.onnx
        sardonyx quantize model.onnx --range pixel_values=0..1 --sensitivity
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_dims, print_json, progress_bar, stdout
    from sardonyx.model.save import save

    options: dict[str, Any] = {
        "method": method,
        "activations": activations,
        "weights": weights,
        "per_channel": not per_tensor,
        "symmetric": symmetric,
        "calibration": calibration,
        "percentile": percentile,
        "bits": bits,
        "block": block,
        "algorithm": algorithm,
        "smooth": smooth,
        "equalize": equalize,
        "correct_bias": correct_bias,
        "attention": attention,
    }
    with progress_bar("quantizing") as (progress, task):
        result = api.quantize(
            model,
            data,
            **options,
            ranges=_ranges(range_),
            dims=parse_dims(dim),
            exclude=exclude or (),
            max_drop=None if max_drop is None else _share(max_drop),
            metric=_metric(metric),
            labels=None if labels is None else _labels(labels),
            sensitivity=sensitivity,
            faster=faster,
            progress=_telling(progress, task),
        )
    if output is not None:
        save(result.model, output)
    if json_output:
        print_json(result.report.to_json())
    else:
        _show(result.report, output, stdout())


def _telling(progress: Progress, task: TaskID) -> Callable[[str, int, int | None], None]:
    def tell(what: str, done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total}"
        progress.update(task, description=f"{what} {done}{of}", completed=done, total=total)

    return tell


def _ranges(pairs: list[str] | None) -> dict[str, tuple[float, float]] | None:
    """`["x=0..1"]` as a mapping."""
    from sardonyx.errors import InputError

    found: dict[str, tuple[float, float]] = {}
    for pair in pairs or ():
        name, _, span = pair.rpartition("=")
        low, _, high = span.partition("..")
        try:
            found[name] = (float(low), float(high))
        except ValueError:
            raise InputError(
                f"--range {pair!r} is not name=low..high.", value=pair, hint="As in: --range x=0..1"
            ) from None
    return found or None


def _share(amount: str) -> float:
    """`1%` or `0.01`."""
    from sardonyx.errors import InputError

    try:
        number = float(amount.removesuffix("%"))
    except ValueError:
        raise InputError(
            f"--max-drop {amount!r} is not a number.", value=amount, hint="As in: 1% or 0.01"
        ) from None
    return number / 100 if amount.endswith("%") else number


def _metric(name: str | None) -> Any:
    """The user's own function, or the name of a task as it is."""
    from sardonyx.errors import InputError

    file, _, function = (name or "").rpartition(":")
    if not file:
        return name
    import runpy

    if not Path(file).is_file():
        raise InputError(f"there is no file {file!r}.", value=file, hint="As in: score.py:accuracy")
    found = runpy.run_path(file).get(function)
    if not callable(found):
        raise InputError(f"{file} has no function {function!r}.", value=function)
    return found


def _labels(path: Path) -> Any:
    import numpy as np

    from sardonyx.errors import InputError

    try:
        return [np.load(path, allow_pickle=False)]
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read: {error}.", where=f"file {str(path)!r}") from None


def _show(report: Report, output: Path | None, console: Console) -> None:
    from sardonyx.cli.console import plain, text
    from sardonyx.inspection.readable import bytes_text

    if report.ranked:
        _show_nodes("most sensitive nodes", report.ranked, console)
    if report.kept:
        _show_nodes("nodes left in float", report.kept, console)
    for note in report.notes:
        console.print(text(note, "bold yellow"))
    if report.accuracy is not None:
        console.print(text(_accuracy_text(report.accuracy)))
    quantized = len(report.nodes) - len(report.kept)
    where = f", written to {plain(output)}" if output is not None else ""
    share = report.bytes_after / max(report.bytes_before, 1)
    console.print(
        text(
            f"{report.method}: {quantized} of {len(report.nodes)} nodes; {bytes_text(report.bytes_before)} → "
            f"{bytes_text(report.bytes_after)} ({share:.0%}){where}."
        )
    )


def _accuracy_text(accuracy: Accuracy) -> str:
    found = (
        f"Against the float model, on {accuracy.samples} batches: cosine of the outputs {accuracy.cosine:.6f}, "
        f"signal to noise {accuracy.sqnr:.1f} dB."
    )
    if accuracy.metric is not None:
        before, after = accuracy.metric
        found += f" Your metric: {before:.6g} → {after:.6g}."
    return found


def _show_nodes(title: str, nodes: tuple[NodeReport, ...], console: Console) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import shorten, text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(title, overflow="fold")
    table.add_column("type")
    for name in ("SQNR", "change"):
        table.add_column(name, justify="right")
    table.add_column("why", overflow="fold")
    for node in nodes[:_SHOWN]:
        where = f" ({node.source})" if node.source else ""
        table.add_row(
            text(shorten(node.node + where, 60)),
            text(node.scheme),
            "" if node.sqnr is None else f"{node.sqnr:.1f} dB",
            "" if node.change is None else f"{node.change:.1e}",
            text(node.reason),
        )
    console.print(table)
    if len(nodes) > _SHOWN:
        console.print(text(f"… and {len(nodes) - _SHOWN} more (--json has all)", "dim"))
