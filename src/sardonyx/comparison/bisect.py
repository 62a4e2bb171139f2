"""Where two models, or two engines on one model, first give different values.

found = bisect("a.onnx", "b.onnx")
found.deviation.node, found.deviation.source        Conv 'layer1.0', model.py:41

Values inside of the graph are made outputs of a copy of it, some at a time, from the inputs on, and compared by name.
The first one that differs was made from values that agree: the node that makes it, or one since those, is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.comparison.compare import (
    Comparison,
    Inputs,
    compare,
    feeds_of_second,
    pick_engines,
    prepare_inputs,
    reusable,
)
from sardonyx.comparison.difference import Difference, differences
from sardonyx.comparison.engines import Opening, open_engine
from sardonyx.errors import ShapeError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load
from sardonyx.model.source import describe, source_line
from sardonyx.ops.facts import Facts
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.sizes import Expr, evaluate, symbols

__all__ = ["Bisected", "Deviation", "bisect"]

MOST_BYTES = 1 << 28  # of values that are looked at in one run
MOST_VALUES = 256
_STAND_IN = 64  # of a dimension that the inputs do not tell
_MOST_SUSPECTS = 20


@dataclass(frozen=True)
class Deviation:
    """The first value that differs.

    Attributes:
        value: its name.
        node: the node of the first model that makes it; `source` is the line it was exported from.
        difference: between the two values.
        inputs: what the node read: names that both have, all of which agree.
        suspects: nodes since values that agree, this one last; more than one where names in between differ.
    """

    value: str
    node: str
    source: str | None
    difference: Difference
    inputs: tuple[Difference, ...]
    suspects: tuple[str, ...]

    def __str__(self) -> str:
        where = f"{self.node} ({self.source})" if self.source else self.node
        gap = f"max abs {self.difference.max_abs:.3g}"
        return f"{where}: {self.value!r}: {self.difference.reason}, {gap}"

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "node": self.node,
            "source": self.source,
            "difference": self.difference.to_json(),
            "inputs": [one.to_json() for one in self.inputs],
            "suspects": list(self.suspects),
        }


@dataclass(frozen=True)
class Bisected(Comparison):
    """A comparison that goes on inside where the outputs differ.

    Attributes:
        deviation: the first value that differs; None where none does, as the notes say.
        agreeing: how many values inside agree before it.
    """

    deviation: Deviation | None = None
    agreeing: int = 0

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.deviation is None else f"{text}\n  first deviation: {self.deviation}"

    def to_json(self) -> dict[str, Any]:
        found = None if self.deviation is None else self.deviation.to_json()
        return {**super().to_json(), "deviation": found, "agreeing": self.agreeing}


def bisect(
    first: Source,
    second: Source | None = None,
    inputs: Inputs = None,
    *,
    engines: Sequence[str] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Bisected:
    """Compare as `compare` does; where an output differs, find the first value inside that does."""
    first = reusable(first, limits)
    second = None if second is None else reusable(second, limits)
    result = compare(
        first,
        second,
        inputs,
        engines=engines,
        seed=seed,
        dims=dims,
        rtol=rtol,
        atol=atol,
        limits=limits,
        progress=progress,
    )
    if result.ok:
        return _bisected(result, None, 0)
    other = first if second is None else second
    feeds = prepare_inputs(first, inputs, seed=seed, dims=dims, limits=limits)
    renamed = feeds_of_second(feeds, first, other, limits)
    left, right = pick_engines(engines, alone=second is None)
    how = Opening(limits, progress=progress)
    sides = (
        _Side(load(first, limits=limits), left, feeds, how),
        _Side(load(other, limits=limits), right, renamed, how),
    )
    return _search(result, *sides, rtol, atol)


def _search(
    result: Comparison, one: _Side, other: _Side, rtol: float | None, atol: float | None
) -> Bisected:
    known = other.values
    names = [name for name, v in one.values.items() if name in known and _alike(v, known[name])]
    if not names:
        note = (
            "no value inside has the same name and type in both models: there is nothing to compare"
        )
        return _bisected(result, None, 0, note)
    agreeing: set[str] = set()
    for part in one.parts(names):
        answers, others = one.run(part), other.run(part)
        for name in part:
            gaps = differences(name, answers[name], others[name], rtol, atol)
            wrong = next((gap for gap in gaps if not gap.ok), None)
            if wrong is None:
                agreeing.add(name)
                continue
            deviation = _deviation(wrong, name, one, other, agreeing, (rtol, atol))
            return _bisected(result, deviation, len(agreeing))
    note = f"all {len(names):,} values inside that have the same name agree"
    last = _suspects([v.producer() for v in one.model.graph.outputs], set(names))
    if last:
        note += f"; what differs is made after them, by {', '.join(last)}"
    else:
        note += " when they are given out: what differs is how an engine joins operators"
    return _bisected(result, None, len(names), note)


def _bisected(
    result: Comparison, deviation: Deviation | None, agreeing: int, *notes: str
) -> Bisected:
    every = (*result.notes, *notes)
    return Bisected(result.first, result.second, result.outputs, every, deviation, agreeing)


def _deviation(
    wrong: Difference,
    name: str,
    one: _Side,
    other: _Side,
    agreeing: set[str],
    tolerance: tuple[float | None, float | None],
) -> Deviation:
    """All about the first value that differs; its node's inputs are computed once more to be shown."""
    node = one.values[name].node
    read = [v.name or "" for v in node.inputs if v is not None and v.name in agreeing]
    read = list(dict.fromkeys(read))
    gaps: list[Difference] = []
    if read:
        answers, others = one.run(read), other.run(read)
        for value in read:
            gaps += differences(value, answers[value], others[value], *tolerance)
    return Deviation(
        name, describe(node), source_line(node), wrong, tuple(gaps), _suspects([node], agreeing)
    )


