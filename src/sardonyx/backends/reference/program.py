"""A compiled graph and the loop that runs it.

    Block        one graph: steps in order over numbered slots
      Step       one node: which slots it reads and fills, which are dead after it
    Program      the model's own block, run by the names of its inputs and outputs

Nothing here changes after compiling, so many threads may run one program at once. Each run has
its own slots and its own guard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.prediction import predict_bytes
from sardonyx.backends.reference.values import (
    SparseTensor,
    Value,
    byte_count,
    freeze,
    normalize,
    thaw,
)
from sardonyx.errors import InputError, RunError, SardonyxError

__all__ = ["Block", "Kernel", "Program", "Step"]

Timed: TypeAlias = Callable[[int, int], None]  # a step's number, and when it began: monotonic_ns


class Kernel(Protocol):
    """What runs one node. `inputs` are the node's own, then the outer values of its subgraphs."""

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[object]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One node. A slot of None is an input left out or an output that nothing receives."""

    operator: Operator
    kernel: Kernel
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    dead_after: tuple[int, ...]
    predicts: bool  # whether the bytes of the outputs are foretold before it runs


@dataclass(frozen=True, slots=True)
class Block:
    """One graph.

    Attributes:
        inputs: slots of the graph's inputs.
        captures: slots of values of the enclosing graphs.
        constants: initializers with their slots.
        outputs: slots of the graph's outputs.
        slots: how many slots a run needs.
    """

    inputs: tuple[int, ...]
    captures: tuple[int, ...]
    constants: tuple[tuple[int, Value], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int | None, ...]
    slots: int

    def run(
        self,
        inputs: Sequence[Value],
        captured: Sequence[Value],
        guard: Guard,
        timed: Timed | None = None,
    ) -> list[Value]:
        """Run the graph once; what it holds is given back to the guard at the end."""
        slots: list[Value] = [None] * self.slots
        held: dict[int, int] = {}
        for slot, value in zip(self.captures, captured, strict=True):
            slots[slot] = value
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        try:
            self.place_constants(slots, held, guard)
            for number, step in enumerate(self.steps):
                begin = 0 if timed is None else time.monotonic_ns()
                run_step(step, slots, held, guard)
                if timed is not None:
                    timed(number, begin)
                for slot in step.dead_after:
                    slots[slot] = None
                    guard.release(held.pop(slot, 0))
        finally:
            guard.release(sum(held.values()))
        return [None if slot is None else slots[slot] for slot in self.outputs]

    def place_constants(self, slots: list[Value], held: dict[int, int], guard: Guard) -> None:
        """Put the initializers into their slots; sparse ones are written out here, and counted."""
        for slot, value in self.constants:
            if isinstance(value, SparseTensor):
                guard.reserve(value.dense_nbytes, "a sparse initializer")
                held[slot] = value.dense_nbytes
                value = freeze(value.dense())
            slots[slot] = value


def run_step(step: Step, slots: list[Value], held: dict[int, int], guard: Guard) -> None:
    """Run one node under the guard, and name it in whatever goes wrong."""
    operator = step.operator
    guard.check(operator.label)
    inputs = [None if slot is None else slots[slot] for slot in step.inputs]
    reserved = 0
    try:
        if step.predicts:
            expected = predict_bytes(operator, inputs)
            guard.reserve(expected, operator.label)
            reserved = expected
        results = [freeze(normalize(value)) for value in step.kernel(inputs, guard)]
    except SardonyxError as error:
        _place(error, operator)
        raise
    except MemoryError as error:
        raise RunError(
            "the machine has no memory for this", where=operator.label, source=operator.source
        ) from error
    except Exception as error:
        raise _explained(error, operator, inputs) from error
    finally:
        guard.release(reserved)
    if any(slot is not None for slot in step.outputs[len(results) :]):
        raise RunError(
            f"gives {len(results)} outputs, where {len(step.outputs)} are used",
            where=operator.label,
            source=operator.source,
        )
    for slot, value in zip(step.outputs, results, strict=False):
        if slot is not None:
            nbytes = byte_count(value)
            guard.reserve(nbytes, operator.label)
            held[slot] = nbytes
            slots[slot] = value


def _place(error: SardonyxError, operator: Operator) -> None:
    """The innermost node that refused is the one to name."""
    if error.where is None:
        error.where = operator.label
    if error.source is None:
        error.source = operator.source


def _explained(error: Exception, operator: Operator, inputs: Sequence[Value]) -> RunError:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return RunError(
        f"cannot compute its outputs from ({', '.join(map(_summary, inputs))}): "
        f"{type(cause).__name__}: {str(cause)[:500]}",
        where=operator.label,
        source=operator.source,
    )


def _summary(value: Value) -> str:
    if isinstance(value, np.ndarray):
        name = "string" if value.dtype == object else value.dtype.name
        return f"{name}{list(value.shape)}"
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    return "nothing" if value is None else type(value).__name__


@dataclass(frozen=True, slots=True)
class Program:
    """A model, ready to run on the reference backend.

    Attributes:
        block: the compiled graph.
        inputs: names of the inputs, in the order of the block's.
        defaults: for inputs that need not be fed, their initializer.
        outputs: names of the outputs, in order.
        values: names of all values of the main graph by slot, for `run_all`.
    """

    block: Block
    inputs: tuple[str, ...]
    defaults: Mapping[str, Value]
    outputs: tuple[str, ...]
    values: Mapping[int, str]

    def run(
        self,
        feeds: Mapping[str, Value],
        outputs: Sequence[str],
        guard: Guard,
        timed: Timed | None = None,
    ) -> list[Value]:
        """Run the model.

        Args:
            feeds: a value for each input by name; inputs with an initializer may be left out.
            outputs: names of the outputs to return, in this order.
            guard: the bounds of this run.
            timed: is told the number of each step that has run, and when it began.

        Raises:
            InputError: a feed is missing, or an output's name is unknown.
            RunError: a node could not compute its answer; its cause is chained.
            BudgetError, DeadlineError, CancelledError: a bound was reached.
        """
        positions = [self._position(name) for name in outputs]
        with np.errstate(all="ignore"):
            results = self.block.run(self._arguments(feeds, guard), (), guard, timed)
        return [thaw(results[position]) for position in positions]

    def run_all(self, feeds: Mapping[str, Value], guard: Guard) -> dict[str, Value]:
        """Run the model and return every value of its main graph by name, nothing freed."""
        block = self.block
        slots: list[Value] = [None] * block.slots
        held: dict[int, int] = {}
        for slot, value in zip(block.inputs, self._arguments(feeds, guard), strict=True):
            slots[slot] = value
        try:
            block.place_constants(slots, held, guard)
            with np.errstate(all="ignore"):
                for step in block.steps:
                    run_step(step, slots, held, guard)
        finally:
            guard.release(sum(held.values()))
        return {name: thaw(slots[slot]) for slot, name in self.values.items()}

    def _position(self, name: str) -> int:
        if name not in self.outputs:
            raise InputError(
                f"no output is called {name!r}",
                value=name,
                hint=f"The outputs are {', '.join(map(repr, self.outputs))}.",
            )
        return self.outputs.index(name)

    def _arguments(self, feeds: Mapping[str, Value], guard: Guard) -> list[Value]:
        arguments = []
        for name in self.inputs:
            if name in feeds:
                arguments.append(_borrowed(feeds[name]))
            elif name not in self.defaults:
                raise InputError(f"no value was fed for {name!r}", where=f"input {name!r}")
            else:
                arguments.append(_written_out(self.defaults[name], guard))
        return arguments


def _written_out(value: Value, guard: Guard) -> Value:
    if not isinstance(value, SparseTensor):
        return value
    guard.reserve(value.dense_nbytes, "a sparse initializer")
    guard.release(value.dense_nbytes)
    return freeze(value.dense())


def _borrowed(value: Value) -> Value:
    """A read-only view of what the caller owns."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.setflags(write=False)
        return view
    if isinstance(value, list):
        return [_borrowed(item) for item in value]
    return value
