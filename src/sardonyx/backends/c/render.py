"""A kernel of the kernel language as one C function.

    static void part0(void *arg, int64_t begin, int64_t end) {     a parallel loop, outlined
        const struct part0 *c = arg;
        const float *in0 = c->p[0];
        for (int64_t i0 = begin; i0 < end; i0++) { … }
    }
    int32_t k(sx_run *run, void *const *p, const int64_t *n) {
        …
        run->parallel(run, 768, 64, part0, &(struct part0){run, p, n});
        return run->error;
    }

It only prints: every decision was taken before. Names are made here, in order of appearance, so that
equal kernels of different models are equal text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sardonyx.backends.c.expressions import C_TYPES, render_expression
from sardonyx.backends.c.sizes import render_size
from sardonyx.backends.c.vectors import accumulated, vectors_of
from sardonyx.loops.nodes import (
    Apply,
    Array,
    Cast,
    Dtype,
    Expr,
    Fail,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Set,
    Statement,
    Store,
    Var,
    While,
)
from sardonyx.loops.walk import expressions, sizes_of, statements
from sardonyx.plan.kernels import BATCH, COLUMN, COUNT, ROW, SUMS
from sardonyx.sizes import Size, symbols

__all__ = ["HEADERS", "KernelPrinter", "is_short", "render_epilogue", "render_kernel"]

_PLAIN = {"add", "sub", "mul", "min", "max"}
_LOADS = 3  # a scale, a bias and what is added, for which is asked as for the results

HEADERS = '#include "abi.h"\n#include "index.h"\n#include "scalar.h"\n'


def render_kernel(kernel: Kernel, name: str) -> str:
    """The whole translation unit of one kernel."""
    printer = KernelPrinter(kernel)
    body = printer.function(name)
    return "\n".join([HEADERS, *printer.parts, body])


def render_epilogue(kernel: Kernel, name: str, dtype: Dtype, *, inlined: bool = False) -> str:
    """What happens to a row of sums, in place or not, as the function that contraction kernels call.

    Args:
        inlined: it is, in all places, so that what is known there of counts is known in it.
    """
    printer = KernelPrinter(kernel)
    return printer.row_function(name, dtype, inlined)


def is_short(kernel: Kernel) -> bool:
    """Whether an epilogue is a few operations, so that it may as well take sums out of registers."""
    found = list(statements(kernel.body))
    parts = [part for one in found for part in expressions(one)]
    dtypes = {buffer.name: buffer.dtype for buffer in kernel.buffers}
    stored = {dtypes.get(one.buffer) for one in found if isinstance(one, Store)}
    loads = {part.buffer for part in parts if isinstance(part, Load)} - {SUMS}
    return (
        sum(isinstance(one, (For, While)) for one in found) == 1
        and {part.op for part in parts if isinstance(part, Apply)} <= _PLAIN
        and (stored <= {"i8", "u8"} or (stored == {"f32"} and len(loads) <= _LOADS))
    )


class KernelPrinter:
    """Prints one kernel; `parts` are the outlined bodies of its parallel loops."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.parts: list[str] = []
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._types: dict[str, str] = {}  # of every scalar a parallel loop may have to capture
        self._lines: list[str] = []
        self._depth = 1
        self._parallel = False
        self._arrays: set[str] = set()
        self._dtypes = {buffer.name: buffer.dtype for buffer in kernel.buffers}
        for position, buffer in enumerate(kernel.buffers):
            self._names[buffer.name] = f"{buffer.role}{position}"
        for position, symbol in enumerate(kernel.symbols):
            self._names[symbol] = f"n{position}"

    def function(self, name: str) -> str:
        head = f"int32_t {name}(sx_run *run, void *const *p, const int64_t *n) {{"
        needed = self._outside_parallel(self.kernel.body)
        self._lines = [head, "    (void)p, (void)n;", *self._arguments(needed, "")]
        self._block(self.kernel.body)
        self._line("return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);")
        return "\n".join([*self._lines, "}"]) + "\n"

    def row_function(self, name: str, dtype: Dtype, inlined: bool) -> str:
        arguments = {BATCH: "b", ROW: "m", COLUMN: "n", COUNT: "count", SUMS: "sums"}
        self._names.update(arguments)
        self._parallel = True  # in the sense that a failure is written down, not returned
        used = _used(self.kernel.body)
        stores = (one for one in statements(self.kernel.body) if isinstance(one, Store))
        constant = "" if any(one.buffer == SUMS for one in stores) else "const "
        inline = "static inline __attribute__((always_inline))" if inlined else "static inline"
        self._lines = [
            f"{inline} void {name}(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count,",
            f"                             {constant}{C_TYPES[dtype]} *sums) {{",
            "    (void)env, (void)b, (void)m, (void)n;",
            *self._arguments(used, "env->"),
        ]
        if any(isinstance(one, Fail) for one in statements(self.kernel.body)):
            self._line("sx_run *run = env->run;")
        self._block(self.kernel.body)
        return "\n".join([*self._lines, "}"]) + "\n"

    # Statements

    def _block(self, body: Iterable[Statement]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, For):
            self._loop(statement)
        elif isinstance(statement, Let):
            kind = C_TYPES[statement.value.dtype]
            self._line(
                f"const {kind} {self._bind(statement.name, kind)} = {self._e(statement.value)};"
            )
        elif isinstance(statement, Local):
            kind = C_TYPES[statement.value.dtype]
            self._line(f"{kind} {self._bind(statement.name, kind)} = {self._e(statement.value)};")
        elif isinstance(statement, Set):
            self._line(f"{self._names[statement.name]} = {self._e(statement.value)};")
        elif isinstance(statement, Array):
            kind = C_TYPES[statement.dtype]
            self._arrays.add(statement.name)
            self._line(f"{kind} {self._bind(statement.name, kind)}[{statement.size}];")
        elif isinstance(statement, Store):
            target = f"{self._names[statement.buffer]}[{self._s(statement.offset)}]"
            self._line(f"{target} = {self._e(statement.value)};")
        elif isinstance(statement, If):
            self._branch(statement)
        elif isinstance(statement, While):
            self._line(f"while ({self._e(statement.condition)}) {{")
            with self._indented():
                self._block(statement.body)
            self._line("}")
        else:
            self._failure(statement)

    def _branch(self, statement: If) -> None:
        self._line(f"if ({self._e(statement.condition)}) {{")
        with self._indented():
            self._block(statement.then)
        if statement.other:
            self._line("} else {")
            with self._indented():
                self._block(statement.other)
        self._line("}")

    def _failure(self, statement: Fail) -> None:
        values = f"{self._e(statement.value)}, {self._e(statement.limit)}"
        call = f"sx_fail(run, {statement.reason}, {values})"
        if self._parallel:
            self._line(f"{call};")
            self._line("return;")
        else:
            self._line(f"return {call};")

    def _loop(self, loop: For) -> None:
        if loop.kind == "parallel" and not self._parallel:
            self._parallel_loop(loop)
            return
        reassociates = loop.kind == "vector" and bool(accumulated(loop))
        if reassociates:
            self._line("{ SX_REASSOCIATE")
        if loop.kind == "vector" and not reassociates and self._rounds_to_bytes(loop):
            self._loop_of_bytes(loop, "0", self._s(loop.extent))
            return
        if loop.kind == "vector":
            self._line(vectors_of(loop, self._arrays))
        elif loop.kind == "unroll":
            self._line("SX_UNROLL")
        self._for(loop, "0", self._s(loop.extent))
        if reassociates:
            self._line("}")

    def _rounds_to_bytes(self, loop: For) -> bool:
        """Whether all that it writes are bytes, and they are made of floats."""
        found = list(statements(loop.body))
        if any(isinstance(one, (For, While)) for one in found):
            return False
        stored = {self._dtypes.get(one.buffer) for one in found if isinstance(one, Store)}
        casts = [part for one in found for part in expressions(one) if isinstance(part, Cast)]
        rounded = any(cast.mode == "near" or _is_byte_of_float(cast) for cast in casts)
        return rounded and stored <= {"i8", "u8"}

    def _loop_of_bytes(self, loop: For, begin: str, end: str) -> None:
        """Sixteen results at a time, a register of them; then eight, for the rest is often as many."""
        number = self._counts.get("whole", 0)
        self._counts["whole"] = number + 1
        whole = f"whole{number}"
        self._line(f"const int64_t {whole} = {begin} + ({end} - {begin}) / 16 * 16;")
        self._line("SX_SIXTEEN")
        self._for(loop, begin, whole)
        self._line("SX_EIGHT")
        self._for(loop, whole, end)

    def _for(self, loop: For, begin: str, end: str) -> None:
        var = self._bind(loop.var, "int64_t", "i")
        self._line(f"for (int64_t {var} = {begin}; {var} < {end}; {var}++) {{")
        with self._indented():
            self._block(loop.body)
        self._line("}")

    def _parallel_loop(self, loop: For) -> None:
        number = len(self.parts)
        self.parts.append("")  # its place, for loops inside are outlined before it is printed
        captured = self._captured(loop)
        outer, self._lines = self._lines, []
        depth, self._depth = self._depth, 1
        self._parallel = True
        self._body_of_part(loop, number, captured)
        self.parts[number] = "\n".join(self._lines) + "\n"
        self._parallel = False
        self._lines, self._depth = outer, depth
        values = ", ".join(["run", "p", "n", *(self._names[name] for name in captured)])
        arguments = f"{self._s(loop.extent)}, {self._s(loop.grain)}, part{number}"
        self._line(f"run->parallel(run, {arguments}, &(struct part{number}){{{values}}});")
        self._line("if (__atomic_load_n(&run->error, __ATOMIC_ACQUIRE)) return run->error;")

    def _body_of_part(self, loop: For, number: int, captured: Sequence[str]) -> None:
        fields = "".join(f" {self._types[name]} {self._names[name]};" for name in captured)
        self._lines.append(
            f"struct part{number} {{ sx_run *run; void *const *p; const int64_t *n;{fields} }};"
        )
        self._lines.append(f"static void part{number}(void *arg, int64_t begin, int64_t end) {{")
        self._line(f"const struct part{number} *c = arg;")
        if any(isinstance(one, Fail) for one in statements(loop.body)):
            self._line("sx_run *run = c->run;")
        self._lines += self._arguments(_used(loop.body), "c->")
        for name in captured:
            self._line(f"const {self._types[name]} {self._names[name]} = c->{self._names[name]};")
        if self._rounds_to_bytes(loop):
            self._loop_of_bytes(loop, "begin", "end")
        else:
            if not any(isinstance(one, (For, While)) for one in statements(loop.body)):
                self._line("SX_VECTORS")
            self._for(loop, "begin", "end")
        self._lines.append("}")

    # Names

    def _arguments(self, used: set[str], prefix: str) -> list[str]:
        """Buffers and sizes as local names, for those that are used."""
        lines = []
        for position, buffer in enumerate(self.kernel.buffers):
            if buffer.name in used:
                const = "const " if buffer.role == "in" else ""
                kind = f"{const}{C_TYPES[buffer.dtype]} *"
                lines.append(f"    {kind}{self._names[buffer.name]} = {prefix}p[{position}];")
        for position, symbol in enumerate(self.kernel.symbols):
            if symbol in used:
                lines.append(f"    const int64_t {self._names[symbol]} = {prefix}n[{position}];")
        return lines

    def _outside_parallel(self, body: Sequence[Statement]) -> set[str]:
        """Names used outside of the outermost parallel loops, their extents included."""
        used: set[str] = set()
        for statement in body:
            if isinstance(statement, For) and statement.kind == "parallel":
                for size in sizes_of(statement):
                    used |= symbols(size)
            elif isinstance(statement, (For, While)):
                used |= _own_names(statement) | self._outside_parallel(statement.body)
            elif isinstance(statement, If):
                used |= _own_names(statement)
                used |= self._outside_parallel(statement.then)
                used |= self._outside_parallel(statement.other)
            else:
                used |= _own_names(statement)
        return used

    def _captured(self, loop: For) -> list[str]:
        """Scalars bound outside of the loop that its body reads."""
        used = _used(loop.body)
        return [name for name in self._types if name in used]

    def _bind(self, name: str, kind: str, letter: str | None = None) -> str:
        letter = letter or name.lstrip("#%")[0]
        number = self._counts.get(letter, 0)
        self._counts[letter] = number + 1
        self._names[name] = f"{letter}{number}"
        self._types[name] = kind
        return self._names[name]

    def _name_of(self, name: str) -> str:
        return self._names[name]

    def _e(self, expression: Expr) -> str:
        return render_expression(expression, self._name_of)

    def _s(self, size: Size) -> str:
        return render_size(size, self._name_of)

    # Lines

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1


def _is_byte_of_float(cast: Cast) -> bool:
    return cast.dtype in ("i8", "u8") and cast.value.dtype == "f32"


def _own_names(statement: Statement) -> set[str]:
    used: set[str] = set()
    for size in sizes_of(statement):
        used |= symbols(size)
    for expression in expressions(statement):
        if isinstance(expression, Var):
            used.add(expression.name)
        elif isinstance(expression, Load):
            used.add(expression.buffer)
    if isinstance(statement, Store):
        used.add(statement.buffer)
    elif isinstance(statement, Set):
        used.add(statement.name)
    return used


def _used(body: Iterable[Statement]) -> set[str]:
    used: set[str] = set()
    for statement in statements(body):
        used |= _own_names(statement)
    return used
