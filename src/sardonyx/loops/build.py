"""Writing kernels: blocks as `with` statements, names made on the way.

b = Builder()
x, y = b.input("f32"), b.output("f32")
with b.loop(rows, "parallel") as i, b.loop(768, "vector") as j:
    b.store(y, 768 * i + j, maximum(b.load(x, 768 * i + j), 0))
kernel = b.kernel()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import (
    Array,
    Buffer,
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
    Operand,
    Role,
    Select,
    Set,
    Statement,
    Store,
    Var,
    While,
    apply,
    const,
)
from sardonyx.loops.operations import INTEGERS, NARROW, NARROW_INTEGERS
from sardonyx.loops.walk import SIGNED_VARIABLE, VARIABLE, expressions, is_variable, symbols_of
from sardonyx.sizes import Size, at_least, max_of, product, symbol, symbols

PARALLEL_GRAIN = 16384  # elementary operations that are worth handing to another thread

BlockKind: TypeAlias = Literal["branch", "loop", "sure"]  # sure: a loop that turns at least once

__all__ = ["Builder", "cast", "maximum", "minimum", "where"]


def where(condition: Expr, then: Expr | float, other: Expr | float) -> Expr:
    """`then` where the condition holds; a plain number takes the other branch's type."""
    if isinstance(then, Operand):
        return Select(condition, then, _typed(other, then.dtype))
    if isinstance(other, Operand):
        return Select(condition, const(then, other.dtype), other)
    raise TypeError("one branch of where must be typed")


def maximum(a: Expr, b: Expr | float) -> Expr:
    return apply("max", a, b)


def minimum(a: Expr, b: Expr | float) -> Expr:
    return apply("min", a, b)


def cast(value: Expr, dtype: Dtype, mode: str = "") -> Expr:
    """The value as another type, by way of f32 where one is narrow; nothing where it has that type."""
    if value.dtype == dtype:
        return value
    if mode in ("bits", "near", "small", "saturate"):
        return Cast(value, dtype, mode)
    if value.dtype in NARROW:
        wide: Expr = Cast(value, "f32")
        if value.dtype in NARROW_INTEGERS and dtype in INTEGERS:
            wide = Cast(wide, "i32")  # -1 becomes the largest of the unsigned, as for any integer
        return cast(wide, dtype, mode)
    if dtype in NARROW:
        return Cast(_before_narrow(value, dtype), dtype, mode)
    if isinstance(value, Const) and value.dtype != "bool" and dtype in ("f32", "f64"):
        return Const(float(value.value), dtype)
    return Cast(value, dtype)


def _before_narrow(value: Expr, dtype: Dtype) -> Expr:
    """The value in the type that a narrow one is made from."""
    if dtype in NARROW_INTEGERS and value.dtype not in ("f32", "f16", "bf16"):
        whole = cast(apply("round", value), "i64") if value.dtype == "f64" else value
        return cast(whole, "u32")
    if value.dtype == "f64" and dtype != "f8e8m0":
        return Cast(value, "f32", "odd")
    return cast(value, "f32")


def _typed(value: Expr | float, dtype: Dtype) -> Expr:
    return value if isinstance(value, Operand) else const(value, dtype)


