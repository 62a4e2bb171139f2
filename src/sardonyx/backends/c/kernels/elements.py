"""Element types of operands in memory, and how a value or a vector of them is read as C."""

from __future__ import annotations

# "i32" is a quad: four bytes of K beside each other, whose products are summed in 32 bits.
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i32": 4, "i8": 1, "u8": 1}

# bfloat16 is its bits: C has no such type everywhere. So is float16 where the CPU does not convert it.
C_TYPE = {
    "f16": "sx_f16",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
    "i32": "int32_t",
    "i8": "int8_t",
    "u8": "uint8_t",
}


def sum_type(dtype: str) -> str:
    """The type in which products of `dtype` are summed: the half floats and bytes are only stored."""
    if dtype in ("i32", "i8", "u8"):
        return "i32"
    return "f64" if dtype == "f64" else "f32"


def vector_types(prefix: str, dtype: str, lanes: int) -> str:
    """C text: `<prefix>_v`, a vector of sums, and `<prefix>_m`, one of `dtype` anywhere in memory."""
    total = sum_type(dtype)
    size, stored = lanes * BYTES[total], lanes * BYTES[dtype]
    return f"""\
{_needs(dtype)}typedef {C_TYPE[total]} {prefix}_v __attribute__((vector_size({size})));
typedef {C_TYPE[dtype]} {prefix}_m __attribute__((vector_size({stored}), aligned({BYTES[dtype]}), may_alias));
"""


def vector_reader(prefix: str, dtype: str, lanes: int) -> str:
    """C text: the vector types, and `<prefix>_load(p)`, which reads and widens one."""
    lines = vector_types(prefix, dtype, lanes)
    vector = f"*(const {prefix}_m *)p"
    if dtype == "f16":
        return f"{lines}{_half_reader(prefix, lanes)}"
    if dtype in ("i8", "u8"):
        vector = f"__builtin_convertvector({vector}, {prefix}_v)"
    if dtype == "bf16":
        bits = lanes * BYTES["f32"]
        lines += f"typedef uint32_t {prefix}_u __attribute__((vector_size({bits})));\n"
        vector = f"({prefix}_v)(__builtin_convertvector({vector}, {prefix}_u) << 16)"
    head = f"static inline {prefix}_v {prefix}_load(const {C_TYPE[dtype]} *p)"
    return f"{lines}{head} {{ return {vector}; }}\n"


def value_reader(prefix: str, dtype: str) -> str:
    """C text: `<prefix>_get(p)` reads one value as the type that is summed."""
    value = "sx_cast_f16_f32(*p)" if dtype == "f16" else "*p"
    if dtype == "bf16":
        value = "((union { uint32_t bits; float value; }){(uint32_t)*p << 16}).value"
    total = C_TYPE[sum_type(dtype)]
    head = f"{_needs(dtype)}static inline {total} {prefix}_get(const {C_TYPE[dtype]} *p)"
    return f"{head} {{ return {value}; }}\n"


def _needs(dtype: str) -> str:
    return '#include "conversions.h"\n' if dtype == "f16" else ""


def _half_reader(prefix: str, lanes: int) -> str:
    """Without an instruction for it, the compiler would call its runtime library, which is not linked."""
    return f"""\
static inline {prefix}_v {prefix}_load(const sx_f16 *p) {{
#if SX_HARDWARE_F16
    return __builtin_convertvector(*(const {prefix}_m *)p, {prefix}_v);
#else
    {prefix}_v x;
    for (int32_t i = 0; i < {lanes}; i++)
        x[i] = sx_cast_f16_f32(p[i]);
    return x;
#endif
}}
"""
