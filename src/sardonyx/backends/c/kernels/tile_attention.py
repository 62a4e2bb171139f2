"""Attention with its two products through AMX tiles: the loops of `attention`, the micro-kernel of `tiles`.

    every key and value, by all threads    keys[32 keys][step of 32 of size][plane][tile], values[32 of width][step of 32 keys]
                                           [plane][tile]; then a mark for every 32 keys: whether tiles may overflow on them
    task = (batch, block of queries)
        for every block of keys
            for every strip of up to 32 queries
                queries as planes, once                            [step][plane][row][32 of size], on the stack
                scores, by the micro-kernel; what the model does to them, row by row: float32
                weights of them, as planes, in their place         [row][step][plane][32 keys]
                sums = sums * exp(top - top') + weights · values, by the micro-kernel
        sums / total to the epilogue, row by row

Weights are 1 at most. Neither products nor sums overflow where queries, keys and values are below 2^55, so that only rows
of larger numbers, infinities or NaN need something else: they are computed one by one in float32, as `lone_query` does.
"""

from __future__ import annotations

from dataclasses import replace

from sardonyx.backends.c.kernels.lone_query import lone_query
from sardonyx.backends.c.kernels.nest import SUPPORT, Extent
from sardonyx.backends.c.kernels.parts import PLANE, ROWS
from sardonyx.backends.c.kernels.planes import COLUMNS, DEPTH
from sardonyx.backends.c.kernels.tiles import (
    PAIRS,
    planes_of,
    split_function,
    tile_heights,
    tile_products,
)
from sardonyx.backends.c.kernels.weighing import AttentionSpec, weigh_function

__all__ = ["tile_attention"]

_BLOCK = 512  # keys: scores and weights of a strip stay in the second-level cache
_SUMS = 8192  # elements of the result that wait on the stack for the next block of keys
_GAP = 16  # values between rows, so that those of a tile fall into different sets of a cache
_TASK = 1 << 20  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly
_PACKED = 16384  # elements worth a task of packing
_WILD = "0x5b000000u"  # the bits of 2^55


def tile_attention(name: str, spec: AttentionSpec, variant: str) -> str:
    """C text of a static function, as `attention.attention`; `keys` and `values` are of bfloat16."""
    assert spec.dtype == "f32"
    planes = planes_of(variant)
    strips = _strips(spec)
    return f"""\
#include "tiles.h"
{SUPPORT}
struct {name}_job {{
    const struct env *env;
    uint16_t *keys, *values, *wild;
    const int64_t *n;
    int64_t row_blocks;
}};

{tile_heights(name)}
{tile_products(f"{name}_scores", variant)}
{tile_products(f"{name}_sums", variant, 2 * _pitch_of_scores(spec), DEPTH)}
{split_function(name, planes)}
{_is_wild(name)}
{_pack(name, spec, planes)}
{weigh_function(name, spec, DEPTH)}
{_weigh(name, spec, planes)}
{lone_query(name, replace(spec, shared=1))}
{_finish(name, spec)}
{_tasks(name, spec, planes)}
static void {name}(sx_run *run, const struct env *env, uint16_t *keys_packed, uint16_t *values_packed, const int64_t *n) {{
    const int64_t batch = {spec.batch}, height = {spec.rows}, keys = {spec.keys};
    const int64_t strips = sx_pieces(height, {ROWS}), groups = sx_pieces(keys, {COLUMNS});
    uint16_t *wild = values_packed + batch / {spec.shared} * groups * {_steps(spec.width) * planes * PLANE};
    struct {name}_job job = {{env, keys_packed, values_packed, wild, n, 1}};
    const double work = (double)batch * (double)height * (double)keys * {(spec.size + spec.width) * len(PAIRS[variant])}.0;
    const int64_t wanted = work < {_TASK * _TASKS}.0 ? (int64_t)(work / {_TASK}.0) : {_TASKS};
    if (batch <= 0 || height <= 0)
        return;
    if (keys > 0)
        run->parallel(run, batch / {spec.shared} * groups, {1 + _PACKED // (COLUMNS * (spec.size + spec.width))}, {name}_pack, &job);
    job.row_blocks = sx_pieces(strips, {strips});
    if (job.row_blocks * batch < wanted)
        job.row_blocks = sx_least(strips, sx_pieces(wanted, batch));
    run->parallel(run, batch * job.row_blocks, 1, {name}_tasks, &job);
}}
"""


