"""Convolution by Winograd's F(2×2, 3×3): four outputs for sixteen multiplications, where the plain way takes 36.

    d   4×4 inputs of a tile    V = Bᵀ d B         1  0 -1  0                             1    0    0
    g   3×3 weights             U = G g Gᵀ    Bᵀ = 0  1  1  0    Aᵀ = 1  1  1  0     G = 1/2  1/2  1/2
    Y   2×2 outputs             Y = Aᵀ M A         0 -1  1  0         0  1 -1 -1         1/2 -1/2  1/2
                                                   0  1  0 -1                             0    0    1

    M[point][tile, filter] = sum over channels of V[point][tile, channel] · U[point][channel, filter]

is sixteen products of matrices, one for each point of the 4×4, by the micro-kernel of `tile`: a tile of
outputs is a row. U comes packed (`points.pack_winograd`). A task takes some tiles and some filters:

    for every block of channels
        V of its tiles                          on the stack, for all points
        for every point: product, added to M    on the stack
    for every tile: Y, and an epilogue for each of its pixels

The four outputs of a tile share their errors, and what is not finite (∞ − ∞). So where one of them is not
finite, or by far smaller than another (a pixel like no other is in the tile, but not in its own window), they are
computed again for the filters of that panel, by the plain sum over taps and channels, from the plain weights that
lie behind U.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.backends.c.kernels.cells import SQUARE, Cell, both_ways
from sardonyx.backends.c.kernels.isa import Isa, Tile, tile_of
from sardonyx.backends.c.kernels.nest import SUPPORT, TASKS_EACH, Extent, indented, row_counts
from sardonyx.backends.c.kernels.points import SEGMENT, channel_blocks
from sardonyx.backends.c.kernels.tile import TileFamily, point_rows, tile_call, tile_functions
from sardonyx.backends.c.kernels.windows import ConvSpec

_FILTERS = (64, 128)  # of a task: fewer would transform the same inputs too often; at most
_STACK = 65536  # elements of V and M together: a quarter of a megabyte
_TASK = 1 << 17  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly
_RANGE = 28  # bits between the squares of a tile's outputs, at most: by chance, one panel in a thousand has more
PAD = 16  # elements between the tiles of V and M, so that they do not meet in the same lines of the cache


@dataclass(frozen=True)
class WinogradBlocks:
    """How the work is cut: `tiles` are those of the micro-kernel, each up to MR tiles of outputs.

    Attributes:
        columns: of a panel.
        cell: a tile of outputs.
    """

    channels: tuple[int, ...]
    panels: int
    tiles: int
    columns: int
    cell: Cell = SQUARE

    @property
    def depth(self) -> int:
        """Channels of the longest block, in whole lines of the cache."""
        return -(-max(self.channels) // 16) * 16

    @property
    def pitch(self) -> int:
        """Filters of a task, filled up to whole panels."""
        return self.panels * self.columns


def winograd(name: str, spec: ConvSpec, epilogue: str, isa: Isa, tile: Tile | None = None) -> str:
    """C text of the convolution as a static function, as `conv.conv` gives it.

    The kernel is 3×3, its strides and dilations are 1, it has one group, all is float32, and there are at least
    as many channels as a vector has lanes.

    Args:
        tile: instead of `tile_of(isa)`.
    """
    window = spec.window
    assert window.kernel == (3, 3)
    assert {*window.strides, *window.dilations, spec.groups} == {1}
    assert spec.a == spec.b == "f32"
    assert spec.channels >= isa.lanes
    family = TileFamily(name, isa, tile or tile_of(isa), apart=True)
    blocks, counts = _blocks(spec, family), row_counts(tiles_of_all(spec, SQUARE), family.tile.rows)
    return f"""\
{SUPPORT}
{tile_functions(family, {*counts, 4})}
struct {name}_job {{
    const struct env *env;
    const float *a, *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

static const float {name}_zeros[{spec.channels}];
static const int64_t {name}_depths[] = {{{", ".join(map(str, blocks.channels))}}};

{input_transform(name, spec.channels, family.lanes, blocks)}
{_output(name, family.lanes, blocks)}
{_repair(spec, family)}
{_tasks(spec, family, counts, epilogue)}
{launch_tiles(name, spec, family.tile, blocks, _FILTERS[0])}"""


def _blocks(spec: ConvSpec, family: TileFamily) -> WinogradBlocks:
    """Blocks that fit the stack, and leave room in the second-level cache for U."""
    tile = family.tile
    channels = channel_blocks(spec.channels)
    panels = min(_FILTERS[1] // tile.columns, -(-spec.filters // tile.columns))
    width = SQUARE.points * (-(-max(channels) // 16) * 16 + panels * tile.columns) + 2 * PAD
    return WinogradBlocks(channels, panels, max(1, _STACK // width // tile.rows), tile.columns)


def tiles_of_all(spec: ConvSpec, cell: Cell) -> Extent:
    """Tiles of outputs of all images."""
    sizes, (down, across) = (spec.images, *spec.window.output), (cell.down, cell.across)
    if all(isinstance(size, int) for size in sizes):
        images, height, width = (size for size in sizes if isinstance(size, int))
        return images * -(-height // down.outputs) * -(-width // across.outputs)
    count, high, wide = (f"(int64_t)({size})" for size in sizes)
    return f"{count} * ({_pieces(high, down.outputs)}) * ({_pieces(wide, across.outputs)})"


def _pieces(size: str, length: int) -> str:
    return f"({size} + {length - 1}) / {length}"


def input_transform(name: str, channels: int, lanes: int, blocks: WinogradBlocks) -> str:
    """`<name>_input`: V of one tile and a block of channels; `<name>_patch`: the same at a border."""
    cell, block = blocks.cell, blocks.depth
    vector, load = f"{name}_a_v", f"{name}_a_load"
    lines = [
        f"const {vector} d{i}{j} = {load}(d + {i} * by_row + {j} * by_column + c);"
        for i, j in cell.places
    ]
    lines += both_ways(vector, "d", "t", "v", cell, inputs=True)
    lines += [
        f"*({name}_a_m *)(v + {point * block} + c) = v{i}{j};"
        for point, (i, j) in enumerate(cell.places)
    ]
    body = "\n        ".join(lines)
    return f"""\
/* The last vector may begin before the end of the one before: it stores the same again. */
static inline void {name}_input(const float *d, int64_t by_row, int64_t by_column, int64_t count, float *v) {{
    for (int64_t at = 0; at < count; at += {lanes}) {{
        const int64_t c = sx_least(at, count - {lanes});
        {body}
    }}
}}

{patch_function(name, channels, blocks)}"""


def patch_function(
    name: str,
    channels: int,
    blocks: WinogradBlocks,
    element: str = "float",
    made: str = "float",
    padding: int = 0,
) -> str:
    """`<name>_patch`: what `<name>_input` makes of a tile at a border, where `padding` is around the image."""
    cell, block = blocks.cell, blocks.depth
    high, wide = cell.down.points, cell.across.points
    return f"""\
static __attribute__((noinline)) void {name}_patch(
    const {element} *image, int64_t height, int64_t width, int64_t top, int64_t left, int64_t count, {made} *v) {{
    {element} patch[{cell.points * block}];
    for (int64_t i = 0; i < {high}; i++)
        for (int64_t j = 0; j < {wide}; j++) {{
            {element} *to = patch + ({wide} * i + j) * {block};
            if (((uint64_t)(top + i) < (uint64_t)height) & ((uint64_t)(left + j) < (uint64_t)width))
                __builtin_memcpy(to, image + ((top + i) * width + left + j) * {channels}, count * sizeof *to);
            else
                __builtin_memset(to, {padding}, count * sizeof *to);
        }}
    {name}_input(patch, {wide * block}, {block}, count, v);
}}
"""


def output_values(name: str, blocks: WinogradBlocks) -> list[str]:
    """C statements: y00, y01, … of a vector of filters, from M, whose points are as far apart as a task has filters."""
    lines = [
        f"const {name}_a_v m{i}{j} = {name}_a_load(m + {point * blocks.pitch} + f);"
        for point, (i, j) in enumerate(blocks.cell.places)
    ]
    return lines + both_ways(f"{name}_a_v", "m", "s", "y", blocks.cell, inputs=False)


def _output(name: str, lanes: int, blocks: WinogradBlocks) -> str:
    """`<name>_output`: Y of one tile in the place of its M; whether all of it may stay."""
    vector, mask, pitch = f"{name}_a_v", f"{name}_mask", blocks.pitch
    outputs = [(i, j) for i in range(2) for j in range(2)]
    lines = output_values(name, blocks)
    lines += [f"*({name}_a_m *)(m + {(2 * i + j) * pitch} + f) = y{i}{j};" for i, j in outputs]
    lines += _close(vector, [f"y{i}{j}" for i, j in outputs])
    lines.append(f"good &= {' & '.join(f'({mask})(q{k} >= least)' for k in range(4))};")
    lines.append("spoilt += total * 0;")
    body = "\n        ".join(lines)
    return f"""\
typedef int32_t {mask} __attribute__((vector_size({4 * lanes})));

static inline int32_t {name}_output(float *m, int64_t count) {{
    {mask} good = ({mask}){{0}} - 1;
    {vector} spoilt = {{0}};
    for (int64_t f = 0; f < count; f += {lanes}) {{
        {body}
    }}
    good &= ({mask})(spoilt == 0);
    int32_t all = -1;
    for (int64_t lane = 0; lane < {lanes}; lane++)
        all &= good[lane];
    return all;
}}
"""


def _close(value: str, outputs: list[str]) -> list[str]:
    """C statements: the squares q0 … of a tile's outputs, their `total`, and the `least` that each should be.

