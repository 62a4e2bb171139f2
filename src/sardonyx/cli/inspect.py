"""`sardonyx inspect`: what is in a model, and what running it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sardonyx.cli.precision import Precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table

    from sardonyx.inspection.bill import Inspection, PortRow

__all__ = ["inspect", "show_inspection"]

_MOST_METADATA = 8
_MOST_TOTAL = 160  # characters; the JSON has every expression whole


def inspect(
    model: Annotated[Path, typer.Argument(help="The .onnx file.", show_default=False)],
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Size of a dynamic dimension; may be repeated."),
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the most expensive nodes.", min=0)] = 10,
    nodes: Annotated[bool, typer.Option("--nodes", help="Every node, in order.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="How it would run here: steps, kernels, memory.")
    ] = False,
    precision: Precision = "float32",
    json_output: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """What is in a model, and what running it costs.

    Inputs, outputs, weights and operators; MACs and bytes moved, per node and in all. Costs of dynamic
    models are expressions over their dimensions, or numbers with --dim.

    \b
    Examples:
        sardonyx inspect bert.onnx --dim batch=1 --dim seq=128 --top 5
        sardonyx inspect bert.onnx --plan
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_dims, print_json, stdout

    if plan:
        _show_plan(model, parse_dims(dim), precision, as_json=json_output)
        return
    found = api.inspect(model, dims=parse_dims(dim))
    if json_output:
        print_json(found.to_json())
    else:
        show_inspection(found, stdout(), top=top, all_nodes=nodes)


def _show_plan(model: Path, dims: dict[str, int], precision: Precision, *, as_json: bool) -> None:
    """The plan as it is: lines are not folded, and nothing in it is markup."""
    import sys

    from sardonyx import api
    from sardonyx.cli.console import print_json, progress_bar

    with progress_bar("planning"):
        shown = api.plan_text(model, dims=dims, precision=precision)
    if as_json:
        print_json({"model": str(model), "plan": shown.splitlines()})
    else:
        sys.stdout.write(shown)
        sys.stdout.flush()


def show_inspection(
    found: Inspection, console: Console, *, top: int = 10, all_nodes: bool = False
) -> None:
    """The inspection as tables."""
    from sardonyx.cli.node_lines import print_nodes

    console.print(_header(found), "", _ports(found), "", sep="\n")
    if found.operators:
        console.print(_operators(found, console), "", sep="\n")
    rows = found.nodes if all_nodes else found.most_expensive(top)
    if rows:
        print_nodes("Nodes" if all_nodes else "Most expensive nodes", rows, console)
        console.print()
    console.print(_totals(found))


def _table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _header(found: Inspection) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table

    from sardonyx.cli.console import shorten, text
    from sardonyx.inspection.readable import bytes_text, count_text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    files = [] if found.file_bytes is None else [bytes_text(found.file_bytes)]
    files += [f"+ {name} ({bytes_text(size)})" for name, size in found.external_files.items()]
    weights = ", ".join(
        f"{row.tensors} × {row.dtype} ({bytes_text(row.bytes)})" for row in found.weights
    )
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    rows = {
        "file": " ".join(files),
        "made by": found.producer,
        "format": f"IR version {found.ir_version}; {opsets}",
        "parameters": f"{count_text(found.parameters)}, {bytes_text(found.weight_bytes)}",
        "weights": weights,
        "functions": ", ".join(found.functions),
    }
    metadata = list(found.metadata.items())
    rows |= {shorten(key, 24): shorten(value, 120) for key, value in metadata[:_MOST_METADATA]}
    if len(metadata) > _MOST_METADATA:
        rows["…"] = f"{len(metadata) - _MOST_METADATA} more in --json"
    for name, content in rows.items():
        if content:
            grid.add_row(text(name), text(content))
    return Panel(grid, title=text(found.name, "bold"), title_align="left", expand=False)


def _ports(found: Inspection) -> Table:
    from sardonyx.cli.console import text

    table = _table("Inputs and outputs", "", "name", "type", "shape")
    groups: tuple[tuple[str, tuple[PortRow, ...]], ...] = (
        ("in", found.inputs),
        ("out", found.outputs),
    )
    for arrow, ports in groups:
        for port in ports:
            table.add_row(
                text(arrow, "dim"), text(port.name), text(port.type), text(port.shape_text, "cyan")
            )
    return table


def _operators(found: Inspection, console: Console) -> Table:
    from sardonyx.cli.console import bar, text

    table = _table("Operators", "operator", "nodes", "", right=("nodes",))
    most = max(found.operators.values())
    for name, count in found.operators.items():
        table.add_row(text(name), str(count), text(bar(count / most, 24, console), "cyan"))
    return table


def _totals(found: Inspection) -> RenderableType:
    from rich.console import Group
    from rich.table import Table

    from sardonyx.cli.console import shorten, size_label, text
    from sardonyx.sizes import symbols

    totals = found.totals
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    at = ", ".join(f"{name}={value}" for name, value in found.dims.items())
    grid.add_row("One run" + (f" at {at}" if at else ""), "")
    for label, size, unit in (
        ("multiply-adds", totals.macs, "MAC"),
        ("other work", totals.flops, "FLOP"),
        ("read", totals.bytes_read, "B"),
        ("written", totals.bytes_written, "B"),
    ):
        grid.add_row(f"  {label}", text(size_label(size, unit, _MOST_TOTAL)))
    notes: list[RenderableType] = [grid]
    open_dims = sorted(symbols(totals.macs) | symbols(totals.bytes_read))
    if open_dims:
        names = " ".join(f"--dim {shorten(name, 40)}=N" for name in open_dims[:4])
        notes.append(text(f"For numbers instead of expressions: {names}", "dim"))
    if totals.unknown:
        ops = ", ".join(sorted({row.op for row in found.nodes if not row.known}))
        counts = f"{totals.unknown} of {len(found.nodes)} nodes"
        notes.append(
            text(f"{counts} have a cost that is not known: {shorten(ops, _MOST_TOTAL)}.", "dim")
        )
    if totals.control_flow.nodes:
        notes.append(
            text(
                f"{totals.control_flow.nodes} nodes lie in bodies of If, Loop or Scan, counted as if "
                "each ran once.",
                "dim",
            )
        )
    return Group(*notes)
