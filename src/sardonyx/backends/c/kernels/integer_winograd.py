"""Winograd's convolution of bytes, exactly: as `winograd`, with V and 4 U in integers of 16 bits.

    |V| <= 4 · 128      |4 U| <= 9 · 128      Y = Aᵀ M A / 4, whose division leaves nothing

M and its sums wrap: Y comes out right because 4 Y fits into 32 bits. It takes 16 products of pairs where the plain way takes 36
of bytes, which are no faster on x86 without VNNI.

    for every block of channels
        V of its tiles                          on the stack, for all points
        for every point: product, added to M    on the stack
    for every tile: Y, and an epilogue for each of its pixels
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.cells import SQUARE, both_ways
from sardonyx.backends.c.kernels.isa import Isa, tile_of
from sardonyx.backends.c.kernels.nest import SUPPORT, indented, row_counts
from sardonyx.backends.c.kernels.points import integer_blocks
from sardonyx.backends.c.kernels.tile import TileFamily, point_rows, tile_call, tile_functions
from sardonyx.backends.c.kernels.windows import ConvSpec
from sardonyx.backends.c.kernels.winograd import (
    PAD,
    WinogradBlocks,
    launch_tiles,
    output_values,
    patch_function,
    stored_pixels,
    task_borders,
    task_sizes,
    tiles_of_all,
)

__all__ = ["integer_winograd"]

_FILTERS = (64, 128)  # of a task: fewer would transform the same inputs too often; at most
_STACK = 65536  # words of V and M together: a quarter of a megabyte


def integer_winograd(
    name: str,
    spec: ConvSpec,
    epilogue: str,
    isa: Isa,
    *,
    padding: int,
    flipped: bool,
    start: str = "",
) -> str:
    """C text of the convolution as a static function, as `integer_conv`; the kernel and its steps as of `winograd`.

    There is an even number of channels, and as many at least as a vector has numbers of 16 bits.
    """
    assert isa.byte_pairs
    assert spec.channels % 2 == 0
    assert spec.channels >= 2 * isa.lanes
    family = TileFamily(name, isa, tile_of(isa, "i32"), "i32", shorts=True)
    blocks, counts = _blocks(spec, family), row_counts(tiles_of_all(spec, SQUARE), family.tile.rows)
    return f"""\
{SUPPORT}
{tile_functions(family, counts)}
struct {name}_job {{
    const struct env *env;
    const uint8_t *a;
    const int32_t *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

static const int64_t {name}_depths[] = {{{", ".join(map(str, blocks.channels))}}};

{_input(spec, family, blocks, padding, flipped)}
{_output(family, blocks, start)}
{_tasks(spec, family, blocks, counts, epilogue, start)}
{launch_tiles(name, spec, family.tile, blocks, _FILTERS[0])}"""


def _blocks(spec: ConvSpec, family: TileFamily) -> WinogradBlocks:
    tile = family.tile
    channels = integer_blocks(spec.channels)
    panels = min(_FILTERS[1] // tile.columns, -(-spec.filters // tile.columns))
    width = SQUARE.points * (max(channels) // 2 + panels * tile.columns) + 2 * PAD
    return WinogradBlocks(channels, panels, max(1, _STACK // width // tile.rows), tile.columns)


def _input(
    spec: ConvSpec, family: TileFamily, blocks: WinogradBlocks, padding: int, flipped: bool
) -> str:
    """`<name>_input`: V of one tile and a block of channels; `<name>_patch`: the same at a border."""
    name, lanes, block = family.name, 2 * family.lanes, blocks.depth
    turn = " ^ (int8_t)-128" if flipped else ""
    lines = [
        f"const {name}_s d{i}{j} = __builtin_convertvector(*(const {name}_o *)(d + {i} * by_row + {j} * by_column + c){turn}, {name}_s);"
        for i, j in SQUARE.places
    ]
    lines += both_ways(f"{name}_s", "d", "t", "v", SQUARE, inputs=True)
    lines += [
        f"*({name}_sm *)(v + {point * block} + c) = v{i}{j};"
        for point, (i, j) in enumerate(SQUARE.places)
    ]
    body = "\n        ".join(lines)
    return f"""\
typedef int16_t {name}_s __attribute__((vector_size({2 * lanes})));
typedef int16_t {name}_sm __attribute__((vector_size({2 * lanes}), aligned(2), may_alias));
typedef int8_t {name}_o __attribute__((vector_size({lanes}), aligned(1), may_alias));

/* The last vector may begin before the end of the one before: it stores the same again. */
static inline void {name}_input(const uint8_t *d, int64_t by_row, int64_t by_column, int64_t count, int16_t *v) {{
    for (int64_t at = 0; at < count; at += {lanes}) {{
        const int64_t c = sx_least(at, count - {lanes});
        {body}
    }}
}}

{patch_function(name, spec.channels, blocks, "uint8_t", "int16_t", padding)}"""


def _output(family: TileFamily, blocks: WinogradBlocks, start: str) -> str:
    """`<name>_output`: Y of one tile in the place of its M, with what sums begin with."""
    name, pitch = family.name, blocks.pitch
    lines = output_values(name, blocks)
    if start:
        lines.append(f"const {name}_a_v first = {name}_a_load(start + f);")
    added = " + first" if start else ""
    lines += [
        f"*({name}_a_m *)(m + {(2 * i + j) * pitch} + f) = (y{i}{j} >> 2){added};"
        for i in range(2)
        for j in range(2)
    ]
    body = "\n        ".join(lines)
    parameter = ", const int32_t *start" if start else ""
    return f"""\
static inline void {name}_output(int32_t *m, int64_t count{parameter}) {{
    for (int64_t f = 0; f < count; f += {family.lanes}) {{
        {body}
    }}
}}
"""


def _tasks(
    spec: ConvSpec,
    family: TileFamily,
    blocks: WinogradBlocks,
    counts: list[int],
    epilogue: str,
    start: str,
) -> str:
    name, tile, window = family.name, family.tile, spec.window
    channels, pitch = spec.channels, blocks.pitch
    v_pitch, m_pitch = SQUARE.points * blocks.depth + 2 * PAD, SQUARE.points * pitch + PAD
    most = blocks.tiles * tile.rows
    panel = f"{tile.columns} * kc"
    operands = (
        f"u + (point * panels + first_panel) * {panel}, {panel}, last_panel - first_panel, "
        f"m + (begins - top) * {m_pitch} + point * {pitch}, {m_pitch}, k0 == 0"
    )
    multiply = tile_call(family, counts, "taken", f"rows, 1, kc, {operands}")
    lines = f"(const int32_t *)(v + (begins - top) * {v_pitch} + point * {blocks.depth})"
    begun = f", {start} + column" if start else ""
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
{task_sizes(spec, tile, SQUARE)}    const int32_t *rows[1][{tile.rows}];
    __attribute__((aligned(64))) int16_t v[{most * v_pitch}];
    __attribute__((aligned(64))) int32_t m[{most * m_pitch}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
{task_borders(spec, tile)}        for (int64_t block = 0, k0 = 0; block < {len(blocks.channels)}; k0 += {name}_depths[block++]) {{
            const int64_t kc = {name}_depths[block] / 2;
            const int32_t *u = job->b + {SQUARE.points * tile.columns // 2} * panels * k0;
            for (int64_t at = top; at < bottom; at++) {{
                const uint8_t *image = job->a + at / of_image * height * width * {channels} + k0;
                const int64_t i = at % of_image / across * 2 - {window.pads_begin[0]};
                const int64_t j = at % of_image % across * 2 - {window.pads_begin[1]};
                int16_t *to = v + (at - top) * {v_pitch};
                if ((i >= 0) & (j >= 0) & (i + 4 <= height) & (j + 4 <= width))
                    {name}_input(image + (i * width + j) * {channels}, width * {channels}, {channels}, 2 * kc, to);
                else
                    {name}_patch(image, height, width, i, j, 2 * kc, to);
            }}
            for (int64_t point = 0; point < {SQUARE.points}; point++)
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t begins = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
{indented(point_rows(lines, str(v_pitch // 2)), 20)}{indented(multiply, 20)}                }}
        }}
        for (int64_t at = top; at < bottom; at++) {{
            const int64_t b = at / of_image, i = at % of_image / across * 2, j = at % of_image % across * 2;
            int32_t *y = m + (at - top) * {m_pitch};
            {name}_output(y, (last_panel - first_panel) * {tile.columns}{begun});
{stored_pixels(epilogue, blocks)}        }}
    }}
}}
"""
