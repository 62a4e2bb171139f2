"""The micro-kernel of float16: a strip of up to eight rows times panels of sixteen columns, 32 registers full.

    for every panel
        for every group of runs                     most have 8, of 64 products each: `Sums`
            for every run of K
                c[r][j] = 0                         float16
                for k in the run
                    c[r][j] += a[k][r] * b[k][j]    eight columns an instruction
                part[r][j] += c[r][j]               float16
            acc[r][j] += scale[r] * part[r][j]      float32
        or, with an `Ending`, of the one group and rows that are not scaled
            done[r][j] = between(scales of columns[j] * part[r][j] + offsets[j])      float16
        or, where sums are kept, of the one group
            acc[r][j] = part[r][j]                  float16, no scales

Eleven bits hold a short sum well: a run is off by 2^-11 of its partial sums for every product, at random. So does the
sum of a few runs, for eight roundings more: it costs 7% of the error and spares seven of eight conversions, each of which
takes as long as four multiplications (on Neoverse N1).

A is packed by `sx_half_strip`, which scales rows that float16 could not hold; B by `halves.pack_halves`, whose scales are
taken off in the end, by `<name>_finish_products`. Neither lets a group overflow, so that what is not finite in the end was not so in
the beginning, or is too large for float32: `<name>_plain` computes it again, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from sardonyx.backends.c.kernels.halves import COLUMNS, HEAD
from sardonyx.plan.halves import HALF_SUMS
from sardonyx.plan.kernels import Ending

__all__ = [
    "KEPT",
    "LARGEST",
    "LONG",
    "ROWS",
    "SHORT",
    "USUAL",
    "Sums",
    "half_call",
    "half_tile_functions",
    "kept_rows",
    "limits",
    "plain_function",
]

ROWS = 8
_LANES = 8
_UNROLLED = 4


@dataclass(frozen=True)
class Sums:
    """How many products are added up in float16: `runs` times `run`."""

    run: int
    runs: int

    @property
    def products(self) -> int:
        return self.run * self.runs


USUAL = Sums(64, 8)
SHORT = Sums(40, 6)  # of convolutions of few products: 0.83 of the error, 3% of the time more
LONG = Sums(128, 4)  # of convolutions of many: 1.4 times the error, 2% of the time less
KEPT = Sums(64, 5)  # of Winograd's algorithm, whose transform is in float16 too
# Exponent of the largest number of a row that is not scaled: weights are below 1, and sums below 2^15.
LARGEST = 6


def half_tile_functions(
    name: str,
    row_counts: Iterable[int],
    sums: Sums = USUAL,
    ending: Ending | None = None,
    *,
    kept: bool = False,
) -> str:
    """C text: `<name>_rows_<n>` for every number of rows asked for, `<name>_finish_products` and `<name>_plain`.

    Args:
        kept: sums stay float16, as by `kept_rows`.
    """
    ends = _kept if kept else _accumulated if ending is None else partial(_ended, ending)
    return f"""\
#include "halves.h"
{_rows_functions(name, row_counts, sums, ends)}
/* The scales of the columns; whether all sums are finite. `head` is where the first panel's scales lie. Of tame rows,
 * panels without scales are done already. */
static inline int32_t {name}_finish_products(
    const _Float16 *head, int64_t stride, int64_t panels, int64_t taken, int32_t tame, float *acc, int64_t pitch) {{
    sx_f4 spoilt = {{0}};
    for (int64_t panel = 0; panel < panels; panel++, head += stride, acc += {COLUMNS}) {{
        const float *scales = (const float *)head;
        int32_t plain = tame;
        for (int64_t j = 0; j < {COLUMNS}; j++)
            plain &= scales[j] == 1.0f;
        if (plain)
            continue;
        for (int64_t j = 0; j < {COLUMNS}; j += 4) {{
            const sx_f4 scale = *(const sx_f4m *)(scales + j);
            for (int64_t r = 0; r < taken; r++) {{
                sx_f4m *at = (sx_f4m *)(acc + r * pitch + j);
                const sx_f4 sum = *at * scale;
                spoilt += sum * 0;
                *at = sum;
            }}
        }}
    }}
    return spoilt[0] + spoilt[1] + spoilt[2] + spoilt[3] == 0;
}}

