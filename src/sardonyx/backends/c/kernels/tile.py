"""The micro-kernel: one tile of C in registers, A read in place, B from packed panels.

    for every panel of NR columns
        for every piece of K                      some segments, or a part of one
            c[r][j] = 0
            for every segment s of the piece      one, or a tap of a convolution's kernel each
                for k in depth
                    c[r][j] += rows[s][r][k] * b[k][j]
            acc[r][panel·NR + j] += c[r][j]

The shorter the sums, the smaller their rounding errors: a piece has PIECE products at most. Where pieces end
depends on K alone, and blocks of K are whole pieces; within one, an element is summed over k in order by fused
multiply-adds, whatever the tile, the block or the thread: the same bits for any partition of the work. Few
rows leave most registers idle, and one sum waits for the next: then several panels are taken at once.

Integers are quads of bytes (`elements`): a step of k is four of them, multiplied and summed by one instruction. Where
the processor has none that is exact, but for pairs of 16 bits, rows of A were widened when they were copied, and a step is two:

    c[r][j] += evens(rows[s][r][k]) · evens(b[k][j])          bytes 0 and 2
    c[r][j] += odds(rows[s][r][k]) · odds(b[k][j])            bytes 1 and 3

or they were split (`support/split.h`), and the bytes of B are 128 too large:

    c[r][j] = -128 · sum of row r
    c[r][j] += rows[s][r][k] · b[k][j]                        for k in depth
    c[r][j] += quad · b[at][j]                                for the extras of row r; where there are many, as above
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sardonyx.backends.c.kernels.byte_tiles import strip_function
from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE, sum_type, vector_reader
from sardonyx.backends.c.kernels.isa import Isa, Tile

# Products summed in one go. A quarter of 768 costs a hundredth of the time, and leaves a smaller error than peers have,
# who take 128 to 256.
PIECE = 192

# Steps of k by which a panel is asked for ahead of its use: these processors wait for the second-level cache otherwise,
# up to a fifth of the time.
_AHEAD = {"neon": 8, "avx2": 8, "avx512": 8}

# Steps of k in one go, where A is broadcast, and bytes of a line of the cache.
STEPS = 4
LINE = 64

# Sums kept in registers from piece to piece would push others out, and so would vectors of B from the evens to the odds:
# compilers try to.
IN_MEMORY = '__asm__ volatile("" : : : "memory");'


@dataclass(frozen=True)
class TileFamily:
    """The micro-kernels of one contraction: `<name>_rows_1` … `<name>_rows_<MR>`.

    Attributes:
        b: element type of the packed operand; sums and rows of A have `sum_type(b)`.
        apart: segments of a piece; 0 for all of them.
        run: values of a piece in a single segment; 0 for all of it.
        start: C text of a pointer at what sums of integers begin with, column by column; "" for zeros.
        split: rows of A are what `sx_split` leaves, and bytes of B are 128 too large.
        shorts: numbers of A and of B are pairs of 16 bits as they are.
        widened: with `split`, for where there would be too many extras: rows are what `sx_widen` leaves.
        strip: steps of a block, at most, where `byte_tiles` takes the place of functions for rows; else 0.
        finish: the epilogue, where it takes sums out of registers: a row of whole panels at a time, for K is a single piece.
        full: all panels are, so that nothing of a row is left over for `finish`.
        soon: lines of a block yet to come that are asked for in every `STEPS` steps of k (`lines_soon`); the functions
            are told how far off it is, in elements.
        asks: with `finish`, the function that asks for the memory that a part of a row goes to.
        groups: of `STEPS` steps, in a panel of a kernel that asks.
        pitch: elements from one row of A to the next, where all of a tile's are so: a segment has one pointer then.
        near: the whole of B stays in the first-level cache, so that none of it is asked for.
    """

    name: str
    isa: Isa
    tile: Tile
    b: str = "f32"
    apart: int = 0
    run: int = 0
    start: str = ""
    split: bool = False
    shorts: bool = False
    widened: bool = False
    strip: int = 0
    finish: str = ""
    full: bool = False
    soon: int = 0
    asks: str = ""
    groups: int = 0
    pitch: int = 0
    near: bool = False

    @property
    def integer(self) -> bool:
        return self.b == "i32"

    @property
    def in_pieces(self) -> bool:
        """Whether a sum may have several pieces."""
        return bool(self.apart or self.run)

    @property
    def copies_quads(self) -> bool:
        """Whether rows of A are copied as `sx_split` or `sx_widen` leaves them."""
        return self.integer and self.isa.byte_pairs

    @property
    def pairs(self) -> bool:
        """Whether they are pairs: two words for every quad."""
        return self.copies_quads and not self.shorts and (self.widened or not self.split)

    @property
    def words(self) -> int:
        """Numbers that a row of A may have for a step of k."""
        return 2 if self.copies_quads else 1

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


def lines_soon(family: TileFamily, tiles: int) -> tuple[int, int]:
    """Lines of the next block for every `STEPS` steps, so that `tiles` tiles ask for all of it; and how many tiles take turns.

    A block that comes from memory would hold up the first tile that reads it. (0, 1) where the processor looks ahead itself.
    """
    if family.isa.name not in _AHEAD or family.isa.by_lane or family.strip:
        return 0, 1
    lines = max(1, STEPS * family.tile.columns * BYTES[family.b] // LINE)
    each = min(STEPS, lines, max(1, -(-lines // max(1, tiles))))
    return each, max(1, lines // each)


def widened_family(family: TileFamily) -> TileFamily:
    """The family that takes over where rows would have too many extras."""
    return replace(family, name=f"{family.name}_pairs", widened=True)


def copied_quads(
    family: TileFamily, flipped: bool, less: int, to: str, source: str, count: str, at: str = "0"
) -> str:
    """C text that copies quads of row `r` as the tile reads them, from its quad `at` on.

    `packing.turn_function` is needed where they are neither split nor widened.

    Args:
        less: what the bytes are reduced by, after they were turned, where they are split.
    """
    words = "2 * " if family.pairs else ""
    place = to if at == "0" else f"{to} + {words}{at}"
    if not family.copies_quads:
        return f"{family.name}_turn({place}, {source}, {count});"
    if not family.split:  # bytes with a sign, of those without one
        flipped, less = not flipped, 128
    turned = f"(int32_t)0x{'80808080' if flipped else '0'}, {less}"
    if family.pairs:
        return f"sx_widen({place}, {source}, {count}, {turned});"
    return f"sx_split(&split, r, {place}, {source}, {count}, {at}, {turned});"


def point_rows(first: str, apart: str, segment: str = "0") -> str:
    """C text: rows of a tile lie `apart` elements behind each other, from `first` on; those past `taken` are its last one.

    As many pointers as there may be, for compilers make one store of them: of `taken` pointers it would be under a mask,
    and loads right behind it would wait until it is written (8% of products of 64 values on Cascade Lake).
    """
    return f"""\