def _steps(size: int) -> int:
    return -(-size // DEPTH)


def _strips(spec: AttentionSpec) -> int:
    """Strips of queries in a block."""
    return max(1, _SUMS // (ROWS * _steps(spec.width) * COLUMNS))


def _block(keys: Extent) -> int:
    """Keys in a block: whole steps, and evenly many where their number is known."""
    if not isinstance(keys, int):
        return _BLOCK
    blocks = max(1, -(-keys // _BLOCK))
    return max(1, _steps(-(-keys // blocks))) * DEPTH


def _pitch_of_scores(spec: AttentionSpec) -> int:
    """From a row of a strip's scores to the next."""
    return _block(spec.keys) + _GAP


def _is_wild(name: str) -> str:
    return f"""\
/* Whether a number is so large that products in tiles may overflow, an infinity or NaN. */
static inline int32_t {name}_is_wild(const float *row, int64_t count) {{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {{
        const uint32_t size = ((union {{ float value; uint32_t bits; }}){{row[i]}}).bits & 0x7fffffffu;
        most = size > most ? size : most;
    }}
    return most >= {_WILD};
}}
"""


def _weigh(name: str, spec: AttentionSpec, planes: int) -> str:
    """`<name>_strip_weigh`: as `<name>_weigh`, to planes. Eight bits of a weight need no better exponential."""
    then = f"{name}_parts(row + i, (uint16_t *)row + i * {planes}, {DEPTH});"
    exp = "sx_exp_weight_coarse" if planes == 1 else ""
    return weigh_function(f"{name}_strip", spec, DEPTH, then, exp)


def _pack(name: str, spec: AttentionSpec, planes: int) -> str:
    """A task is a panel of keys, and the step of values beside it."""
    size, width, step = _steps(spec.size), _steps(spec.width), planes * PLANE
    return f"""\
static void {name}_pack(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t keys = {spec.keys}, groups = sx_pieces(keys, {COLUMNS});
    float key[{size * DEPTH}], value[2][{width * COLUMNS}];
    uint16_t parts[2][{planes * DEPTH}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / groups * {spec.shared}, group = task % groups, first = group * {COLUMNS};
        const int64_t count = sx_least(keys - first, {COLUMNS});
        uint16_t *to_keys = job->keys + task * {size * step};
        uint16_t *to_values = job->values + (task / groups * groups * {width} + group) * {step};
        int32_t wild = 0;
        __builtin_memset(key, 0, sizeof key);
        __builtin_memset(value, 0, sizeof value);
        for (int64_t j = 0; j < {COLUMNS}; j++) {{
            if (j < count)
                read_key(job->env, b, first + j, 0, {spec.size}, key);
            else
                __builtin_memset(key, 0, sizeof key);
            wild |= {name}_is_wild(key, {spec.size});
            uint16_t *column = to_keys + j / 16 * {PLANE // 2} + j % 16 * 2;
            for (int64_t s = 0; s < {size}; s++) {{
                {name}_parts(key + s * {DEPTH}, parts[0], {DEPTH});
                for (int64_t plane = 0; plane < {planes}; plane++)
                    for (int64_t k = 0; k < {DEPTH}; k += 2)
                        __builtin_memcpy(
                            column + s * {step} + plane * {PLANE} + k * 16, parts[0] + plane * {DEPTH} + k, 2 * sizeof *column);
            }}
        }}
        for (int64_t j = 0; j < {DEPTH}; j += 2) {{
            for (int64_t odd = 0; odd < 2; odd++) {{
                if (j + odd < count)
                    read_value(job->env, b, first + j + odd, 0, {spec.width}, value[odd]);
                else
                    __builtin_memset(value[odd], 0, sizeof value[odd]);
                wild |= {name}_is_wild(value[odd], {spec.width});
            }}
            for (int64_t panel = 0; panel < {width}; panel++) {{
                {name}_parts(value[0] + panel * {COLUMNS}, parts[0], {COLUMNS});
                {name}_parts(value[1] + panel * {COLUMNS}, parts[1], {COLUMNS});
                for (int64_t half = 0; half < {2 * planes}; half++) {{
                    uint16_t *row = to_values + panel * groups * {step} + half * {PLANE // 2} + j * 16;
                    for (int64_t i = 0; i < 16; i++) {{
                        row[2 * i] = parts[0][half * 16 + i];
                        row[2 * i + 1] = parts[1][half * 16 + i];
                    }}
                }}
            }}
        }}
        job->wild[task] = (uint16_t)wild;
    }}
}}
"""


def _finish(name: str, spec: AttentionSpec) -> str:
    """`<name>_finish`: as `weighing.finish_function`; what is multiplied through tiles is finite."""
    factor, zeros = "keys > 0 ? 1 / total : 1", ""
    if spec.guarded:
        factor = "total > 0 ? 1 / total : 1"
        zeros = f"""\
    if (total != total)
        __builtin_memset(sums, 0, {spec.width} * sizeof *sums);
"""
    return f"""\
static inline void {name}_finish(float *sums, float total, int64_t keys) {{
    const float factor = {factor};
    (void)keys;
{zeros}    SX_VECTORS
    for (int64_t j = 0; j < {spec.width}; j++)
        sums[j] *= factor;
}}
"""


def _tasks(name: str, spec: AttentionSpec, planes: int) -> str:
    size, width, step, block = _steps(spec.size), _steps(spec.width), planes * PLANE, _block(spec.keys)  # fmt: skip
    scores, pitch, strips = _pitch_of_scores(spec), width * COLUMNS + _GAP, _strips(spec)
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const struct env *env = job->env;
    const int64_t *n = job->n;
    const int64_t height = {spec.rows}, keys = {spec.keys};
    const int64_t strips = sx_pieces(height, {ROWS}), groups = sx_pieces(keys, {COLUMNS});
    const int64_t shortest = height / strips, taller = height % strips;
    __attribute__((aligned(64))) float scores[{ROWS * scores}] = {{0}}, waiting[{strips * ROWS * pitch}], query[{size * DEPTH}] = {{0}};
    __attribute__((aligned(64))) uint16_t queries[{strips * size * step}] = {{0}};
    float tops[{strips * ROWS}], totals[{strips * ROWS}];
    int32_t wild[{strips * ROWS}];
    int64_t configured = 0;
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / job->row_blocks, row_block = task % job->row_blocks;
        const int64_t first_strip = sx_border(strips, job->row_blocks, row_block);
        const int64_t last_strip = sx_border(strips, job->row_blocks, row_block + 1);
        const int64_t first_row = first_strip * shortest + sx_least(first_strip, taller);
        const uint16_t *keys_of_b = job->keys + b / {spec.shared} * groups * {size * step};
        const uint16_t *values_of_b = job->values + b / {spec.shared} * groups * {width * step};
        int32_t wild_keys = 0;
        for (int64_t group = 0; group < groups; group++)
            wild_keys |= job->wild[b / {spec.shared} * groups + group];
        for (int64_t k0 = 0; k0 == 0 || k0 < keys; k0 += {block}) {{
            const int64_t kc = sx_least(keys - k0, {block}), steps = sx_pieces(kc, {DEPTH});
            for (int64_t strip = first_strip; strip < last_strip; strip++) {{
                const int64_t m = strip * shortest + sx_least(strip, taller);
                const int64_t taken = shortest + (strip < taller), upper = (taken + 1) / 2;
                float *top = tops + (m - first_row), *total = totals + (m - first_row);
                float *acc = waiting + (m - first_row) * {pitch};
                int32_t *alone = wild + (m - first_row);
                uint16_t *strip_of_q = queries + (strip - first_strip) * {size * step};
                if (taken != configured)
                    {name}_configure(configured = taken);
                for (int64_t r = 0; k0 == 0 && r < taken; r++) {{
                    read_query(env, b, m + r, 0, {spec.size}, query);
                    alone[r] = wild_keys | {name}_is_wild(query, {spec.size});
                    for (int64_t s = 0; s < {size}; s++)
                        {name}_parts(query + s * {DEPTH}, strip_of_q + s * {step} + r * {DEPTH}, {PLANE});
                    top[r] = -__builtin_inff();
                    total[r] = 0;
                }}
                for (int64_t s = 0; s < steps; s++)
                    {name}_scores_tiles(
                        strip_of_q, upper, keys_of_b + (k0 / {COLUMNS} + s) * {size * step}, {size},
                        scores + s * {COLUMNS}, {scores}, 1);
                for (int64_t r = 0; r < taken; r++) {{
                    float *row = scores + r * {scores};
                    make_scores(env, b, m + r, k0, kc, row);
                    const float kept = {name}_strip_weigh(row, kc, top + r, total + r);
                    if (k0 > 0 && kept != 1)
                        for (int64_t j = 0; j < {width * COLUMNS}; j++)
                            acc[r * {pitch} + j] *= kept;
                }}
                for (int64_t panel = 0; panel < {width}; panel++)
                    {name}_sums_tiles(
                        (const uint16_t *)scores, upper, values_of_b + (panel * groups + k0 / {DEPTH}) * {step}, steps,
                        acc + panel * {COLUMNS}, {pitch}, k0 == 0);
                for (int64_t r = 0; k0 + kc >= keys && r < taken; r++) {{
                    if (alone[r]) {{
                        {name}_lone(env, n, b, m + r);
                        continue;
                    }}
                    {name}_finish(acc + r * {pitch}, total[r], keys);
                    store_row(env, b, m + r, 0, {spec.width}, acc + r * {pitch});
                }}
            }}
        }}
    }}
    sx_tiles_release();
}}
"""
