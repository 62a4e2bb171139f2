"""The `sardonyx` command. Each command is one module; heavy imports wait until it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import typer

__all__ = ["build_app", "main"]

Command: TypeAlias = Callable[..., None]


def build_app() -> typer.Typer:
    """All commands, in the order that help shows them."""
    from sardonyx.cli.back import back
    from sardonyx.cli.bench import bench
    from sardonyx.cli.build import build
    from sardonyx.cli.cache import build_cache_app
    from sardonyx.cli.check import check
    from sardonyx.cli.compare import compare
    from sardonyx.cli.conformance import conformance
    from sardonyx.cli.convert import convert
    from sardonyx.cli.demo import demo
    from sardonyx.cli.doctor import doctor
    from sardonyx.cli.group import Commands
    from sardonyx.cli.inspect import inspect
    from sardonyx.cli.optimize import optimize, simplify
    from sardonyx.cli.prune import prune
    from sardonyx.cli.quantize import quantize
    from sardonyx.cli.run import run
    from sardonyx.cli.verify import verify

    app = typer.Typer(
        cls=Commands,
        name="sardonyx",
        help="Load safely, check, look inside and run any ONNX model.",
        epilog="Start with: sardonyx demo",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_global_options)
    checking: tuple[Command, ...] = (inspect, check, convert, back, simplify, optimize)
    shrinking: tuple[Command, ...] = (quantize, prune)
    running: tuple[Command, ...] = (run, compare, bench, build, verify, conformance, doctor, demo)
    for command in (*checking, *shrinking, *running):
        app.command()(command)
    app.add_typer(build_cache_app(), name="cache")
    return app


def _global_options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
) -> None:
    if version:
        from sardonyx import __version__

        typer.echo(f"sardonyx {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point; ends the process with the command's exit code."""
    build_app()(args=None if argv is None else list(argv))
