"""Printing that a hostile model cannot abuse: names are shown as text, never as markup or control codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from sardonyx.errors import InputError
from sardonyx.inspection.readable import count_text, size_text
from sardonyx.sizes import Expr, Size
from sardonyx.sizes.expr import Monomial

__all__ = [
    "PipeConsole",
    "bar",
    "compiling",
    "parse_bytes",
    "parse_dims",
    "plain",
    "print_json",
    "progress_bar",
    "shorten",
    "size_label",
    "stderr",
    "stdout",
    "text",
]

_MOST_TERMS = 4
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)


class PipeConsole(Console):
    """A console whose reader may hang up (`| head`): that ends the command, quietly."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def stdout() -> PipeConsole:
    return PipeConsole(highlight=False, markup=False, emoji=False)


def stderr() -> PipeConsole:
    return PipeConsole(stderr=True, highlight=False, markup=False, emoji=False)


def plain(name: object) -> str:
    """Any text in one line of printable characters; the others are spelled out, as \\n and \\x1b."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name))


def text(content: object, style: str = "") -> Text:
    """Text as it is: brackets are brackets."""
    return Text(plain(content), style=style)


def shorten(name: object, most: int) -> str:
    """A long name with its middle left out: the ends tell most."""
    shown = plain(name)
    if len(shown) <= most:
        return shown
    tail = (most - 1) // 2
    return shown[: most - 1 - tail] + "…" + shown[len(shown) - tail :]


def bar(share: float, width: int, console: Console) -> str:
    """A bar as long as the share; at least a sliver for what is not nothing."""
    filled = max(round(share * width), 1 if share > 0 else 0)
    return ("█" if console.encoding.startswith("utf") else "#") * filled


def size_label(size: Size | None, unit: str = "", most: int = 1000) -> str:
    """A size for people: `4.1 GMAC`, or over symbols `85.1M·batch·seq + 18.4k·batch·seq² MAC`.

    An expression keeps its largest terms, as many as fit into `most` characters.
    """
    if not isinstance(size, Expr):
        return size_text(size, unit)
    for count in range(_MOST_TERMS, 0, -1):
        label = f"{_largest_terms(size, count)} {unit}".rstrip()
        if len(label) <= most:
            break
    return label if len(label) <= most else label[: most - 1] + "…"


def _largest_terms(size: Expr, count: int) -> str:
    label = ""
    largest = sorted(size.terms, key=_weight, reverse=True)[:count]
    for factors, coefficient in (term for term in size.terms if term in largest):
        sign = "-" if coefficient < 0 else "+"
        label += f" {sign} " if label else "-" * (coefficient < 0)
        label += _product(abs(coefficient), factors)
    return label + " + …" * (len(size.terms) > count)


def _weight(term: tuple[Monomial, int]) -> int:
    """How much a term counts for, when every dimension is a few dozen."""
    factors, coefficient = term
    return abs(coefficient) << 5 * sum(power for _, power in factors)


def _product(coefficient: int, factors: Monomial) -> str:
    parts = [_power(plain(atom), power) for atom, power in factors]
    if coefficient != 1 or not parts:
        parts.insert(0, count_text(coefficient).replace(" ", ""))
    return "·".join(parts)


def _power(atom: str, power: int) -> str:
    shown = atom if re.fullmatch(r"[\w.]+(\(.*\))?", atom) else f"({atom})"
    return shown + {1: "", 2: "²", 3: "³"}.get(power, f"^{power}")


def print_json(content: Any) -> None:
    """JSON on standard output, for programs: no colours, no wrapping."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[tuple[Progress, TaskID]]:
    """A bar on standard error while work goes on; nothing at all when nobody watches."""
    console = stderr()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with progress:
        yield progress, progress.add_task(plain(what), total=total)


def compiling(progress: Progress, what: str = "compiling") -> Callable[[int, int], None]:
    """For `Session(progress=…)`: a line of its own under the bar, as long as something is compiled."""
    tasks: list[TaskID] = []

    def tell(done: int, total: int) -> None:
        if not tasks:
            tasks.append(progress.add_task("", total=total))
        now = f"{what} {done} of {total}"
        progress.update(tasks[0], description=now, completed=done, total=total)
        if done >= total:
            progress.remove_task(tasks.pop())

    return tell


def parse_dims(pairs: list[str] | None) -> dict[str, int]:
    """`["batch=1", "seq=128"]` as a mapping."""
    dims: dict[str, int] = {}
    for pair in pairs or ():
        name, equals, number = pair.rpartition("=")
        if not equals or not name or not number.strip().isdecimal():
            raise InputError(
                f"--dim {pair!r} is not name=number.", value=pair, hint="As in: --dim batch=1"
            )
        dims[name] = int(number)
    return dims


def parse_ranges(pairs: list[str] | None) -> dict[str, int | tuple[int, int]]:
    """`["seq=128", "batch=1..8"]` as a mapping: sizes, or the smallest and the largest."""
    found: dict[str, int | tuple[int, int]] = {}
    for pair in pairs or ():
        name, _, sizes = pair.rpartition("=")
        least, dots, most = sizes.partition("..")
        if name and dots and least.strip().isdecimal() and most.strip().isdecimal():
            found[name] = (int(least), int(most))
        else:
            found |= parse_dims([pair])
    return found


def parse_bytes(amount: str) -> int:
    """`512MiB`, `2G`, `1000000` as bytes; k, M, G and T are powers of 1024, as memory is counted."""
    match = _BYTES.fullmatch(amount.strip())
    if match is None:
        raise InputError(
            f"{amount!r} is not a number of bytes.", value=amount, hint="As in: 512MiB"
        )
    power = " kmgt".index(match[2].lower() or " ")
    return int(float(match[1]) * 1024**power)
