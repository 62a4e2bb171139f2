"""A kernel as people read it; equal texts mean equal kernels, whatever names their builder chose.

    kernel(in0: f32 in, out1: f32 out; batch)
      parallel i < batch, grain 4
        var v0: f32 = 0.0
        vector j < 768
          v0 = v0 + in0[768*i + j]
        out1[i] = max(v0, 0.0)

Loop variables are i, j, k, …, values t0, t1, …, variables v0, …, arrays a0, …, in order of
appearance. A plain number is f32, i64 or bool; one of another type says so: 1:i8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from sardonyx.loops.nodes import (
    Apply,
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
from sardonyx.loops.walk import statements
from sardonyx.sizes import Size
from sardonyx.sizes.expr import Atom, Monomial, symbol, terms_of

__all__ = ["headline", "spell_size", "text"]

LETTERS = "ijklmnpqrs"
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "over": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}
PLAIN_TYPES = ("f32", "i64", "bool")
Names = Mapping[str, str]


def text(kernel: Kernel) -> str:
    """The readable form, the same for kernels that differ in the names of their variables alone."""
    buffers = ", ".join(f"{one.name}: {one.dtype} {one.role}" for one in kernel.buffers)
    names = _short_names(kernel)
    symbols = ", ".join(spell_size(symbol(name), names.get) for name in kernel.symbols)
    lines = [f"kernel({buffers}; {symbols})" if symbols else f"kernel({buffers})"]
    lines += _block(kernel.body, names, 1)
    lines += [f"  reason {at}: {json.dumps(one)}" for at, one in enumerate(kernel.reasons)]
    return "\n".join(lines) + "\n"


def headline(statement: Statement) -> str:
    """The first line of a statement, with its names as they are."""
    return next(_lines(statement, {}, 0))


def _short_names(kernel: Kernel) -> dict[str, str]:
    taken = {one.name for one in kernel.buffers} | set(kernel.symbols)
    fresh = {prefix: _fresh(prefix, taken) for prefix in ("", "t", "v", "a")}
    names: dict[str, str] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, For):
            names[statement.var] = next(fresh[""])
        elif isinstance(statement, Let):
            names[statement.name] = next(fresh["t"])
        elif isinstance(statement, Local):
            names[statement.name] = next(fresh["v"])
        elif isinstance(statement, Array):
            names[statement.name] = next(fresh["a"])
    return names


def _fresh(prefix: str, taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        if prefix:
            name = f"{prefix}{number}"
        else:
            turn, at = divmod(number, len(LETTERS))
            name = LETTERS[at] + (str(turn) if turn else "")
        number += 1
        if name not in taken:
            yield name


# Statements


def _block(body: Sequence[Statement], names: Names, depth: int) -> list[str]:
    return [line for statement in body for line in _lines(statement, names, depth)]


def _lines(statement: Statement, names: Names, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield indent + _head(statement, names)
    if isinstance(statement, (For, While)):
        yield from _block(statement.body, names, depth + 1)
    elif isinstance(statement, If):
        yield from _block(statement.then, names, depth + 1)
        if statement.other:
            yield indent + "else"
            yield from _block(statement.other, names, depth + 1)


def _head(statement: Statement, names: Names) -> str:
    def expr(value: Expr) -> str:
        return _spell(value, names)

    def size(value: Size) -> str:
        return spell_size(value, names.get)

    def name(value: str) -> str:
        return names.get(value, value)

    if isinstance(statement, For):
        word = "for" if statement.kind == "serial" else statement.kind
        grain = "" if statement.grain == 1 else f", grain {size(statement.grain)}"
        return f"{word} {name(statement.var)} < {size(statement.extent)}{grain}"
    if isinstance(statement, Let):
        return f"{name(statement.name)}: {statement.value.dtype} = {expr(statement.value)}"
    if isinstance(statement, Local):
        return f"var {name(statement.name)}: {statement.value.dtype} = {expr(statement.value)}"
    if isinstance(statement, Set):
        return f"{name(statement.name)} = {expr(statement.value)}"
    if isinstance(statement, Array):
        return f"array {name(statement.name)}: {statement.dtype}[{statement.size}]"
    if isinstance(statement, Store):
        return f"{name(statement.buffer)}[{size(statement.offset)}] = {expr(statement.value)}"
    if isinstance(statement, If):
        return f"if {expr(statement.condition)}"
    if isinstance(statement, While):
        return f"while {expr(statement.condition)}"
    return f"fail {statement.reason}: {expr(statement.value)}, {expr(statement.limit)}"


# Expressions


def _spell(value: Expr, names: Names) -> str:
    if isinstance(value, Const):
        number = str(value.value).lower() if value.dtype == "bool" else repr(value.value)
        return number if value.dtype in PLAIN_TYPES else f"{number}:{value.dtype}"
    if isinstance(value, Index):
        return spell_size(value.size, names.get)
    if isinstance(value, Load):
        buffer = names.get(value.buffer, value.buffer)
        return f"{buffer}[{spell_size(value.offset, names.get)}]"
    if isinstance(value, Var):
        return names.get(value.name, value.name)
    if isinstance(value, Cast):
        mode = f", {value.mode}" if value.mode else ""
        return f"{value.dtype}({_spell(value.value, names)}{mode})"
    if isinstance(value, Select):
        parts = (value.condition, value.then, value.other)
        return f"where({', '.join(_spell(part, names) for part in parts)})"
    if value.op in INFIX and len(value.args) == 2:
        left, right = (_operand(arg, names) for arg in value.args)
        return f"{left} {INFIX[value.op]} {right}"
    return f"{value.op}({', '.join(_spell(arg, names) for arg in value.args)})"


def _operand(value: Expr, names: Names) -> str:
    spelled = _spell(value, names)
    infix = isinstance(value, Apply) and value.op in INFIX
    compound = isinstance(value, Index) and any(sign in spelled for sign in "+-*/% ")
    return f"({spelled})" if infix or compound else spelled


# Sizes


def spell_size(size: Size, rename: Callable[[str], str | None]) -> str:
    """The size as a Python expression, its symbols under other names where there are any.

    The terms are ordered by what is printed. Substituting symbols instead would simplify under
    what their new names seem to promise: `max(#%t0, 0)` is not `t0`.
    """
    terms = [(_factors(mono, rename), coefficient) for mono, coefficient in terms_of(size)]
    terms.sort(key=lambda term: (-len(term[0]), term[0]))
    spelled = ""
    for factors, coefficient in terms:
        number = [] if factors and abs(coefficient) == 1 else [str(abs(coefficient))]
        term = "*".join([*number, *factors])
        if spelled:
            spelled += f" - {term}" if coefficient < 0 else f" + {term}"
        else:
            spelled = f"-{term}" if coefficient < 0 else term
    return spelled or "0"


def _factors(mono: Monomial, rename: Callable[[str], str | None]) -> list[str]:
    return sorted(_spell_atom(atom, rename) for atom, power in mono for _ in range(power))


def _spell_atom(atom: Atom, rename: Callable[[str], str | None]) -> str:
    if atom.op == "symbol":
        return rename(atom.name) or atom.text
    args = [spell_size(arg, rename) for arg in atom.args]
    if atom.op in ("//", "%"):
        left, right = (arg if arg.replace("_", "").isalnum() else f"({arg})" for arg in args)
        return f"({left}//{right})" if atom.op == "//" else f"({left} % {right})"
    return f"{atom.op}({', '.join(sorted(args))})"
