"""Products and convolutions in float16 arithmetic: the rows of `gemm` and `conv`, the micro-kernel of `half_tile`.

    task = (batch, block of columns, block of rows)
        for every block of K
            for every strip of up to eight rows
                point rows[s][r] at what the strip reads, as `nest` does
                pack them: [k][8], float16             on the stack
                micro-kernel over the panels of the block
                after the last block of K: scales of columns, and an epilogue for each row

Where K is short, the micro-kernel leaves sums as float16, and where nothing is scaled, neither rows nor columns, the epilogue
takes them so: CPUs convert slowly, and had better do it among other work.

Rows are packed for every block of columns anew: blocks are wide, and there are no more than the caches and the threads
need. Where runs of K end depends on the sizes alone, and scales are powers of two, each row's its own: an element has the
same bits in any task, wherever its row lies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.gemm import GemmSpec, Packed, product
from sardonyx.backends.c.kernels.half_tile import (
    LARGEST,
    LONG,
    ROWS,
    SHORT,
    USUAL,
    Sums,
    half_call,
    half_tile_functions,
)
from sardonyx.backends.c.kernels.halves import COLUMNS, HEAD
from sardonyx.backends.c.kernels.isa import Isa, Tile
from sardonyx.backends.c.kernels.nest import (
    SUPPORT,
    Blocks,
    Loops,
    Nest,
    choose_blocks,
    indented,
    row_counts,
)
from sardonyx.backends.c.kernels.windows import ConvSpec
from sardonyx.plan.kernels import Ending

__all__ = ["DEPTH", "half_convolution", "half_product"]

DEPTH = 1024  # of K in a block: a strip and a panel share the first-level cache
_BLOCK = 393216  # elements of B in a block: 768 KB of a second-level cache of 1 MB
_COLUMNS = (64, 512)  # of a block, at least and at most
_SUMS = 32768  # elements of C that wait on the stack for the next block of K
_STRIPS = 32  # in a block of rows
_TASK = 1 << 19  # multiplications worth a task of their own
_TASKS = 4  # for every thread
_MANY = 256  # products of a convolution that comes late in a network, and adds little to its error
_EVEN = 8  # strips of every thread of which one more or less matters


def half_product(
    name: str, spec: GemmSpec, epilogue: str, isa: Isa, half_epilogue: str = ""
) -> str:
    """C text of a product as a static function, as `gemm.gemm`; B is packed by `halves.pack_halves`.

    Args:
        half_epilogue: the epilogue of sums that are float16, where there is one.
    """
    assert isinstance(spec.b, Packed)
    assert spec.a.dtype == spec.b.dtype == "f32"
    short = isinstance(spec.k, int) and spec.k <= USUAL.products
    functions = partial(_functions, products=USUAL, half_epilogue=half_epilogue if short else "")
    loops = Loops(functions, _launch)
    return product(name, spec, epilogue, isa, Tile(ROWS, COLUMNS), DEPTH, loops)


def half_convolution(
    name: str, spec: ConvSpec, epilogue: str, isa: Isa, half_epilogue: str = ""
) -> str:
    """C text of a convolution, as `conv.conv`; the weights are packed by `halves.pack_half_filters`.

    Activations of float16 are within what is not scaled (`LARGEST`). `half_epilogue` as in `half_product`.
    """
    if spec.in_halves:
        spec = replace(spec, copies=False)
    inner = spec.channels // spec.groups * prod(spec.window.kernel)
    sums = LONG if inner >= _MANY else SHORT
    short = inner <= sums.products and spec.ending is None
    functions = partial(
        _functions,
        products=sums,
        of_halves=spec.in_halves,
        ending=spec.ending,
        half_epilogue=half_epilogue if short else "",
    )
    loops = Loops(functions, _launch)
    text = conv(name, spec, epilogue, isa, Tile(ROWS, COLUMNS), DEPTH, loops)
    return f'#include "halves.h"\n{text}'


def _blocks(nest: Nest) -> Blocks:
    usual = choose_blocks(nest)
    columns = min(max(_BLOCK // (usual.segments * usual.depth), _COLUMNS[0]), _COLUMNS[1])
    if isinstance(nest.width, int):
        columns = min(columns, max(1, nest.width))
    panels = -(-columns // COLUMNS)
    strips = max(1, _SUMS // (ROWS * panels * COLUMNS)) if usual.in_parts else _STRIPS
    return replace(usual, panels=panels, tiles=strips)


def _functions(
    nest: Nest,
    products: Sums,
    *,
    of_halves: bool = False,
    ending: Ending | None = None,
    half_epilogue: str = "",
) -> str:
    name, blocks = nest.family.name, _blocks(nest)
    counts = row_counts(nest.height, ROWS)
    pitch = blocks.panels * COLUMNS
    sums = pitch * ROWS * (blocks.tiles if blocks.in_parts else 1)
    place = f"acc + (m - top) * {pitch}" if blocks.in_parts else "acc"
    weights = f"panel + {HEAD} + (s0 * depth + k0) * {COLUMNS}, stride, last_panel - first_panel"
    kept = half_epilogue != "" and not blocks.in_parts
    finish = _finish(nest, pitch, kept=kept, tame="1" if of_halves else "tame")
    reading = _of_halves(nest, finish) if of_halves else _of_floats(nest, blocks, weights, finish, pitch)  # fmt: skip
    more, result = "scales, s0 == 0 && k0 == 0", "sums"
    if ending is not None:
        assert not blocks.in_parts
        finished = f"{reading.tame} ? done : 0" if reading.tame else "done"
        more, result = f"scales, offsets + column, {finished}", "done"
        reading = _ended(reading, ending, name, pitch)
    into = "halves" if kept else f"sums, {more}"
    operands = f"packed, segments * kc, {weights}, {pitch}, {into}"
    multiply = half_call(name, counts, "taken", operands)
    if kept:
        multiply += _kept_strip(nest, reading.tame, half_epilogue, pitch)
        reading = _keeping(reading, name, pitch)
    return f"""\
{SUPPORT}
{half_tile_functions(name, counts, products, ending, kept=kept)}{reading.functions}
struct {name}_job {{
    const struct env *env;
    const void *a, *b;
    const int64_t *n;
    int64_t tiles, row_blocks, column_blocks;
}};

