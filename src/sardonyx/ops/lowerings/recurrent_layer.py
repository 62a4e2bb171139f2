"""A recurrent layer: its sizes, its memory, and one hidden unit of it at one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Dtype, Expr
from sardonyx.ops.lowering import USUAL_SUMS, Site
from sardonyx.ops.lowerings.activations import Activation
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.panels import WIDTH, panels_of
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.sizes import Size, ceil_div

__all__ = [
    "BIAS",
    "INITIAL_C",
    "INITIAL_H",
    "INPUT_ROWS",
    "PEEPHOLES",
    "Group",
    "Layer",
    "R",
    "Unit",
    "W",
]

_NEAR = 1 << 18  # bytes of weights: a quarter of a second-level cache of 1 MB
INPUT_ROWS = 6  # rows of the input's product that share each load of the weights: as many sums as registers hold
X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(8)
LIMIT = "sequence_lens has {value}, outside 0 to {limit}"


class Layer:
    """One node: its sizes, and its memory.

    Attributes:
        passes: how many gates read the state together, pass after pass.
        sums: how many numbers registers hold as sums.
        near: whether a thread's cache holds all weights of a state beside everything else.
        strips: whether what the input adds lies as cells read it, `WIDTH` units and all their gates side by side:
            given[d, t, strip, row, gate, lane], else given[d, t, row, gate · hidden + unit].
    """

    def __init__(self, site: Site, passes: Sequence[int]) -> None:
        call = site.call
        self.site, self.b, self.gates, self.passes = site, site.b, sum(passes), tuple(passes)
        self.batch_first = bool(call.int_attr("layout"))
        first, second, self.features = site.shape(X)
        self.steps, self.batch = (second, first) if self.batch_first else (first, second)
        self.hidden: Size = site.shape(R)[2]
        direction = call.str_attr("direction", "forward")
        self.directions = 2 if direction == "bidirectional" else 1
        self.backward_from = 0 if direction == "reverse" else 1
        self.dtype: Dtype = sum_dtype(site.dtype(X))
        self._check_shapes()
        weights = self.gates * self.hidden * self.hidden * (8 if self.dtype == "f64" else 4)
        self.near = isinstance(weights, int) and weights <= _NEAR
        self.sums = site.sums // 2 if self.dtype == "f64" else site.sums
        self.r = panels_of(site, R, self.dtype, self.hidden, passes)
        self.w = panels_of(site, W, self.dtype, self.hidden, (self.gates,))
        enough = self.sums > USUAL_SUMS and self.sums >= INPUT_ROWS * self.gates * WIDTH
        self.strips = self.w is not None and self.r is not None and enough
        if not self.strips:
            self.w = panels_of(site, W, self.dtype, self.gates * self.hidden)
        self.given = site.scratch(self.dtype, self._given_size())
        self.h = site.scratch(self.dtype, 2 * self.state_size())

    def state_size(self) -> Size:
        return self.directions * self.batch * self.hidden

    def _given_size(self) -> Size:
        units = ceil_div(self.hidden, WIDTH) * WIDTH if self.strips else self.hidden
        return self.directions * self.steps * self.batch * self.gates * units

    def _check_shapes(self) -> None:
        """What the weights' shapes promise each other, where only a run can tell."""
        site, all_gates = self.site, self.gates * self.hidden
        states: tuple[Size, ...] = (self.directions, self.batch, self.hidden)
        if self.batch_first:
            states = (self.batch, self.directions, self.hidden)
        expected: dict[int, tuple[Size, ...]] = {
            W: (self.directions, all_gates, self.features),
            R: (self.directions, all_gates, self.hidden),
            BIAS: (self.directions, 2 * all_gates),
            LENGTHS: (self.batch,),
            INITIAL_H: states,
            INITIAL_C: states,
            PEEPHOLES: (self.directions, 3 * self.hidden),
        }
        names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
        for index, wanted in expected.items():
            if not site.call.has(index):
                continue
            shape = site.shape(index)
            if len(shape) != len(wanted):
                site.refuse(f"{names[index]} has rank {len(shape)}, where {len(wanted)} is needed")
            for axis, (size, want) in enumerate(zip(shape, wanted, strict=True)):
                require_equal(site, size, want, f"axis {axis} of {names[index]} and what it serves")

    # Memory

    def x(self, step: Size, row: Size, feature: Size) -> Expr:
        at = (row, step) if self.batch_first else (step, row)
        return self.site.operand(X, (*at, feature))

    def state_at(self, d: Size, row: Size, unit: Size) -> Size:
        return flatten((d, row, unit), (self.directions, self.batch, self.hidden))

    def h_at(self, step: Size, d: Size, row: Size, unit: Size) -> Size:
        """Where the state that enters a step lies."""
        return (step % 2) * self.state_size() + self.state_at(d, row, unit)

    def given_at(self, d: Size, step: Size, row: Size, column: Size) -> Size:
        """What the input adds to a gate, where units do not lie in strips."""
        shape = (self.directions, self.steps, self.batch, self.gates * self.hidden)
        return flatten((d, step, row, column), shape)

    def strip_at(self, d: Size, step: Size, strip: Size, row: Size, gate: Size, lane: Size) -> Size:
        """The same where they do."""
        strips = ceil_div(self.hidden, WIDTH)
        shape = (self.directions, self.steps, strips, self.batch, self.gates, WIDTH)
        return flatten((d, step, strip, row, gate, lane), shape)

    def store_step(self, step: Size, d: Size, row: Size, unit: Size, value: Expr) -> None:
        at = (row, step, d, unit) if self.batch_first else (step, d, row, unit)
        self.site.store(at, value)

    def bias(self, d: Size, column: Size) -> Expr:
        return self.site.operand(BIAS, (d, column))

    # Sequences

    def check_lengths(self) -> None:
        if not self.site.call.has(LENGTHS):
            return
        with self.b.loop(self.batch) as row:
            length, steps = self.length(row), self.b.size(self.steps)
            self.b.fail_if((length < 0) | (length > steps), LIMIT, length, steps)

    def length(self, row: Size) -> Expr:
        if not self.site.call.has(LENGTHS):
            return self.b.size(self.steps)
        return self.b.let(cast(self.site.operand(LENGTHS, (row,)), "i64"))

    def place(self, d: Size, step: Size, row: Size) -> tuple[Size, Expr | None]:
        """The time that a step stands for, and whether the sequence lives then; None if all do.

        Backward, each sequence starts at its own last step.
        """
        b, now, length = self.b, self.b.size(step), self.length(row)
        live = now < length if self.site.call.has(LENGTHS) else None
        last = b.let(length - 1 - now)
        if isinstance(d, int):
            if d < self.backward_from:
                return step, live
            turned = last if live is None else where(live, last, now)
        else:
            backward = b.size(d) > 0
            turned = where(backward if live is None else backward & live, last, now)
        return b.index(turned, self.steps), live


