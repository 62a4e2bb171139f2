"""The kernel language: a small closed set of expressions and statements.

    kernel relu(x: f32 in, y: f32 out; batch)
      parallel i < batch
        vector j < 768
          t0: f32 = x[768*i + j]
          y[768*i + j] = max(t0, 0.0)

Index arithmetic is `Size`: integers and polynomials over symbols, among them the loop variables and
the integers that `Let` binds. Data are typed expressions. Vector width, unrolling and threads are
properties of loops; nothing else in the language knows of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.sizes import Size

__all__ = [
    "Apply",
    "Array",
    "Buffer",
    "Cast",
    "Const",
    "Dtype",
    "Expr",
    "Fail",
    "For",
    "If",
    "Index",
    "Kernel",
    "Let",
    "Load",
    "Local",
    "LoopKind",
    "Operand",
    "Select",
    "Set",
    "Statement",
    "Store",
    "Var",
    "While",
    "apply",
    "const",
]

Dtype: TypeAlias = Literal[
    "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool",
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2",
]  # fmt: skip
LoopKind: TypeAlias = Literal["serial", "parallel", "vector", "unroll"]
Role: TypeAlias = Literal["in", "out", "scratch"]


class Operand:
    """Lets rules write `v * 2 + 1` and `v < 0`. A plain number takes the other operand's type."""

    __slots__ = ()

    def __add__(self, other: Operand | float) -> Expr:
        return apply("add", self, other)

    def __radd__(self, other: float) -> Expr:
        return apply("add", other, self)

    def __sub__(self, other: Operand | float) -> Expr:
        return apply("sub", self, other)

    def __rsub__(self, other: float) -> Expr:
        return apply("sub", other, self)

    def __mul__(self, other: Operand | float) -> Expr:
        return apply("mul", self, other)

    def __rmul__(self, other: float) -> Expr:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand | float) -> Expr:
        return apply("div", self, other)

    def __rtruediv__(self, other: float) -> Expr:
        return apply("div", other, self)

    def __neg__(self) -> Expr:
        return apply("neg", self)

    def __lt__(self, other: Operand | float) -> Expr:
        return apply("lt", self, other)

    def __le__(self, other: Operand | float) -> Expr:
        return apply("le", self, other)

    def __gt__(self, other: Operand | float) -> Expr:
        return apply("gt", self, other)

    def __ge__(self, other: Operand | float) -> Expr:
        return apply("ge", self, other)

    def __and__(self, other: Operand | float) -> Expr:
        return apply("and", self, other)

    def __or__(self, other: Operand | float) -> Expr:
        return apply("or", self, other)

    def __invert__(self) -> Expr:
        return apply("not", self)


@dataclass(frozen=True, slots=True, eq=False)
class Const(Operand):
    """A number. 0.0 and -0.0 are two, and every NaN is the same."""

    value: float | int | bool
    dtype: Dtype

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.dtype == other.dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@dataclass(frozen=True, slots=True)
class Index(Operand):
    """Index arithmetic as data, of type i64."""

    size: Size

    @property
    def dtype(self) -> Dtype:
        return "i64"


@dataclass(frozen=True, slots=True)
class Load(Operand):
    """buffer[offset]: an element of a buffer, or of an array on the stack."""

    buffer: str
    offset: Size
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class Var(Operand):
    """What a Let bound or a Local holds."""

    name: str
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class Apply(Operand):
    """One of the `OPERATIONS`, on operands of one type."""

    op: str
    args: tuple[Expr, ...]
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class Select(Operand):
    """`then` where the condition holds, else `other`; both are evaluated."""

    condition: Expr
    then: Expr
    other: Expr

    @property
    def dtype(self) -> Dtype:
        return self.then.dtype


@dataclass(frozen=True, slots=True)
class Cast(Operand):
    """A conversion with the meaning that docs/numerics.md gives it.

    Attributes:
        mode: another meaning, where `cast_modes` has one for the two types.
    """

    value: Expr
    dtype: Dtype
    mode: str = ""


Expr: TypeAlias = Const | Index | Load | Var | Apply | Select | Cast

_TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf"})


def apply(op: str, *operands: Operand | float) -> Expr:
    """The operation on these operands; plain numbers become constants of the others' type."""
    dtype = next((one.dtype for one in operands if isinstance(one, _EXPRESSIONS)), None)
    if dtype is None:
        raise TypeError(f"{op} needs at least one typed operand")
    args = tuple(one if isinstance(one, _EXPRESSIONS) else const(one, dtype) for one in operands)
    return Apply(op, args, "bool" if op in _TESTS else dtype)


def const(value: object, dtype: Dtype) -> Const:
    """A number as this type holds it."""
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    if dtype == "bool":
        return Const(bool(value), dtype)
    return Const(float(value) if dtype in ("f16", "bf16", "f32", "f64") else int(value), dtype)


_EXPRESSIONS = (Const, Index, Load, Var, Apply, Select, Cast)


@dataclass(frozen=True, slots=True)
class For:
    """var runs over 0 … extent - 1.

    Attributes:
        kind: "parallel" chunks may run on any thread in any order; "vector" iterations do not
            depend on each other, or only through accumulations that may be reassociated.
        grain: iterations that one chunk of a parallel loop has at least. Below zero it has as many, and the last chunks had better
            come first: a loop over the same memory that turns every time finds some of it in the cache.
    """

    var: str
    extent: Size
    body: tuple[Statement, ...]
    kind: LoopKind = "serial"
    grain: Size = 1


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a value. An i64 name may stand in index arithmetic."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Local:
    """A scalar that changes."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Set:
    """name = value, for a Local."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Array:
    """A small array on the stack; its elements are undefined until stored."""

    name: str
    dtype: Dtype
    size: int


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[offset] = value."""

    buffer: str
    offset: Size
    value: Expr


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Statement, ...]
    other: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """Repeats as long as the condition holds. It must end by itself: nothing polls inside."""

    condition: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Fail:
    """Stops the kernel: check number `reason`, with a value and a limit for the message."""

    reason: int
    value: Expr
    limit: Expr


Statement: TypeAlias = For | Let | Local | Set | Array | Store | If | While | Fail


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that the kernel is handed; distinct buffers never overlap unless one `aliases` another."""

    name: str
    dtype: Dtype
    role: Role


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function: its buffers, the symbols it needs as arguments, and its body.

    `reasons` are the texts of its checks; `Fail` names them by number.
    """

    buffers: tuple[Buffer, ...]
    symbols: tuple[str, ...]
    body: tuple[Statement, ...]
    reasons: tuple[str, ...] = ()
