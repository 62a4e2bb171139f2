"""`sardonyx doctor`: what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.inspection.doctor import CacheFolder, Diagnosis, Tuning

__all__ = ["doctor"]


def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """What this machine can do.

    CPU features, usable cores and memory, compiler, cache folder, what was measured, and libraries. Exit code 1 when something needs your attention.

    \b
    Example:
        sardonyx doctor --json
    """
    from sardonyx import api
    from sardonyx.cli.console import print_json

    found = api.diagnose()
    if json_output:
        print_json(found.to_json())
    else:
        _show(found)
    if found.problems:
        raise typer.Exit(1)


def _show(found: Diagnosis) -> None:
    from rich.table import Table

    from sardonyx.cli.console import stdout, text

    console = stdout()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, content in _rows(found).items():
        grid.add_row(name, text(content))
    console.print(grid)
    if not found.problems:
        console.print(text("All well.", "bold green"))
    for problem in found.problems:
        console.print(text(problem, "bold red"))


def _rows(found: Diagnosis) -> dict[str, str]:
    cores, memory, cache, compiler = found.cores, found.memory, found.cache, found.compiler
    limits = [f"{cores.affinity} in the affinity mask"] if cores.affinity != cores.total else []
    limits += [f"a quota of {cores.quota:g}"] if cores.quota is not None else []
    extras = [f"{lib.name} {lib.version}" for lib in found.extras if lib.version]
    missing = [f"{lib.name} (sardonyx[{lib.extra}])" for lib in found.extras if not lib.version]
    native = found.native
    vectors = f"{native.isa}, {native.lanes} float32 in a vector"
    return {
        "sardonyx": f"{found.sardonyx} on {found.python}",
        "system": f"{found.system}, {found.architecture}",
        "cpu": found.cpu.model,
        "features": ", ".join(found.cpu.features) or "none that are known here",
        "cores": f"{cores.usable} usable of {cores.total}"
        + (f" ({', '.join(limits)})" if limits else ""),
        "memory": _memory(memory.usable, memory.total, memory.limit),
        "compiler": f"{compiler.name} (from {compiler.origin})" if compiler.name else "none",
        "native code": f"for {native.cpu} ({vectors}), {native.threads} thread{'s' * (native.threads != 1)} a run",
        "matrix tiles": native.tiles,
        "cache": _cache(cache),
        "tuning": _tuning(found.tuning),
        "libraries": ", ".join(f"{lib.name} {lib.version or 'MISSING'}" for lib in found.libraries),
        "extras": ", ".join(extras) or "none",
        "not installed": ", ".join(missing) or "nothing",
        "environment": ", ".join(found.environment) or "no SARDONYX_ variable is set",
    }


def _cache(cache: CacheFolder) -> str:
    from sardonyx.inspection.readable import bytes_text

    limit = f"at most {bytes_text(cache.limit)}"
    if not cache.exists:
        return f"{cache.path} (will be made when needed; {limit})"
    held = "" if cache.bytes is None else f"{bytes_text(cache.bytes)}, "
    return f"{cache.path} ({held}{limit})"


def _tuning(tuning: Tuning) -> str:
    if not tuning.problems:
        return "nothing measured yet: sardonyx bench MODEL --tune, or Session(…, tune=True)"
    measured = f"{tuning.problems} contraction{'s' * (tuning.problems != 1)} measured here"
    return f"{measured}, the last on {tuning.newest}; inspect --plan shows what was chosen"


def _memory(usable: int | None, total: int | None, limit: int | None) -> str:
    from sardonyx.inspection.readable import bytes_text

    if usable is None:
        return "unknown"
    text = f"{bytes_text(usable)} usable"
    if limit is not None and total is not None:
        text += f" of {bytes_text(total)} (limit of the control group)"
    return text