for (int64_t r = 0; r < (int64_t)(sizeof *rows / sizeof **rows); r++)
    rows[{segment}][r] = {first} + sx_least(r, taken - 1) * ({apart});
"""


def row_done(family: TileFamily) -> str:
    """C text after the last of row `r` was copied."""
    return " split.ends[r] = split.count;" if family.split and not family.widened else ""


def tile_functions(family: TileFamily, row_counts: Iterable[int]) -> str:
    """C text: types, readers, and a function for every number of rows asked for."""
    if family.strip:
        return strip_function(family.name, family.strip, bool(family.start))
    header = "split.h" if family.copies_quads else "dot.h"
    parts = [f'#include "{header}"'] if family.integer else []
    parts += [
        vector_reader(f"{family.name}_a", family.dtype, family.lanes),
        vector_reader(f"{family.name}_b", family.b, family.lanes),
    ]
    parts += [_rows_function(family, rows) for rows in sorted(set(row_counts))]
    return "\n".join(parts)


def tile_call(family: TileFamily, row_counts: Iterable[int], rows: str, arguments: str) -> str:
    """C text that calls the function for `rows` rows, which is one of `row_counts`."""
    if family.strip:
        return f"{family.name}_strip({rows}, {arguments});"
    counts = sorted(set(row_counts))
    if len(counts) == 1:
        return f"{family.name}_rows_{counts[0]}({arguments});"
    cases = [f"case {n}: {family.name}_rows_{n}({arguments}); break;" for n in counts]
    return "\n".join([f"switch ({rows}) {{", *cases, "}"])


def _rows_function(family: TileFamily, rows: int) -> str:
    name, value = family.name, C_TYPE[family.dtype]
    started = f", const {value} *start" if family.start else ""
    started += ", int64_t soon" if family.soon else ""
    started += ", const struct sx_rows *split" if family.split else ""
    into = f"{value} *acc, int64_t pitch, int32_t fresh"
    own = ""
    if family.finish:
        into = "const struct env *env, int64_t batch, int64_t row, int64_t column"
        into += "" if family.full else ", int64_t left"
        # What is written to results might change that of others, as far as a compiler knows.
        own = "    const struct env own = *env;\n"
    several = family.panels_at_once(rows)
    loops = [_panels(family, rows, several)] if several > 1 else []
    loops.append(_panels(family, rows, 1))
    body = "\n".join(loops)
    pointers, said = f"*(*rows)[{family.tile.rows}]", "rows[s][r] points"
    if family.pitch:
        pointers, said = "*const *rows", f"rows[s] + r * {family.pitch} points"
    return f"""\
