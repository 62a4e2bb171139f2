"""Products of float32 through tiles: every number is a sum of parts, the products of parts add up.

    amx10  a is four digits, b likewise (`digit_tiles`): as good as float32
    amx6   a = a0 + a1 + a2 of bfloat16 (`tiles`), b likewise; the six largest of the nine products: as good as float32
    amx3   a = a0 + a1, b likewise, without a1 b1: an error of about 1e-6
    amx1   a = a0, b = b0: bfloat16

    many rows                                                        few rows: threads share them
    task = (batch, block of columns, block of rows)                  every strip, by all threads
        for every block of K                                             split its rows into scratch memory
            for every strip of up to 32 rows                         task = (batch, block of columns, block of rows)
                split its rows: [step of k][plane][row][64 bytes]        for every block of K
                for every panel of 32 columns                                for every group of panels
                    16 × 16 sums four times, over the block's steps              for every strip
                after the last block of K: epilogue                                  16 × 16 sums four times for each panel
                                                                                     after the last block of K: epilogue

B's block stays in L2 while many rows go by. Few rows stay there themselves while B goes by, once: each strip asks for its
share of what is multiplied after the group of panels.

An element is summed over k in the same order wherever it lies and whoever computes it.

An infinity or NaN in an operand makes NaN or ∞ of every sum that it is part of, and so does what overflows here that
would not have in float32: splitting a number of A above 2^111, or a0 b0 larger than a b. So whatever is not finite
in the end is summed again, in float64, from A as it lies and B put together from its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.backends.c.kernels.digit_tiles import digit_parts
from sardonyx.backends.c.kernels.gemm import GemmSpec, Packed
from sardonyx.backends.c.kernels.nest import SUPPORT, Extent
from sardonyx.backends.c.kernels.parts import ROWS, Parts
from sardonyx.backends.c.kernels.planes import COLUMNS
from sardonyx.backends.c.kernels.tiles import PAIRS, bfloat16_parts

__all__ = ["VARIANTS", "Split", "amx", "parts_of", "split_contraction"]

VARIANTS = ("amx10", *PAIRS)

_BLOCK = (
    3 << 18
)  # bytes of B in a block: what a second-level cache of 2 MB holds beside everything else
_COLUMNS = (64, 512)  # of a block, at least and at most
_SUMS = 1 << 16  # elements of C that wait on the stack for the next block of K
_HELD = 3 << 17  # bytes of A in a block: what else a second-level cache has room for
_STRIPS = 32  # in a block of rows, at most
_GROUP = 2  # panels that are multiplied by one strip after the other, where A was split beforehand
_PIECE = 8  # rows of a strip that are split at a time, beforehand
_TOGETHER = 4  # rows that are split side by side
_TASK = 1 << 20  # multiplications worth a task of their own
_WIDTH = 1536  # columns × products of a task: less would split A more often than it is multiplied


@dataclass(frozen=True)
class _Blocks:
    """How a product is cut: of K, so many steps at a time; of C, strips × panels a task, and panels in a group."""

    steps: int
    panels: int
    strips: int
    group: int
    in_parts: bool  # K takes more than one block, so that sums wait in memory


def parts_of(variant: str) -> Parts:
    """What a variant takes numbers apart into."""
    return digit_parts() if variant == "amx10" else bfloat16_parts(variant)


def _choose_blocks(spec: Split, parts: Parts, *, beforehand: bool) -> _Blocks:
    steps, in_parts = parts.steps, True
    if isinstance(spec.k, int):
        whole = max(1, -(-spec.k // parts.depth))
        count = -(-whole // steps)
        steps, in_parts = -(-whole // count), count > 1
    strips = min(max(_HELD // (steps * parts.step * 2), 1), _STRIPS) if beforehand else _STRIPS
    of_column = steps * parts.step * 2 // COLUMNS
    columns = min(max(_BLOCK // of_column, _COLUMNS[0]), _COLUMNS[1])
    if isinstance(spec.n, int):
        columns = min(columns, max(1, spec.n))
    panels = -(-columns // COLUMNS)
    if in_parts and beforehand:
        panels = min(panels, max(1, _SUMS // (ROWS * strips * COLUMNS)))
    elif in_parts:
        strips = max(1, _SUMS // (ROWS * panels * COLUMNS))
    return _Blocks(steps, panels, strips, min(_GROUP, panels) if beforehand else panels, in_parts)


@dataclass(frozen=True)
class Split:
    """A contraction whose rows are split as they are read: sizes, and where rows come from.

    Attributes:
        rows: C text of `struct <name>_row`, of `<name>_row(job, b, m)` that makes one for row m of batch b, and of
            `<name>_step(row, s, values)`: where its values of step s are, which may be put into `values`. What lies
            past the end of K is zero.
        gathered: C text of `<name>_gather(row, values)`, which puts all of a row's values there, faster than step by step; or "".
    """

    m: Extent
    n: Extent
    k: Extent
    batch: Extent
    rows: str
    gathered: str = ""


def amx(name: str, spec: GemmSpec, epilogue: str, variant: str, *, beforehand: bool = False) -> str:
    """C text of a product as a static function; B is packed by `pack_digits` or by `pack_tiles(…, planes_of(variant))`.

    Args:
        beforehand: all rows are split before any is multiplied, into the kernel's scratch memory.
    """
    assert isinstance(spec.b, Packed)
    assert spec.a.dtype == "f32"
    a, depth = spec.a, parts_of(variant).depth
    rows = f"""\
