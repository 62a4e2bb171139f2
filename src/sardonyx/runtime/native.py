"""A compiled model: its library, its constants, and the memory of its runs.

    model = NativeModel(plan, library, constants, pool, threads, reference)
    outputs = model.run(arrays, guard)

A plan whose steps are all native is one call into the library. Where nodes run on the reference
backend in between, the steps fall into phases, and sizes that those nodes decide are bound on the way.

Nothing of it changes while it runs, so many threads may run it at once: each has its own memory.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from sardonyx.backends.guard import Guard
from sardonyx.backends.values import Value
from sardonyx.errors import (
    BudgetError,
    CancelledError,
    DeadlineError,
    RunError,
    SardonyxError,
)
from sardonyx.plan.plan import BindStep, Count, Jump, Plan, ReferenceStep, SizeStep, Step, Tensor
from sardonyx.runtime.abi import CANCELLED, DEADLINE, PAUSED, Run
from sardonyx.runtime.addresses import address_of
from sardonyx.runtime.layouts import (
    Layout,
    Layouts,
    Placer,
    nodes_of,
    place_tensors,
    shape_of,
    source_of,
    type_of,
)
from sardonyx.runtime.phases import Phase
from sardonyx.runtime.texts import TextTable
from sardonyx.runtime.threads import Pool
from sardonyx.runtime.trace import Trace
from sardonyx.sizes import Size, evaluate

__all__ = [
    "Array",
    "NativeModel",
    "SizeRule",
    "SizedInput",
]

_INT64 = 7  # the number of the type in the standard

Array = np.ndarray[Any, np.dtype[Any]]
SizedInput: TypeAlias = (
    "tuple[int, tuple[int, ...]]"  # the number of its type in the standard, its shape
)
SizeRule: TypeAlias = "Callable[[Sequence[Array | SizedInput | None]], list[Sequence[Size]]]"


class NodeProgram(Protocol):
    """A node on the reference backend."""

    def run(self, inputs: Sequence[Value], guard: Guard, /) -> list[Value]: ...


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
        self.again.restype = (
            ctypes.c_int32
        )  # its argument comes as a pointer already: nothing to convert
        self.layouts = Layouts(plan)
        native = [step for step in plan.steps if isinstance(step, Step)]
        self._read_natively = {number for step in native for number in step.tensors}
        self._free: list[_Memory] = []
        self._lock = threading.Lock()
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
        return len(self.layouts.phases) == 1 and self.layouts.phases[0].host is None

    def layout_for(self, shapes: Sequence[tuple[int, ...]]) -> Layout:
        """The layout of a single call with inputs of these shapes."""
        return self.layouts.layout(0, self.layouts.sizes_for(shapes))

    def arguments(
        self, run: Run, layout: Layout, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[Any, Any, object]:
        """Pointers, sizes and arena of a single call; the caller's own arrays are left to put in."""
        self.prepare(run)
        pointers = (ctypes.c_void_p * max(len(self.plan.tensors), 1))(*self._pointers)
        sizes = (ctypes.c_int64 * max(len(self.plan.symbols), 1))(*self.layouts.sizes_for(shapes))
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

    def failure(self, run: Run) -> SardonyxError:
        """What a run that stopped has to say."""
        step = self.plan.steps[run.step]
        assert isinstance(step, (Step, Jump, Count))
        where = nodes_of(self.plan, step)
        if run.error == CANCELLED:
            return CancelledError("the run was cancelled", where=where)
        if run.error == DEADLINE:
            hint = "Give the run more time, or feed it less."
            return DeadlineError("the deadline has passed", where=where, hint=hint)
        assert isinstance(step, Step), "nothing but a kernel checks values"
        reason = self.plan.kernels[step.kernel].reasons[run.reason].format(value=run.a, limit=run.b)
        return RunError(
            reason, where=where, source=source_of(self.plan, step), value=run.a, limit=run.b
        )


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
        for number, axis, symbol in model.layouts.bound_by:
            value = self._values.get(number)
            if isinstance(value, np.ndarray):
                sizes[symbol] = value.shape[axis]
        held = 0
        try:
            for number, phase in enumerate(model.layouts.phases):
                begin = 0 if trace is None else time.monotonic_ns()
                model.layouts.define(sizes)
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
        layout = model.layouts.layout(number, sizes)
        held = layout.arena_bytes + layout.output_bytes
        try:
            guard.reserve(held, "the model")
        except BudgetError as error:
            if layout.largest is not None:
                error.where = nodes_of(model.plan, layout.largest)
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
                if operand.known is not None:
                    numbers = [evaluate(size, values) for size in operand.known]
                    kind = np.int64 if operand.dtype == _INT64 else np.int32
                    inputs[-1] = np.array(numbers, kind).reshape(shape)
        shapes = model._rules[step.node](inputs)
        for planned, found in zip(step.outputs, shapes, strict=True):
            for dim, size in zip(planned, found, strict=True):
                symbol = None if isinstance(dim, int) else dim.lone_symbol
                if symbol is not None and isinstance(size, int) and size >= 0:
                    number = model.layouts.number_of.get(symbol)
                    if number is not None and sizes[number] < 0:
                        sizes[number] = size

    def _bind_phase(self, step: BindStep, sizes: list[int]) -> None:
        address = self._pointers[step.tensor]
        if address and self._model.plan.tensors[step.tensor].place.kind == "slot":
            value = ctypes.c_int64.from_address(address).value
        else:
            value = int(np.asarray(self._read(step.tensor, sizes)).reshape(-1)[0])
        for symbol in step.symbols:
            if symbol in self._model.layouts.number_of:  # nothing may depend on it after all
                sizes[self._model.layouts.number_of[symbol]] = value

    def _read(self, number: int, sizes: Sequence[int]) -> Value:
        """A value as the reference backend takes it; what lies in the arena is copied out."""
        if number in self._values:
            return self._values[number]
        model = self._model
        tensor = model.plan.tensors[number]
        if tensor.place.kind == "constant":
            return model.constants[tensor.place.number]
        values = dict(zip(model.plan.symbols, sizes, strict=True))
        shape = shape_of(tensor, values)
        array = np.empty([shape[axis] for axis in tensor.order], type_of(tensor))
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
                if symbol is not None and sizes[model.layouts.number_of[symbol]] < 0:
                    sizes[model.layouts.number_of[symbol]] = size
            known = {n: s for n, s in zip(model.plan.symbols, sizes, strict=True) if s >= 0}
            expected = shape_of(tensor, known) if number in model._read_natively else value.shape
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


def _pointer_template(plan: Plan, constants: Sequence[Array]) -> list[int | None]:
    return [
        address_of(constants[tensor.place.number])
        if _is_plain_constant(tensor, constants)
        else None
        for tensor in plan.tensors
    ]


def _is_plain_constant(tensor: Tensor, constants: Sequence[Array]) -> bool:
    return tensor.place.kind == "constant" and tensor.dtype is not None
