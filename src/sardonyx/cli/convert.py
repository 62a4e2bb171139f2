"""`sardonyx convert`: a model of another framework becomes ONNX with the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sardonyx.conversion.convert import Converted

__all__ = ["convert"]


def convert(
    source: Annotated[
        str | None,
        typer.Argument(help="A file, a folder, or net.py:Net.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the ONNX model.")
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Example inputs: .npy, .npz by name, or .csv. Given twice, axes that differ are dynamic.",
        ),
    ] = None,
    example: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=TYPE[SIZES]",
            help="A seeded example of an input, as x=float32[1,3,224,224]; may be repeated.",
        ),
    ] = None,
    dynamic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:AXIS=SYMBOL", help="An axis that stays open, as x:0=batch."),
    ] = None,
    input_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Names of the inputs, in order.")
    ] = None,
    output_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Names of the outputs, in order.")
    ] = None,
    opset: Annotated[
        int | None, typer.Option(metavar="N", help="Write the model in this opset.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="Where the source does not show it; --list has them.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="A state dict of torch, to load into the model.")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="What a framework that does not run here answered to --inputs: .npy, or .npz by name.",
        ),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Which one of a SavedModel or .tflite file that has several."
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Open a pickle, which may run any code. Only your own.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify", help="Hold the result to the framework's own answers."
        ),
    ] = True,
    list_frameworks: Annotated[
        bool, typer.Option("--list", help="Show the frameworks: installed, version, tested.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """A model of another framework becomes ONNX with the same answers.

    The result is run beside the framework, on your inputs and on others made from them; a model whose answers differ is
    never written. The work is done in a process of its own. Exit code 1 when no way gave the same answers.

    \b
    Examples:
        sardonyx convert net.py:Net --input x=float32[1,3,224,224] --dynamic x:0=batch -o net.onnx
        sardonyx convert model.pt2 -o model.onnx
        sardonyx convert booster.ubj --inputs rows.npy -o trees.onnx
        sardonyx convert net-symbol.json --inputs x.npy --answers y.npy -o net.onnx
        sardonyx convert --list
    """
    from sardonyx import api
    from sardonyx.cli.console import plain, print_json, progress_bar, stderr, text
    from sardonyx.cli.conversion_inputs import parse_dynamic, read_calls
    from sardonyx.errors import ConvertError, InputError

    if list_frameworks:
        _show_frameworks(json_output)
        return
    if source is None:
        raise InputError(
            "nothing to convert.", hint="As in: sardonyx convert net.py:Net -o net.onnx"
        )
    calls = read_calls(inputs or [], example or [])
    options: dict[str, Any] = {"trust": trust} if trust else {}
    if weights is not None:
        options["weights"] = weights
    if signature is not None:
        options["signature"] = signature
    if answers:
        options["answers"] = [call.kwargs or call.args for call in read_calls(answers, [])]
    with progress_bar(f"converting {source}") as (progress, task):
        try:
            result = api.convert(
                source,
                calls[0] if calls else None,
                other_inputs=calls[1:],
                dynamic=parse_dynamic(dynamic or []),
                input_names=input_name or (),
                output_names=output_name or (),
                opset=opset,
                framework=framework,
                options=options,
                verify=verify,
                progress=lambda what: progress.update(task, description=plain(what)),
            )
        except ConvertError as error:
            stderr().print(text(f"error: {error}", "bold red"))
            raise typer.Exit(1) from None
    if output is not None:
        from sardonyx.model.save import save

        save(result.model, output)
    if json_output:
        print_json(result.to_json())
    else:
        _show(result, output)


def _show(result: Converted, output: Path | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout, text

    console = stdout()
    for attempt in result.attempts:
        console.print(text(f"Not by {attempt.route}: {attempt.reason}", "dim"))
    for note in result.notes:
        console.print(text(note, "dim"))
    if result.verification is not None:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name in ("inputs", "output", "shape", "max abs", "max rel", ""):
            table.add_column(name, justify="right" if name.startswith("max") else "left")
        for trial in result.verification.trials:
            for row, found in enumerate(trial.outputs):
                table.add_row(
                    text("" if row else trial.what),
                    text(found.name),
                    text(list(found.shape), "cyan"),
                    f"{found.max_abs:.2g}",
                    f"{found.max_rel:.2g}",
                    text("ok", "green"),
                )
        console.print(table)
        verdict = ("The answers agree", "bold green")
    else:
        verdict = ("Not verified", "bold yellow")
    graph = result.model.graph
    where = f", written to {plain(output)}" if output is not None else ""
    what = f": {result.framework} by {result.route}, {graph.num_nodes():,} nodes, opset {graph.opset_imports.get('')}"
    console.print(Text.assemble(verdict, f"{what}{where}."))


def _show_frameworks(json_output: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import print_json, stdout, text
    from sardonyx.conversion.frontends import FRONTENDS

    if json_output:
        rows = [
            {"framework": f.name, "version": f.version, "tested": f.tested, "extra": f.extra}
            for f in FRONTENDS
        ]
        print_json(rows)
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("framework", "installed", "tested with", "files", "to install"):
        table.add_column(name)
    for frontend in FRONTENDS:
        version = frontend.version
        table.add_row(
            text(frontend.name),
            text(version, "green") if version else text("no", "dim"),
            text(frontend.tested),
            text(" ".join(frontend.files)),
            text("" if version else f'pip install "sardonyx[{frontend.extra}]"'),
        )
    stdout().print(table)
