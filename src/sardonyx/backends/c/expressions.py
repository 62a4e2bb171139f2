"""Expressions of the kernel language as C."""

from __future__ import annotations

import math
from collections.abc import Callable

from sardonyx.backends.c.sizes import render_size
from sardonyx.loops.nodes import Apply, Cast, Const, Dtype, Expr, Index, Load, Select, Var
from sardonyx.sizes import Size

__all__ = ["C_TYPES", "render_expression"]

C_TYPES: dict[Dtype, str] = {
    "f16": "sx_f16",
    "bf16": "sx_bf16",
    "f32": "float",
    "f64": "double",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "bool": "uint8_t",
    "f8e4m3fn": "sx_f8e4m3fn",
    "f8e4m3fnuz": "sx_f8e4m3fnuz",
    "f8e5m2": "sx_f8e5m2",
    "f8e5m2fnuz": "sx_f8e5m2fnuz",
    "f8e8m0": "sx_f8e8m0",
    "f4e2m1": "sx_f4e2m1",
    "i4": "sx_i4",
    "u4": "sx_u4",
    "i2": "sx_i2",
    "u2": "sx_u2",
}

FLOATS = ("f32", "f64")
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FLOAT_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
BIT_SIGNS = {"and": "&", "or": "|", "xor": "^"}
LOWEST = {"i32": "INT32_MIN", "i64": "INT64_MIN"}

NameOf = Callable[[str], str]


def render_expression(expression: Expr, name_of: NameOf) -> str:
    """One C expression. Operands that are not names or calls are put into parentheses."""
    if isinstance(expression, Const):
        return _constant(expression)
    if isinstance(expression, Var):
        return name_of(expression.name)
    if isinstance(expression, Index):
        return f"(int64_t)({_size(expression.size, name_of)})"
    if isinstance(expression, Load):
        return f"{name_of(expression.buffer)}[{_size(expression.offset, name_of)}]"
    if isinstance(expression, Cast):
        value = render_expression(expression.value, name_of)
        mode = f"_{expression.mode}" if expression.mode else ""
        return f"sx_cast_{expression.value.dtype}_{expression.dtype}{mode}({value})"
    if isinstance(expression, Select):
        parts = (expression.condition, expression.then, expression.other)
        condition, then, other = (_operand(part, name_of) for part in parts)
        return f"{condition} ? {then} : {other}"
    return _apply(expression, name_of)


def _apply(expression: Apply, name_of: NameOf) -> str:
    op, dtype = expression.op, expression.args[0].dtype
    if _rounds_and_adds(expression):
        rounded, more = expression.args
        assert isinstance(rounded, Cast)
        return f"sx_near_plus_i16({render_expression(rounded.value, name_of)}, {render_expression(more, name_of)})"
    sign = _sign(op, dtype)
    if sign is not None:
        *left, right = (_operand(arg, name_of) for arg in expression.args)
        return f"{left[0]} {sign} {right}" if left else f"{sign}{right}"
    args = ", ".join(render_expression(arg, name_of) for arg in expression.args)
    return f"sx_{op}_{dtype}({args})"


def _rounds_and_adds(expression: Apply) -> bool:
    """Whether a float is rounded to 16 bits and a constant added: one function does both."""
    if expression.op != "add" or expression.dtype != "i16":
        return False
    rounded, more = expression.args
    return isinstance(rounded, Cast) and rounded.mode == "near" and isinstance(more, Const)


def _sign(op: str, dtype: Dtype) -> str | None:
    """The operator of C that the operation is; None where it is a function of scalar.h."""
    if op in COMPARISONS:
        return COMPARISONS[op]
    if op in BIT_SIGNS and dtype in ("bool", "i32", "i64", "u32", "u64"):
        return BIT_SIGNS[op]
    if op == "not" and dtype == "bool":
        return "!"
    if dtype in FLOATS:
        return "-" if op == "neg" else FLOAT_SIGNS.get(op)
    return None


def _operand(expression: Expr, name_of: NameOf) -> str:
    text = render_expression(expression, name_of)
    bare = isinstance(expression, (Const, Var, Load, Cast)) and not text.startswith("-")
    called = (
        isinstance(expression, Apply) and _sign(expression.op, expression.args[0].dtype) is None
    )
    return text if bare or called else f"({text})"


def _size(size: Size, name_of: NameOf) -> str:
    return render_size(size, name_of)


def _constant(constant: Const) -> str:
    value, dtype = constant.value, constant.dtype
    if dtype == "bool":
        return "1" if value else "0"
    if dtype in FLOATS or dtype in ("f16", "bf16"):
        return _float(float(value), dtype)
    number = int(value)
    if dtype in LOWEST and number == -(2 ** (31 if dtype == "i32" else 63)):
        return LOWEST[dtype]
    if dtype == "i64" and abs(number) >= 2**31:
        return f"INT64_C({number})"
    if dtype in ("u32", "u64"):
        return f"UINT{dtype[1:]}_C({number})"
    return str(number)


def _float(value: float, dtype: Dtype) -> str:
    suffix, builtin = ("", "") if dtype == "f64" else ("f", "f")
    if math.isnan(value):
        return f'__builtin_nan{builtin}("")'
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inf{builtin}()"
    if (
        value == int(value)
        and abs(value) < 1e6
        and not (value == 0 and math.copysign(1, value) < 0)
    ):
        return f"{int(value)}.0{suffix}"
    return f"{value.hex()}{suffix}"