    One operation a statement: as vectors and one by one they have the same bits.
    """
    squares = [f"const {value} q{k} = {y} * {y};" for k, y in enumerate(outputs)]
    sums = ["first = q0 + q1", "second = q2 + q3", "total = first + second"]
    return [
        *squares,
        *(f"const {value} {line};" for line in sums),
        f"const {value} least = total * 0x1p-{_RANGE}f;",
    ]


def _repair(spec: ConvSpec, family: TileFamily) -> str:
    """`<name>_repair`: panels of a tile in which some Y may not stay, by the plain sum."""
    name, tile = family.name, family.tile
    pitch, stride = _blocks(spec, family).pitch, 9 * spec.channels * tile.columns
    outputs = [f"at[f + {pixel * pitch}]" for pixel in range(4)]
    close = "\n            ".join(_close("float", outputs))
    return f"""\
static __attribute__((noinline, cold)) void {name}_repair(
    const float *image, int64_t height, int64_t width, int64_t top, int64_t left,
    const float *weights, int64_t panels, float *y) {{
    const float *rows[9][{tile.rows}];
    for (int64_t tap = 0; tap < 9; tap++)
        for (int64_t pixel = 0; pixel < 4; pixel++) {{
            const int64_t i = top + tap / 3 + pixel / 2, j = left + tap % 3 + pixel % 2;
            const int32_t inside = ((uint64_t)i < (uint64_t)height) & ((uint64_t)j < (uint64_t)width);
            rows[tap][pixel] = inside ? image + (i * width + j) * {spec.channels} : {name}_zeros;
        }}
    for (int64_t panel = 0; panel < panels; panel++) {{
        const float *at = y + panel * {tile.columns};
        int32_t good = 1;
        for (int64_t f = 0; f < {tile.columns}; f++) {{
            {close}
            good &= (q0 >= least) & (q1 >= least) & (q2 >= least) & (q3 >= least) & (total * 0 == 0);
        }}
        if (!good)
            {name}_rows_4(
                rows, 9, {spec.channels}, weights + panel * {stride}, {stride}, 1, y + panel * {tile.columns}, {pitch}, 1);
    }}
}}
"""


def _tasks(spec: ConvSpec, family: TileFamily, counts: list[int], epilogue: str) -> str:
    name, tile, blocks = family.name, family.tile, _blocks(spec, family)
    window, channels = spec.window, spec.channels
    pitch = blocks.pitch
    v_pitch, m_pitch = SQUARE.points * blocks.depth + PAD, SQUARE.points * pitch + PAD
    most, stride = blocks.tiles * tile.rows, channels * tile.columns
    panel = f"{tile.columns} * kc"
    operands = f"u + (point * panels + first_panel) * {panel} + done * {tile.columns}, {panel}, last_panel - first_panel"
    sums = f"m + (begins - top) * {m_pitch} + point * {pitch}, {m_pitch}, k0 + done == 0"
    lines = f"v + (begins - top) * {v_pitch} + point * {blocks.depth} + done + s * {SEGMENT}"
    multiply = tile_call(family, counts, "taken", f"rows, segments, length, {operands}, {sums}")
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
{task_sizes(spec, tile, blocks.cell)}    const float *rows[{-(-blocks.depth // SEGMENT)}][{tile.rows}];
    __attribute__((aligned(64))) float v[{most * v_pitch}], m[{most * m_pitch}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
{task_borders(spec, tile)}        const float *plain = job->b + ({SQUARE.points} * panels + 9 * first_panel) * {stride};
        for (int64_t block = 0, k0 = 0; block < {len(blocks.channels)}; k0 += {name}_depths[block++]) {{
            const int64_t kc = {name}_depths[block];
            const float *u = job->b + {SQUARE.points * tile.columns} * panels * k0;
            for (int64_t at = top; at < bottom; at++) {{
                const float *image = job->a + at / of_image * height * width * {channels} + k0;
                const int64_t i = at % of_image / across * 2 - {window.pads_begin[0]};
                const int64_t j = at % of_image % across * 2 - {window.pads_begin[1]};
                float *to = v + (at - top) * {v_pitch};
                if ((i >= 0) & (j >= 0) & (i + 4 <= height) & (j + 4 <= width))
                    {name}_input(image + (i * width + j) * {channels}, width * {channels}, {channels}, kc, to);
                else
                    {name}_patch(image, height, width, i, j, kc, to);
            }}
            for (int64_t point = 0; point < {SQUARE.points}; point++)
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t begins = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
                    /* The segments of equal length, then what is left of the channels. */
                    for (int64_t done = 0, segments, length; done < kc; done += segments * length) {{
                        segments = done > 0 || kc < {SEGMENT} ? 1 : kc / {SEGMENT};
                        length = done > 0 || kc < {SEGMENT} ? kc - done : {SEGMENT};
                        for (int64_t s = 0; s < segments; s++)
{indented(point_rows(lines, str(v_pitch), "s"), 28)}                        {multiply}
                    }}
                }}
        }}
        for (int64_t at = top; at < bottom; at++) {{
            const int64_t b = at / of_image, i = at % of_image / across * 2, j = at % of_image % across * 2;
            float *y = m + (at - top) * {m_pitch};
            if (!{name}_output(y, (last_panel - first_panel) * {tile.columns}))
                {name}_repair(
                    job->a + b * height * width * {channels}, height, width,
                    i - {window.pads_begin[0]}, j - {window.pads_begin[1]}, plain, last_panel - first_panel, y);
{stored_pixels(epilogue, blocks)}        }}
    }}
}}
"""


def task_sizes(spec: ConvSpec, tile: Tile, cell: Cell) -> str:
    """C text: the sizes that all tasks share."""
    window = spec.window
    return f"""\
    const int64_t height = {window.input[0]}, width = {window.input[1]};
    const int64_t out_height = {window.output[0]}, out_width = {window.output[1]};
    const int64_t across = {_pieces("out_width", cell.across.outputs)}, of_image = {_pieces("out_height", cell.down.outputs)} * across;
    const int64_t all = {tiles_of_all(spec, cell)};
    const int64_t tiles = sx_pieces(all, {tile.rows}), panels = {-(-spec.filters // tile.columns)};
    const int64_t shortest = all / tiles, taller = all % tiles;
"""


def task_borders(spec: ConvSpec, tile: Tile) -> str:
    """C text: what is task `task`'s own: panels, tiles of the micro-kernel, tiles of outputs from `top` to `bottom`, filters."""
    return f"""\
        const int64_t row_block = task % job->row_blocks, column_block = task / job->row_blocks;
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t top = first_tile * shortest + sx_least(first_tile, taller);
        const int64_t bottom = last_tile * shortest + sx_least(last_tile, taller);
        const int64_t column = first_panel * {tile.columns};
        const int64_t count = sx_least({spec.filters}, last_panel * {tile.columns}) - column;
"""


def stored_pixels(epilogue: str, blocks: WinogradBlocks) -> str:
    """C text: the epilogue for the pixels of a tile of outputs that there are; they lie at `y`."""
    wide = blocks.cell.across.outputs
    return f"""\
            for (int64_t pixel = 0; pixel < {blocks.cell.outputs}; pixel++)
                if ((i + pixel / {wide} < out_height) & (j + pixel % {wide} < out_width))
                    {epilogue}(
                        job->env, b, (i + pixel / {wide}) * out_width + j + pixel % {wide}, column, count, y + pixel * {blocks.pitch});
"""


def launch_tiles(name: str, spec: ConvSpec, tile: Tile, blocks: WinogradBlocks, least: int) -> str:
    """The function itself: it cuts the work into tasks, of no fewer filters than `least`."""
    panels = -(-spec.filters // tile.columns)
    column_blocks = -(-panels // blocks.panels)
    most = max(column_blocks, panels * tile.columns // least)
    work = blocks.cell.points * spec.channels * spec.filters
    return f"""\
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    struct {name}_job job = {{env, a, b, n, 1, {column_blocks}}};
    const int64_t all = {tiles_of_all(spec, blocks.cell)};
    const int64_t tiles = sx_pieces(all, {tile.rows});
    const double work = (double)all * {work}.0;
    const int64_t wanted = work < {_TASK * _TASKS}.0 ? (int64_t)(work / {_TASK}.0) : {_TASKS};
    (void)scratch, (void)n;
    if (all <= 0)
        return;
    job.row_blocks = sx_pieces(tiles, {blocks.tiles});
    if (job.row_blocks * job.column_blocks < wanted)
        job.column_blocks = sx_least({most}, sx_pieces(wanted, job.row_blocks));
    const int64_t busy = sx_least(wanted, {TASKS_EACH} * (int64_t)run->threads);
    if (job.row_blocks * job.column_blocks < busy)
        job.row_blocks = sx_least(tiles, sx_pieces(busy, job.column_blocks));
    const int64_t tasks = job.row_blocks * job.column_blocks;
    if (tasks == 1)
        {name}_tasks(&job, 0, 1);
    else
        run->parallel(run, tasks, 1, {name}_tasks, &job);
}}
"""
