"""Products of float32 through tiles of bfloat16: every number is a sum of parts (`planes`), the products of parts add up.

    amx6   a = a0 + a1 + a2, b likewise; the six largest of the nine products: as good as float32
    amx3   a = a0 + a1, b likewise, without a1 b1: an error of about 1e-6
    amx1   a = a0, b = b0: bfloat16

    task = (batch, block of columns, block of rows)
        for every block of K                                      B's block stays in L2
            for every strip of up to 32 rows
                split its rows: [step of 32 k][plane][row][32 k]   on the stack
                for every panel of 32 columns
                    2 × 2 tiles of sums, over the steps of the block
                after the last block of K: epilogue, row by row

Of the eight tiles four are sums: a dot product waits for the last one on the same sums for as long as three others
take. The other four are two tiles of A and two of B. From one pair of planes to the next only one side is loaded
again; the product of the first planes, by far the largest, comes last, so that the small ones are summed first:

    a2 b0   a1 b0   a1 b1   a0 b1   a0 b2   a0 b0          14 loads for 24 dot products

Rows are dealt out evenly over the strips, and over the two tiles of a strip: a dot product takes as long as it has rows.
An element is summed over k in the same order wherever it lies and whoever computes it.

An infinity or NaN in an operand makes NaN or ∞ of every sum that it is part of, and so does what overflows here that
would not have in float32: splitting a number of A above 2^111, or a0 b0 larger than a b. So whatever is not finite
in the end is summed again, in float32, from A as it lies and B put together from its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.backends.c.kernels.gemm import GemmSpec, Packed
from sardonyx.backends.c.kernels.nest import SUPPORT, Extent
from sardonyx.backends.c.kernels.planes import COLUMNS, DEPTH

__all__ = [
    "PAIRS",
    "ROWS",
    "Split",
    "amx",
    "planes_of",
    "split_contraction",
    "tile_heights",
    "tile_products",
]

# Planes of A and of B whose products count, in the order in which they are added up.
PAIRS = {
    "amx6": ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)),
    "amx3": ((1, 0), (0, 0), (0, 1)),
    "amx1": ((0, 0),),
}
ROWS = 32  # of a strip: two tiles, one above the other
_PLANE = ROWS * DEPTH  # elements of a plane of a strip, and of a panel, for one step
_STEPS = 16  # in a block of K
_BLOCK = (
    3 << 18
)  # bytes of B in a block: what a second-level cache of 2 MB holds beside everything else
_COLUMNS = (64, 512)  # of a block, at least and at most
_SUMS = 1 << 16  # elements of C that wait on the stack for the next block of K
_STRIPS = 32  # in a block of rows
_TASK = 1 << 20  # multiplications worth a task of their own
_WIDTH = 1536  # columns × products of a task: less would split A more often than it is multiplied


def planes_of(variant: str) -> int:
    """Into how many parts a variant splits a number."""
    return 1 + max(a for a, _ in PAIRS[variant])


@dataclass(frozen=True)
class _Blocks:
    """How a product is cut: of K, so many steps at a time; of C, strips × panels a task."""

    steps: int
    panels: int
    strips: int
    in_parts: bool  # K takes more than one block, so that sums wait in memory


def _choose_blocks(spec: Split, planes: int) -> _Blocks:
    steps, in_parts = _STEPS, True
    if isinstance(spec.k, int):
        whole = max(1, -(-spec.k // DEPTH))
        parts = -(-whole // _STEPS)
        steps, in_parts = -(-whole // parts), parts > 1
    columns = min(max(_BLOCK // (steps * DEPTH * planes * 2), _COLUMNS[0]), _COLUMNS[1])
    if isinstance(spec.n, int):
        columns = min(columns, max(1, spec.n))
    panels = -(-columns // COLUMNS)
    strips = max(1, _SUMS // (ROWS * panels * COLUMNS)) if in_parts else _STRIPS
    return _Blocks(steps, panels, strips, in_parts)


@dataclass(frozen=True)
class Split:
    """A contraction whose rows are split as they are read: sizes, and where rows come from.

    Attributes:
        rows: C text of `struct <name>_row`, of `<name>_row(job, b, m)` that makes one for row m of batch b, and of
            `<name>_step(row, s, values)`: where its values of step s are, which may be put into `values`. What lies
            past the end of K is zero.
    """

    m: Extent
    n: Extent
    k: Extent
    batch: Extent
    rows: str


def amx(name: str, spec: GemmSpec, epilogue: str, variant: str) -> str:
    """C text of a product as a static function; B is packed by `pack_tiles(…, planes_of(variant))`."""
    assert isinstance(spec.b, Packed)
    assert spec.a.dtype == "f32"
    a = spec.a
    rows = f"""\