/* {rows} rows: {said} at the first of `depth` values; panels are `stride` values apart. */
static __attribute__((noinline)) void {name}_rows_{rows}(
    const {value} {pointers}, int64_t segments, int64_t depth,
    const {C_TYPE[family.b]} *b, int64_t stride, int64_t panels, {into}{started}) {{
    int64_t panel = 0;
{own}{body}}}
"""


def _panels(family: TileFamily, rows: int, panels: int) -> str:
    """The loop over panels, `panels` of them at once."""
    name, tile, lanes = family.name, family.tile, family.lanes
    value, stored = C_TYPE[family.dtype], C_TYPE[family.b]
    vectors = [(p, v) for p in range(panels) for v in range(family.vectors)]
    cells = [(r, p, v) for r in range(rows) for p, v in vectors]

    def place(r: int, p: int, v: int) -> str:
        return f"acc + {r} * pitch + {p * tile.columns + v * lanes}"

    begin = [f"{name}_a_v c{r}_{p}_{v} = {_first(family, r, p, v)};" for r, p, v in cells]
    add = [f"c{r}_{p}_{v} += {name}_a_load({place(r, p, v)});" for r, p, v in cells]
    store = [f"*({name}_a_m *)({place(r, p, v)}) = c{r}_{p}_{v};" for r, p, v in cells]
    streams = [f"const {stored} *b{p} = b + {p} * stride;" for p in range(panels)]
    if family.soon:
        streams += [f"const {stored} *ahead{p} = b{p} + soon;" for p in range(panels)]
    if family.asks:
        streams.append("uint32_t asked = 0;")  # without a sign, halves are shifts
    pointers = [f"const {value} *a{r} = rows[s][{r}];" for r in range(rows)]
    if family.pitch:
        pointers = [f"const {value} *a = rows[s];"]
    extras = _extras(family, rows, panels) if family.split and not family.widened else []
    if family.finish:
        every = "for (int64_t s = 0; s < segments; s++) {"
        inner = ["int64_t k = 0;", "const int64_t end = depth;", *_inner(family, rows, panels)]
        body = [*begin, every, *_deeper([*pointers, *inner]), "}", *_finish(family, rows, panels)]
    else:
        body = _pieces(family, pointers, begin, _inner(family, rows, panels), extras, add, store)
    onward = [f"b += {panels} * stride;"]
    if family.finish:
        onward.append(f"column += {panels * tile.columns};")
        onward += [] if family.full else [f"left -= {panels * tile.columns};"]
    else:
        onward.append(f"acc += {panels * tile.columns};")
    onward += [f"start += {panels * tile.columns};"] if family.start else []
    text = f"""
