"""How every command ends: 0 done, 1 the answer is no, 2 bad input and one line that says what and where."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from sardonyx.errors import SardonyxError
from sardonyx.options import read_environment

__all__ = ["BAD_INPUT", "DEFECT", "HUNG_UP", "Commands"]

BAD_INPUT = 2
DEFECT = 70  # EX_SOFTWARE: our fault, not the user's
INTERRUPTED = 130  # 128 + SIGINT
HUNG_UP = 141  # 128 + SIGPIPE: the reader of a pipe went away

_CommandError: Any = typer.BadParameter.__mro__[
    2
]  # the base of all usage errors, wherever typer has it


class Commands(TyperGroup):
    """All commands, with one way to fail."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets a "?"
                stream.reconfigure(errors="replace")
        try:
            code = super().main(given, "sardonyx", complete_var, standalone_mode=False, **extra)
        except (Exception, KeyboardInterrupt) as error:
            if _wants_traceback(given) and isinstance(error, Exception):
                raise
            code = _explain(error)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # Whatever is still buffered has no reader; Python would complain about it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(HUNG_UP) from None


def _wants_traceback(args: list[str]) -> bool:
    try:
        return "--traceback" in args or read_environment().traceback
    except SardonyxError:  # the environment is what went wrong, and one line says so
        return False


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong, and give the exit code for it."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _say("interrupted")
        return INTERRUPTED
    if isinstance(error, SardonyxError):
        _say(f"error: {error}")
        return BAD_INPUT
    if isinstance(error, _CommandError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "sardonyx"
        _say(f"error: {error.format_message()} (see {command} --help)")
        return BAD_INPUT
    if isinstance(error, OSError):
        name = f"file {error.filename!r}: " if error.filename else ""
        _say(f"error: {name}{error.strerror or error}.")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        _say("error: the machine has no memory left for this.")
        return BAD_INPUT
    _say(
        f"defect: {type(error).__name__}: {error} (please report it; --traceback shows where, "
        "as in: sardonyx --traceback …)"
    )
    return DEFECT


def _say(line: str) -> None:
    """One line on standard error, whatever the message holds."""
    shown = "".join(c if c.isprintable() else " " for c in " ".join(line.split()))
    sys.stderr.write(shown + "\n")
    sys.stderr.flush()
