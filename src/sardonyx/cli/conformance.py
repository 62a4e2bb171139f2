"""`sardonyx conformance`: the official ONNX test suite against this installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.comparison.conformance import Conformance

__all__ = ["conformance"]


def conformance(
    match: Annotated[
        str, typer.Argument(help="A regular expression: only cases whose name matches.")
    ] = "",
    kind: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the results as JSON to this file.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the page by operator to this file.")
    ] = None,
) -> None:
    """Run the official ONNX test suite.

    Every case goes through Session; the table says what passed, where it ran, and why not. Exit code 1
    when a case fails.

    \b
    Example:
        sardonyx conformance "attention|resize" --kind node
    """
    from sardonyx.cli.console import progress_bar
    from sardonyx.cli.outputs import check_folder
    from sardonyx.comparison.conformance import KINDS, Result, load_cases, run_cases
    from sardonyx.errors import InputError

    for name in kind or ():
        if name not in KINDS:
            raise InputError(
                f"there is no suite {name!r}.", value=name, hint=f"There are: {', '.join(KINDS)}."
            )
    for path in filter(None, (output, markdown)):
        check_folder(path)
    with progress_bar("loading the suite") as (progress, task):
        cases = load_cases(kind or KINDS, match)
        if not cases:
            raise InputError(f"no case matches {match!r}.", value=match)
        progress.update(task, total=len(cases), description="running")
        failed = 0

        def tell(result: Result) -> None:
            nonlocal failed
            failed += not result.passed
            what = f"running ({failed} failed)" if failed else "running"
            progress.update(task, advance=1, description=what)

        report = run_cases(cases, tell)
    if output is not None:
        output.write_text(report.to_json())
    if markdown is not None:
        markdown.write_text(report.to_markdown())
    if json_output:
        typer.echo(report.to_json(), nl=False)
    else:
        _show(report)
    if report.failures:
        raise typer.Exit(1)


def _show(report: Conformance) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout
    from sardonyx.comparison.conformance import KINDS

    console = stdout()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("suite", "cases", "passed", "native", "reference"):
        table.add_column(name, justify="left" if name == "suite" else "right")
    for kind in KINDS:
        if report.count(kind=kind):
            table.add_row(
                kind,
                str(report.count(kind=kind)),
                str(report.count(kind=kind, passed=True)),
                str(report.count(kind=kind, backend="native")),
                str(report.count(kind=kind, backend="reference")),
            )
    console.print(table)
    for result in report.failures:
        line = f" {plain(result.name)}: {plain(result.reason)}"
        console.print(Text.assemble(("failed", "bold red"), line))
    total = len(report.results)
    passed = f"{total - len(report.failures):,} of {total:,} cases"
    console.print(f"{passed} of the suite of onnx {report.onnx_version} passed.")
