"""Winograd's F(2×4, 3×3) in float16 arithmetic: V in float32, as in `winograd`, products as in `half_tile`, Y in float16.

    for every block of channels
        for every strip of eight tiles of outputs
            V of its tiles                          float32
            for every point: pack them              [k][8], float16
        for every point and strip: product, M       float16
        for every tile: Y                           computed in float16; blocks are added up in float32
    for every tile: an epilogue for each of its pixels

V of a tile and point is a row, and scaled as rows are; a filter has one scale, in its points and plainly. Transforming
and packing V takes as long as multiplying it with 25 filters, so that a task takes many. CPUs convert slowly: M as
float32 took a twelfth of the time. Y of tiles with rows that are scaled is computed in float32.

Panels of a tile in which some output is not finite, or was too large for float16 on its way, are computed again in float32,
from the weights that lie behind U; outputs that are small beside others of their tile are left
as they are: the error of all is a part of the largest, and this precision promises no more.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.cells import WIDE, both_ways
from sardonyx.backends.c.kernels.elements import vector_reader
from sardonyx.backends.c.kernels.half_tile import (
    KEPT,
    LARGEST,
    ROWS,
    half_call,
    kept_rows,
    plain_function,
)
from sardonyx.backends.c.kernels.halves import COLUMNS, HEAD, half_channel_blocks
from sardonyx.backends.c.kernels.isa import Isa, Tile
from sardonyx.backends.c.kernels.nest import SUPPORT, indented, row_counts
from sardonyx.backends.c.kernels.windows import ConvSpec
from sardonyx.backends.c.kernels.winograd import (
    PAD,
    WinogradBlocks,
    input_transform,
    launch_tiles,
    stored_pixels,
    task_borders,
    task_sizes,
    tiles_of_all,
)

__all__ = ["half_winograd"]

_FILTERS = (128, 256)  # of a task: fewer would transform the same inputs too often; at most
_STACK = 393216  # bytes of V and M as float16, together
_STRIPS = 8  # in a task, at most


def half_winograd(name: str, spec: ConvSpec, epilogue: str, isa: Isa) -> str:
    """C text of the convolution, as `winograd.winograd`; the weights are packed by `halves.pack_half_points`."""
    blocks = _blocks(spec)
    counts = row_counts(tiles_of_all(spec, WIDE), ROWS)
    return f"""\
{SUPPORT}
{vector_reader(f"{name}_a", "f32", isa.lanes)}
#include "halves.h"
{kept_rows(name, counts, KEPT)}
{plain_function(name)}
struct {name}_job {{
    const struct env *env;
    const float *a;
    const _Float16 *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

static const float {name}_zeros[{spec.channels}];
static const int64_t {name}_depths[] = {{{", ".join(map(str, blocks.channels))}}};

{input_transform(name, spec.channels, isa.lanes, blocks)}
{_output(name, spec, blocks)}
{_repair(name, spec, blocks)}
{_tasks(name, spec, blocks, counts, epilogue)}
{launch_tiles(name, spec, Tile(ROWS, COLUMNS), blocks, _FILTERS[0])}"""


def _blocks(spec: ConvSpec) -> WinogradBlocks:
    channels = half_channel_blocks(spec.channels)
    assert max(channels) <= KEPT.products
    panels = min(_FILTERS[1] // COLUMNS, -(-spec.filters // COLUMNS))
    strip = WIDE.points * ROWS * 2 * (max(channels) + panels * COLUMNS)
    tiles = min(_STRIPS, max(1, _STACK // strip))
    return WinogradBlocks(channels, panels, tiles, COLUMNS, WIDE)


def _plain_panel(spec: ConvSpec) -> int:
    """Elements of a panel of the weights themselves."""
    return 9 * spec.channels * COLUMNS + HEAD


def _output(name: str, spec: ConvSpec, blocks: WinogradBlocks) -> str:
    """`<name>_output`: Y of one tile with the scales of its filters; whether it was finite without them.
    `<name>_scaled_output`: the same where rows are scaled, in float32.
    """
    pitch, pixels = blocks.pitch, range(WIDE.outputs)
    results = [f"y{i}{j}" for i, j in (divmod(pixel, WIDE.across.outputs) for pixel in pixels)]
    several = len(blocks.channels) > 1
    lines = [
        f"const sx_h8 m{i}{j} = *(const sx_h8m *)(m + {point * pitch} + f);"
        for point, (i, j) in enumerate(WIDE.places)
    ]
    lines += both_ways("sx_h8", "m", "s", "y", WIDE, inputs=False)
    lines += [f"spoilt += {result} * none;" for result in results]
    for pixel, result in enumerate(results):
        for half, at in (("low", 0), ("high", 4)):
            place = f"(sx_f4m *)(y + {pixel * pitch} + f + {at})"
            before = f"(fresh ? (sx_f4){{0}} : (sx_f4)*{place}) + " if several else ""
            lines.append(f"*{place} = {before}sx_half_{half}({result}) * {half};")
    body = "\n            ".join(lines)
    alone = [
        f"const float m{i}{j} = (float)m[{point * pitch} + f] * scales[{point * blocks.tiles}][r];"
        for point, (i, j) in enumerate(WIDE.places)
    ]
    alone += both_ways("float", "m", "s", "y", WIDE, inputs=False)
    for pixel, result in enumerate(results):
        place = f"y[{pixel * pitch} + f]"
        before = f"(fresh ? 0 : {place}) + " if several else ""
        alone.append(f"{place} = {before}{result} * scale;")
        alone.append(f"spoilt += {result} * 0;")
    one_by_one = "\n            ".join(alone)
    return f"""\
static inline int32_t {name}_output(const _Float16 *head, int64_t panels, const _Float16 *m, int32_t fresh, float *y) {{
    const sx_h8 none = {{0}};
    sx_h8 spoilt = {{0}};
    (void)fresh;
    for (int64_t panel = 0; panel < panels; panel++, head += {_plain_panel(spec)}, m += {COLUMNS}, y += {COLUMNS})
        for (int64_t f = 0; f < {COLUMNS}; f += 8) {{
            const sx_f4 low = *(const sx_f4m *)((const float *)head + f);
            const sx_f4 high = *(const sx_f4m *)((const float *)head + f + 4);
            {body}
        }}
    int32_t good = 1;
    for (int32_t lane = 0; lane < 8; lane++)
        good &= spoilt[lane] == 0;
    return good;
}}

/* Of row r, whose scales are those of all points; `scales` begins with those of its strip at the first point. */
static __attribute__((noinline, cold)) int32_t {name}_scaled_output(
    const _Float16 *head, int64_t panels, const _Float16 *m, const float (*scales)[{ROWS}], int64_t r, int32_t fresh, float *y) {{
    float spoilt = 0;
    (void)fresh;
    for (int64_t panel = 0; panel < panels; panel++, head += {_plain_panel(spec)}, m += {COLUMNS}, y += {COLUMNS})
        for (int64_t f = 0; f < {COLUMNS}; f++) {{
            const float scale = ((const float *)head)[f];
            {one_by_one}
        }}
    return spoilt == 0;
}}
"""


def _repair(name: str, spec: ConvSpec, blocks: WinogradBlocks) -> str:
    """`<name>_repair`: panels of a tile in which some Y is not finite, by the plain sum."""
    pitch, stride = blocks.pitch, _plain_panel(spec)
    pixels, wide = WIDE.outputs, WIDE.across.outputs
    return f"""\
static __attribute__((noinline, cold)) void {name}_repair(
    const float *image, int64_t height, int64_t width, int64_t top, int64_t left,
    const _Float16 *weights, int64_t panels, float *y) {{
    const float *rows[9][{ROWS}];
    for (int64_t tap = 0; tap < 9; tap++)
        for (int64_t pixel = 0; pixel < {pixels}; pixel++) {{
            const int64_t i = top + tap / 3 + pixel / {wide}, j = left + tap % 3 + pixel % {wide};
            const int32_t inside = ((uint64_t)i < (uint64_t)height) & ((uint64_t)j < (uint64_t)width);
            rows[tap][pixel] = inside ? image + (i * width + j) * {spec.channels} : {name}_zeros;
        }}
    for (int64_t panel = 0; panel < panels; panel++, weights += {stride}) {{
        float *at = y + panel * {COLUMNS};
        int32_t good = 1;
        for (int64_t pixel = 0; pixel < {pixels}; pixel++)
            for (int64_t f = 0; f < {COLUMNS}; f++)
                good &= at[pixel * {pitch} + f] * 0 == 0;
        if (!good)
            {name}_plain(rows, 9, {spec.channels}, {pixels}, weights, weights + {HEAD}, {stride}, 1, at, {pitch}, 1);
    }}
}}
"""


def _tasks(
    name: str, spec: ConvSpec, blocks: WinogradBlocks, counts: list[int], epilogue: str
) -> str:
    window, channels, pitch = spec.window, spec.channels, blocks.pitch
    v_pitch, m_pitch = WIDE.points * blocks.depth + PAD, WIDE.points * pitch + PAD
    most, strip, parts = blocks.tiles * ROWS, blocks.depth * ROWS, len(blocks.channels)
    plain, high, wide = _plain_panel(spec), WIDE.down.outputs, WIDE.across.outputs
    panel = f"({COLUMNS} * kc + {HEAD})"
    # Tiles of which more is to come must wait; else one after the other takes the same place.
    waiting, own = (most, f"(at - top) * {WIDE.outputs * pitch}") if parts > 1 else (1, "0")
    multiply = half_call(
        name,
        counts,
        "taken",
        f"packed + (point * {blocks.tiles} + tile - first_tile) * {strip}, kc, "
        f"head + {HEAD}, {panel}, last_panel - first_panel, {m_pitch}, sums",
    )
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
{task_sizes(spec, Tile(ROWS, COLUMNS), WIDE)}    __attribute__((aligned(64))) float v[{ROWS * v_pitch}], results[{waiting * WIDE.outputs * pitch}];
    __attribute__((aligned(64))) float scales[{WIDE.points * blocks.tiles}][{ROWS}];
    __attribute__((aligned(64))) _Float16 packed[{WIDE.points * blocks.tiles * strip}], m[{most * m_pitch}];
    uint8_t wild[{blocks.tiles}], good[{most}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
{task_borders(spec, Tile(ROWS, COLUMNS))}        const _Float16 *u = job->b;
        const _Float16 *plain = u + {WIDE.points} * panels * {COLUMNS * channels + HEAD * parts} + first_panel * {plain};
        for (int64_t block = 0, k0 = 0; block < {parts}; k0 += {name}_depths[block++]) {{
            const int64_t kc = {name}_depths[block];
            const int32_t fresh = k0 == 0;
            for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                const int64_t begins = tile * shortest + sx_least(tile, taller);
                const int64_t taken = shortest + (tile < taller);
                for (int64_t r = 0; r < taken; r++) {{
                    const int64_t at = begins + r;
                    const float *image = job->a + at / of_image * height * width * {channels} + k0;
                    const int64_t i = at % of_image / across * {high} - {window.pads_begin[0]};
                    const int64_t j = at % of_image % across * {wide} - {window.pads_begin[1]};
                    float *to = v + r * {v_pitch};
                    if ((i >= 0) & (j >= 0) & (i + {WIDE.down.points} <= height) & (j + {WIDE.across.points} <= width))
                        {name}_input(image + (i * width + j) * {channels}, width * {channels}, {channels}, kc, to);
                    else
                        {name}_patch(image, height, width, i, j, kc, to);
                }}
                int32_t tame = 1;
                for (int64_t point = 0; point < {WIDE.points}; point++) {{
                    const int64_t place = point * {blocks.tiles} + tile - first_tile;
                    const float *rows[1][{ROWS}];
                    for (int64_t r = 0; r < taken; r++)
                        rows[0][r] = v + r * {v_pitch} + point * {blocks.depth};
                    tame &= sx_half_strip(rows, 1, kc, taken, {LARGEST}, packed + place * {strip}, scales[place]);
                }}
                wild[tile - first_tile] = !tame;
            }}
            for (int64_t point = 0; point < {WIDE.points}; point++)
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t begins = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
                    const _Float16 *head = u + (point * panels + first_panel) * {panel};
                    _Float16 *sums = m + (begins - top) * {m_pitch} + point * {pitch};
{indented(multiply, 20)}                }}
            u += {WIDE.points} * panels * {panel};
            for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                const int64_t begins = tile * shortest + sx_least(tile, taller);
                const int64_t taken = shortest + (tile < taller);
                for (int64_t r = 0; r < taken; r++) {{
                    const int64_t at = begins + r;
                    const _Float16 *sums = m + (at - top) * {m_pitch};
                    float *y = results + {own};
                    int32_t scaled = 0;
                    for (int64_t point = 0; wild[tile - first_tile] && point < {WIDE.points}; point++)
                        scaled |= scales[point * {blocks.tiles} + tile - first_tile][r] != 1;
                    const int32_t finite = scaled
                        ? {name}_scaled_output(plain, last_panel - first_panel, sums, scales + (tile - first_tile), r, fresh, y)
                        : {name}_output(plain, last_panel - first_panel, sums, fresh, y);
                    good[at - top] = finite && (fresh || good[at - top]);
                    if (block + 1 < {parts})
                        continue;
                    const int64_t b = at / of_image, i = at % of_image / across * {high}, j = at % of_image % across * {wide};
                    if (!good[at - top])
                        {name}_repair(
                            job->a + b * height * width * {channels}, height, width,
                            i - {window.pads_begin[0]}, j - {window.pads_begin[1]}, plain, last_panel - first_panel, y);
{indented(stored_pixels(epilogue, blocks), 8)}                }}
            }}
        }}
    }}
}}
"""
