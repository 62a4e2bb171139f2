"""Winograd's F(m, 3) along an axis, and two of them: a cell of outputs, computed from a cell of points.

    d   inputs of a cell        V = Bᵀ d B
    g   3×3 weights             U = G g Gᵀ      M = V · U for every point, summed over channels
    Y   outputs                 Y = Aᵀ M A

F(2, 3) has the points 0, 1, -1, ∞, and F(4, 3) has 0, ±3/4, ±3/2, ∞ (Toom and Cook): with ±1 and ±2, or ±1 and ±1/2, whose matrices
are simpler, an output would be off by 1.4 times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FOUR", "SQUARE", "TWO", "WIDE", "Axis", "Cell", "Transform", "both_ways"]

# C statements that define the new values, of a type, by the old ones.
Transform = Callable[[str, list[str], list[str]], list[str]]


@dataclass(frozen=True)
class Axis:
    """One axis of a cell.

    Attributes:
        weights: G, a row for each point.
        input: Bᵀ.
        output: Aᵀ.
    """

    outputs: int
    weights: tuple[tuple[float, float, float], ...]
    input: Transform
    output: Transform

    @property
    def points(self) -> int:
        """As many as there are inputs."""
        return len(self.weights)


@dataclass(frozen=True)
class Cell:
    """Outputs that are computed together."""

    down: Axis
    across: Axis

    @property
    def points(self) -> int:
        return self.down.points * self.across.points

    @property
    def places(self) -> list[tuple[int, int]]:
        """Of its points, one after the other."""
        return [(i, j) for i in range(self.down.points) for j in range(self.across.points)]

    @property
    def outputs(self) -> int:
        return self.down.outputs * self.across.outputs


def both_ways(
    vector: str, old: str, middle: str, new: str, cell: Cell, *, inputs: bool
) -> list[str]:
    """C statements: V of `inputs`, or else Y, as new = T old Tᵀ, by columns into `middle`, then by rows."""
    down, across = cell.down, cell.across
    made = [axis.points if inputs else axis.outputs for axis in (down, across)]
    columns, rows = (axis.input if inputs else axis.output for axis in (down, across))
    lines: list[str] = []
    for j in range(across.points):
        taken = [f"{old}{i}{j}" for i in range(down.points)]
        lines += columns(vector, taken, [f"{middle}{i}{j}" for i in range(made[0])])
    for i in range(made[0]):
        taken = [f"{middle}{i}{j}" for j in range(across.points)]
        lines += rows(vector, taken, [f"{new}{i}{j}" for j in range(made[1])])
    return lines


def _two_in(vector: str, d: list[str], v: list[str]) -> list[str]:
    sums = (f"{d[0]} - {d[2]}", f"{d[1]} + {d[2]}", f"{d[2]} - {d[1]}", f"{d[1]} - {d[3]}")
    return [f"const {vector} {name} = {value};" for name, value in zip(v, sums, strict=True)]


def _two_out(vector: str, m: list[str], y: list[str]) -> list[str]:
    return [
        f"const {vector} {y[0]} = {m[0]} + {m[1]} + {m[2]};",
        f"const {vector} {y[1]} = {m[1]} - {m[2]} - {m[3]};",
    ]


_NEAR, _FAR = 0.75, 1.5  # the points of F(4, 3) beside 0 and ∞, with either sign


def _four_in(vector: str, d: list[str], v: list[str]) -> list[str]:
    """Sums of even powers and of odd ones: a point and its opposite are their sum and difference."""
    both, all_of = _NEAR**2 + _FAR**2, (_NEAR * _FAR) ** 2
    lines = [f"const {vector} {v[0]} = {d[4]} + {d[0]} * {all_of}f - {d[2]} * {both}f;"]
    for plus, minus, own, other in ((v[1], v[2], _NEAR, _FAR), (v[3], v[4], _FAR, _NEAR)):
        lines += [
            f"const {vector} {plus}_even = {d[4]} - {d[2]} * {other**2}f;",
            f"const {vector} {plus}_odd = {d[3]} - {d[1]} * {other**2}f;",
            f"const {vector} {plus} = {plus}_even + {plus}_odd * {own}f;",
            f"const {vector} {minus} = {plus}_even - {plus}_odd * {own}f;",
        ]
    return [*lines, f"const {vector} {v[5]} = {d[5]} + {d[1]} * {all_of}f - {d[3]} * {both}f;"]


def _four_out(vector: str, m: list[str], y: list[str]) -> list[str]:
    near, far, less, more = (f"{y[0]}_{part}" for part in ("near", "far", "less", "more"))
    return [
        f"const {vector} {near} = {m[1]} + {m[2]};",
        f"const {vector} {less} = {m[1]} - {m[2]};",
        f"const {vector} {far} = {m[3]} + {m[4]};",
        f"const {vector} {more} = {m[3]} - {m[4]};",
        f"const {vector} {y[0]} = {m[0]} + {near} + {far};",
        f"const {vector} {y[1]} = {less} * {_NEAR}f + {more} * {_FAR}f;",
        f"const {vector} {y[2]} = {near} * {_NEAR**2}f + {far} * {_FAR**2}f;",
        f"const {vector} {y[3]} = {m[5]} + {less} * {_NEAR**3}f + {more} * {_FAR**3}f;",
    ]


def _four_weights() -> tuple[tuple[float, float, float], ...]:
    """Powers of each point, divided by its distances to the others."""
    own = [(0.0, (_NEAR * _FAR) ** 2)]
    for point, other in ((_NEAR, _FAR), (_FAR, _NEAR)):
        apart = 2 * point**2 * (point**2 - other**2)
        own += [(point, apart), (-point, apart)]
    return (*((1 / apart, point / apart, point**2 / apart) for point, apart in own), (0.0, 0.0, 1.0))  # fmt: skip


TWO = Axis(2, ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)), _two_in, _two_out)
FOUR = Axis(4, _four_weights(), _four_in, _four_out)
SQUARE = Cell(TWO, TWO)  # sixteen multiplications for four outputs
WIDE = Cell(TWO, FOUR)  # 24 for eight