for (; panel + {panels} <= panels; panel += {panels}) {{
    const {name}_a_v zero = {{0}};{_ones(family)}
    {_lines([*streams, *body], 4)}
    {_lines(onward, 4)}
}}
"""
    return "".join(f"    {line}\n" for line in text.strip().split("\n"))


def _finish(family: TileFamily, rows: int, panels: int) -> list[str]:
    """C statements that hand the tile over. An array that is only ever read at places known beforehand is none in memory."""
    columns = panels * family.tile.columns
    array = f"{C_TYPE[family.dtype]} sums[{rows}][{columns}];"
    fill = [
        f"*({family.name}_a_m *)(sums[{r}] + {p * family.tile.columns + v * family.lanes}) = c{r}_{p}_{v};"
        for r in range(rows)
        for p in range(panels)
        for v in range(family.vectors)
    ]
    whole = [
        f"{family.finish}(&own, batch, row + {r}, column, {columns}, sums[{r}]);"
        for r in range(rows)
    ]
    if family.full:
        return ["{", *_deeper([array, *fill, *whole]), "}"]
    rest = [
        f"for (int64_t r = 0; r < {rows}; r++)",
        f"    {family.finish}(&own, batch, row + r, column, sx_least(left, {columns}), sums[r]);",
    ]
    return [
        f"if (left >= {columns}) {{",
        *_deeper([array, *fill, *whole]),
        "} else {",
        *_deeper([array, *fill, *rest]),
        "}",
    ]


def _ones(family: TileFamily) -> str:
    """C text of what pairs of 16 bits are added up by."""
    if not family.split or family.widened:
        return ""
    return f"\n    const {family.name}_a_v ones = zero + 0x10001;"


def _first(family: TileFamily, r: int, p: int, v: int) -> str:
    """C text of what a sum begins with."""
    first = "zero"
    if family.start:
        offset = p * family.tile.columns + v * family.lanes
        first = f"{family.name}_a_load(start + {offset})"
        first = first if family.finish else f"(fresh ? {first} : zero)"
    return f"{first} - split->sums[{r}] * 128" if family.split else first


def _extras(family: TileFamily, rows: int, panels: int) -> list[str]:
    """C statements: what is left of the rows' quads."""
    lines: list[str] = []
    for r in range(rows):
        steps = [
            f"const {family.name}_a_v x = ({family.name}_a_v){{0}} + split->extras[extra].quad;",
            f"const int32_t *at = b + split->extras[extra].at * {family.tile.columns};",
        ]
        for p in range(panels):
            for v in range(family.vectors):
                y = f"{family.name}_b_load(at + {p} * stride + {v * family.lanes})"
                total = f"c{r}_{p}_{v}"
                steps.append(f"{total} = sx_bytes_{family.lanes}({total}, x, {y}, ones);")
        lines += [f"for (; extra < split->ends[{r}]; extra++) {{", *_deeper(steps), "}"]
    return ["if (split->count > 0) {", *_deeper(["int64_t extra = 0;", *lines]), "}"]


def _pieces(
    family: TileFamily,
    pointers: list[str],
    begin: list[str],
    inner: list[str],
    extras: list[str],
    add: list[str],
    store: list[str],
) -> list[str]:
    """The loops over segments and pieces around the loop over k, which goes from `k` to `end`."""
    every = "for (int64_t s = 0; s < segments; s++) {"
    whole = ["int64_t k = 0;", "const int64_t end = depth;", *inner]
    if not family.in_pieces:
        rest = [*extras, "if (!fresh) {", *_deeper(add), "}", *store]
        return [*begin, every, *_deeper([*pointers, *whole]), "}", *rest]
    added = ["if (!first) {", *_deeper(add), "}", "first = 0;", *store, IN_MEMORY]
    if family.run:
        forward = [f"a{r} += {family.run};" for r in range(len(pointers))]
        piece = [
            f"const int64_t end = sx_least(left, {family.run});",
            "int64_t k = 0;",
            *begin,
            *inner,
            *added,
            *forward,
            f"left -= {family.run};",
        ]
        parts = [*pointers, "int64_t left = depth;", "do {", *_deeper(piece), "} while (left > 0);"]
        loops = [every, *_deeper(parts), "}"]
    else:
        several = [
            *begin,
            f"const int64_t last = sx_least(segments, s + {family.apart:d});",
            "for (; s < last; s++) {",
            *_deeper([*pointers, *whole]),
            "}",
            *added,
        ]
        loops = ["for (int64_t s = 0; s < segments;) {", *_deeper(several), "}"]
    return ["int32_t first = fresh;", *loops]


