"""Whether a kernel keeps the rules of the language; one that does not is our own mistake.

    KernelError: x[i] = t0 + 1: add takes operands of one type, not f32 and i64

Rules: every name is bound once, before it is used, in a block that is still open. Operands have the
types that OPERATIONS lists; f16, bf16 and narrow types are only loaded, named, stored and converted. Inputs are not
stored to. A parallel loop changes no variable and no array from outside, and stands in no parallel
or vector loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from sardonyx.loops.nodes import (
    Apply,
    Array,
    Cast,
    Const,
    Dtype,
    Expr,
    Fail,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Local,
    LoopKind,
    Role,
    Select,
    Set,
    Statement,
    Store,
    Var,
    While,
)
from sardonyx.loops.operations import (
    FLOATS,
    INTEGERS,
    NARROW,
    OPERATIONS,
    SMALL_FLOATS,
    cast_modes,
)
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.loops.text import headline
from sardonyx.sizes import Size, symbols

__all__ = ["KernelError", "verify"]

STORED = SMALL_FLOATS | NARROW  # types that nothing is computed in

Kind: TypeAlias = Literal["in", "out", "scratch", "symbol", "index", "value", "local", "array"]


class KernelError(Exception):
    """A kernel breaks a rule of the language. It was generated wrong: the model is not to blame."""


@dataclass(frozen=True)
class _Name:
    kind: Kind
    dtype: Dtype
    parallel_depth: int  # how many parallel loops were open where it was bound


def verify(kernel: Kernel) -> None:
    """Raise KernelError, with the statement in question, if the kernel breaks a rule."""
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[str, _Name] = {}  # what is in scope
        self.ever: set[str] = set()  # what was ever bound
        self.loops: list[LoopKind] = []  # the kinds of the loops that are open
        self.at = "kernel"  # the statement being looked at

    def run(self) -> None:
        for buffer in self.kernel.buffers:
            self.require(buffer.role in get_args(Role), f"{buffer.role!r} is no role of a buffer")
            self.require(buffer.dtype in NUMPY_TYPES, f"{buffer.dtype!r} is no type")
            self.bind(buffer.name, buffer.role, buffer.dtype)
        for name in self.kernel.symbols:
            self.bind(name, "symbol", "i64")
        self.block(self.kernel.body)

    def require(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise KernelError(f"{self.at}: {complaint}")

    # Names

    def bind(self, name: str, kind: Kind, dtype: Dtype) -> None:
        self.require(name not in self.ever, f"the name {name!r} is bound twice")
        self.ever.add(name)
        self.names[name] = _Name(kind, dtype, self.loops.count("parallel"))

    def look_up(self, name: str) -> _Name:
        found = self.names.get(name)
        if found is None:
            why = "is bound in another block, or later" if name in self.ever else "is not bound"
            raise KernelError(f"{self.at}: {name!r} {why}")
        return found

    @contextmanager
    def scope(self) -> Iterator[None]:
        outside = dict(self.names)
        yield
        self.names = outside

    def block(self, body: Sequence[Statement]) -> None:
        with self.scope():
            for statement in body:
                self.at = headline(statement)
                self.statement(statement)

    # Statements

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, For):
            self.loop(statement)
        elif isinstance(statement, (Let, Local)):
            self.expression(statement.value)
            dtype = statement.value.dtype
            is_let = isinstance(statement, Let)
            self.require(is_let or dtype not in STORED, f"no variable has the storage type {dtype}")
            self.bind(statement.name, "value" if is_let else "local", dtype)
        elif isinstance(statement, Set):
            self.assignment(statement)
        elif isinstance(statement, Array):
            self.require(statement.dtype in NUMPY_TYPES, f"{statement.dtype!r} is no type")
            self.require(statement.size > 0, f"the array has {statement.size} elements")
            self.bind(statement.name, "array", statement.dtype)
        elif isinstance(statement, Store):
            self.store(statement)
        elif isinstance(statement, If):
            self.condition(statement.condition)
            self.block(statement.then)
            self.block(statement.other)
        elif isinstance(statement, While):
            self.condition(statement.condition)
            self.block(statement.body)
        else:
            self.failure(statement)

    def loop(self, loop: For) -> None:
        self.require(loop.kind in get_args(LoopKind), f"{loop.kind!r} is no kind of loop")
        self.size(loop.extent)
        self.size(loop.grain)
        if loop.kind == "parallel":
            around = [kind for kind in self.loops if kind in ("parallel", "vector")]
            self.require(not around, f"a parallel loop inside a {''.join(around[:1])} loop")
        with self.scope():
            self.loops.append(loop.kind)
            self.bind(loop.var, "index", "i64")
            self.block(loop.body)
            self.loops.pop()

    def assignment(self, statement: Set) -> None:
        target = self.look_up(statement.name)
        self.require(target.kind == "local", f"{statement.name!r} is no variable")
        self.expression(statement.value)
        self.same_type(statement.value, target.dtype)
        self.not_shared(statement.name, target)

    def store(self, statement: Store) -> None:
        target = self.look_up(statement.buffer)
        stored_to = target.kind in ("out", "scratch", "array")
        self.require(stored_to, f"a store to {statement.buffer!r}, which is of kind {target.kind}")
        self.size(statement.offset)
        self.expression(statement.value)
        self.same_type(statement.value, target.dtype)
        if target.kind == "array":
            self.not_shared(statement.buffer, target)

    def failure(self, statement: Fail) -> None:
        count = len(self.kernel.reasons)
        self.require(
            0 <= statement.reason < count, f"reason {statement.reason} of {count} does not exist"
        )
        for value in (statement.value, statement.limit):
            self.expression(value)
            self.same_type(value, "i64")

    def not_shared(self, name: str, target: _Name) -> None:
        inside = target.parallel_depth == self.loops.count("parallel")
        self.require(inside, f"a parallel loop changes {name!r}, which was made outside it")

    # Expressions

    def condition(self, value: Expr) -> None:
        self.expression(value)
        self.same_type(value, "bool")

    def same_type(self, value: Expr, dtype: Dtype) -> None:
        self.require(value.dtype == dtype, f"a value of type {value.dtype} where {dtype} is due")

    def expression(self, value: Expr) -> None:
        if isinstance(value, Const):
            self.constant(value)
        elif isinstance(value, Index):
            self.size(value.size)
        elif isinstance(value, Load):
            source = self.look_up(value.buffer)
            readable = source.kind in ("in", "out", "scratch", "array")
            self.require(readable, f"a load from {value.buffer!r}, which is of kind {source.kind}")
            self.same_type(value, source.dtype)
            self.size(value.offset)
        elif isinstance(value, Var):
            named = self.look_up(value.name)
            self.require(named.kind in ("value", "local"), f"{value.name!r} is no value")
            self.same_type(value, named.dtype)
        elif isinstance(value, Cast):
            self.require(value.dtype in NUMPY_TYPES, f"{value.dtype!r} is no type")
            self.expression(value.value)
            known = value.mode in cast_modes(value.value.dtype, value.dtype)
            pair = f"{value.value.dtype} to {value.dtype}"
            self.require(known, f"no conversion {value.mode!r} of {pair}")
        elif isinstance(value, Select):
            self.selection(value)
        else:
            self.application(value)

    def constant(self, value: Const) -> None:
        number, dtype = value.value, value.dtype
        if dtype in FLOATS:
            fits = isinstance(number, float)
        elif dtype in INTEGERS:
            ends = np.iinfo(NUMPY_TYPES[dtype])
            fits = type(number) is int and int(ends.min) <= number <= int(ends.max)
        else:
            fits = dtype == "bool" and isinstance(number, bool)
        self.require(fits, f"{number!r} is no constant of type {dtype}")

    def selection(self, value: Select) -> None:
        self.condition(value.condition)
        self.expression(value.then)
        self.expression(value.other)
        self.same_type(value.other, value.then.dtype)
        self.require(value.dtype not in STORED, f"where does not take {value.dtype}")

    def application(self, value: Apply) -> None:
        rule = OPERATIONS.get(value.op)
        if rule is None:
            raise KernelError(f"{self.at}: {value.op!r} is no operation")
        given = [arg.dtype for arg in value.args]
        self.require(
            len(given) == rule.arity, f"{value.op} takes {rule.arity} operands, not {len(given)}"
        )
        for arg in value.args:
            self.expression(arg)
        one_type = all(dtype == given[0] for dtype in given)
        self.require(
            one_type, f"{value.op} takes operands of one type, not {' and '.join(map(str, given))}"
        )
        self.require(given[0] in rule.takes, f"{value.op} does not take {given[0]}")
        self.same_type(value, "bool" if rule.result == "bool" else given[0])

    def size(self, size: Size) -> None:
        for name in sorted(symbols(size)):
            bound = self.look_up(name)
            self.require(
                bound.kind in ("symbol", "index", "value") and bound.dtype == "i64",
                f"{name!r}, of kind {bound.kind} and type {bound.dtype}, in index arithmetic",
            )
