"""A compiled model: its library, its constants, and the memory of its runs.

    model = NativeModel(plan, library, constants, pool, threads, reference)
    outputs = model.run(arrays, guard)

A plan whose steps are all native is one call into the library. Where nodes run on the reference
backend in between, the steps fall into phases, and sizes that those nodes decide are bound on the way.

Nothing of it changes while it runs, so many threads may run it at once: each has its own memory.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from sardonyx.backends.guard import Guard
from sardonyx.backends.values import Value
from sardonyx.errors import (
    BudgetError,
    CancelledError,
    DeadlineError,
    RunError,
    SardonyxError,
    ShapeError,
)
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.plan.memory import ALIGNMENT, place_slots
from sardonyx.plan.plan import (
    BindStep,
    Count,
    Jump,
    Plan,
    ReferenceStep,
    SizeStep,
    Step,
    Tensor,
)
from sardonyx.runtime.abi import CANCELLED, DEADLINE, PAUSED, Run
from sardonyx.runtime.addresses import address_of
from sardonyx.runtime.phases import Phase, phases_of
from sardonyx.runtime.texts import TextTable
from sardonyx.runtime.threads import Pool
from sardonyx.runtime.trace import Trace
from sardonyx.sizes import Size, evaluate, symbols

__all__ = [
    "NUMPY_TYPES",
    "Array",
    "Layout",
    "NativeModel",
    "Placer",
    "SizeRule",
    "SizedInput",
]

Array = npt.NDArray[Any]
SizedInput: TypeAlias = (
    "tuple[int, tuple[int, ...]]"  # the number of its type in the standard, its shape
)
SizeRule: TypeAlias = "Callable[[Sequence[Array | SizedInput | None]], list[Sequence[Size]]]"

MAX_REMEMBERED = 256  # layouts; a model that meets more shapes forgets the oldest
MAX_NAMED = 4  # nodes of a fused kernel that an error names


class NodeProgram(Protocol):
    """A node on the reference backend."""

    def run(self, inputs: Sequence[Value], guard: Guard, /) -> list[Value]: ...


@dataclass(frozen=True)
class Layout:
    """What follows from sizes, for one phase: the arena, and the shapes of what it gives."""

    arena_bytes: int
    offsets: tuple[tuple[int, int, int, int], ...]  # tensor, slot, offset, bytes
    outputs: tuple[tuple[int, tuple[int, ...], np.dtype[Any]], ...]  # tensor, shape, type
    output_bytes: int
    largest: (
        Step | None
    )  # what asks for the most bytes, for who must be told that they are too many


Placer: TypeAlias = "Callable[[Layout, Any], object]"


class NativeModel:
    """A model as machine code.

    Args:
        plan: what the library was made from.
        library: the compiled code.
        constants: the arrays of the plan's constants, in its order, contiguous.
        threads: how many threads one run may use.
        reference: what runs the nodes on the reference backend, by their number in the graph.
        rules: the shape rules that are asked during a run, likewise.
        place: gives the tensors of a layout their memory; what it returns keeps that alive.
    """

    def __init__(
        self,
        plan: Plan,
        library: Path,
        constants: Sequence[Array],
        pool: Pool,
        threads: int,
        reference: Mapping[int, NodeProgram] | None = None,
        rules: Mapping[int, SizeRule] | None = None,
        place: Placer | None = None,
    ) -> None:
        self.plan = plan
        self.library = library
        self.constants = tuple(constants)
        self.pool = pool
        self._threads = threads
        self._reference = dict(reference or {})
        self._rules = dict(rules or {})
        self.place = place or place_tensors
        self._library = ctypes.CDLL(str(library))
        self.main = self._library.sx_main
        self.main.restype = ctypes.c_int32
        self.main.argtypes = (*[ctypes.c_void_p] * 3, *[ctypes.c_int32] * 2, *[ctypes.c_void_p] * 2)
        self.again = self._library.sx_again
        self.again.restype = ctypes.c_int32
        self.again.argtypes = (ctypes.c_void_p,)
        self._phases = phases_of(plan)
        native = [step for step in plan.steps if isinstance(step, Step)]
        self._read_natively = {number for step in native for number in step.tensors}
        self._free: list[_Memory] = []
        self._lock = threading.Lock()
        self._layouts: dict[tuple[int, tuple[int, ...]], Layout] = {}
        self._symbols = {name: number for number, name in enumerate(plan.symbols)}
        self._bound_by = _bound_by(plan, self._symbols)
        self._fixed_outputs = tuple(plan.tensors[n].place.kind for n in plan.outputs)
        self._pointers = _pointer_template(plan, self.constants)
        self.texts = None if plan.texts is None else TextTable(plan.texts)

    # One run

    def run(self, inputs: Sequence[Value], guard: Guard, trace: Trace | None = None) -> list[Value]:
        """Run once. Arrays have the types and shapes that the plan's inputs have.

        Args:
            trace: is told when each step began and ended.
        """
        memory, met = self._take(), dict[str, int]()
        try:
            if self.texts is not None:
                inputs = self.texts.number_all(inputs, met)
            return self.for_caller(memory.go(inputs, guard, trace), met)
        finally:
            memory.forget()
            with self._lock:
                self._free.append(memory)

    def for_caller(self, outputs: list[Value], met: dict[str, int]) -> list[Value]:
        """Outputs as callers get them; `met` are the strings of this run that the model does not know."""
        for position in self.plan.squeezed:
            outputs[position] = np.squeeze(np.asarray(outputs[position]))
        return outputs if self.texts is None else self.texts.spell(outputs, met)

    def _take(self) -> _Memory:
        with self._lock:
            if self._free:
                return self._free.pop()
        return _Memory(self)

    @property
    def single_call(self) -> bool:
        """Whether a run is one call into the library."""
        return len(self._phases) == 1 and self._phases[0].host is None

    def layout_for(self, shapes: Sequence[tuple[int, ...]]) -> Layout:
        """The layout of a single call with inputs of these shapes."""
        return self.layout(0, self._sizes_for(shapes))

    def _sizes_for(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        sizes = [-1] * len(self.plan.symbols)
        position = {number: at for at, number in enumerate(self.plan.inputs)}
        for number, axis, symbol in self._bound_by:
            sizes[symbol] = shapes[position[number]][axis]
        self.define(sizes)
        return tuple(sizes)

    def define(self, sizes: list[int]) -> None:
        """Compute the sizes that have a name, as far as what they depend on is known."""
        for name, size in self.plan.definitions:
            number = self._symbols[name]
            if sizes[number] < 0 and all(sizes[self._symbols[one]] >= 0 for one in symbols(size)):
                values = dict(zip(self.plan.symbols, sizes, strict=True))
                found = evaluate(size, values)
                if found < 0:
                    raise RunError(
                        f"a size, {size}, would be {found} for these inputs", value=found
                    )
                sizes[number] = found

    def arguments(
        self, run: Run, layout: Layout, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[Any, Any, object]:
        """Pointers, sizes and arena of a single call; the caller's own arrays are left to put in."""
        self.prepare(run)
        pointers = (ctypes.c_void_p * max(len(self.plan.tensors), 1))(*self._pointers)
        sizes = (ctypes.c_int64 * max(len(self.plan.symbols), 1))(*self._sizes_for(shapes))
        return pointers, sizes, self._arena_for(layout, pointers)

    def _arena_for(self, layout: Layout, pointers: Any) -> object:
        """The arena that a run has left behind, or a new one: no model needs two before two runs go on at once."""
        with self._lock:
            for memory in self._free:
                arena = memory.hand_over(layout, pointers)
                if arena is not None:
                    return arena
        return self.place(layout, pointers)

    def prepare(self, run: Run) -> None:
        """Give a run its threads."""
        run.parallel = self.pool.parallel_address
        run.allocate = self.pool.allocate_address
        run.look = self.pool.look_address
        run.pool = self.pool.handle
        run.threads = self._threads
        run.budget = -1

    def layout(self, number: int, sizes: tuple[int, ...]) -> Layout:
        """The layout of a phase for these sizes of the plan's symbols; remembered."""
        found = self._layouts.get((number, sizes))
        if found is None:
            found = self._make_layout(self._phases[number], sizes)
            with self._lock:
                while len(self._layouts) >= MAX_REMEMBERED:
                    del self._layouts[next(iter(self._layouts))]
                self._layouts[number, sizes] = found
        return found

    def _make_layout(self, phase: Phase, sizes: tuple[int, ...]) -> Layout:
        plan = self.plan
        values = {name: size for name, size in zip(plan.symbols, sizes, strict=True) if size >= 0}
        # Tensors that follow each other in place share a slot.
        slots = list(dict.fromkeys(plan.tensors[n].place.number for n in phase.slots))
        outputs = tuple(
            (number, self._output_shape(number, values), _numpy_type(plan.tensors[number]))
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
        tensor = self.plan.tensors[number]
        with self._naming(self._first_step(number)):
            shape = _shape(tensor, values)
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
        for number, step in enumerate(self.plan.steps):
            if isinstance(step, Step) and tensor in step.tensors:
                return number
        return None

    @contextmanager
    def _naming(self, number: int | None) -> Iterator[None]:
        """Sizes that contradict each other are the error of the nodes that ask for them."""
        try:
            yield
        except ShapeError as error:
            step = None if number is None else self.plan.steps[number]
            where, source = error.where, error.source
            if isinstance(step, Step):
                where, source = self.nodes_of(step), self._source_of(step)
            raise RunError(error.message, where=where, source=source, hint=error.hint) from error

    def _writer_of(self, phase: Phase, bytes_of: Mapping[int, int]) -> Step | None:
        """The step that first touches the largest tensor of a phase."""
        largest = max(bytes_of, key=lambda number: bytes_of[number], default=None)
        for step in self.plan.steps[phase.first : phase.end]:
            if isinstance(step, Step) and largest in step.tensors:
                return step
        return None

    def nodes_of(self, step: Step | Jump | Count) -> str:
        """The nodes that a step computes, as a person would name them."""
        numbers = step.nodes if isinstance(step, Step) else (step.node,)
        nodes = [self.plan.nodes[number].node for number in numbers]
        more = f" and {len(nodes) - MAX_NAMED} more" if len(nodes) > MAX_NAMED else ""
        return ", ".join(nodes[:MAX_NAMED]) + more

    def _source_of(self, step: Step) -> str | None:
        """The user's own line behind a step, where the exporter recorded one."""
        lines = (self.plan.nodes[number].source for number in step.nodes)
        return next((line for line in lines if line), None)

    def failure(self, run: Run) -> SardonyxError:
        """What a run that stopped has to say."""
        step = self.plan.steps[run.step]
        assert isinstance(step, (Step, Jump, Count))
        where = self.nodes_of(step)
        if run.error == CANCELLED:
            return CancelledError("the run was cancelled", where=where)
        if run.error == DEADLINE:
            hint = "Give the run more time, or feed it less."
            return DeadlineError("the deadline has passed", where=where, hint=hint)
        assert isinstance(step, Step), "nothing but a kernel checks values"
        reason = self.plan.kernels[step.kernel].reasons[run.reason].format(value=run.a, limit=run.b)
        return RunError(reason, where=where, source=self._source_of(step), value=run.a, limit=run.b)


class _Memory:
    """Everything that one run writes to; used by one run at a time, and again by the next."""

    def __init__(self, model: NativeModel) -> None:
        self._model = model
        self._count = len(model.plan.tensors)
        self._run = Run()
        model.prepare(self._run)
        self._run_pointer = ctypes.byref(self._run)
        self._pointers = (ctypes.c_void_p * max(self._count, 1))(*model._pointers)
        self._sizes = (ctypes.c_int64 * max(len(model.plan.symbols), 1))()
        self._arenas: dict[int, tuple[Layout, object]] = {}  # kept from run to run, by phase
        self._values: dict[int, Value] = {}

    def forget(self) -> None:
        """Let go of what belongs to the caller."""
        self._values.clear()

    def hand_over(self, layout: Layout, pointers: Any) -> object | None:
        """Give the arena of a single call away, and the pointers into it; None where there is none of this layout."""
        if 0 not in self._arenas or self._arenas[0][0] is not layout:
            return None
        for tensor, _, _, _ in layout.offsets:
            pointers[tensor] = self._pointers[tensor]
        return self._arenas.pop(0)[1]

    def go(self, inputs: Sequence[Value], guard: Guard, trace: Trace | None) -> list[Value]:
        model, plan = self._model, self._model.plan
        sizes = [-1] * len(plan.symbols)
        for number, value in zip(plan.inputs, inputs, strict=True):
            self._feed(number, value)
        for number, axis, symbol in model._bound_by:
            value = self._values.get(number)
            if isinstance(value, np.ndarray):
                sizes[symbol] = value.shape[axis]
        held = 0
        try:
            for number, phase in enumerate(model._phases):
                begin = 0 if trace is None else time.monotonic_ns()
                model.define(sizes)
                if isinstance(phase.host, ReferenceStep):
                    self._reference_phase(phase.host, sizes, guard)
                elif isinstance(phase.host, SizeStep):
                    self._size_phase(phase.host, sizes)
                elif phase.host is not None:
                    self._bind_phase(phase.host, sizes)
                else:
                    held += self._native_phase(number, phase, tuple(sizes), guard, trace)
                if trace is not None and phase.host is not None:
                    trace.host(phase.first, begin)
        finally:
            guard.release(held)
        if trace is not None:
            trace.sizes = {n: s for n, s in zip(plan.symbols, sizes, strict=True) if s >= 0}
        return [self._result(n) for n in plan.outputs]

    def _feed(self, number: int, value: Value) -> None:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned):
                value = np.array(value, order="C")
            self._pointers[number] = address_of(value)
        self._values[number] = value

    def _native_phase(
        self,
        number: int,
        phase: Phase,
        sizes: tuple[int, ...],
        guard: Guard,
        trace: Trace | None,
    ) -> int:
        model = self._model
        layout = model.layout(number, sizes)
        held = layout.arena_bytes + layout.output_bytes
        try:
            guard.reserve(held, "the model")
        except BudgetError as error:
            if layout.largest is not None:
                error.where = model.nodes_of(layout.largest)
            raise
        self._sizes[: len(sizes)] = list(sizes)
        kept = self._arenas.get(number)
        if kept is None or kept[0] is not layout:
            self._place(number, layout)
        for tensor, shape, dtype in layout.outputs:
            array = np.empty(shape, dtype)
            self._values[tensor] = array
            self._pointers[tensor] = address_of(array)
        run = self._run
        run.stop = run.error = 0
        run.deadline = 0 if guard.deadline is None else max(1, int(guard.deadline * 1e9))
        watch = None if guard.cancel is None else _watch(run, guard)
        clock, times = (None, None) if trace is None else (trace.clock, trace.times)
        first, end = phase.first, phase.end
        try:
            failed = PAUSED
            while failed == PAUSED:  # between two turns the interpreter looks for signals
                failed = model.main(
                    self._run_pointer, self._pointers, self._sizes, first, end, clock, times
                )
                first = run.step
        finally:
            if watch is not None:
                watch()
        if failed:
            guard.release(held)
            raise model.failure(run)
        if trace is not None:
            trace.native(phase.first, end)
        return held

    def _place(self, number: int, layout: Layout) -> None:
        self._arenas[number] = (layout, self._model.place(layout, self._pointers))

    def _reference_phase(self, step: ReferenceStep, sizes: list[int], guard: Guard) -> None:
        model = self._model
        program = model._reference[step.node]
        inputs = [self._read(number, sizes) for number in step.reads]
        results = program.run(inputs, guard)
        for number, value in zip(step.writes, results, strict=True):
            if number is not None:
                self._bind(number, value, sizes)

    def _size_phase(self, step: SizeStep, sizes: list[int]) -> None:
        """Ask the node's shape rule for the sizes that its inputs' values decide."""
        model = self._model
        values = {n: s for n, s in zip(model.plan.symbols, sizes, strict=True) if s >= 0}
        inputs: list[Array | SizedInput | None] = []
        for operand in step.inputs:
            if operand is None:
                inputs.append(None)
            elif operand.tensor is not None:
                inputs.append(np.asarray(self._read(operand.tensor, sizes)))
            else:
                shape = tuple(evaluate(dim, values) for dim in operand.shape)
                inputs.append((operand.dtype, shape))
        shapes = model._rules[step.node](inputs)
        for planned, found in zip(step.outputs, shapes, strict=True):
            for dim, size in zip(planned, found, strict=True):
                symbol = None if isinstance(dim, int) else dim.lone_symbol
                if symbol is not None and isinstance(size, int) and size >= 0:
                    number = model._symbols.get(symbol)
                    if number is not None and sizes[number] < 0:
                        sizes[number] = size

    def _bind_phase(self, step: BindStep, sizes: list[int]) -> None:
        value = int(np.asarray(self._read(step.tensor, sizes)).reshape(-1)[0])
        for symbol in step.symbols:
            if symbol in self._model._symbols:  # nothing may depend on it after all
                sizes[self._model._symbols[symbol]] = value

    def _read(self, number: int, sizes: Sequence[int]) -> Value:
        """A value as the reference backend takes it; what lies in the arena is copied out."""
        if number in self._values:
            return self._values[number]
        model = self._model
        tensor = model.plan.tensors[number]
        if tensor.place.kind == "constant":
            return model.constants[tensor.place.number]
        values = dict(zip(model.plan.symbols, sizes, strict=True))
        shape = _shape(tensor, values)
        array = np.empty([shape[axis] for axis in tensor.order], _numpy_type(tensor))
        address = self._pointers[number]
        if array.nbytes and address:
            ctypes.memmove(array.ctypes.data, address, array.nbytes)
        return array.transpose(np.argsort(tensor.order))

    def _bind(self, number: int, value: Value, sizes: list[int]) -> None:
        """Keep a reference node's result, and learn the sizes that it decides."""
        model = self._model
        tensor = model.plan.tensors[number]
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and tensor.dtype is not None and tensor.shape is not None:
            for size, dim in zip(value.shape, tensor.shape, strict=True):
                symbol = None if isinstance(dim, int) else dim.lone_symbol
                if symbol is not None and sizes[model._symbols[symbol]] < 0:
                    sizes[model._symbols[symbol]] = size
            known = {n: s for n, s in zip(model.plan.symbols, sizes, strict=True) if s >= 0}
            expected = _shape(tensor, known) if number in model._read_natively else value.shape
            if expected != value.shape:
                raise RunError(
                    f"it gave the shape {list(value.shape)}, where {list(expected)} was inferred",
                    where=f"value {tensor.name!r}",
                )
        self._feed(number, value)

    def _result(self, number: int) -> Value:
        tensor = self._model.plan.tensors[number]
        value = self._values.get(number)
        if tensor.place.kind == "constant":
            return self._model.constants[tensor.place.number].copy()
        if isinstance(value, np.ndarray) and tensor.place.kind in ("input", "object"):
            return (
                value.copy() if tensor.place.kind == "input" or not value.flags.writeable else value
            )
        return value