def _inner(family: TileFamily, rows: int, panels: int) -> list[str]:
    """The loop over k: by vectors of A and their lanes, or by broadcast values of A."""
    name, tile, lanes = family.name, family.tile, family.lanes
    asks = tile.columns * BYTES[family.b] >= LINE and not family.near
    ahead = _AHEAD.get(family.isa.name, 0) if asks else 0
    sign = "unsigned_" if family.split else ""

    def multiply(k: int, operands: list[tuple[str, int | None]], part: str = "") -> list[str]:
        lines = []
        for p in range(panels):
            for v in range(family.vectors):
                offset = k * tile.columns + v * lanes
                y = f"{name}_b_load(b{p} + {offset})"
                y = f"sx_{sign}{part}_{lanes}({y})" if part else y
                lines.append(f"const {name}_a_v y{p}_{v} = {y};")
                if ahead and part != "odds" and offset * BYTES[family.b] % LINE == 0:
                    lines.append(f"__builtin_prefetch(b{p} + {offset + ahead * tile.columns});")
        lines += [
            _step(family, f"c{r}_{p}_{v}", operands[r], f"y{p}_{v}")
            for r in range(rows)  # outermost: a broadcast value of A is used up before the next
            for p in range(panels)
            for v in range(family.vectors)
        ]
        return ["{", *[f"    {line}" for line in lines], "}"]

    def advance(steps: int) -> list[str]:
        return [f"b{p} += {steps * tile.columns};" for p in range(panels)]

    def step(k: int) -> list[str]:
        """One of k, by values of A; bytes as pairs are two."""
        found = []
        parts = ("evens", "odds") if family.pairs else ("",)
        for odd, part in enumerate(parts):
            step, offset = ("2 * k", 2 * k + odd) if family.pairs else ("k", k)
            place = f"{step} + {offset}" if offset else step
            found += [f"    {IN_MEMORY}"] if part else []
            found += [f"    {line}" for line in multiply(k, _values(family, rows, place), part)]
        return found

    lines: list[str] = []
    if family.isa.by_lane:
        lines += [f"for (; k + {lanes} <= end; k += {lanes}) {{"]
        lines += [f"    const {name}_a_v x{r} = {name}_a_load(a{r} + k);" for r in range(rows)]
        for k in range(lanes):
            lines += [f"    {line}" for line in multiply(k, [(f"x{r}", k) for r in range(rows)])]
        lines += [f"    {line}" for line in advance(lanes)]
        lines += ["}", "for (; k < end; k++) {"]
    else:
        lines += [f"for (; k + {STEPS} <= end; k += {STEPS}) {{"]
        if family.asks:
            lines += [f"    {line}" for line in _ask(family, rows, panels * tile.columns)]
        for k in range(STEPS):
            lines += step(k)
            if k < family.soon:
                offset = k * LINE // BYTES[family.b]
                lines += [
                    f"    __builtin_prefetch(ahead{p} + {offset}, 0, 2);" for p in range(panels)
                ]
            lines += [f"    {IN_MEMORY}"]
        lines += [f"    {line}" for line in advance(STEPS)]
        if family.soon:
            asked = family.soon * LINE // BYTES[family.b]
            lines += [f"    ahead{p} += {asked};" for p in range(panels)]
        lines += ["}", "for (; k < end; k++) {"]
    lines += step(0)
    lines += [f"    {line}" for line in advance(1)]
    return [*lines, "}"]


def _values(family: TileFamily, rows: int, place: str) -> list[tuple[str, int | None]]:
    """The rows' values at a place, for all lanes."""
    if family.pitch:
        return [(f"a[{place} + {r * family.pitch}]", None) for r in range(rows)]
    return [(f"a{r}[{place}]", None) for r in range(rows)]


def _ask(family: TileFamily, rows: int, columns: int) -> list[str]:
    """C statements that ask for the memory of the next part of a row, in every group of steps until all was asked for.

    Parts are as short as the groups allow: longer ones hold up the panels, by 2 to 5% of products of 64 to 147 values on
    Cascade Lake. To ask for a third too much, which is of the next tile, takes 2% less than to know when to stop.
    """
    line = LINE // BYTES[family.dtype]
    lengths = (each for each in range(line, columns, line) if columns % each == 0)
    part = next((each for each in lengths if rows * columns <= family.groups * each), columns)
    parts = columns // part
    place = "row + asked, column"
    if parts > 1:
        place = f"row + asked / {parts}, column + asked % {parts} * {part}"
    ask = [f"{family.asks}(&own, batch, {place}, {part});", "asked++;"]
    if family.groups * 3 <= rows * parts * 4:
        return ask
    return [f"if (asked < {rows * parts}) {{", *_deeper(ask), "}"]


def _step(family: TileFamily, total: str, operand: tuple[str, int | None], y: str) -> str:
    """One sum and one vector of B: a lane of a vector of A, or a value of A for all lanes."""
    x, lane = operand
    if not family.integer:
        if lane is None:
            return f"{total} += {x} * {y};"
        splat = ", ".join([str(lane)] * family.lanes)
        return f"{total} += __builtin_shufflevector({x}, {x}, {splat}) * {y};"
    if lane is not None:
        return f"sx_dot_lane({total}, {x}, {lane}, {y});"
    every = f"{family.name}_a_v"
    operands = f"{total}, ({every}){{0}} + {x}, {y}"
    if family.split and not family.widened:
        return f"{total} = sx_bytes_{family.lanes}({operands}, ones);"
    step = "pairs" if family.pairs or family.shorts else "dot"
    return f"{total} = sx_{step}_{family.lanes}({operands});"


def _deeper(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _lines(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)