struct {name}_row {{ const float *from; int64_t by_column, depth; }};

static inline struct {name}_row {name}_row(const struct {name}_job *job, int64_t b, int64_t m) {{
    const int64_t *n = job->n;
    (void)n, (void)b;
    return (struct {name}_row){{job->a + ({a.offset}) + m * ({a.by_row}), {a.by_column}, {spec.k}}};
}}

static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    const int64_t k = s * {depth};
    if (row->by_column == 1 && k + {depth} <= row->depth)
        return row->from + k;
    for (int64_t i = 0; i < {depth}; i++)
        values[i] = k + i < row->depth ? row->from[(k + i) * row->by_column] : 0.0f;
    return values;
}}
"""
    split = Split(spec.m, spec.n, spec.k, spec.batch, rows)
    return split_contraction(name, split, epilogue, variant, beforehand=beforehand)


def split_contraction(
    name: str, spec: Split, epilogue: str, variant: str, *, beforehand: bool
) -> str:
    """C text of a contraction as a static function, as `amx`."""
    parts = parts_of(variant)
    blocks = _choose_blocks(spec, parts, beforehand=beforehand)
    widest = max(1, _WIDTH // parts.products // COLUMNS)
    first = f"""\
    const int64_t pieces = batch * strips * {ROWS // _PIECE};
    if (tasks == 1)
        {name}_split_all(&job, 0, pieces);
    else
        run->parallel(run, pieces, 1, {name}_split_all, &job);
"""
    return f"""\
#include "tiles.h"
{SUPPORT}
struct {name}_job {{
    const struct env *env;
    const float *a;
    const uint16_t *b;
    uint16_t *split;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

{spec.rows}
{spec.gathered}
static inline float {name}_value(uint32_t bits) {{
    return ((union {{ uint32_t bits; float value; }}){{bits}}).value;
}}

static inline uint32_t {name}_bits(float value) {{
    return ((union {{ float value; uint32_t bits; }}){{value}}).bits;
}}

{parts.text(name, beforehand, bool(spec.gathered))}
{_splitting(name, spec, parts, beforehand)}
{_again(name, spec, parts)}
{_tasks(name, spec, epilogue, blocks, parts, beforehand)}
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)n;
    struct {name}_job job = {{env, a, b, scratch, n, 1, 1}};
    const int64_t height = {spec.m}, width = {spec.n}, batch = {spec.batch};
    const int64_t strips = sx_pieces(height, {ROWS}), panels = sx_pieces(width, {COLUMNS});
    const double work = (double)height * (double)width * (double)batch * (double)({spec.k});
    if (height <= 0 || width <= 0 || batch <= 0)
        return;
    /* An element is the same in any task, so that their number may depend on that of the threads: some for each, and
     * as many for each, as far as that leaves them wide. */
    const int64_t threads = run->threads > 1 ? run->threads : 1, most = sx_pieces(panels, {blocks.group if beforehand else widest});
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
{first if beforehand else ""}\
    if (tasks == 1)
        {name}_blocks(&job, 0, 1);
    else
        run->parallel(run, tasks, 1, {name}_blocks, &job);
}}
"""


def _splitting(name: str, spec: Split, parts: Parts, beforehand: bool) -> str:
    """Rows of a strip of A as planes."""
    strip = f"({parts.strip_head} + steps * {parts.step})"
    all_of_them = f"""
