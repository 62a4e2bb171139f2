"""Printed C without what compilers added to the language: C99 as it was written down, for any of them.

    emit(plan, PLAIN)      vectors of one lane
    plain_text(text)       … are scalars; builtins are functions of <math.h> and <string.h>; attributes and hints are gone

Templates stay as they are: this is the one place that knows their dialect. What has no plain form is found out here and not by a
compiler on some other desk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.kernels.elements import BYTES
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.errors import ToolchainError

__all__ = ["PLAIN", "PLAIN_CPU", "PLAIN_DOT", "expand_ranges", "plain_text"]


@dataclass(frozen=True)
class _Scalars(Isa):
    """Registers of one value each, of whatever type."""

    def lanes_of(self, dtype: str) -> int:
        return 1 if dtype in BYTES else 0


PLAIN = _Scalars("portable", lanes=1, registers=16, fma=False)
PLAIN_CPU = Cpu("c99", (), frozenset(), 1)

# Instead of support/dot.h: what is signed, and that sums wrap, is said there.
PLAIN_DOT = """\
/* The dot product of four bytes with four others, added to a sum that wraps. */
#ifndef SX_DOT_H
#define SX_DOT_H

#include <stdint.h>

static inline int32_t sx_byte(int32_t quad, int at) { return (int8_t)(uint8_t)((uint32_t)quad >> at); }

static inline int32_t sx_dot_1(int32_t sum, int32_t a, int32_t b) {
    uint32_t total = (uint32_t)sum;
    for (int at = 0; at < 32; at += 8) total += (uint32_t)(sx_byte(a, at) * sx_byte(b, at));
    return (int32_t)total;
}

#endif
"""

_HALF = """\
static inline {0}_v {0}_load(const sx_f16 *p) {{ return sx_cast_f16_f32(*p); }}
"""
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE | re.DOTALL), by)
    for pattern, by in (
        # Half floats are their bits.
        (r"^__extension__ typedef _Float16 sx_f16;", "typedef uint16_t sx_f16;"),
        (r"#define SX_HARDWARE_F16 1", "#define SX_HARDWARE_F16 0"),
        (r"static inline (\w+)_v \1_load\(const sx_f16 \*p\) \{.*?^\}\n", _HALF.format(r"\1")),
        (r"return \(\w+\)\(__builtin_convertvector\(\*\(const \w+ \*\)p, \w+_u\) << 16\);", "return sx_from_bits_f32((uint32_t)*p << 16);"),
        # Vectors of one lane.
        (r"(typedef \w+ \w+) __attribute__\(\(vector_size\(\d+\)[^;]*\)\);", r"\1;"),
        (r"__builtin_convertvector\((\*\(const \w+ \*\)p), (\w+)\)", r"(\2)\1"),
        # What is only advice.
        (r"__attribute__\(\((?:noinline|noinline, cold|aligned\(64\))\)\) ", ""),
        (r" __attribute__\(\(aligned\(64\)\)\);", ";"),
        (r'^ *__asm__ volatile\("" : : : "memory"\);\n', ""),
        (r"^ *#pragma clang [^\n]*\n", ""),
        (r"^#define (\w+(?:\(\w+\))?) _Pragma\([^\n]*\)$", r"#define \1"),
        # Words that threads share: a plain artifact has none of its own.
        (r"__atomic_load_n\(&run->error, __ATOMIC_ACQUIRE\)", "SX_LOAD(&run->error)"),
        (r"__atomic_load_n\((\w+), __ATOMIC_ACQUIRE\)", r"(*(\1))"),
        (r"__atomic_store_n\(word, value, __ATOMIC_RELEASE\)", "(*(word) = (value))"),
        (r" *int32_t none = SX_OK;\n( *)if \(__atomic_compare_exchange_n\([^\n]*\)\) \{", r"\1if (run->error == SX_OK) {\n\1    run->error = SX_VALUE;"),
        (r"written from any thread, read with __atomic_load_n", "read with SX_LOAD"),
        # Compilers' own names for functions of the library; every kernel has types.h.
        (r"^#include <stdint\.h>\n#include <string\.h>\n", "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"),
        (r"^#ifndef __has_builtin\n.*?^#endif\n", ""),
        (r"^#if __has_builtin\(.*?^#else\n(.*?)^#endif\n", r"\1"),
        (r"__builtin_inff\(\)", "INFINITY"),
        (r"__builtin_inf\(\)", "HUGE_VAL"),
        (r'__builtin_nanf\(""\)', "NAN"),
        (r'__builtin_nan\(""\)', "((double)NAN)"),
        (r"__builtin_##", ""),
        (r"__builtin_(\w+)", r"\1"),
    )
)  # fmt: skip
_RANGES = re.compile(r"\{\[0 \.\.\. (\d+)\] = ([^{}]*)\}")
_FOREIGN = re.compile(r"\b(?:__(?!cplusplus\b)\w+|_Pragma|_Float16|asm)\b|\[\d+ \.\.\. ")


def plain_text(text: str) -> str:
    """The same program in plain C99.

    Raises:
        ToolchainError: something in it has no plain form.
    """
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    text = expand_ranges(text)
    _check(text)
    return text


def expand_ranges(text: str) -> str:
    """`{[0 ... 2] = x}` written out, as the standard has it."""
    return _RANGES.sub(lambda m: "{" + ", ".join([m[2]] * (int(m[1]) + 1)) + "}", text)


def _check(text: str) -> None:
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for line in code.splitlines():
        found = (
            None
            if re.match(r"\s*#\s*(?:if|ifdef|elif|ifndef|pragma GCC)\b", line)
            else _FOREIGN.search(line)
        )
        if found is not None:
            raise ToolchainError(
                f"{found[0]!r} has no form in plain C99: {line.strip()[:120]}",
                value=found[0],
                hint="Leave --portable away, and compile the sources with gcc or clang.",
            )
