"""`sardonyx simplify` and `sardonyx optimize`: the same answers from fewer nodes, and the bill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console
    from rich.table import Table

    from sardonyx.comparison.optimized import OptimizedModel
    from sardonyx.passes.rewriting.bill import Bill, Rates
    from sardonyx.passes.rewriting.ledger import Ledger

__all__ = ["optimize", "show_ledger", "simplify"]

Number = TypeVar("Number", int, float)

Model = Annotated[Path, typer.Argument(help="A model.", show_default=False)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Where to write the result; without it, only the account is shown."
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Leave a rule or pass out; may be repeated."),
]
Opset = Annotated[
    int | None,
    typer.Option(metavar="N", help="Write the model in this opset first, newer or older."),
]
FoldBudget = Annotated[
    str,
    typer.Option(
        metavar="BYTES", help="How far it may grow by constants that every run would compute."
    ),
]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=N", help="Size of a dynamic dimension, for the account and the check."
    ),
]
Inputs = Annotated[
    Path | None, typer.Option(help="Inputs for the check: a .npy, .npz or .pb file, or a folder.")
]
Verify = Annotated[
    bool, typer.Option("--verify/--no-verify", help="Run the model before and after, and compare.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Show what each rule did and saved.")]
WhyNot = Annotated[
    str | None, typer.Option(metavar="RULE", help="Show where a rule was not applied, and why.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the account as JSON.")]


def simplify(
    model: Model,
    output: Output = None,
    without: Without = None,
    opset: Opset = None,
    fold_budget: FoldBudget = "1GiB",
    dim: Dim = None,
    inputs: Inputs = None,
    verify: Verify = True,
    explain: Explain = False,
    why_not: WhyNot = None,
    json_output: Json = False,
) -> None:
    """Fewer nodes, the same answers, in the model's own opset.

    The result is standard ONNX. The whole model is run before and after; exit code 1 when an answer
    has changed, with the name of the rule that changed it.

    \b
    Examples:
        sardonyx simplify model.onnx -o simple.onnx
        sardonyx simplify model.onnx --explain --dim batch=8
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_bytes, parse_dims

    result = _run(
        model,
        lambda progress: api.simplify(
            model,
            without=without or (),
            opset=opset,
            fold_budget=parse_bytes(fold_budget),
            dims=parse_dims(dim),
            verify=verify,
            inputs=inputs,
            progress=progress,
        ),
    )
    _report(result, output, explain, why_not, json_output)


def optimize(
    model: Model,
    output: Output = None,
    level: Annotated[int, typer.Option(help="0 to 3.", min=0, max=3)] = 3,
    runtime: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="RUNTIME",
            help="Where it is to run: onnxruntime, onnxruntime@1.17, tensorrt, sardonyx.",
        ),
    ] = "onnxruntime",
    without: Without = None,
    opset: Opset = None,
    fold_budget: FoldBudget = "1GiB",
    dim: Dim = None,
    inputs: Inputs = None,
    verify: Verify = True,
    explain: Explain = False,
    why_not: WhyNot = None,
    json_output: Json = False,
) -> None:
    """Less to compute and to move, the same answers.

    The opset is raised where a fusion needs it, to at most what the named runtime loads. The result is
    standard ONNX. The whole model is run before and after; exit code 1 when an answer has changed, with
    the name of the rule that changed it.

    \b
    Examples:
        sardonyx optimize model.onnx -o fast.onnx --explain
        sardonyx optimize model.onnx --why-not conv-then-normalization
    """
    from sardonyx import api
    from sardonyx.cli.console import parse_bytes, parse_dims

    result = _run(
        model,
        lambda progress: api.optimize(
            model,
            level=level,
            runtime=runtime,
            without=without or (),
            opset=opset,
            fold_budget=parse_bytes(fold_budget),
            dims=parse_dims(dim),
            verify=verify,
            inputs=inputs,
            progress=progress,
        ),
    )
    _report(result, output, explain, why_not, json_output)


def _run(
    model: Path, work: Callable[[Callable[[int, int], None]], OptimizedModel]
) -> OptimizedModel:
    """The result; where an answer has changed, the smallest wrong model is written and the command ends."""
    from sardonyx.cli.console import compiling, progress_bar, stderr, text
    from sardonyx.comparison.optimized import ChangedAnswerError
    from sardonyx.model.save import save

    with progress_bar("optimizing") as (progress, _):
        try:
            return work(compiling(progress, "step"))
        except ChangedAnswerError as error:
            stderr().print(text(f"error: {error}", "bold red"))
            if error.culprit is not None:
                kept = Path(f"{model.stem}-{error.culprit.rule}.onnx")
                save(error.culprit.model, kept)
                stderr().print(text(f"The smallest model on which it is wrong: {kept}"))
            raise typer.Exit(1) from None