static void {name}_split_all(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t strips = sx_pieces({spec.m}, {ROWS}), steps = sx_pieces({spec.k}, {parts.depth});
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t at = task / {ROWS // _PIECE}, r0 = task % {ROWS // _PIECE} * {_PIECE};
        uint16_t *to = job->split + at * {strip};
        {name}_split(job, at / strips, at % strips, r0, r0 + {_PIECE}, 0, steps, (float *)to, to + {parts.strip_head});
    }}
}}
"""
    scaled = f"sx_pieces({spec.k}, {parts.depth}), scales, " if parts.scaled else ""
    return f"""\
/* Rows r0 to r1 of a strip, so many steps from step s0 on; their scales are known after step 0. */
static void {name}_split(
    const struct {name}_job *job, int64_t b, int64_t strip, int64_t r0, int64_t r1, int64_t s0, int64_t count, float *scales, uint16_t *to) {{
    const int64_t *n = job->n;
    const int64_t height = {spec.m}, strips = sx_pieces(height, {ROWS});
    const int64_t shortest = height / strips, taller = height % strips;
    const int64_t m = strip * shortest + sx_least(strip, taller), taken = shortest + (strip < taller);
    const int64_t filled = taken < 2 ? 2 : taken;
    (void)n, (void)scales;
    for (int64_t r = r0; r < sx_least(r1, filled); r += {_TOGETHER}) {{
        struct {name}_row rows[{_TOGETHER}];
        const int64_t together = sx_least({_TOGETHER}, sx_least(r1, filled) - r);
        for (int64_t i = 0; i < together; i++)
            rows[i] = {name}_row(job, b, m + sx_least(r + i, taken - 1));
        {name}_split_rows(job, rows, together, s0, count, {scaled}to, r);
    }}
}}
{all_of_them if beforehand else ""}"""


def _again(name: str, spec: Split, parts: Parts) -> str:
    step = f"""\
            float values[{parts.depth}];
            const float *a = {name}_step(&row, s, values);
"""
    gathered = ""
    if spec.gathered:
        step = """\
            const float *a = values[s];
"""
        gathered = f"""\
    float values[{parts.steps}][{parts.depth}];
    {name}_gather(&row, values[0]);
"""
    return f"""\
static inline const uint16_t *{name}_panel(const struct {name}_job *job, int64_t panel, int64_t steps) {{
    return job->b + {parts.factors("steps")} + panel * ({parts.panel_head} + steps * {parts.step});
}}

/* Whatever is not finite in a row of sums is summed again, one product after the other. */
static __attribute__((noinline)) void {name}_again(
    const struct {name}_job *job, int64_t b, int64_t m, int64_t column, int64_t count, float *sums) {{
    const int64_t *n = job->n;
    const int64_t depth = {spec.k}, width = {spec.n}, steps = sx_pieces(depth, {parts.depth});
    const struct {name}_row row = {name}_row(job, b, m);
    const uint16_t *panels = {name}_panel(job, 0, steps);
    (void)n;
{gathered}\
    for (int64_t j = 0; j < count;) {{
        int64_t wild[16], some = 0;
        double totals[16] = {{0}};
        for (; j < count && some < 16; j++)
            if (({name}_bits(sums[j]) & 0x7f800000u) == 0x7f800000u)
                wild[some++] = j;
        for (int64_t s = 0; s < steps && some > 0; s++) {{
{step}\
            const int64_t taken = sx_least({parts.depth}, depth - s * {parts.depth});
            for (int64_t i = 0; i < some; i++)
                totals[i] += {name}_dot(a, panels, taken, width, column + wild[i], steps, s);
        }}
        for (int64_t i = 0; i < some; i++)
            sums[wild[i]] = (float)totals[i];
    }}
}}
"""


def _tasks(
    name: str, spec: Split, epilogue: str, blocks: _Blocks, parts: Parts, beforehand: bool
) -> str:
    """The body of the parallel loop."""
    width = blocks.panels if blocks.in_parts else blocks.group
    pitch = width * COLUMNS + 16  # no power of two: rows of a tile would share a place in the cache
    sums = pitch * ROWS * (blocks.strips if blocks.in_parts else 1)
    place = (
        f"acc + (m - top) * {pitch} + (first - first_panel) * {COLUMNS}"
        if blocks.in_parts
        else "acc"
    )
    step, head = parts.step, parts.strip_head
    scales = f"{ROWS * blocks.strips if parts.scaled else 1}"
    buffer = f"""\
    __attribute__((aligned(64))) uint16_t split[{blocks.steps * step}];
    float scales[{scales}];