def place_tensors(layout: Layout, pointers: Any) -> Array:
    """An arena, and pointers to where the tensors lie in it."""
    memory = np.empty(layout.arena_bytes + ALIGNMENT, np.uint8)
    base = -(-address_of(memory) // ALIGNMENT) * ALIGNMENT
    for tensor, _, offset, _ in layout.offsets:
        pointers[tensor] = base + offset
    return memory


def _watch(run: Run, guard: Guard) -> Callable[[], None]:
    """Carry the caller's cancel flag into native code, which cannot ask Python."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            if guard.cancel is not None and guard.cancel.is_set():
                run.stop = CANCELLED
                return

    if guard.cancel is not None and guard.cancel.is_set():
        run.stop = CANCELLED
    thread = threading.Thread(target=look, daemon=True, name="sardonyx-cancel")
    thread.start()

    def finish() -> None:
        over.set()
        thread.join()

    return finish


def _bound_by(plan: Plan, symbols: Mapping[str, int]) -> tuple[tuple[int, int, int], ...]:
    """Which dimension of which input gives each symbol its size."""
    found: dict[int, tuple[int, int, int]] = {}
    for number in plan.inputs:
        for axis, dim in enumerate(plan.tensors[number].shape or ()):
            name = None if isinstance(dim, int) else dim.lone_symbol
            if name is not None and name in symbols and symbols[name] not in found:
                found[symbols[name]] = (number, axis, symbols[name])
    return tuple(found.values())


def _pointer_template(plan: Plan, constants: Sequence[Array]) -> list[int | None]:
    return [
        address_of(constants[tensor.place.number])
        if _is_plain_constant(tensor, constants)
        else None
        for tensor in plan.tensors
    ]


def _is_plain_constant(tensor: Tensor, constants: Sequence[Array]) -> bool:
    return tensor.place.kind == "constant" and tensor.dtype is not None


def _numpy_type(tensor: Tensor) -> np.dtype[Any]:
    assert tensor.dtype is not None
    return NUMPY_TYPES[tensor.dtype]


def _shape(tensor: Tensor, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, values) for dim in tensor.shape or ())
