"""The living definition of the kernel language: it runs a kernel, value by value.

Every expression becomes a Python closure over the environment, a list with one slot a name:

    y[2*i + 1] = max(t0, 0.0)     ->     memory[e[1]*2 + 1] = maximum(e[2], 0.0)

Where the language leaves freedom, the interpreter takes the uncommon way, so that a kernel that relies
on the common one is found out: the chunks of parallel loops run last to first, and an array's element
that was never stored is no value. Every access is checked against its buffer's size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.errors import RunError
from sardonyx.loops.nodes import (
    Array,
    Cast,
    Const,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Local,
    Select,
    Set,
    Statement,
    Store,
    Var,
    While,
)
from sardonyx.loops.operations import INTEGERS
from sardonyx.loops.scalars import NUMPY_TYPES, constant, conversion, function
from sardonyx.loops.text import spell_size
from sardonyx.loops.verify import verify
from sardonyx.loops.walk import SIGNED_VARIABLE, is_variable
from sardonyx.sizes import Size

__all__ = ["Failed", "interpret"]

Environment: TypeAlias = list[Any]
Value: TypeAlias = Callable[[Environment], Any]
Action: TypeAlias = Callable[[Environment], None]


class Failed(RunError):  # noqa: N818 - the outcome of a kernel's own check, as `Fail` is its statement
    """A check of the kernel failed: number `reason`, with what it met and what it allows."""

    def __init__(self, reason: int, value: int, limit: int, text: str) -> None:
        filled = text.replace("{value}", str(value)).replace("{limit}", str(limit))
        super().__init__(filled, value=value, limit=limit)
        self.reason = reason


def interpret(
    kernel: Kernel, buffers: Sequence[np.ndarray[Any, Any]], sizes: Mapping[str, int]
) -> None:
    """Run the kernel on one-dimensional arrays, in the order of its buffers; results go into them.

    Raises:
        KernelError: it breaks the rules of the language.
        Failed: one of its checks does.
        IndexError: it reaches outside a buffer; the message has the buffer, the offset and the size.
    """
    verify(kernel)
    compiler = _Compiler(kernel)
    environment: Environment = []
    for declared, given in zip(kernel.buffers, buffers, strict=True):
        if given.dtype != NUMPY_TYPES[declared.dtype] or given.ndim != 1:
            raise TypeError(
                f"{declared.name} is {declared.dtype}[…], but was given {given.dtype}{[*given.shape]}"
            )
        environment.append(given)
    environment += [int(sizes[name]) for name in kernel.symbols]
    action = compiler.block(kernel.body)
    environment += [None] * (len(compiler.slots) - len(environment))
    with np.errstate(all="ignore"):
        action(environment)


class _Compiler:
    """Closures for the expressions and statements of one kernel; names become slots."""

    def __init__(self, kernel: Kernel) -> None:
        self.reasons = kernel.reasons
        self.slots: dict[str, int] = {}
        self.arrays: set[str] = set()
        for buffer in kernel.buffers:
            self.slot(buffer.name)
        for name in kernel.symbols:
            self.slot(name)

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    # Sizes and expressions

    def size(self, size: Size) -> Value:
        # The text has numbers, slots and arithmetic in it, and no name from outside.
        spelled = spell_size(size, lambda name: f"e[{self.slots[name]}]")
        known = {"broadcast": _broadcast, "max": max, "min": min, "__builtins__": {}}
        compiled: Value = eval(f"lambda e: {spelled}", known)
        return compiled

    def value(self, expression: Expr) -> Value:
        if isinstance(expression, Const):
            number = constant(expression.value, expression.dtype)
            return lambda e: number
        if isinstance(expression, Index):
            return _checked_index(self.size(expression.size))
        if isinstance(expression, Load):
            return self.load(expression)
        if isinstance(expression, Var):
            slot = self.slots[expression.name]
            return lambda e: e[slot]
        if isinstance(expression, Cast):
            inner = self.value(expression.value)
            if expression.value.dtype == expression.dtype:
                return inner
            convert = conversion(expression.value.dtype, expression.dtype, expression.mode)
            return lambda e: convert(inner(e))
        if isinstance(expression, Select):
            condition, then = self.value(expression.condition), self.value(expression.then)
            other = self.value(expression.other)
            # Both are evaluated, as the compiled code may do.
            return lambda e: (other(e), then(e))[condition(e)]
        operation = function(expression.op, expression.args[0].dtype)
        if len(expression.args) == 1:
            (only,) = map(self.value, expression.args)
            return lambda e: operation(only(e))
        left, right = map(self.value, expression.args)
        return lambda e: operation(left(e), right(e))

    def load(self, load: Load) -> Value:
        name, slot, at = load.buffer, self.slots[load.buffer], self.size(load.offset)
        if name in self.arrays:

            def from_array(e: Environment) -> Any:
                found = e[slot][_inside(name, at(e), len(e[slot]))]
                if found is None:
                    raise ValueError(f"{name}[{at(e)}] is loaded before anything was stored there")
                return found

            return from_array
        if load.dtype in INTEGERS or load.dtype == "bool":
            # Python's own integers and bools; the operations wrap them.
            return lambda e: e[slot].item(_inside(name, at(e), len(e[slot])))
        return lambda e: e[slot][_inside(name, at(e), len(e[slot]))]

    # Statements

    def block(self, body: Sequence[Statement]) -> Action:
        actions = [self.statement(statement) for statement in body]
        if len(actions) == 1:
            return actions[0]

        def run(e: Environment) -> None:
            for action in actions:
                action(e)

        return run

    def statement(self, statement: Statement) -> Action:
        if isinstance(statement, For):
            return self.loop(statement)
        if isinstance(statement, (Let, Local, Set)):
            return self.assignment(statement)
        if isinstance(statement, Array):
            slot, size = self.slot(statement.name), statement.size
            self.arrays.add(statement.name)
            return lambda e: e.__setitem__(slot, [None] * size)
        if isinstance(statement, Store):
            return self.store(statement)
        if isinstance(statement, If):
            condition, then = self.value(statement.condition), self.block(statement.then)
            other = self.block(statement.other)
            return lambda e: then(e) if condition(e) else other(e)
        if isinstance(statement, While):
            return self.repetition(statement)
        reason, text = statement.reason, self.reasons[statement.reason]
        value, limit = self.value(statement.value), self.value(statement.limit)

        def fail(e: Environment) -> None:
            raise Failed(reason, value(e), limit(e), text)

        return fail

    def assignment(self, statement: Let | Local | Set) -> Action:
        name, value = statement.name, self.value(statement.value)
        slot = self.slot(name)
        if not is_variable(name) or name.startswith(SIGNED_VARIABLE):
            return lambda e: e.__setitem__(slot, value(e))

        def bind_index(e: Environment) -> None:
            e[slot] = found = value(e)
            if found < 0:
                raise IndexError(f"the index {name} is {found}, but its name promises 0 or more")

        return bind_index

    def store(self, statement: Store) -> Action:
        name, at, value = statement.buffer, self.size(statement.offset), self.value(statement.value)
        slot = self.slots[name]

        def store(e: Environment) -> None:
            memory = e[slot]
            memory[_inside(name, at(e), len(memory))] = value(e)

        return store

    def loop(self, loop: For) -> Action:
        extent, grain = self.size(loop.extent), self.size(loop.grain)
        slot = self.slot(loop.var)
        body = self.block(loop.body)

        def ascending(e: Environment) -> None:
            for turn in range(extent(e)):
                e[slot] = turn
                body(e)

        def chunks_descending(e: Environment) -> None:
            count, step = extent(e), max(abs(grain(e)), 1)
            for begin in reversed(range(0, count, step)):
                for turn in range(begin, min(begin + step, count)):
                    e[slot] = turn
                    body(e)

        return chunks_descending if loop.kind == "parallel" else ascending

    def repetition(self, statement: While) -> Action:
        condition, body = self.value(statement.condition), self.block(statement.body)

        def run(e: Environment) -> None:
            while condition(e):
                body(e)

        return run


def _inside(name: str, offset: int, size: int) -> int:
    if 0 <= offset < size:
        return offset
    raise IndexError(f"{name}[{offset}] is outside its {size} elements")


def _checked_index(size: Value) -> Value:
    def checked(e: Environment) -> Any:
        found = size(e)
        if -(1 << 63) <= found < 1 << 63:
            return found
        raise OverflowError(f"the index {found} does not fit in 64 bits")

    return checked


def _broadcast(*sizes: int) -> int:
    others = {size for size in sizes if size != 1}
    if len(others) > 1:
        raise ValueError(f"sizes {sorted(others)} do not broadcast")
    return others.pop() if others else 1
