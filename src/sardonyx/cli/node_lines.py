"""Nodes and their costs, two lines each, in columns that fit the terminal.

node                                              MAC                      moved
────────────────────────────────────────────────────────────────────────────────
Conv Conv_3                  3.32M·batch·(frames//2)   46.1k·batch·(frames//2) + …
  float[batch, 96, frames//2, 80]  models.py:241

A table of rich measures and wraps every cell, which takes minutes over many thousand nodes; these lines are
cut to fit instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sardonyx.cli.console import shorten, size_label
from sardonyx.inspection.bill import NodeRow

__all__ = ["print_nodes"]

_LEAST_NAME = 20  # columns that the node's own name always has
_WIDE = 100  # columns from which there is room for the other work too
_MOST_SOURCE = 36
_GAP = "   "


def print_nodes(title: str, rows: Sequence[NodeRow], console: Console) -> None:
    """Print the rows under a title."""
    heads = ["MAC", "moved"] if console.width < _WIDE else ["MAC", "FLOP", "moved"]
    most = max((console.width - _LEAST_NAME) // len(heads) - len(_GAP), 6)
    costs = [_costs(row, heads, most) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *costs, strict=True)]
    room = max(console.width - sum(widths) - len(_GAP) * len(widths), 8)
    console.print(Text(title, style="bold"))
    console.print(Text("node".ljust(room) + _aligned(heads, widths)))
    console.print(Text(("─" if console.encoding.startswith("utf") else "-") * console.width))
    for row, cost in zip(rows, costs, strict=True):
        indent = "  " if row.inside else ""
        op = shorten(f"{indent}{row.op}", room)
        name = shorten(row.name, max(room - len(op) - 1, 1))
        line = Text(op, style="bold")
        line.append(f" {name}".ljust(room - len(op)) + _aligned(cost, widths), style="not bold")
        source = (
            f"  {shorten(row.source, min(_MOST_SOURCE, console.width // 2))}" if row.source else ""
        )
        shapes = shorten(f"{indent}  {'; '.join(row.outputs)}", console.width - len(source))
        line.append(f"\n{shapes}", style="not bold cyan").append(source, style="not bold blue")
        console.print(line, soft_wrap=True)


def _costs(row: NodeRow, heads: Sequence[str], most: int) -> list[str]:
    sizes = {"MAC": (row.macs, ""), "FLOP": (row.flops, ""), "moved": (row.bytes_moved, "B")}
    return [size_label(*sizes[head], most) for head in heads]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(_GAP + cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
