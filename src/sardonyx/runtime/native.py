"""A compiled model: its library, its constants, and the memory of its runs.

    model = NativeModel(plan, library, constants)
    outputs = model.run(arrays, guard)

Nothing of it changes while it runs, so many threads may run it at once: each has its own arena, taken
from the ones that are free and given back.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sardonyx.backends.guard import Guard
from sardonyx.errors import CancelledError, DeadlineError, RunError, ShapeError
from sardonyx.plan.memory import ALIGNMENT, place_slots
from sardonyx.plan.plan import Plan
from sardonyx.runtime.threads import Pool
from sardonyx.sizes import evaluate

__all__ = ["NUMPY_TYPES", "NativeModel"]

Array = npt.NDArray[Any]

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
}
MAX_REMEMBERED = 256  # bindings; a model that meets more shapes forgets the oldest


class Run(ctypes.Structure):
    """sx_run of abi.h."""

    _fields_ = (
        ("parallel", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("deadline", ctypes.c_int64),
        ("budget", ctypes.c_int64),
        ("threads", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("step", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Binding:
    """What follows from the shapes of the inputs: sizes, the arena's layout, the outputs' shapes."""

    sizes: Any  # int64[symbols]
    slots: tuple[tuple[int, int], ...]  # tensor number, offset
    arena_bytes: int
    output_shapes: tuple[tuple[int, ...], ...]


class Arena:
    """Memory and arguments of one run at a time."""

    def __init__(
        self, binding: Binding, constants: Sequence[tuple[int, Array]], tensors: int
    ) -> None:
        self.binding = binding
        self._memory = np.empty(binding.arena_bytes + ALIGNMENT, np.uint8)
        base = -(-self._memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.pointers = (ctypes.c_void_p * max(tensors, 1))()
        for number, offset in binding.slots:
            self.pointers[number] = base + offset
        for number, array in constants:
            self.pointers[number] = array.ctypes.data
        self.run = Run()


class NativeModel:
    """A model as machine code.

    Args:
        plan: what the library was made from.
        library: the compiled code.
        constants: the arrays of the plan's constants, in its order, contiguous.
        threads: how many threads one run may use.
    """

    def __init__(
        self, plan: Plan, library: Path, constants: Sequence[Array], pool: Pool, threads: int
    ) -> None:
        self.plan = plan
        self._library = ctypes.CDLL(str(library))
        self._main = self._library.sx_main
        self._main.restype = ctypes.c_int32
        self._pool = pool
        self._threads = threads
        self._steps = ctypes.c_int32(len(plan.steps))
        self._constants = [
            (number, constants[tensor.place.number])
            for number, tensor in enumerate(plan.tensors)
            if tensor.place.kind == "constant"
        ]
        self._inputs = tuple((n, NUMPY_TYPES[plan.tensors[n].dtype]) for n in plan.inputs)
        self._outputs = tuple((n, NUMPY_TYPES[plan.tensors[n].dtype]) for n in plan.outputs)
        self._bindings: dict[tuple[tuple[int, ...], ...], Binding] = {}
        self._free: dict[int, list[Arena]] = {}
        self._lock = threading.Lock()

    def run(self, arrays: Sequence[Array], guard: Guard) -> list[Array]:
        """Run once. The arrays have the plan's types, and shapes that were checked."""
        fed = [
            array
            if array.flags.c_contiguous and array.flags.aligned
            else np.array(array, order="C")
            for array in arrays
        ]
        binding = self._bind(tuple(array.shape for array in fed))
        outputs = [
            np.empty(shape, dtype)
            for shape, (_, dtype) in zip(binding.output_shapes, self._outputs, strict=True)
        ]
        arena = self._take(binding, guard)
        try:
            pointers = arena.pointers
            for (number, _), array in zip(self._inputs, fed, strict=True):
                pointers[number] = array.ctypes.data
            for (number, _), array in zip(self._outputs, outputs, strict=True):
                pointers[number] = array.ctypes.data
            status = self._call(arena, guard)
        finally:
            self._give_back(arena)
        if status:
            raise status
        return outputs

    def _call(self, arena: Arena, guard: Guard) -> Exception | None:
        run = arena.run
        run.parallel = self._pool.parallel_address
        run.allocate = self._pool.allocate_address
        run.pool = self._pool.handle
        run.threads = self._threads
        run.stop = run.error = run.reason = 0
        run.deadline = 0 if guard.deadline is None else int(guard.deadline * 1e9)
        run.budget = -1
        failed = self._main(
            ctypes.byref(run),
            arena.pointers,
            arena.binding.sizes,
            0,
            self._steps,
            None,
            None,
        )
        return self._failure(run) if failed else None

    def _failure(self, run: Run) -> Exception:
        step = self.plan.steps[run.step]
        where = ", ".join(step.nodes)
        if run.error == 1:
            return CancelledError("the run was cancelled", where=where)
        if run.error == 2:
            return DeadlineError("the deadline has passed", where=where)
        kernel = self.plan.kernels[step.kernel]
        reason = kernel.reasons[run.reason].format(value=run.a, limit=run.b)
        return RunError(reason, where=where, value=run.a, limit=run.b)

    # Sizes and memory

    def _bind(self, shapes: tuple[tuple[int, ...], ...]) -> Binding:
        found = self._bindings.get(shapes)
        if found is None:
            found = self._make_binding(shapes)
            with self._lock:
                while len(self._bindings) >= MAX_REMEMBERED:
                    del self._bindings[next(iter(self._bindings))]
                self._bindings[shapes] = found
        return found

    def _make_binding(self, shapes: tuple[tuple[int, ...], ...]) -> Binding:
        plan = self.plan
        values: dict[str, int] = {}
        for (number, _), shape in zip(self._inputs, shapes, strict=True):
            for size, dim in zip(shape, plan.tensors[number].shape, strict=True):
                if not isinstance(dim, int) and dim.lone_symbol is not None:
                    values.setdefault(dim.lone_symbol, size)
        layout = place_slots(
            [(evaluate(slot.bytes, values), slot.first, slot.last) for slot in plan.slots]
        )
        slots = tuple(
            (number, layout.offsets[tensor.place.number])
            for number, tensor in enumerate(plan.tensors)
            if tensor.place.kind == "slot"
        )
        output_shapes = tuple(
            tuple(evaluate(dim, values) for dim in plan.tensors[number].shape)
            for number, _ in self._outputs
        )
        for shape in output_shapes:
            if any(dim < 0 for dim in shape):
                raise ShapeError(f"an output would have the shape {list(shape)}.", value=shape)
        sizes = (ctypes.c_int64 * max(len(plan.symbols), 1))(
            *(values.get(symbol, 0) for symbol in plan.symbols)
        )
        return Binding(sizes, slots, layout.bytes, output_shapes)

    def _take(self, binding: Binding, guard: Guard) -> Arena:
        needed = binding.arena_bytes + sum(
            int(np.prod(shape)) * dtype.itemsize
            for shape, (_, dtype) in zip(binding.output_shapes, self._outputs, strict=True)
        )
        if guard.byte_budget is not None and needed > guard.byte_budget:
            guard.reserve(needed, "the model")
        with self._lock:
            free = self._free.get(id(binding))
            if free:
                return free.pop()
        return Arena(binding, self._constants, len(self.plan.tensors))

    def _give_back(self, arena: Arena) -> None:
        with self._lock:
            self._free.setdefault(id(arena.binding), []).append(arena)
