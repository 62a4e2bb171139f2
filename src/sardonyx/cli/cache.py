"""`sardonyx cache`: what is kept between runs, and `sardonyx cache clear`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sardonyx.runtime.cache_usage import Usage

__all__ = ["build_cache_app"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def build_cache_app() -> typer.Typer:
    """The command and the one below it."""
    app = typer.Typer(rich_markup_mode=None)
    app.callback(invoke_without_command=True)(cache)
    app.command()(clear)
    return app


def cache(context: typer.Context, json_output: Json = False) -> None:
    """What is kept between runs, and where.

    Compiled kernels, libraries, prepared weights, plans and timings; by kind, with how long ago the least recent was used.
    What was used longest ago goes when there is more than the limit: SARDONYX_CACHE_LIMIT, else 10 GiB or a fifth of the disk.

    \b
    Example:
        sardonyx cache
        sardonyx cache clear --older-than 30d
    """
    if context.invoked_subcommand is not None:
        return
    from sardonyx.cli.console import print_json
    from sardonyx.options import read_environment
    from sardonyx.runtime.cache import Cache
    from sardonyx.runtime.cache_usage import Usage

    settings = read_environment()
    root, limit = settings.cache_dir, settings.cache_limit
    usage = Cache(root, limit=limit).usage() if root.exists() else Usage(root, (), limit or 0)
    if json_output:
        print_json(_json(usage))
    else:
        _show(usage)


def clear(
    kind: Annotated[
        str | None,
        typer.Option(help="Only this kind: object, library, weights, plan, files or timing."),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Only what has not been used for so long, as in 30d or 12h.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Remove what is kept; it is made again when it is needed.

    \b
    Example:
        sardonyx cache clear --kind library --older-than 30d
    """
    from sardonyx.cli.console import print_json, stdout, text
    from sardonyx.errors import InputError
    from sardonyx.inspection.readable import bytes_text
    from sardonyx.options import read_environment
    from sardonyx.runtime.cache import KINDS, Cache
    from sardonyx.runtime.cache_usage import Usage

    if kind is not None and kind not in KINDS:
        raise InputError(
            f"--kind {kind!r} is not kept.", value=kind, hint=f"There are: {', '.join(KINDS)}."
        )
    seconds = None if older_than is None else _seconds(older_than)
    root = read_environment().cache_dir
    removed = Cache(root).clear(kind, seconds) if root.exists() else Usage(root, (), 0)
    if json_output:
        print_json(_json(removed))
        return
    entries = "1 entry" if removed.count == 1 else f"{removed.count:,} entries"
    stdout().print(text(f"Removed {entries}, {bytes_text(removed.bytes)}, from {root}."))


def _show(usage: Usage) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sardonyx.cli.console import stdout, text
    from sardonyx.inspection.readable import bytes_text

    console = stdout()
    if not usage.kinds:
        console.print(text(f"Nothing is kept in {usage.root}."))
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("kind")
    for name in ("entries", "size", "least recent use"):
        table.add_column(name, justify="right")
    for kind in usage.kinds:
        table.add_row(kind.kind, f"{kind.count:,}", bytes_text(kind.bytes), _ago(kind.oldest))
    console.print(table)
    limit = bytes_text(usage.limit)
    console.print(text(f"{bytes_text(usage.bytes)} in {usage.root}, at most {limit}"))


def _json(usage: Usage) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "folder": str(usage.root),
        "entries": usage.count,
        "bytes": usage.bytes,
        "limit": usage.limit,
        "kinds": [asdict(kind) for kind in usage.kinds],
    }


def _ago(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // size)
        if count:
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "now"


def _seconds(duration: str) -> float:
    from sardonyx.errors import InputError

    match = _DURATION.fullmatch(duration.strip())
    if match is None:
        raise InputError(
            f"--older-than {duration!r} is not a length of time.",
            value=duration,
            hint="As in: 30d, 12h, 90m",
        )
    return float(match[1]) * _UNITS[match[2].lower()]
