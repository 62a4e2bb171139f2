"""The micro-kernel: one tile of C in registers, A read in place, B from packed panels.

    for every panel of NR columns
        c[r][j] = 0, or what earlier blocks of K have summed
        for every segment s of K              one, or a tap of a convolution's kernel each
            for k in depth
                c[r][j] += rows[s][r][k] * b[k][j]
        acc[r][panel·NR + j] = c[r][j]

Each element is summed over k in order by fused multiply-adds, whatever the tile, the block or the
thread: the same bits for any partition of the work. Few rows leave most registers idle, and one sum
waits for the next: then several panels are taken at once.

A family that sums its segments `apart` begins each of them at zero and adds it to acc: the shorter the
sums, the smaller their rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sardonyx.backends.c.kernels.elements import C_TYPE, sum_type, vector_reader
from sardonyx.backends.c.kernels.isa import Isa, Tile


@dataclass(frozen=True)
class TileFamily:
    """The micro-kernels of one contraction: `<name>_rows_1` … `<name>_rows_<MR>`.

    Attributes:
        b: element type of the packed operand; sums and rows of A have `sum_type(b)`.
        apart: whether every segment is summed by itself.
    """

    name: str
    isa: Isa
    tile: Tile
    b: str = "f32"
    apart: bool = False

    @property
    def dtype(self) -> str:
        return sum_type(self.b)

    @property
    def lanes(self) -> int:
        return self.isa.lanes_of(self.dtype)

    @property
    def vectors(self) -> int:
        """Vectors in a row of the tile."""
        return self.tile.columns // self.lanes

    def panels_at_once(self, rows: int) -> int:
        """Two where one would leave the multipliers waiting for the last sum; each is a stream of its own.

        All their sums and vectors of B must fit the registers, with a value of A.
        """
        fits = 2 * self.vectors * (rows + 1) < self.isa.registers
        return 2 if self.vectors <= 2 and rows < 4 and fits else 1


def tile_functions(family: TileFamily, row_counts: Iterable[int]) -> str:
    """C text: types, readers, and a function for every number of rows asked for."""
    parts = [
        vector_reader(f"{family.name}_a", family.dtype, family.lanes),
        vector_reader(f"{family.name}_b", family.b, family.lanes),
    ]
    parts += [_rows_function(family, rows) for rows in sorted(set(row_counts))]
    return "\n".join(parts)


def tile_call(family: TileFamily, row_counts: Iterable[int], rows: str, arguments: str) -> str:
    """C text that calls the function for `rows` rows, which is one of `row_counts`."""
    counts = sorted(set(row_counts))
    if len(counts) == 1:
        return f"{family.name}_rows_{counts[0]}({arguments});"
    cases = [f"case {n}: {family.name}_rows_{n}({arguments}); break;" for n in counts]
    return "\n".join([f"switch ({rows}) {{", *cases, "}"])


def _rows_function(family: TileFamily, rows: int) -> str:
    name, value = family.name, C_TYPE[family.dtype]
    several = family.panels_at_once(rows)
    loops = [_panels(family, rows, several)] if several > 1 else []
    loops.append(_panels(family, rows, 1))
    body = "\n".join(loops)
    return f"""\
/* {rows} rows: rows[s][r] points at the first of `depth` values; panels are `stride` values apart. */
static __attribute__((noinline)) void {name}_rows_{rows}(
    const {value} *const (*rows)[{family.tile.rows}], int64_t segments, int64_t depth,
    const {C_TYPE[family.b]} *b, int64_t stride, int64_t panels, {value} *acc, int64_t pitch, int32_t fresh) {{
    int64_t panel = 0;
{body}}}
"""


def _panels(family: TileFamily, rows: int, panels: int) -> str:
    """The loop over panels, `panels` of them at once."""
    name, tile, lanes = family.name, family.tile, family.lanes
    value, stored = C_TYPE[family.dtype], C_TYPE[family.b]
    vectors = [(p, v) for p in range(panels) for v in range(family.vectors)]
    cells = [(r, p, v) for r in range(rows) for p, v in vectors]

    def place(r: int, p: int, v: int) -> str:
        return f"acc + {r} * pitch + {p * tile.columns + v * lanes}"

    begin = [f"{name}_a_v c{r}_{p}_{v} = zero;" for r, p, v in cells]
    resume = [f"c{r}_{p}_{v} = {name}_a_load({place(r, p, v)});" for r, p, v in cells]
    add = [f"c{r}_{p}_{v} += {name}_a_load({place(r, p, v)});" for r, p, v in cells]
    finish = [f"*({name}_a_m *)({place(r, p, v)}) = c{r}_{p}_{v};" for r, p, v in cells]
    streams = [f"const {stored} *b{p} = b + {p} * stride;" for p in range(panels)]
    pointers = [f"const {value} *a{r} = rows[s][{r}];" for r in range(rows)]
    inner = [*pointers, "int64_t k = 0;", *_inner(family, rows, panels)]
    loop = "for (int64_t s = 0; s < segments; s++) {"
    if family.apart:
        rest = ["if (s > 0 || !fresh) {", *_deeper(add), "}", *finish]
        body = [loop, *_deeper([*begin, *inner, *rest]), "}"]
    else:
        start = [*begin, "if (!fresh) {", *_deeper(resume), "}"]
        body = [*start, loop, *_deeper(inner), "}", *finish]
    text = f"""
for (; panel + {panels} <= panels; panel += {panels}) {{
    const {name}_a_v zero = {{0}};
    {_lines([*streams, *body], 4)}
    b += {panels} * stride;
    acc += {panels * tile.columns};
}}
"""
    return "".join(f"    {line}\n" for line in text.strip().split("\n"))


def _inner(family: TileFamily, rows: int, panels: int) -> list[str]:
    """The loop over k: by vectors of A and their lanes, or by broadcast values of A."""
    name, tile, lanes = family.name, family.tile, family.lanes

    def multiply(k: int, operands: list[str]) -> list[str]:
        lines = []
        for p in range(panels):
            for v in range(family.vectors):
                offset = k * tile.columns + v * lanes
                lines.append(f"const {name}_a_v y{p}_{v} = {name}_b_load(b{p} + {offset});")
        lines += [
            f"c{r}_{p}_{v} += {operands[r]} * y{p}_{v};"
            for r in range(rows)  # outermost: a broadcast value of A is used up before the next
            for p in range(panels)
            for v in range(family.vectors)
        ]
        return ["{", *[f"    {line}" for line in lines], "}"]

    def advance(steps: int) -> list[str]:
        return [f"b{p} += {steps * tile.columns};" for p in range(panels)]

    lines: list[str] = []
    if family.isa.by_lane:
        lines += [f"for (; k + {lanes} <= depth; k += {lanes}) {{"]
        lines += [f"    const {name}_a_v x{r} = {name}_a_load(a{r} + k);" for r in range(rows)]
        for k in range(lanes):
            splat = ", ".join([str(k)] * lanes)
            lanes_of_a = [f"__builtin_shufflevector(x{r}, x{r}, {splat})" for r in range(rows)]
            lines += [f"    {line}" for line in multiply(k, lanes_of_a)]
        lines += [f"    {line}" for line in advance(lanes)]
        lines += ["}", "for (; k < depth; k++) {"]
    else:
        lines += ["#pragma clang loop unroll_count(4)", "for (; k < depth; k++) {"]
    lines += [f"    {line}" for line in multiply(0, [f"a{r}[k]" for r in range(rows)])]
    lines += [f"    {line}" for line in advance(1)]
    return [*lines, "}"]


def _deeper(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _lines(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)