struct {name}_row {{ const float *from; int64_t by_column, depth; }};

static inline struct {name}_row {name}_row(const struct {name}_job *job, int64_t b, int64_t m) {{
    const int64_t *n = job->n;
    (void)n, (void)b;
    return (struct {name}_row){{job->a + ({a.offset}) + m * ({a.by_row}), {a.by_column}, {spec.k}}};
}}

static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    const int64_t k = s * {DEPTH};
    if (row->by_column == 1 && k + {DEPTH} <= row->depth)
        return row->from + k;
    for (int64_t i = 0; i < {DEPTH}; i++)
        values[i] = k + i < row->depth ? row->from[(k + i) * row->by_column] : 0.0f;
    return values;
}}
"""
    split = Split(spec.m, spec.n, spec.k, spec.batch, rows)
    return split_contraction(name, split, epilogue, variant)


def split_contraction(name: str, spec: Split, epilogue: str, variant: str) -> str:
    """C text of a contraction as a static function, as `amx`."""
    planes = planes_of(variant)
    blocks = _choose_blocks(spec, planes)
    widest = max(1, _WIDTH // len(PAIRS[variant]) // COLUMNS)
    return f"""\
#include "tiles.h"
{SUPPORT}
struct {name}_job {{
    const struct env *env;
    const float *a;
    const uint16_t *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

{spec.rows}
{_splitting(name, planes)}
{tile_heights(name)}
{tile_products(name, variant)}
{_again(name, spec, planes)}
{_tasks(name, spec, epilogue, blocks, planes)}
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)scratch, (void)n;
    struct {name}_job job = {{env, a, b, n, 1, 1}};
    const int64_t height = {spec.m}, width = {spec.n}, batch = {spec.batch};
    const int64_t strips = sx_pieces(height, {ROWS}), panels = sx_pieces(width, {COLUMNS});
    const double work = (double)height * (double)width * (double)batch * (double)({spec.k});
    if (height <= 0 || width <= 0 || batch <= 0)
        return;
    /* An element is the same in any task, so that their number may depend on that of the threads: some for each, and
     * as many for each, as far as that leaves them wide. */
    const int64_t threads = run->threads > 1 ? run->threads : 1, most = sx_pieces(panels, {widest});
    const int64_t wanted = work < {_TASK}.0 * 3 * (double)threads ? (int64_t)(work / {_TASK}.0) : 3 * threads;
    job.row_blocks = sx_pieces(strips, {blocks.strips});
    job.column_blocks = sx_pieces(panels, {blocks.panels});
    while (job.row_blocks * job.column_blocks * batch < wanted && job.column_blocks < most)
        job.column_blocks++;
    if (job.row_blocks * job.column_blocks * batch < wanted)
        job.row_blocks = sx_least(strips, sx_pieces(wanted, job.column_blocks * batch));
    int64_t tasks = job.row_blocks * job.column_blocks * batch;
    while (tasks > 1 && tasks % threads != 0 && tasks < 8 * threads && job.column_blocks < most)
        tasks = job.row_blocks * ++job.column_blocks * batch;
    if (tasks == 1)
        {name}_blocks(&job, 0, 1);
    else
        run->parallel(run, tasks, 1, {name}_blocks, &job);
}}
"""


def _splitting(name: str, planes: int) -> str:
    """A strip of A as planes. Three operations round to 8 bits: what they overflow on is not finite any more."""
    return f"""\
static inline float {name}_value(uint32_t bits) {{
    return ((union {{ uint32_t bits; float value; }}){{bits}}).value;
}}

static inline uint32_t {name}_bits(float value) {{
    return ((union {{ float value; uint32_t bits; }}){{value}}).bits;
}}

