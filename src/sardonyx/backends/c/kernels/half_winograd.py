"""Winograd's F(2×4, 3×3) in float16 arithmetic: transforms in float32, as in `winograd`, products as in `half_tile`.

    for every block of channels
        for every strip of eight tiles of outputs
            V of its tiles                          float32
            for every point: pack them              [k][8], float16
        for every point and strip: product, added to M
    for every tile: Y, and an epilogue for each of its pixels

V of a tile and point is a row, and scaled as rows are; a filter has one scale, in its points and plainly. Transforming
and packing V takes as long as multiplying it with 25 filters, so that a task takes many. Outputs that are not finite are
computed again in float32, from the weights that lie behind U; those that are small beside others of their tile are left
as they are: the error of all is a part of the largest, and this precision promises no more.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.cells import WIDE
from sardonyx.backends.c.kernels.conv import ConvSpec
from sardonyx.backends.c.kernels.elements import vector_reader
from sardonyx.backends.c.kernels.half_tile import LARGEST, ROWS, half_call, half_tile_functions
from sardonyx.backends.c.kernels.halves import COLUMNS, HEAD
from sardonyx.backends.c.kernels.isa import Isa, Tile
from sardonyx.backends.c.kernels.nest import SUPPORT, indented, row_counts
from sardonyx.backends.c.kernels.points import channel_blocks
from sardonyx.backends.c.kernels.winograd import (
    PAD,
    WinogradBlocks,
    input_transform,
    launch_tiles,
    output_values,
    stored_pixels,
    task_borders,
    task_sizes,
    tiles_of_all,
)

__all__ = ["half_winograd"]

_FILTERS = (128, 256)  # of a task: fewer would transform the same inputs too often; at most
_STACK = 393216  # bytes of V and M together
_STRIPS = 8  # in a task, at most


def half_winograd(name: str, spec: ConvSpec, epilogue: str, isa: Isa) -> str:
    """C text of the convolution, as `winograd.winograd`; the weights are packed by `halves.pack_half_points`."""
    blocks = _blocks(spec)
    counts = row_counts(tiles_of_all(spec, WIDE), ROWS)
    return f"""\
{SUPPORT}
{vector_reader(f"{name}_a", "f32", isa.lanes)}
{half_tile_functions(name, counts)}
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
    channels = channel_blocks(spec.channels)
    panels = min(_FILTERS[1] // COLUMNS, -(-spec.filters // COLUMNS))
    strip = WIDE.points * ROWS * (2 * max(channels) + 4 * panels * COLUMNS)
    tiles = min(_STRIPS, max(1, _STACK // strip))
    return WinogradBlocks(channels, panels, tiles, COLUMNS, WIDE)


def _plain_panel(spec: ConvSpec) -> int:
    """Elements of a panel of the weights themselves."""
    return 9 * spec.channels * COLUMNS + HEAD


def _output(name: str, spec: ConvSpec, blocks: WinogradBlocks) -> str:
    """`<name>_output`: Y of one tile in the place of its M, with the scales of its filters; whether it is finite."""
    pitch = blocks.pitch
    lines = output_values(name, blocks)
    for pixel in range(WIDE.outputs):
        i, j = divmod(pixel, WIDE.across.outputs)
        lines.append(f"const sx_f4 z{pixel} = y{i}{j} * scale;")
        lines.append(f"*({name}_a_m *)(m + {pixel * pitch} + f) = z{pixel};")
    lines.append(f"spoilt += ({' + '.join(f'z{pixel}' for pixel in range(WIDE.outputs))}) * 0;")
    body = "\n            ".join(lines)
    return f"""\
static inline int32_t {name}_output(const _Float16 *head, int64_t panels, float *m) {{
    sx_f4 spoilt = {{0}};
    for (int64_t panel = 0; panel < panels; panel++, head += {_plain_panel(spec)}, m += {COLUMNS})
        for (int64_t f = 0; f < {COLUMNS}; f += 4) {{
            const sx_f4 scale = *(const sx_f4m *)((const float *)head + f);
            {body}
        }}
    return spoilt[0] + spoilt[1] + spoilt[2] + spoilt[3] == 0;
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
    most, strip = blocks.tiles * ROWS, blocks.depth * ROWS
    plain, high, wide = _plain_panel(spec), WIDE.down.outputs, WIDE.across.outputs
    panel = f"({COLUMNS} * kc + {HEAD})"
    multiply = half_call(
        name,
        counts,
        "taken",
        f"packed + (point * {blocks.tiles} + tile - first_tile) * {strip}, "
        f"scales[point * {blocks.tiles} + tile - first_tile], kc, "
        f"head + {HEAD}, {panel}, last_panel - first_panel, sums, {m_pitch}, fresh",
    )
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
{task_sizes(spec, Tile(ROWS, COLUMNS), WIDE)}    __attribute__((aligned(64))) float v[{ROWS * v_pitch}], m[{most * m_pitch}];
    __attribute__((aligned(64))) float scales[{WIDE.points * blocks.tiles}][{ROWS}];
    __attribute__((aligned(64))) _Float16 packed[{WIDE.points * blocks.tiles * strip}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
{task_borders(spec, Tile(ROWS, COLUMNS))}        const _Float16 *u = job->b;
        for (int64_t block = 0, k0 = 0; block < {len(blocks.channels)}; k0 += {name}_depths[block++]) {{
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
                for (int64_t point = 0; point < {WIDE.points}; point++) {{
                    const int64_t place = point * {blocks.tiles} + tile - first_tile;
                    const float *rows[1][{ROWS}];
                    for (int64_t r = 0; r < taken; r++)
                        rows[0][r] = v + r * {v_pitch} + point * {blocks.depth};
                    sx_half_strip(rows, 1, kc, taken, {LARGEST}, packed + place * {strip}, scales[place]);
                }}
            }}
            for (int64_t point = 0; point < {WIDE.points}; point++)
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t begins = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
                    const _Float16 *head = u + (point * panels + first_panel) * {panel};
                    float *sums = m + (begins - top) * {m_pitch} + point * {pitch};
{indented(multiply, 20)}                }}
            u += {WIDE.points} * panels * {panel};
        }}
        for (int64_t at = top; at < bottom; at++) {{
            const int64_t b = at / of_image, i = at % of_image / across * {high}, j = at % of_image % across * {wide};
            const _Float16 *plain = u + first_panel * {plain};
            float *y = m + (at - top) * {m_pitch};
            if (!{name}_output(plain, last_panel - first_panel, y))
                {name}_repair(
                    job->a + b * height * width * {channels}, height, width,
                    i - {window.pads_begin[0]}, j - {window.pads_begin[1]}, plain, last_panel - first_panel, y);
{stored_pixels(epilogue, blocks)}        }}
    }}
}}
"""
