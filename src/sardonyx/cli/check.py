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
    """Look a model over: what is wrong, what will surprise, and what to do about it.

    Exit code 1 when there are errors (with --strict: or warnings), 2 when the model cannot be loaded.

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
    from rich.padding import Padding
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout, text

    console = stdout()
    for finding in report:
        head = Text(f"{finding.severity:<7}", style=_STYLES[finding.severity])
        head.append(f" {finding.rule}", style="bold")
        if finding.node:
            head.append(f"  {plain(finding.node)}")
        if finding.source:
            head.append(f"  {plain(finding.source)}", style="blue")
        console.print(head)
        console.print(Padding(text(finding.message), (0, 0, 0, 8), expand=False))
        if finding.hint:
            console.print(Padding(text(finding.hint, "dim"), (0, 0, 0, 8), expand=False))
    counts = ", ".join(
        f"{count} {name}{'s' * (count != 1 and name != 'info')}"
        for name, count in report.counts.items()
    )
    verdict = text("ok", "bold green") if report.ok else text("not ok", "bold red")
    console.print(Text.assemble(plain(report.name), ": ", verdict, f" ({counts})"))