"""
    split = f"""\
                    float *scale = scales{f" + (strip - first_strip) * {ROWS}" if parts.scaled else ""};
                    {name}_split(job, b, strip, 0, {ROWS}, s0, taken_steps, scale, split);
"""
    strip_of, ahead, asked = "split", "", ""
    if beforehand:
        buffer = ""
        split = f"""\
                    const uint16_t *of_strip = job->split + (b * strips + strip) * ({head} + steps * {step});
                    const float *scale = (const float *)of_strip;
                    (void)scale;
"""
        strip_of = f"of_strip + {head} + s0 * {step}"
        lines = step * 2 // 64 // parts.asks
        ahead = f"""\
                        /* What is multiplied after this group: the next one, or the first one's next steps. */
                        const int32_t beside = panel + {blocks.group} < last_panel;
                        const int64_t next = beside ? panel + {blocks.group} : first_panel + panel - first;
                        const int64_t there = beside ? s0 : s0 + block;
                        const int64_t lines = there < steps ? sx_pieces({lines}, last_strip - first_strip) : 0;
                        const uint16_t *ahead = {name}_panel(job, next, steps) + {parts.panel_head} + there * {step};
"""
        asked = f", ahead + (strip - first_strip) * taken_steps * lines * {32 * parts.asks}, lines"
    settle = f"{name}_settle(row, count)"
    if parts.scaled:
        settle = f"{name}_settle(row + (panel - first) * {COLUMNS}, scale[r], {name}_panel(job, panel, steps))"
    settled = f"finite &= {settle};"
    if parts.scaled:
        settled = f"for (int64_t panel = first; panel < last; panel++)\n                            {settled}"
    return f"""\
static void {name}_blocks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t height = {spec.m}, width = {spec.n}, depth = {spec.k};
    const int64_t strips = sx_pieces(height, {ROWS}), panels = sx_pieces(width, {COLUMNS});
    const int64_t steps = sx_pieces(depth, {parts.depth});
    const int64_t block = steps > {parts.steps} ? sx_pieces(steps, sx_pieces(steps, {parts.steps})) : {parts.steps};
    const int64_t shortest = height / strips, taller = height % strips;
{buffer}\
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
        const int64_t top = first_strip * shortest + sx_least(first_strip, taller);
        (void)b, (void)top;
        for (int64_t s0 = 0; s0 == 0 || s0 < steps; s0 += block) {{
            const int64_t taken_steps = sx_least(steps - s0, block);
            for (int64_t first = first_panel; first < last_panel; first += {blocks.group}) {{
                const int64_t last = sx_least(first + {blocks.group}, last_panel), column = first * {COLUMNS};
                const int64_t count = sx_least(width, last * {COLUMNS}) - column;
                for (int64_t strip = first_strip; strip < last_strip; strip++) {{
                    const int64_t m = strip * shortest + sx_least(strip, taller);
                    const int64_t taken = shortest + (strip < taller);
                    float *sums = {place};
                    if (taken != configured)
                        {name}_configure(configured = taken);
{split}\
                    for (int64_t panel = first; panel < last; panel++) {{
{ahead}\
                        {name}_tiles(
                            {strip_of}, taken, {name}_panel(job, panel, steps) + {parts.panel_head} + s0 * {step}, taken_steps,
                            sums + (panel - first) * {COLUMNS}, {pitch}, s0 == 0{asked});
                    }}
                    if (s0 + taken_steps < steps)
                        continue;
                    for (int64_t r = 0; r < taken; r++) {{
                        float *row = sums + r * {pitch};
                        int32_t finite = 1;
                        {settled}
                        if (!finite)
                            {name}_again(job, b, m + r, column, count, row);
                        {epilogue}(job->env, b, m + r, column, count, row);
                    }}
                }}
            }}
        }}
    }}
    sx_tiles_release();
}}
"""
