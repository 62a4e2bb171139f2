"""`sardonyx bench`: how long a run takes, alone or against another engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sardonyx.cli.precision import Precision

if TYPE_CHECKING:
    from sardonyx.comparison.bench import Bench
    from sardonyx.runtime.profile import Profile

__all__ = ["bench"]


def bench(
    model: Annotated[
        Path,
        typer.Argument(help="The .onnx file, or a library of `build`.", show_default=False),
    ],
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
    threads: Annotated[
        int | None, typer.Option(help="Threads of a run; all usable cores by default.", min=1)
    ] = None,
    precision: Precision = "float32",
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="First measure kernels on this machine; later sessions too take the fastest.",
        ),
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Where the time goes, kernel by kernel.")
    ] = False,
    top: Annotated[int, typer.Option(help="How many kernels --profile shows.", min=0)] = 15,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write one run as a Chrome trace to this .json file; implies --profile."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the times as JSON.")] = False,
) -> None:
    """Time a model, alone or against another engine.

    Two engines take turns in short blocks, so that a busy machine treats both alike.

    \b
    Examples:
        sardonyx bench model.onnx --against onnxruntime --dim batch=1 --repeat 50
        sardonyx bench model.onnx --tune
        sardonyx bench model.onnx --profile --top 20 --trace run.json
    """
    from sardonyx import api
    from sardonyx.cli.console import compiling, parse_dims, progress_bar
    from sardonyx.cli.libraries import bench_library, is_shared_library
    from sardonyx.cli.outputs import check_folder
    from sardonyx.comparison.bench import Schedule
    from sardonyx.errors import InputError

    if profile or trace is not None:
        if engine != "sardonyx" or against is not None:
            raise InputError(
                "--profile looks into sardonyx alone, without --engine and --against.",
                value=against or engine,
            )
        if trace is not None:
            check_folder(trace)
        found = _profile(
            model, inputs, seed, parse_dims(dim), repeat, warmup, threads, precision, tune
        )
        _show_profile(found, model.name, trace, top=top, as_json=json_output)
        return
    with progress_bar("timing") as (progress, task):
        timed = Schedule(repeat=repeat, warmup=warmup)

        def tell(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        if is_shared_library(model):
            _check_library(against, engine, dim)
            _report(bench_library(model, inputs, threads, timed, tell), as_json=json_output)
            return
        result = api.bench(
            model,
            engine=engine,
            against=against,
            inputs=inputs,
            seed=seed,
            dims=parse_dims(dim),
            schedule=timed,
            threads=threads,
            precision=precision,
            tune=tune,
            progress=compiling(progress, "tuning" if tune else "compiling"),
            tell=tell,
        )
    _report(result, as_json=json_output)


def _check_library(against: str | None, engine: str, dim: list[str] | None) -> None:
    from sardonyx.errors import InputError

    if against is not None or engine != "sardonyx" or dim:
        raise InputError(
            "a library is timed alone, without --against, --engine and --dim.",
            hint="Time the .onnx file against another engine.",
        )


def _report(result: Bench, *, as_json: bool) -> None:
    from sardonyx.cli.console import print_json

    if as_json:
        print_json(result.to_json())
    else:
        _show(result)


def _profile(
    model: Path,
    inputs: Path | None,
    seed: int,
    dims: dict[str, int],
    repeat: int,
    warmup: int,
    threads: int | None,
    precision: Precision,
    tune: bool,
) -> Profile:
    from sardonyx import api
    from sardonyx.cli.console import compiling, progress_bar

    with progress_bar("profiling") as (progress, _):
        return api.profile(
            model,
            inputs=inputs,
            seed=seed,
            dims=dims,
            runs=repeat,
            warmup=warmup,
            threads=threads,
            precision=precision,
            tune=tune,
            progress=compiling(progress, "tuning" if tune else "compiling"),
        )


def _show_profile(
    found: Profile, name: str, trace: Path | None, *, top: int, as_json: bool
) -> None:
    from sardonyx.cli.console import print_json, stdout, text
    from sardonyx.cli.outputs import save_json
    from sardonyx.cli.profile_table import show_profile

    if trace is not None:
        save_json(trace, found.chrome_trace())
    if as_json:
        print_json(found.to_json())
        return
    console = stdout()
    show_profile(found, name, console, top=top)
    if trace is not None:
        note = f"written to {trace}: open it in chrome://tracing or ui.perfetto.dev"
        console.print(text(note, "dim"))


def _show(result: Bench) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from sardonyx.cli.console import plain, stdout, text
    from sardonyx.cli.profile_table import time_text

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
        table.add_row(text(timing.engine), *map(time_text, times), str(len(timing.seconds)))
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