def _report(
    result: OptimizedModel,
    output: Path | None,
    explain: bool,
    why_not: str | None,
    json_output: bool,
) -> None:
    from sardonyx.cli.console import print_json, stdout
    from sardonyx.comparison.optimized import machine_rates
    from sardonyx.model.save import save

    if output is not None:
        save(result.model, output)
    if explain or json_output:
        result.ledger.rates = machine_rates()
    if json_output:
        print_json(result.to_json())
        return
    console = stdout()
    if explain:
        show_ledger(result.ledger, console)
    if why_not is not None:
        _show_refusals(result.ledger, why_not, console)
    _show_verdict(result, output, console)


def show_ledger(ledger: Ledger, console: Console) -> None:
    """What each rule did, one row each, and the whole model; then what it saved of each term, in seconds."""
    from sardonyx.cli.console import text
    from sardonyx.inspection.readable import bytes_text, count_text

    rows = [
        *((e.rule, str(e.matches), e.before, e.after) for e in ledger.entries.values()),
        ("the model", "", ledger.before, ledger.after),
    ]
    counted = _table("rule", "times", "nodes", "FLOP", "bytes moved", "launches")
    for rule, times, before, after in rows:
        counted.add_row(
            text(rule, "bold" if rule == "the model" else ""),
            times,
            _change(before.nodes, after.nodes, str),
            _change(before.flops, after.flops, count_text),
            _change(before.moved, after.moved, bytes_text),
            _change(before.launches, after.launches, str),
        )
    console.print(counted)
    _show_prices([(rule, before, after) for rule, _, before, after in rows], ledger.rates, console)


def _show_prices(rows: Sequence[tuple[str, Bill, Bill]], rates: Rates, console: Console) -> None:
    from sardonyx.cli.console import text
    from sardonyx.cli.profile_table import time_text

    table = _table("saved by", *("compute", "memory", "transfer", "launch", "all"))
    for rule, before, after in rows:
        saved = (before - after).price(rates)
        terms = (saved.compute, saved.memory, saved.transfer, saved.launch, saved.total)
        if not any(terms):
            continue
        shown = [f"{'-' * (t < 0)}{time_text(abs(t))}" if t else "" for t in terms]
        table.add_row(text(rule, "bold" if rule == "the model" else ""), *shown)
    if table.row_count:
        console.print(table)
    _, before, after = rows[-1]
    now = _change(before.price(rates).total, after.price(rates).total, time_text)
    console.print(text(f"The model: {now}. {_rates_text(rates)}", "dim"))


def _table(first: str, *others: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _change(before: Number, after: Number, show: Callable[[Number], str]) -> str:
    a, b = show(before), show(after)
    return a if a == b else f"{a} → {b}"


def _rates_text(rates: Rates) -> str:
    from sardonyx.inspection.readable import bytes_text, count_text

    return (
        f"Priced by {count_text(int(rates.flops), 'FLOP')}/s, {bytes_text(int(rates.bytes))}/s from memory, "
        f"{bytes_text(int(rates.carried))}/s where elements change places, "
        f"{1e9 / rates.launches:,.0f} ns a launch ({rates.origin})."
    )


def _show_refusals(ledger: Ledger, rule: str, console: Console) -> None:
    from sardonyx.cli.console import text
    from sardonyx.errors import InputError
    from sardonyx.passes.pipelines import names_of

    if rule not in names_of(3):
        raise InputError(
            f"there is no rule {rule[:80]!r}.",
            value=rule,
            hint=f"There are: {', '.join(names_of(3))}.",
        )
    found = [refused for refused in ledger.refusals.values() if refused.rule == rule]
    applied = ledger.entries[rule].matches if rule in ledger.entries else 0
    console.print(text(f"{rule}: applied {applied} times, refused at {len(found)} places."))
    for refused in found:
        where = f"{refused.node} ({refused.source})" if refused.source else refused.node
        console.print(text(f"  {where}: {refused.reason}"))


def _show_verdict(result: OptimizedModel, output: Path | None, console: Console) -> None:
    from rich.text import Text

    from sardonyx.cli.console import plain, text

    ledger = result.ledger
    for note in ledger.notes:
        console.print(text(note, "dim"))
    if result.verification is not None:
        largest = max((o.of_largest for o in result.verification.outputs), default=0.0)
        console.print(
            Text.assemble(
                ("The answers agree", "bold green"),
                f" (largest difference {largest:.1e} of the output's largest value).",
            )
        )
    before, after = ledger.before.nodes, ledger.after.nodes
    saved = f"{before:,} nodes → {after:,}" if before != after else f"{before:,} nodes, as before"
    where = f", written to {plain(output)}" if output is not None else ""
    console.print(text(f"{saved}{where}."))