{plain_function(name)}
/* Sums that are not finite, as they were computed again. */
static __attribute__((noinline, cold)) void {name}_replace(
    int64_t taken, int64_t count, float *acc, int64_t pitch, const float *again) {{
    for (int64_t r = 0; r < taken; r++)
        for (int64_t j = 0; j < count; j++)
            if (acc[r * pitch + j] * 0 != 0)
                acc[r * pitch + j] = again[r * pitch + j];
}}
"""


def kept_rows(name: str, row_counts: Iterable[int], sums: Sums) -> str:
    """C text: `<name>_rows_<n>` of no more products than `sums` has, which stay float16."""
    return _rows_functions(name, row_counts, sums, _kept)


def plain_function(name: str) -> str:
    """C text: `<name>_plain`."""
    return f"""\
/* The same products in float32, one after the other, from the rows as they are; scales of columns included. */
static __attribute__((noinline, cold)) void {name}_plain(
    const float *(*rows)[{ROWS}], int64_t segments, int64_t depth, int64_t taken, const _Float16 *head,
    const _Float16 *b, int64_t stride, int64_t panels, float *acc, int64_t pitch, int32_t fresh) {{
    for (int64_t panel = 0; panel < panels; panel++, head += stride, b += stride, acc += {COLUMNS})
        for (int64_t r = 0; r < taken; r++) {{
            const _Float16 *from = b;
            float sums[{COLUMNS}], *at = acc + r * pitch;
            for (int64_t j = 0; j < {COLUMNS}; j++)
                sums[j] = fresh ? 0 : at[j];
            for (int64_t s = 0; s < segments; s++)
                for (int64_t k = 0; k < depth; k++, from += {COLUMNS})
                    for (int64_t j = 0; j < {COLUMNS}; j++)
                        sums[j] += rows[s][r][k] * ((float)from[j] * ((const float *)head)[j]);
            for (int64_t j = 0; j < {COLUMNS}; j++)
                at[j] = sums[j];
        }}
}}
"""


def limits(ending: Ending) -> list[str]:
    """C text: vectors of the two limits."""
    both = (("low", ending.low), ("high", ending.high))
    return [f"const sx_h8 {name} = sx_half_all({limit!r}f);" for name, limit in both]


def half_call(name: str, row_counts: Iterable[int], rows: str, arguments: str) -> str:
    """C text that calls the function for `rows` rows, which is one of `row_counts`."""
    cases = [f"case {n}: {name}_rows_{n}({arguments}); break;" for n in sorted(set(row_counts))]
    return "\n".join([f"switch ({rows}) {{", *cases, "}"])


_Cells = list[tuple[int, int]]  # row and vector of each register of sums


@dataclass(frozen=True)
class _End:
    """What becomes of the sums of a group.

    Attributes:
        parameters: of the function, beside what all have.
        first: whether the group is the first, as a variable in C; nothing where there is but one.
    """

    parameters: str
    lines: list[str]
    first: str = ""


def _rows_functions(
    name: str, row_counts: Iterable[int], sums: Sums, ends: Callable[[_Cells], _End]
) -> str:
    return "\n".join(_rows_function(name, rows, sums, ends) for rows in sorted(set(row_counts)))


def _rows_function(name: str, rows: int, sums: Sums, ends: Callable[[_Cells], _End]) -> str:
    cells = [(r, v) for r in range(rows) for v in range(COLUMNS // _LANES)]
    begin = [f"sx_h8 c{r}_{v} = {{0}};" for r, v in cells]

    def step(k: int) -> list[str]:
        lines = [f"const sx_h8 x = *(const sx_h8m *)(x0 + {k * ROWS});"]
        lines += [
            f"const sx_h8 y{v} = *(const sx_h8m *)(y + {k * COLUMNS + v * _LANES});" for v in (0, 1)
        ]
        lines += [f"sx_half_lane(c{r}_{v}, x, {r}, y{v});" for r, v in cells]
        return ["{", *lines, "}"]

    parts = [f"*(sx_h8 *)(part + {_LANES * at})" for at in range(len(cells))]
    add = [f"c{r}_{v} += {part};" for (r, v), part in zip(cells, parts, strict=True)]
    keep = [f"{part} = c{r}_{v};" for (r, v), part in zip(cells, parts, strict=True)]
    several = [line for k in range(_UNROLLED) for line in step(k)]
    end = ends(cells)
    return f"""\
