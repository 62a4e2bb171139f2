"""Where the tensors of a run lie: what follows from the sizes of its inputs, computed once for each set of sizes.

layouts = Layouts(plan)
layout = layouts.layout(phase, sizes)
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sardonyx.errors import RunError, ShapeError
from sardonyx.loops.numpy_types import numpy_type
from sardonyx.plan.memory import ALIGNMENT, place_slots
from sardonyx.plan.plan import Count, Jump, Plan, Step, Tensor
from sardonyx.runtime.addresses import address_of
from sardonyx.runtime.phases import Phase, phases_of
from sardonyx.sizes import evaluate, symbols

__all__ = [
    "Layout",
    "Layouts",
    "Placer",
    "nodes_of",
    "place_tensors",
    "shape_of",
    "source_of",
    "type_of",
]

MAX_REMEMBERED = 256  # layouts; a model that meets more shapes forgets the oldest
MAX_NAMED = 4  # nodes of a fused kernel that an error names


class Layout(NamedTuple):
    """What follows from sizes, for one phase: the arena, and the shapes of what it gives."""

    arena_bytes: int
    offsets: tuple[tuple[int, int, int, int], ...]  # tensor, slot, offset, bytes
    outputs: tuple[tuple[int, tuple[int, ...], np.dtype[Any]], ...]  # tensor, shape, type
    output_bytes: int
    largest: (
        Step | None
    )  # what asks for the most bytes, for who must be told that they are too many


Placer: TypeAlias = "Callable[[Layout, Any], object]"


class Layouts:
    """The layouts of a plan, by phase and sizes; many threads may ask at once."""

    def __init__(self, plan: Plan) -> None:
        self.phases = phases_of(plan)
        self.number_of = {name: number for number, name in enumerate(plan.symbols)}
        self.bound_by = _bound_by(plan, self.number_of)
        self._plan = plan
        self._known: dict[tuple[int, tuple[int, ...]], Layout] = {}
        self._lock = threading.Lock()

    def sizes_for(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        sizes = [-1] * len(self._plan.symbols)
        position = {number: at for at, number in enumerate(self._plan.inputs)}
        for number, axis, symbol in self.bound_by:
            sizes[symbol] = shapes[position[number]][axis]
        self.define(sizes)
        return tuple(sizes)

    def define(self, sizes: list[int]) -> None:
        """Compute the sizes that have a name, as far as what they depend on is known."""
        for name, size in self._plan.definitions:
            number = self.number_of[name]
            if sizes[number] < 0 and all(sizes[self.number_of[one]] >= 0 for one in symbols(size)):
                values = dict(zip(self._plan.symbols, sizes, strict=True))
                found = evaluate(size, values)
                if found < 0:
                    raise RunError(
                        f"a size, {size}, would be {found} for these inputs", value=found
                    )
                sizes[number] = found

    def layout(self, number: int, sizes: tuple[int, ...]) -> Layout:
        """The layout of a phase for these sizes of the plan's symbols; remembered."""
        found = self._known.get((number, sizes))
        if found is None:
            found = self._make_layout(self.phases[number], sizes)
            with self._lock:
                while len(self._known) >= MAX_REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[number, sizes] = found
        return found

    def _make_layout(self, phase: Phase, sizes: tuple[int, ...]) -> Layout:
        plan = self._plan
        values = {name: size for name, size in zip(plan.symbols, sizes, strict=True) if size >= 0}
        # Tensors that follow each other in place share a slot.
        slots = list(dict.fromkeys(plan.tensors[n].place.number for n in phase.slots))
        outputs = tuple(
            (number, self._output_shape(number, values), type_of(plan.tensors[number]))
            for number in phase.outputs
        )
        spans = []
        for slot in (plan.slots[number] for number in slots):
            with self._naming(slot.first):
                spans.append((evaluate(slot.bytes, values), slot.first, slot.last))
        placed = place_slots(spans)
        offset_of = dict(zip(slots, placed.offsets, strict=True))
        bytes_of = {n: math.prod(shape) * dtype.itemsize for n, shape, dtype in outputs}
        size = sum(bytes_of.values())
        size_of = {slot: span[0] for slot, span in zip(slots, spans, strict=True)}
        bytes_of.update((n, size_of[plan.tensors[n].place.number]) for n in phase.slots)
        numbers = [(n, plan.tensors[n].place.number) for n in phase.slots]
        offsets = tuple((n, slot, offset_of[slot], size_of[slot]) for n, slot in numbers)
        return Layout(placed.bytes, offsets, outputs, size, self._writer_of(phase, bytes_of))

    def _output_shape(self, number: int, values: Mapping[str, int]) -> tuple[int, ...]:
        tensor = self._plan.tensors[number]
        with self._naming(self._first_step(number)):
            shape = shape_of(tensor, values)
        if any(size < 0 for size in shape):
            raise RunError(
                f"it would have the shape {list(shape)} for these inputs",
                where=f"value {tensor.name!r}",
                value=shape,
                hint="The inputs are too small for the model.",
            )
        return shape

    def _first_step(self, tensor: int) -> int | None:
        """The step that touches a tensor first."""
        for number, step in enumerate(self._plan.steps):
            if isinstance(step, Step) and tensor in step.tensors:
                return number
        return None

    @contextmanager
    def _naming(self, number: int | None) -> Iterator[None]:
        """Sizes that contradict each other are the error of the nodes that ask for them."""
        try:
            yield
        except ShapeError as error:
            step = None if number is None else self._plan.steps[number]
            where, source = error.where, error.source
            if isinstance(step, Step):
                where, source = nodes_of(self._plan, step), source_of(self._plan, step)
            raise RunError(error.message, where=where, source=source, hint=error.hint) from error

    def _writer_of(self, phase: Phase, bytes_of: Mapping[int, int]) -> Step | None:
        """The step that first touches the largest tensor of a phase."""
        largest = max(bytes_of, key=lambda number: bytes_of[number], default=None)
        for step in self._plan.steps[phase.first : phase.end]:
            if isinstance(step, Step) and largest in step.tensors:
                return step
        return None


