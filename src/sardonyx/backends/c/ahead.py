"""Where a row of sums goes, as a function that asks for these lines of memory before the row is there.

static inline void <name>(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count) {
    const float *out2 = env->p[2];
    for (int64_t i = 0; i < count; i += 16) {
        __builtin_prefetch(out2 + (64 * m + n + i));
    }
}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sardonyx.backends.c.expressions import C_TYPES
from sardonyx.backends.c.kernels.elements import BYTES
from sardonyx.backends.c.kernels.tile import LINE
from sardonyx.backends.c.sizes import render_size
from sardonyx.loops.nodes import Dtype, For, Index, Kernel, Let, Load, Statement, Store
from sardonyx.loops.walk import expressions, is_variable
from sardonyx.plan.kernels import BATCH, COLUMN, ROW
from sardonyx.sizes import Size, substitute, symbols

__all__ = ["render_asking"]


def render_asking(epilogue: Kernel, name: str, dtype: Dtype) -> str:
    """The function for what is of this type; "" where no part of a row lies in one piece."""
    numbers = {one.name: at for at, one in enumerate(epilogue.buffers) if one.dtype == dtype}
    places = [
        (numbers[buffer], first)
        for buffer, first in dict.fromkeys(_places(epilogue.body, {}))
        if buffer in numbers
    ]
    if not places:
        return ""
    called = {BATCH: "b", ROW: "m", COLUMN: "n"}
    called |= {symbol: f"env->n[{at}]" for at, symbol in enumerate(epilogue.symbols)}
    pointers, requests = [], []
    for number, first in places:
        array = f"{epilogue.buffers[number].role}{number}"
        pointers.append(f"    const {C_TYPES[dtype]} *{array} = env->p[{number}];\n")
        at = render_size(first, called.__getitem__)
        requests.append(f"        __builtin_prefetch({array} + ({at}) + i);\n")
    return f"""\
static inline void {name}(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count) {{
    (void)b, (void)n;
{"".join(dict.fromkeys(pointers))}\
    for (int64_t i = 0; i < count; i += {LINE // BYTES[dtype]}) {{
{"".join(requests)}    }}
}}
"""


def _places(body: Sequence[Statement], known: dict[str, Size]) -> Iterator[tuple[str, Size]]:
    """Buffers, and where in them a loop begins that goes through a row of theirs, element by element."""
    for loop in body:
        if not isinstance(loop, For):
            continue
        values = dict(known)
        for statement in loop.body:
            for part in expressions(statement):
                if isinstance(part, Load):
                    yield from _row(part.buffer, part.offset, loop.var, values)
            if isinstance(statement, Store):
                yield from _row(statement.buffer, statement.offset, loop.var, values)
            if isinstance(statement, Let) and isinstance(statement.value, Index):
                values[statement.name] = substitute(statement.value.size, values)


def _row(
    buffer: str, offset: Size, var: str, values: dict[str, Size]
) -> Iterator[tuple[str, Size]]:
    """The place, if elements lie side by side, and other rows elsewhere."""
    at = substitute(offset, values)
    first, second = substitute(at, {var: 0}), substitute(at, {var: 1})
    of_row = {name for name in symbols(at) if is_variable(name)} <= {BATCH, ROW, COLUMN, var}
    if of_row and second - first == 1 and ROW in symbols(at):
        yield buffer, first