/* {rows} rows: a is [depth][{ROWS}]; panels are `stride` values apart. */
static __attribute__((noinline)) void {name}_rows_{rows}(
    const _Float16 *a, int64_t depth, const _Float16 *b, int64_t stride, int64_t panels, int64_t pitch,
    {end.parameters}) {{
    __attribute__((aligned(16))) _Float16 part[{_LANES * len(cells)}];
    for (int64_t panel = 0; panel < panels; panel++, b += stride) {{
        const _Float16 *x0 = a, *y = b;
        int32_t {end.first}runs = 0;
        int64_t left = depth;
        do {{
            int64_t k = left < {sums.run} ? left : {sums.run};
            left -= k;
            {_lines(begin, 12)}
            for (; k >= {_UNROLLED}; k -= {_UNROLLED}, x0 += {_UNROLLED * ROWS}, y += {_UNROLLED * COLUMNS}) {{
                {_lines(several, 16)}
            }}
            for (; k > 0; k--, x0 += {ROWS}, y += {COLUMNS}) {{
                {_lines(step(0), 16)}
            }}
            if (runs > 0) {{
                {_lines(add, 16)}
            }}
            if (++runs < {sums.runs} && left > 0) {{
                {_lines(keep, 16)}
            }} else {{
                {_lines(end.lines, 16)}
            }}
            /* Sums kept in registers from run to run would push others out: compilers try to. */
            __asm__ volatile("" : : : "memory");
        }} while (left > 0);
    }}
}}
"""


def _place(result: str, r: int, v: int) -> str:
    return f"{result} + {r} * pitch + panel * {COLUMNS} + {v * _LANES}"


def _stored(cells: _Cells, added: str = "") -> list[str]:
    """Sums as float32, with the scales of their rows, in place of what is there or added to it."""
    lines = []
    for r, v in cells:
        for half, part in enumerate(("low", "high")):
            place = f"(sx_f4m *)({_place('acc', r, v)} + {4 * half})"
            value = f"sx_half_{part}(c{r}_{v}) * scales[{r}]"
            lines.append(f"*{place} = {added.format(place)}{value};")
    return lines


def _accumulated(cells: _Cells) -> _End:
    lines = _either("first", _stored(cells), _stored(cells, "*{} + "))
    parameters = "float *acc, const float *scales, int32_t fresh"
    return _End(parameters, [*lines, "first = runs = 0;"], "first = fresh, ")


def _kept(cells: _Cells) -> _End:
    return _End("_Float16 *acc", [f"*(sx_h8m *)({_place('acc', r, v)}) = c{r}_{v};" for r, v in cells])  # fmt: skip


def _ended(ending: Ending, cells: _Cells) -> _End:
    """The sums of a panel, finished; its scales lie before its weights."""
    lines = [f"const float *heads = (const float *)(b - {HEAD});", *limits(ending)]
    for v in range(COLUMNS // _LANES):
        both = (f"*(const sx_f4m *)(heads + {_LANES * v + 4 * half})" for half in (0, 1))
        lines.append(f"const sx_h8 h{v} = sx_half_of({', '.join(both)});")
        place = f"offsets + panel * {COLUMNS} + {_LANES * v}"
        lines.append(f"const sx_h8 o{v} = *(const sx_h8m *)({place});")
    for r, v in cells:
        value = f"sx_half_between(sx_half_added(c{r}_{v}, h{v}, o{v}), low, high)"
        lines.append(f"*(sx_h8m *)({_place('done', r, v)}) = {value};")
    parameters = "float *acc, const float *scales, const _Float16 *offsets, _Float16 *done"
    return _End(parameters, _either("done", lines, _stored(cells)))


def _either(condition: str, then: list[str], otherwise: list[str]) -> list[str]:
    return [f"if ({condition}) {{", *_inside(then), "} else {", *_inside(otherwise), "}"]


def _inside(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _lines(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)


assert HEAD * 2 == COLUMNS * 4
assert SHORT.products == HALF_SUMS
assert all(sums.products << LARGEST <= 1 << 15 for sums in (USUAL, SHORT, LONG, KEPT))