static inline void {name}_split(const float *from, uint16_t *to) {{
#pragma clang fp contract(off)
    float rest[{DEPTH}];
    for (int32_t i = 0; i < {DEPTH}; i++)
        rest[i] = from[i];
    for (int32_t plane = 0; plane < {planes}; plane++)
        for (int32_t i = 0; i < {DEPTH}; i++) {{
            const float scaled = rest[i] * 65537.0f;
            const float part = scaled - (scaled - rest[i]);
            to[plane * {_PLANE} + i] = (uint16_t)({name}_bits(part) >> 16);
            rest[i] -= part;
        }}
}}
"""


def tile_heights(name: str) -> str:
    """`<name>_configure`: tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B."""
    return f"""\
/* Tiles for strips of so many rows: those above, and those below. */
static void {name}_configure(int64_t rows) {{
    __attribute__((aligned(64))) uint8_t config[64] = {{1}};
    const uint8_t above = (uint8_t)((rows + 1) / 2), below = (uint8_t)(rows > 1 ? rows / 2 : 1);
    const uint8_t heights[8] = {{above, above, below, below, above, below, 16, 16}};
    for (int32_t tile = 0; tile < 8; tile++) {{
        config[16 + 2 * tile] = 64;
        config[48 + tile] = heights[tile];
    }}
    sx_tiles_configure(config);
}}
"""


def tile_products(name: str, variant: str, row: int = DEPTH, plane: int = _PLANE) -> str:
    """The micro-kernel, `<name>_tiles`.

    Args:
        row, plane: how many elements of A a row is from the next, and a plane; steps follow their planes.
    """
    planes = planes_of(variant)
    places = list(enumerate(("sums", "sums + 16", "below", "below + 16")))
    zero = "\n".join(f"        sx_tile_zero({tile});" for tile, _ in places)
    load = "\n".join(f"        sx_tile_load({tile}, {at}, pitch);" for tile, at in places)
    store = "\n".join(f"    sx_tile_store({tile}, {at}, pitch);" for tile, at in places)
    body: list[str] = []
    held: tuple[int | None, int | None] = (None, None)
    for a, b in PAIRS[variant]:
        if held[0] != a:
            body += [
                f"sx_tile_load(4, a + {a * plane}, {row * 2});",
                f"sx_tile_load(5, lower + {a * plane}, {row * 2});",
            ]
        if held[1] != b:
            body += [
                f"sx_tile_load(6, b + {b * _PLANE}, 64);",
                f"sx_tile_load(7, b + {b * _PLANE + _PLANE // 2}, 64);",
            ]
        held = a, b
        body += [
            "sx_tile_dot(0, 4, 6);",
            "sx_tile_dot(1, 4, 7);",
            "sx_tile_dot(2, 5, 6);",
            "sx_tile_dot(3, 5, 7);",
        ]
    lines = "\n".join(f"        {line}" for line in body)
    return f"""\
/* 32 columns of a strip, over `steps` steps; the strip's lower rows begin `upper` rows down. */
static __attribute__((noinline)) void {name}_tiles(
    const uint16_t *a, int64_t upper, const uint16_t *b, int64_t steps, float *sums, int64_t pitch, int32_t fresh) {{
    const uint16_t *lower = a + upper * {row};
    float *below = sums + upper * pitch;
    pitch *= (int64_t)sizeof *sums;
    if (fresh) {{
{zero}
    }} else {{
{load}
    }}
    for (; steps > 0; steps--, a += {planes * plane}, lower += {planes * plane}, b += {planes * _PLANE}) {{
{lines}
    }}
{store}
}}
"""


def _again(name: str, spec: Split, planes: int) -> str:
    part = [f"{name}_value((uint32_t)w[{p * _PLANE}] << 16)" for p in range(planes)]
    parts = " + (".join(part) + ")" * (planes - 1)  # the small ones first: b0 + b1 may be too large
    return f"""\
static inline int32_t {name}_finite(float value) {{
    return ({name}_bits(value) & 0x7f800000u) != 0x7f800000u;
}}

