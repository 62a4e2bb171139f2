"""`sardonyx build`: a model as a native artifact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sardonyx.cli.precision import Precision

if TYPE_CHECKING:
    from sardonyx.deploy.build import Built

__all__ = ["build"]


def build(
    model: Annotated[
        Path | None, typer.Argument(help="The .onnx file.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write to.")
    ] = Path("build"),
    target: Annotated[
        str, typer.Option(help="The machine that it is for; --list-targets shows all.")
    ] = "native",
    emit: Annotated[
        str,
        typer.Option(
            help="so (a shared library), a (a static one), c (sources), exe (a program), wheel (a Python package) or wasm (for browsers and node)."
        ),
    ] = "so",
    cpu: Annotated[
        str | None, typer.Option(help="Of the target, as x86-64-v4 or armv8-a+dotprod.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What its functions are called; by default as the file.")
    ] = None,
    weights: Annotated[
        Literal["embedded", "beside"],
        typer.Option(help="Inside the artifact, or in a file beside it that programs map."),
    ] = "embedded",
    dim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="Fix a dynamic dimension, or declare its range, as batch=1..8; may be repeated.",
        ),
    ] = None,
    precision: Precision = "float32",
    threads: Annotated[
        bool, typer.Option(help="Link worker threads in, where the target has any.")
    ] = True,
    portable: Annotated[
        bool, typer.Option("--portable", help="With --emit c: plain C99, for any compiler.")
    ] = False,
    package_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Of a wheel or npm package.")
    ] = "1.0",
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="A private ed25519 key (PEM) to sign the manifest with."),
    ] = None,
    list_targets: Annotated[
        bool, typer.Option("--list-targets", help="Show the targets and exit.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Make a native library of a model: a plain C interface, no Python, only the operators that it uses.

    \b
    Examples:
        sardonyx build model.onnx -o out
        sardonyx build model.onnx --target x86_64-linux --cpu x86-64-v4 --emit a -o out
        sardonyx build model.onnx --emit wheel -o dist && pip install dist/*.whl
        sardonyx build model.onnx --emit wasm -o web
        sardonyx build --list-targets
    """
    from sardonyx import api
    from sardonyx.cli.console import compiling, parse_ranges, print_json, progress_bar
    from sardonyx.errors import InputError

    if list_targets:
        _show_targets(as_json=json_output)
        return
    if model is None:
        raise InputError("no model was named.", hint="As in: sardonyx build model.onnx -o out")
    with progress_bar("building") as (progress, _):
        built = api.build(
            model,
            output,
            target=target,
            emit=emit,
            cpu=cpu,
            name=name,
            weights=weights,
            dims=parse_ranges(dim),
            precision=precision,
            threads=threads,
            version=package_version,
            sign=sign,
            portable=portable,
            progress=compiling(progress),
        )
    if json_output:
        print_json(built.to_json())
    else:
        _show(built)


def _show(built: Built) -> None:
    from sardonyx.cli.console import stdout, text
    from sardonyx.inspection.readable import size_text

    console = stdout()
    for path, size in built.files:
        console.print(text(f"{path}  {size_text(size, 'B')}"))
    code, weights = size_text(built.code_bytes, "B"), size_text(built.weights_bytes, "B")
    console.print(text(f"code {code}, weights {weights}", "dim"))
    for line in _memory_lines(built):
        console.print(text(line, "dim"))


def _memory_lines(built: Built) -> list[str]:
    from sardonyx.inspection.readable import size_text

    memory = built.memory
    gaps = f", and up to {memory.gaps} more for gaps" if memory.gaps else ""
    if memory.arena is None:
        lines = [f"memory: ask {built.name}_memory_needed; its formula would fill pages"]
    else:
        lines = [f"memory {memory.context} + {memory.arena} bytes{gaps}"]
    if memory.most is None:
        lines.append("at most: no bound; declare ranges, as in --dim batch=1..8")
    else:
        lines.append(f"at most {memory.most} bytes ({size_text(memory.most, 'B')})")
    if memory.stack is not None:
        lines.append(f"stack at most {memory.stack} bytes, whatever the sizes")
    return lines


def _show_targets(*, as_json: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import print_json, stdout
    from sardonyx.deploy.targets import TARGETS

    rows = [
        {
            "target": one.name,
            "cpus": list(one.cpus),
            "emits": list(one.emits),
            "what": one.summary,
        }
        for one in TARGETS.values()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("target", "what it is", "--emit", "--cpu"):
        table.add_column(column)
    for target in TARGETS.values():
        cpus = "\n".join(target.cpus)
        table.add_row(target.name, target.summary, " ".join(target.emits), cpus)
    stdout().print(table)