static void {name}_blocks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    /* A copy of its own: what is written to results might change another, as far as a compiler knows. */
    const struct env env = *job->env;
    const int64_t *n = job->n;
    const int64_t height = {nest.height}, width = {nest.width}, depth = {nest.depth};
    const int64_t tiles = job->tiles, panels = sx_pieces(width, {COLUMNS});
    const int64_t stride = {nest.segments} * depth * {COLUMNS} + {HEAD};
    __attribute__((aligned(64))) float acc[{sums}];
    __attribute__((aligned(64))) _Float16 packed[{blocks.segments * blocks.depth * ROWS}];
{indented(reading.locals, 4)}{indented(nest.locals, 4)}    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t row_block = task % job->row_blocks;
        const int64_t column_block = task / job->row_blocks % job->column_blocks;
        const int64_t b = task / (job->row_blocks * job->column_blocks);
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t column = first_panel * {COLUMNS};
        const int64_t count = sx_least(width, last_panel * {COLUMNS}) - column;
        const int64_t top = sx_border(height, tiles, first_tile);
        const _Float16 *panel = (const _Float16 *)job->b + ({nest.panels_of}) + first_panel * stride;
{indented(reading.begin, 8)}        (void)b, (void)top;
        for (int64_t s0 = 0; s0 < {nest.segments}; s0 += {blocks.segments}) {{
            const int64_t segments = sx_least({nest.segments} - s0, {blocks.segments});
            for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += {blocks.depth}) {{
                const int64_t kc = sx_least(depth - k0, {blocks.depth});
                const int32_t last = s0 + segments == {nest.segments} && k0 + kc == depth;
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t m = sx_border(height, tiles, tile);
                    const int64_t taken = sx_border(height, tiles, tile + 1) - m;
                    float *sums = {place};
{indented(nest.fill + reading.pack + multiply, 20)}                    if (!last)
                        continue;
{indented(reading.finish, 20)}                    for (int64_t r = 0; r < taken; r++)
                        {nest.epilogue}(&env, {nest.batch_of}, m + r, {nest.column_of}, count, {result} + r * {pitch});
                }}
            }}
        }}
    }}
}}
"""


@dataclass(frozen=True)
class _Reading:
    """C text around the products: what it needs, how `rows` become `packed`, and what is done to sums in the end.

    Attributes:
        tame: whether no row of the strip was scaled; nothing where none ever is.
        begin: of a task.
    """

    locals: str
    pack: str
    finish: str
    tame: str = ""
    functions: str = ""
    begin: str = ""


def _run(nest: Nest) -> str:
    return "1, segments * kc" if nest.merged else "segments, kc"


def _finish(nest: Nest, pitch: int, *, kept: bool, tame: str) -> str:
    """C text of a call: the scales are taken off; whether all sums are finite."""
    panels = "panel, stride, last_panel - first_panel, taken"
    if kept:
        return f"{nest.family.name}_widen({panels}, halves, scales, sums)"
    return f"{nest.family.name}_finish_products({panels}, {tame}, sums, {pitch})"


def _of_floats(nest: Nest, blocks: Blocks, weights: str, finish: str, pitch: int) -> _Reading:
    """Rows of float32, which may have to be scaled, and whose sums may have to be computed again."""
    name = nest.family.name
    kept = blocks.tiles if blocks.in_parts else 1
    at = "tile - first_tile" if blocks.in_parts else "0"
    return _Reading(
        f"""\
