"""A profile for people: the steps that take longest, what each of them attains, and the rest in one line.

step  kernel                     time   share            FLOP/s     B/s  of limit
   4  convolution · wide      1.72 ms   14.4%  ███       26.0 G  3.28 G       33%
      model.py:41  Conv 'conv1' + Relu 'relu'
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sardonyx.cli.console import bar, plain, shorten, text
from sardonyx.inspection.readable import count_text
from sardonyx.runtime.profile import Profile, ProfiledNode, ProfiledStep

__all__ = ["show_profile", "time_text"]

_HEAD = ("step", "kernel", "time", "share", "", "FLOP/s", "B/s", "of limit")
_LEFT = ("kernel", "")  # the other columns are numbers
_NUMBERS_WIDTH = 84  # what is left of a line is for the bars
_MOST_NODES = 5  # of a step that are named
_MOST_BAR = 16


def show_profile(profile: Profile, name: str, console: Console, *, top: int) -> None:
    """The slowest steps, the rest, and what the numbers are held against."""
    sizes = ", ".join(f"{plain(key)}={value}" for key, value in profile.sizes)
    heading = f"  {time_text(profile.seconds)} a run, median of {profile.runs}"
    console.print(Text.assemble((plain(name), "bold"), heading, f"  ({sizes})" if sizes else ""))
    slowest = profile.slowest(top)
    rows = [_HEAD, *(_row(step, profile, console) for step in slowest)]
    rows += _rest(profile, slowest, console)
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for number, row in enumerate(rows):
        _line(_aligned(row, widths), console, "" if number else "bold")
        if 0 < number <= len(slowest):
            _line(_nodes(slowest[number - 1].nodes), console, "dim")
    if profile.limits is not None:
        limits = profile.limits
        console.print(
            text(
                f"The best of {_count(limits.threads, 'thread')} here: {_rate(limits.flops)}FLOP/s in float32, "
                f"{_rate(limits.bytes)}B/s read from memory. More than 100% is work in a cache.",
                "dim",
            )
        )


def _row(step: ProfiledStep, profile: Profile, console: Console) -> tuple[str, ...]:
    attained = None if profile.limits is None else step.attained(profile.limits)
    return (
        str(step.number),
        step.kernel,
        *_times(step.seconds, profile, console),
        _rate(step.flops_per_second),
        _rate(step.bytes_per_second),
        f"{attained:.0%}" if attained else "",
    )


def _rest(
    profile: Profile, slowest: Sequence[ProfiledStep], console: Console
) -> list[tuple[str, ...]]:
    shown = {step.number for step in slowest}
    rest = [step.seconds for step in profile.steps if step.number not in shown]
    rows = [("between steps", profile.between)]
    if rest:
        rows.insert(0, (_count(len(rest), "more step"), sum(rest)))
    return [("", name, *_times(seconds, profile, console), "", "", "") for name, seconds in rows]


def _times(seconds: float, profile: Profile, console: Console) -> tuple[str, str, str]:
    share = seconds / profile.seconds if profile.seconds else 0.0
    width = min(max(console.width - _NUMBERS_WIDTH, 0), _MOST_BAR)
    return time_text(seconds), f"{share:.1%}", bar(min(share, 1), width, console) if width else ""


def _nodes(nodes: Sequence[ProfiledNode]) -> str:
    """`model.py:41  Conv 'conv1' + Relu 'relu'`: their lines once each."""
    names = " + ".join(shorten(node.node, 40) for node in nodes[:_MOST_NODES])
    if len(nodes) > _MOST_NODES:
        names += f" + {len(nodes) - _MOST_NODES} more"
    lines = dict.fromkeys(node.source for node in nodes if node.source is not None)
    sources = ", ".join(shorten(line, 40) for line in list(lines)[:_MOST_NODES])
    return f"      {sources}  {names}".rstrip() if sources else f"      {names}".rstrip()


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, _HEAD, strict=True)
    return "  ".join(
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for cell, width, column in cells
        if width
    ).rstrip()


def _line(content: str, console: Console, style: str) -> None:
    """One line of the screen, cut where it ends; nothing for nothing."""
    if content:
        console.print(text(content, style), no_wrap=True, overflow="ellipsis", crop=True)


def _rate(rate: float | None) -> str:
    """`79.8 G`; nothing for what is not known, or not there."""
    return count_text(round(rate)) if rate else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def time_text(seconds: float) -> str:
    """`12.3 ms`, with the unit that suits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return (
                f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds:,.0f} s"
            )
    return f"{seconds * 1e6:.2g} µs"