/* Whatever is not finite in a row of sums is summed again, one product after the other. */
static __attribute__((noinline)) void {name}_again(
    const struct {name}_job *job, int64_t b, int64_t m, int64_t column, int64_t count, float *sums) {{
    const int64_t *n = job->n;
    const int64_t depth = {spec.k}, steps = sx_pieces(depth, {DEPTH});
    const struct {name}_row row = {name}_row(job, b, m);
    (void)n;
    for (int64_t j = 0; j < count; j++) {{
        if ({name}_finite(sums[j]))
            continue;
        const int64_t panel = (column + j) / {COLUMNS}, lane = (column + j) % {COLUMNS};
        const uint16_t *tile = job->b + panel * steps * {planes * _PLANE} + lane / 16 * {_PLANE // 2} + lane % 16 * 2;
        float sum = 0.0f;
        for (int64_t s = 0; s < steps; s++) {{
            float values[{DEPTH}];
            const float *a = {name}_step(&row, s, values);
            for (int64_t i = 0; i < sx_least({DEPTH}, depth - s * {DEPTH}); i++) {{
                const uint16_t *w = tile + s * {planes * _PLANE} + i / 2 * {DEPTH} + i % 2;
                sum += a[i] * ({parts});
            }}
        }}
        sums[j] = sum;
    }}
}}
"""


def _tasks(name: str, spec: Split, epilogue: str, blocks: _Blocks, planes: int) -> str:
    """The body of the parallel loop."""
    pitch = (
        blocks.panels * COLUMNS + 16
    )  # no power of two: rows of a tile would share a place in the cache
    sums = pitch * ROWS * (blocks.strips if blocks.in_parts else 1)
    place = f"acc + (m - top) * {pitch}" if blocks.in_parts else "acc"
    step = planes * _PLANE
    return f"""\
static void {name}_blocks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t height = {spec.m}, width = {spec.n}, depth = {spec.k};
    const int64_t strips = sx_pieces(height, {ROWS}), panels = sx_pieces(width, {COLUMNS});
    const int64_t steps = sx_pieces(depth, {DEPTH});
    const int64_t shortest = height / strips, taller = height % strips;
    __attribute__((aligned(64))) uint16_t split[{blocks.steps * step}];
    __attribute__((aligned(64))) float acc[{sums}];
    int64_t configured = 0;
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t row_block = task % job->row_blocks;
        const int64_t column_block = task / job->row_blocks % job->column_blocks;
        const int64_t b = task / (job->row_blocks * job->column_blocks);
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_strip = sx_border(strips, job->row_blocks, row_block);
        const int64_t last_strip = sx_border(strips, job->row_blocks, row_block + 1);
        const int64_t column = first_panel * {COLUMNS};
        const int64_t count = sx_least(width, last_panel * {COLUMNS}) - column;
        const int64_t top = first_strip * shortest + sx_least(first_strip, taller);
        (void)b, (void)top;
        for (int64_t s0 = 0; s0 == 0 || s0 < steps; s0 += {blocks.steps}) {{
            const int64_t taken_steps = sx_least(steps - s0, {blocks.steps});
            for (int64_t strip = first_strip; strip < last_strip; strip++) {{
                const int64_t m = strip * shortest + sx_least(strip, taller);
                const int64_t taken = shortest + (strip < taller);
                float *sums = {place};
                if (taken != configured)
                    {name}_configure(configured = taken);
                for (int64_t r = 0; r < taken || r < 2; r++) {{
                    const struct {name}_row row = {name}_row(job, b, m + sx_least(r, taken - 1));
                    for (int64_t s = 0; s < taken_steps; s++) {{
                        float values[{DEPTH}];
                        {name}_split({name}_step(&row, s0 + s, values), split + s * {step} + r * {DEPTH});
                    }}
                }}
                for (int64_t panel = first_panel; panel < last_panel; panel++)
                    {name}_tiles(
                        split, (taken + 1) / 2, job->b + (panel * steps + s0) * {step}, taken_steps,
                        sums + (panel - first_panel) * {COLUMNS}, {pitch}, s0 == 0);
                if (s0 + taken_steps < steps)
                    continue;
                for (int64_t r = 0; r < taken; r++) {{
                    float *row = sums + r * {pitch};
                    uint32_t finite = 1;
                    for (int64_t j = 0; j < count; j++)
                        finite &= (uint32_t){name}_finite(row[j]);
                    if (!finite)
                        {name}_again(job, b, m + r, column, count, row);
                    {epilogue}(job->env, b, m + r, column, count, row);
                }}
            }}
        }}
    }}
    sx_tiles_release();
}}
"""