class Builder:
    """Collects the statements of one kernel."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._blocks: list[list[Statement]] = [[]]
        self._kinds: list[BlockKind] = ["branch"]  # of the blocks
        self._bound_in: dict[str, int] = {}  # an index's name -> the number of its block
        self._reasons: list[str] = []
        self._arrays: dict[str, Dtype] = {}
        self._count = 0
        self.scopes: list[dict[object, Expr]] = [{}]  # what has a name, block by block
        self.ranges: dict[str, Size] = {}

    # Buffers

    def buffer(self, dtype: Dtype, role: Role) -> str:
        name = f"{role}{len(self._buffers)}"
        self._buffers.append(Buffer(name, dtype, role))
        return name

    def dtype_of(self, buffer: str) -> Dtype:
        return next(one.dtype for one in self._buffers if one.name == buffer)

    def name_of(self, number: int) -> str:
        return self._buffers[number].name

    def number_of(self, buffer: str) -> int:
        return next(n for n, one in enumerate(self._buffers) if one.name == buffer)

    def load(self, buffer: str, offset: Size) -> Expr:
        return Load(buffer, offset, self.dtype_of(buffer))

    def store(self, buffer: str, offset: Size, value: Expr) -> None:
        self._emit(Store(buffer, offset, cast(value, self.dtype_of(buffer))))

    # Names

    def let(self, value: Expr) -> Expr:
        """A name for a value that is used more than once; numbers and names stay as they are."""
        if isinstance(value, (Const, Var, Index)):
            return value
        name = self._name("t")
        self._emit(Let(name, value))
        return Var(name, value.dtype)

    def index(self, value: Expr, extent: Size | None = None) -> Size:
        """A value as index arithmetic; it is in 0 … extent - 1 where an extent is given."""
        if isinstance(value, Index) and extent is None:
            return value.size
        if isinstance(value, Const):
            return int(value.value)
        name = (SIGNED_VARIABLE if extent is None else VARIABLE) + self._name("t")
        self._emit(Let(name, cast(value, "i64")))
        if extent is not None:
            self.ranges[name] = extent
        self._bound_in[name] = len(self._blocks) - 1
        return symbol(name)

    def named(self, size: Size, extent: Size) -> Size:
        """Index arithmetic below `extent` under a name, where it is more than a number or a name."""
        if isinstance(size, int) or size.lone_symbol is not None:
            return size
        return self.index(self.size(size), extent)

    def bound(self, name: str) -> Expr | None:
        """What a Let of an open block gave a name to."""
        for block in self._blocks:
            for statement in block:
                if isinstance(statement, Let) and statement.name == name:
                    return statement.value
        return None

    def reset(self) -> None:
        """Forget the statements, keep the buffers and the checks that depend on sizes alone."""
        checks = [one for one in self._blocks[0] if _checks_sizes(one)]
        self._blocks, self.scopes, self._kinds = [checks], [{}], self._kinds[:1]

    def local(self, value: Expr) -> Var:
        """A scalar that `set` changes."""
        name = self._name("v")
        self._emit(Local(name, value))
        return Var(name, value.dtype)

    def set(self, target: Var, value: Expr) -> None:
        self._emit(Set(target.name, cast(value, target.dtype)))

    def array(self, dtype: Dtype, size: int) -> str:
        """A small array on the stack, for `element` and `put`."""
        name = self._name("a")
        self._emit(Array(name, dtype, size))
        self._arrays[name] = dtype
        return name

    def given(self, name: str, dtype: Dtype) -> str:
        """An array that the kernel's caller brings along, for `element` and `put`."""
        self._arrays[name] = dtype
        return name

    def element(self, array: str, offset: Size) -> Expr:
        return Load(array, offset, self._arrays[array])

    def put(self, array: str, offset: Size, value: Expr) -> None:
        self._emit(Store(array, offset, cast(value, self._arrays[array])))

    # Blocks

    @contextmanager
    def loop(self, extent: Size, kind: LoopKind = "serial", *, grain: Size = 1) -> Iterator[Size]:
        """The body of a loop; the variable is a size."""
        if extent == 1:
            yield 0  # no loop around a single iteration
            return
        name = VARIABLE + self._name("i")
        self.ranges[name] = extent
        with self._block("sure" if at_least(extent, 1) else "loop") as body:
            self._bound_in[name] = len(self._blocks) - 1
            yield symbol(name)
        self._emit(For(name, extent, tuple(body), kind, grain))

    @contextmanager
    def loops(
        self, extents: Sequence[Size], kind: LoopKind = "serial"
    ) -> Iterator[tuple[Size, ...]]:
        """Nested loops, outermost first."""
        if not extents:
            yield ()
            return
        with self.loop(extents[0], kind) as first, self.loops(extents[1:], kind) as rest:
            yield (first, *rest)

    @contextmanager
    def parallel(
        self, extents: Sequence[Size], work: Size = 1, *, backward: Size = 0
    ) -> Iterator[tuple[Size, ...]]:
        """One parallel loop over several dimensions, each of whose iterations costs `work`.

        Args:
            backward: 1 where the last chunks had better come first (see `For`), else 0.
        """
        total = product(extents)
        grain = max_of(1, PARALLEL_GRAIN // max_of(1, work)) * (1 - 2 * backward)
        with self.loop(total, "parallel", grain=grain) as flat:
            yield tuple(
                self.named(at, extent)
                for at, extent in zip(unflatten(flat, extents, self.ranges), extents, strict=True)
            )

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        with self._block() as body:
            yield
        self._emit(If(condition, tuple(body)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The other branch of the `when` that has just ended."""
        last = self._blocks[-1][-1]
        if not isinstance(last, If):
            raise TypeError("otherwise() must follow when()")
        with self._block() as body:
            yield
        self._blocks[-1][-1] = If(last.condition, last.then, tuple(body))

    @contextmanager
    def repeat(self, condition: Expr) -> Iterator[None]:
        """A loop that goes on while the condition, over locals, holds."""
        with self._block() as body:
            yield
        self._emit(While(condition, tuple(body)))

    @contextmanager
    def outside(self, sizes: Iterable[Size]) -> Iterator[None]:
        """Statements go in front of the open loops that these sizes do not depend on.

        with b.outside((i,)):               for i
            row = b.load(x, i)       ->       row = x[i]
                                              for j: …
        Nothing inside may depend on other variables. What may never run stays so: neither branches
        nor loops that may not turn at all are left.
        """
        names = {name for size in sizes for name in symbols(size)}
        depth = max((self._bound_in.get(name, 0) for name in names), default=0)
        with self._in_front(depth, ("branch", "loop")):
            yield

    @contextmanager
    def once(self) -> Iterator[None]:
        """Statements go in front of all open loops, and run even if those do not turn at all."""
        with self._in_front(0, ("branch",)):
            yield

    @contextmanager
    def _in_front(self, depth: int, stops: Sequence[BlockKind]) -> Iterator[None]:
        while any(kind in stops for kind in self._kinds[depth + 1 :]):
            depth += 1
        here = self._blocks, self._kinds, self.scopes
        self._blocks, self._kinds, self.scopes = (
            self._blocks[: depth + 1],
            self._kinds[: depth + 1],
            self.scopes[: depth + 1],
        )
        try:
            yield
        finally:
            self._blocks, self._kinds, self.scopes = here

    def fail_if(self, condition: Expr, reason: str, value: Expr, limit: Expr | int = 0) -> None:
        """Stop the run where the condition holds; `{value}` and `{limit}` in the reason are filled in."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        number = self._reasons.index(reason)
        at_fault = Fail(number, cast(value, "i64"), cast(_typed(limit, "i64"), "i64"))
        self._emit(If(condition, (at_fault,)))

    def size(self, value: Size) -> Expr:
        """Index arithmetic as data of type i64."""
        return Const(value, "i64") if isinstance(value, int) else Index(value)

    def kernel(self) -> Kernel:
        """What was written. Buffers that nothing touches are left in, for their places are promised."""
        body = tuple(self._blocks[0])
        names = sorted(name for name in symbols_of(body) if not is_variable(name))
        return Kernel(tuple(self._buffers), tuple(names), body, tuple(self._reasons))

    # Inside

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count - 1}"

    def _emit(self, statement: Statement) -> None:
        self._blocks[-1].append(statement)

    @contextmanager
    def _block(self, kind: BlockKind = "branch") -> Iterator[list[Statement]]:
        self._blocks.append([])
        self._kinds.append(kind)
        self.scopes.append({})
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()
            self._kinds.pop()
            self.scopes.pop()


def _checks_sizes(statement: Statement) -> bool:
    """Whether a statement only fails, and only for sizes."""
    if not isinstance(statement, If) or not all(isinstance(one, Fail) for one in statement.then):
        return False
    parts = [one for part in (statement, *statement.then) for one in expressions(part)]
    return not any(isinstance(one, (Load, Var)) for one in parts)
