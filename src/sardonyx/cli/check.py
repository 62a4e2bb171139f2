"""`sardonyx check`: is anything wrong with this model?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.inspection.findings import Report

__all__ = ["check"]

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def check(
    model: Annotated[Path, typer.Argument(help="The .onnx file.", show_default=False)],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON.")
    ] = False,
) -> None:
    """What is wrong with a model, or will surprise.

    Every finding says where it is and what to do. Exit code 1 when there are errors (with --strict: or warnings), 2 when the model cannot be loaded.

    \b
    Example:
        sardonyx check model.onnx --strict
    """
    from sardonyx import api
    from sardonyx.cli.console import print_json
    from sardonyx.cli.group import BAD_INPUT

    report = api.check(model)
    if json_output:
        print_json(report.to_json())
    elif report.loaded:
        _show(report)
    else:
        from sardonyx.cli.console import plain

        typer.echo(f"error: {plain(_one_line(report))}", err=True)
    if not report.loaded:
        raise typer.Exit(BAD_INPUT)
    if not report.ok or (strict and report.counts["warning"]):
        raise typer.Exit(1)


def _one_line(report: Report) -> str:
    finding = report.findings[0]
    return " ".join(
        filter(None, (f"{finding.node}:" if finding.node else None, finding.message, finding.hint))
    )


def _show(report: Report) -> None:
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout, text

    console = stdout()
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=7)
    grid.add_column(overflow="fold")
    for finding in report:
        what = Text(finding.rule, style="bold")
        if finding.node:
            what.append(f"  {plain(finding.node)}", style="not bold")
        if finding.source:
            what.append(f"  {plain(finding.source)}", style="not bold blue")
        what.append(f"\n{plain(finding.message)}", style="not bold")
        if finding.hint:
            what.append(f"\n{plain(finding.hint)}", style="not bold dim")
        grid.add_row(text(finding.severity, _STYLES[finding.severity]), what)
    console.print(grid)
    counts = ", ".join(
        f"{count} {name}{'s' * (count != 1 and name != 'info')}"
        for name, count in report.counts.items()
    )
    verdict = text("ok", "bold green") if report.ok else text("not ok", "bold red")
    console.print(Text.assemble(plain(report.name), ": ", verdict, f" ({counts})"))