@dataclass(frozen=True)
class Unit:
    """One hidden unit of one row at one step, with what the weights made of its state.

    Attributes:
        strip, lane: it is unit `strip * WIDTH + lane`, as far as there are so many.
    """

    layer: Layer
    d: Size
    row: Size
    unit: Size
    strip: Size
    lane: Size
    step: Size
    at: Size
    live: Expr | None
    sums: Sequence[Expr]

    def given(self, gate: int) -> Expr:
        """What the input adds to a gate."""
        layer = self.layer
        if layer.strips:
            place = layer.strip_at(self.d, self.at, self.strip, self.row, gate, self.lane)
        else:
            place = layer.given_at(self.d, self.at, self.row, gate * layer.hidden + self.unit)
        return layer.b.load(layer.given, place)

    def recurrent(self, number: int, gate: int) -> Expr:
        """What the state adds to a gate, from the sum of that number."""
        if not self.layer.site.call.has(BIAS):
            return self.sums[number]
        offset = (self.layer.gates + gate) * self.layer.hidden
        return self.sums[number] + self.layer.bias(self.d, offset + self.unit)

    def h(self) -> Expr:
        layer = self.layer
        return layer.b.load(layer.h, layer.h_at(self.step, self.d, self.row, self.unit))

    def place(self) -> Size:
        return self.layer.state_at(self.d, self.row, self.unit)

    def kept(self, new: Expr, old: Expr) -> Expr:
        """The new state; a sequence that has ended keeps its own."""
        return new if self.live is None else where(self.live, new, old)

    def put(self, h: Expr) -> None:
        """The new output: a step of Y, and the state of the next step."""
        layer = self.layer
        h = layer.b.let(h)
        out = h if self.live is None else where(self.live, h, 0)
        layer.store_step(self.at, self.d, self.row, self.unit, out)
        place = layer.h_at(self.step + 1, self.d, self.row, self.unit)
        layer.b.store(layer.h, place, self.kept(h, self.h()))


@dataclass(frozen=True)
class Group:
    """Directions that run side by side, and how many rows of the batch at a time."""

    first: int
    count: int
    tile: int
    activations: tuple[Activation, ...]