def _suspects(ends: Iterable[ir.Node | None], agreeing: set[str]) -> tuple[str, ...]:
    """Nodes on the way from values that agree to these, in the order of the graph."""
    found: dict[ir.Node, None] = {}
    waiting = [node for node in ends if node is not None]
    while waiting and len(found) < _MOST_SUSPECTS:
        node = waiting.pop()
        if node in found or any(v.name in agreeing for v in node.outputs):
            continue
        found[node] = None
        makers = (v.producer() for v in node.inputs if v is not None)
        waiting += [maker for maker in makers if maker is not None and maker.op_type != "Constant"]
    return tuple(describe(node) for node in reversed(found))


@dataclass(frozen=True)
class _Inner:
    """A value inside a graph: who makes it, and what is known of it."""

    node: ir.Node
    facts: Facts


def _alike(a: _Inner, b: _Inner) -> bool:
    """Whether values of the same name may be the same: the same type and number of axes."""
    x, y = a.facts, b.facts
    if x.dtype != y.dtype:
        return False
    return x.shape is None or y.shape is None or len(x.shape) == len(y.shape)


class _Side:
    """One model on one engine, of which any values can be asked."""

    def __init__(
        self, model: ir.Model, engine: str, feeds: Mapping[str, Value], how: Opening
    ) -> None:
        self.model, self.engine, self.feeds, self.how = model, engine, feeds, how
        shapes = infer_shapes(model)
        self.dims = _sizes(model, shapes, feeds)
        self.values: dict[str, _Inner] = {}
        for node in model.graph:
            for value in node.outputs if node.op_type != "Constant" else ():
                facts = shapes.of(value)
                if value.name and facts.kind == "tensor" and facts.dtype is not None:
                    self.values[value.name] = _Inner(node, facts)

    def parts(self, names: Sequence[str]) -> Iterator[list[str]]:
        """The names, so many at a time that their values take bounded memory."""
        part: list[str] = []
        total = 0
        for name in names:
            size = self._bytes(self.values[name].facts)
            if part and (total + size > MOST_BYTES or len(part) == MOST_VALUES):
                yield part
                part, total = [], 0
            part.append(name)
            total += size
        if part:
            yield part

    def _bytes(self, facts: Facts) -> int:
        width = (
            8 if facts.dtype is None or facts.dtype == ir.DataType.STRING else facts.dtype.bitwidth
        )
        elements = facts.elements
        if elements is None:
            return MOST_BYTES // MOST_VALUES
        try:
            known = {name: self.dims.get(name, _STAND_IN) for name in symbols(elements)}
            return evaluate(elements, known) * width // 8
        except ShapeError:
            return MOST_BYTES // MOST_VALUES

    def run(self, names: Sequence[str]) -> dict[str, Value]:
        """The values of these names."""
        answers = open_engine(self.engine, self._giving_out(names), self.how)(self.feeds)
        return {name: answers[name] for name in names}

    def _giving_out(self, names: Sequence[str]) -> ir.Model:
        """A copy of the model whose outputs are these values."""
        copy = self.model.clone()
        copy.meta.update(self.model.meta)
        made = {v.name: v for node in copy.graph for v in node.outputs}
        copy.graph.outputs.clear()
        for name in names:
            value, facts = made[name], self.values[name].facts
            assert facts.dtype is not None, "a value whose type is known"
            value.type = ir.TensorType(facts.dtype)
            value.shape = None if facts.shape is None else ir.Shape([None] * len(facts.shape))
            copy.graph.outputs.append(value)
        return copy


def _sizes(model: ir.Model, shapes: Shapes, feeds: Mapping[str, Value]) -> dict[str, int]:
    """What the inputs say about dynamic dimensions."""
    found: dict[str, int] = {}
    for value in model.graph.inputs:
        given = feeds.get(value.name or "")
        shape = shapes.of(value).shape
        if not isinstance(given, np.ndarray) or shape is None or len(shape) != given.ndim:
            continue
        for size, actual in zip(shape, given.shape, strict=True):
            if isinstance(size, Expr) and len(symbols(size)) == 1:
                (name,) = symbols(size)
                if str(size) == name:
                    found[name] = actual
    return found