const float *rows[{1 if nest.merged else blocks.segments}][{ROWS}];
__attribute__((aligned(64))) float again[{pitch * ROWS}], scales[{ROWS}];
uint8_t wild[{kept}];
""",
        # Of every block of K: all of them must be tame.
        f"""\
const int32_t all = sx_half_strip(rows, {_run(nest)}, taken, {LARGEST}, packed, scales);
wild[{at}] = (s0 != 0 || k0 != 0) && wild[{at}] ? 1 : !all;
const int32_t tame = !wild[{at}];
""",
        f"""\
if (!{finish}) {{
    for (int64_t s0 = 0; s0 < {nest.segments}; s0 += {blocks.segments}) {{
        const int64_t segments = sx_least({nest.segments} - s0, {blocks.segments});
        for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += {blocks.depth}) {{
            const int64_t kc = sx_least(depth - k0, {blocks.depth});
{indented(nest.fill, 12)}            {name}_plain(rows, {_run(nest)}, taken, panel, {weights}, again, {pitch}, s0 == 0 && k0 == 0);
        }}
    }}
    {name}_replace(taken, count, sums, {pitch}, again);
}}
""",
        "tame",
    )


def _of_halves(nest: Nest, finish: str) -> _Reading:
    """Rows of float16, none of which has to be scaled: what is not finite in the end was not so in the beginning."""
    segments = 1 if nest.merged else choose_blocks(nest).segments
    return _Reading(
        f"""\
static const float scales[{ROWS}] = {{{", ".join(["1"] * ROWS)}}};
const _Float16 *rows[{segments}][{ROWS}];
""",
        f"sx_half_rows(rows, {_run(nest)}, taken, packed);\n",
        f"{finish};\n",
    )


def _ended(reading: _Reading, ending: Ending, name: str, pitch: int) -> _Reading:
    """The same, where the micro-kernel finishes the sums of all strips but those with scaled rows."""
    results = f"""\
__attribute__((aligned(64))) _Float16 done[{pitch * ROWS}];
const _Float16 *offsets = env.p[{ending.offsets}];
"""
    reading = replace(reading, locals=reading.locals + results)
    if not reading.tame:
        return replace(reading, finish="")
    low, high = (f"{limit!r}f" for limit in (ending.low, ending.high))
    return replace(
        reading,
        finish=f"""\
if (!{reading.tame}) {{
{indented(reading.finish, 4)}    {name}_end(taken, count, sums, offsets + column, done);
}}
""",
        functions=f"""
/* Sums of float32, finished as the others are. */
static __attribute__((noinline, cold)) void {name}_end(
    int64_t taken, int64_t count, const float *sums, const _Float16 *offsets, _Float16 *done) {{
    for (int64_t r = 0; r < taken; r++)
        for (int64_t j = 0; j < count; j++) {{
            const float sum = sums[r * {pitch} + j] + (float)offsets[j];
            done[r * {pitch} + j] = (_Float16)sx_min_f32(sx_max_f32(sum, {low}), {high});
        }}
}}
""",
    )


def _keeping(reading: _Reading, name: str, pitch: int) -> _Reading:
    """The same, where sums come as float16."""
    return replace(
        reading,
        locals=f"{reading.locals}__attribute__((aligned(64))) _Float16 halves[{pitch * ROWS}];\n",
        functions=f"""{reading.functions}