def nodes_of(plan: Plan, step: Step | Jump | Count) -> str:
    """The nodes that a step computes, as a person would name them."""
    numbers = step.nodes if isinstance(step, Step) else (step.node,)
    nodes = [plan.nodes[number].node for number in numbers]
    more = f" and {len(nodes) - MAX_NAMED} more" if len(nodes) > MAX_NAMED else ""
    return ", ".join(nodes[:MAX_NAMED]) + more


def source_of(plan: Plan, step: Step) -> str | None:
    """The user's own line behind a step, where the exporter recorded one."""
    lines = (plan.nodes[number].source for number in step.nodes)
    return next((line for line in lines if line), None)


def place_tensors(layout: Layout, pointers: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """An arena, and pointers to where the tensors lie in it."""
    memory = np.empty(layout.arena_bytes + ALIGNMENT, np.uint8)
    base = -(-address_of(memory) // ALIGNMENT) * ALIGNMENT
    for tensor, _, offset, _ in layout.offsets:
        pointers[tensor] = base + offset
    return memory


def _bound_by(plan: Plan, symbols: Mapping[str, int]) -> tuple[tuple[int, int, int], ...]:
    """Which dimension of which input gives each symbol its size."""
    found: dict[int, tuple[int, int, int]] = {}
    for number in plan.inputs:
        for axis, dim in enumerate(plan.tensors[number].shape or ()):
            name = None if isinstance(dim, int) else dim.lone_symbol
            if name is not None and name in symbols and symbols[name] not in found:
                found[symbols[name]] = (number, axis, symbols[name])
    return tuple(found.values())


def type_of(tensor: Tensor) -> np.dtype[Any]:
    assert tensor.dtype is not None
    return numpy_type(tensor.dtype)


def shape_of(tensor: Tensor, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, values) for dim in tensor.shape or ())