/* Whether no column is scaled. */
static inline int32_t {name}_is_straight(const _Float16 *head, int64_t stride, int64_t panels) {{
    int32_t straight = 1;
    for (int64_t panel = 0; panel < panels; panel++, head += stride)
        for (int64_t j = 0; j < {COLUMNS}; j++)
            straight &= ((const float *)head)[j] == 1.0f;
    return straight;
}}

/* Sums as float32, with the scales of their rows and columns; whether all are finite. */
static __attribute__((noinline)) int32_t {name}_widen(
    const _Float16 *head, int64_t stride, int64_t panels, int64_t taken, const _Float16 *halves, const float *scales, float *sums) {{
    sx_f4 spoilt = {{0}};
    for (int64_t panel = 0; panel < panels; panel++, head += stride)
        for (int64_t j = 0; j < {COLUMNS}; j += 8) {{
            const sx_f4m *columns = (const sx_f4m *)((const float *)head + j);
            for (int64_t r = 0; r < taken; r++) {{
                const int64_t at = r * {pitch} + panel * {COLUMNS} + j;
                const sx_h8 x = *(const sx_h8m *)(halves + at);
                const sx_f4 low = sx_half_low(x) * scales[r] * columns[0], high = sx_half_high(x) * scales[r] * columns[1];
                *(sx_f4m *)(sums + at) = low;
                *(sx_f4m *)(sums + at + 4) = high;
                spoilt += (low + high) * 0;
            }}
        }}
    return spoilt[0] + spoilt[1] + spoilt[2] + spoilt[3] == 0;
}}
""",
        begin=f"const int32_t straight = {name}_is_straight(panel, stride, last_panel - first_panel);\n",
    )


def _kept_strip(nest: Nest, tame: str, epilogue: str, pitch: int) -> str:
    """C text: sums that are float16 as they are, where nothing is scaled."""
    return f"""
if ({f"{tame} & straight" if tame else "straight"}) {{
    for (int64_t r = 0; r < taken; r++)
        {epilogue}(&env, {nest.batch_of}, m + r, {nest.column_of}, count, halves + r * {pitch});
    continue;
}}
"""


def _launch(nest: Nest) -> str:
    blocks, name = _blocks(nest), nest.family.name
    return f"""\
const int64_t height = {nest.height}, width = {nest.width}, batch = {nest.batch};
const int64_t least = sx_pieces(height, {ROWS}), panels = sx_pieces(width, {COLUMNS});
const double work = (double)height * (double)width * (double)batch * (double)({nest.segments} * ({nest.depth}));
const int64_t threads = run->threads > 1 ? run->threads : 1, most = {_TASKS} * threads;
const int64_t wanted = work < {_TASK}.0 * (double)most ? (int64_t)(work / {_TASK}.0) : most;
if (height <= 0 || width <= 0 || batch <= 0)
    return;
/* As many strips for each thread, where strips of the same heights can be had. */
const int64_t even = sx_pieces(least, threads) * threads, tiles = even <= height / (height / least) ? even : least;
job.tiles = tiles;
/* Rows first: every block of columns packs them again. As many tasks for each thread, as far as that goes. */
job.row_blocks = sx_pieces(tiles, {blocks.tiles});
job.column_blocks = sx_pieces(panels, {blocks.panels});
if (tiles % threads != 0 && tiles < {_EVEN} * threads)
    job.column_blocks = sx_least(panels, sx_pieces(job.column_blocks, threads) * threads);
if (job.row_blocks * job.column_blocks * batch < wanted)
    job.row_blocks = sx_least(tiles, sx_pieces(wanted, job.column_blocks * batch));
if (job.row_blocks * job.column_blocks * batch < wanted)
    job.column_blocks = sx_least(panels, sx_pieces(wanted, job.row_blocks * batch));
while (job.row_blocks * job.column_blocks * batch % threads != 0 && job.row_blocks < sx_least(tiles, most))
    job.row_blocks++;
const int64_t tasks = job.row_blocks * job.column_blocks * batch;
if (tasks == 1)
    {name}_blocks(&job, 0, 1);
else
    run->parallel(run, tasks, 1, {name}_blocks, &job);
"""
