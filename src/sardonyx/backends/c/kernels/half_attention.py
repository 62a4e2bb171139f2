"""Attention with its two products in float16 arithmetic: the loops of `attention`, the micro-kernel of `half_tile`.

    every key and value, by all threads         keys[16 keys]: 16 scales of float32 | [size][16], float16
                                                values[width / 16]: 16 ones | [keys][16]; then a scale for every key
    task = (batch, block of queries)
        for every block of keys
            for every strip of eight queries
                scores, by the micro-kernel; what the model does to them: float32
                weights of them, float16, times the scales of their values where those have any
                sums = sums * exp(top - top') + weights · values, by the micro-kernel; blocks are added up in float32

A key has a scale as a column of weights has; a value's scale goes to its weight, so that its row needs no pass over all
keys. Products that are not finite are computed again in float32, from what was packed.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.half_tile import ROWS, Sums, half_call, half_tile_functions
from sardonyx.backends.c.kernels.halves import COLUMNS, HEAD
from sardonyx.backends.c.kernels.nest import SUPPORT, Extent, indented, row_counts
from sardonyx.backends.c.kernels.weighing import AttentionSpec, finish_function, weigh_function

__all__ = ["half_attention"]

_BLOCK = 512  # keys: their scores and a panel of their values share the first-level cache
_SUMS = 8192  # elements of the result that wait on the stack for the next block of keys
_TASK = 1 << 18  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly
_PACKED = 16384  # elements worth a task of packing
_QUERIES, _SUM = (
    7,
    15,
)  # exponents: of the largest number of a strip that is not scaled, of the largest sum
_VALUES = 6  # of the largest value that is not scaled: weights are 2 at most
_PRODUCTS = Sums(64, 4)


def half_attention(name: str, spec: AttentionSpec) -> str:
    """C text of a static function, as `attention.attention`; `keys` and `values` are of float16."""
    assert spec.dtype == "f32"
    counts = row_counts(spec.rows, ROWS)
    column = f"values + j / {COLUMNS} * (keys * {COLUMNS} + {HEAD}) + {HEAD} + j % {COLUMNS}"
    tiles = max(1, _SUMS // (ROWS * _pitch(spec)))
    return f"""\
{SUPPORT}
{half_tile_functions(name, counts, _PRODUCTS)}
struct {name}_job {{
    const struct env *env;
    _Float16 *keys, *values;
    const int64_t *n;
    int64_t row_blocks;
}};

{_pack(name, spec)}
{weigh_function(name, spec, COLUMNS)}
{_weigh_halves(name)}
{finish_function(name, spec, _pitch(spec), "_Float16", column, COLUMNS)}
{_tasks(name, spec, counts, ROWS * tiles)}
static void {name}(sx_run *run, const struct env *env, _Float16 *keys_packed, _Float16 *values_packed, const int64_t *n) {{
    struct {name}_job job = {{env, keys_packed, values_packed, n, 1}};
    const int64_t batch = {spec.batch}, height = {spec.rows}, keys = {spec.keys};
    const int64_t tiles = sx_pieces(height, {ROWS}), groups = sx_pieces(keys, {COLUMNS});
    const double work = (double)batch * (double)height * (double)keys * {spec.size + spec.width}.0;
    const int64_t wanted = work < {_TASK * _TASKS}.0 ? (int64_t)(work / {_TASK}.0) : {_TASKS};
    if (batch <= 0 || height <= 0)
        return;
    if (keys > 0)
        run->parallel(run, batch * groups, {1 + _PACKED // (COLUMNS * (spec.size + spec.width))}, {name}_pack, &job);
    job.row_blocks = sx_pieces(tiles, {tiles});
    if (job.row_blocks * batch < wanted)
        job.row_blocks = sx_least(tiles, sx_pieces(wanted, batch));
    run->parallel(run, batch * job.row_blocks, 1, {name}_tasks, &job);
}}
"""


def _pitch(spec: AttentionSpec) -> int:
    return -(-spec.width // COLUMNS) * COLUMNS


def _block(keys: Extent) -> int:
    """Keys in a block: whole panels, and evenly many where their number is known."""
    if not isinstance(keys, int):
        return _BLOCK
    blocks = max(1, -(-keys // _BLOCK))
    return max(COLUMNS, -(-keys // blocks // COLUMNS) * COLUMNS)


def _of_batch(spec: AttentionSpec) -> str:
    """Elements that the values of a batch take, their scales included."""
    panels = _pitch(spec) // COLUMNS
    return f"({panels} * (keys * {COLUMNS} + {HEAD}) + 2 * keys)"


def _scales_of_values(spec: AttentionSpec, of_batch: str) -> str:
    return f"(float *)({of_batch} + {_pitch(spec) // COLUMNS} * (keys * {COLUMNS} + {HEAD}))"


def _pack(name: str, spec: AttentionSpec) -> str:
    """A task is a panel of keys, and the rows of values beside it."""
    size, pitch = spec.size, _pitch(spec)
    # Sums of a group of products of the largest query that is not scaled.
    highest = _SUM - _QUERIES - (min(size, _PRODUCTS.products) - 1).bit_length()
    return f"""\
static void {name}_pack(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t keys = {spec.keys}, groups = sx_pieces(keys, {COLUMNS});
    const float *pointers[2][1][{ROWS}];
    float rows[{COLUMNS}][{size}], row[{pitch}] = {{0}}, factors[{COLUMNS}];
    __attribute__((aligned(16))) _Float16 turned[2][{size * ROWS}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / groups, first = task % groups * {COLUMNS};
        const int64_t count = sx_least(keys - first, {COLUMNS});
        _Float16 *to = job->keys + task * {COLUMNS * size + HEAD};
        for (int64_t j = 0; j < {COLUMNS}; j++) {{
            pointers[j / {ROWS}][0][j % {ROWS}] = rows[j];
            if (j < count)
                read_key(job->env, b, first + j, 0, {size}, rows[j]);
            else
                __builtin_memset(rows[j], 0, sizeof rows[j]);
            const float scale = sx_half_scale(rows[j], {size}, -5, {highest});
            ((float *)to)[j] = scale;
            factors[j] = 1 / scale;
        }}
        to += {HEAD};
        for (int64_t half = 0; half < 2; half++)
            sx_half_pack(pointers[half], 1, {size}, {ROWS}, factors + half * {ROWS}, turned[half]);
        for (int64_t k = 0; k < {size}; k++)
            for (int64_t half = 0; half < 2; half++)
                *(sx_h8m *)(to + k * {COLUMNS} + half * {ROWS}) = *(const sx_h8m *)(turned[half] + k * {ROWS});
        _Float16 *values = job->values + b * {_of_batch(spec)};
        float *scales = {_scales_of_values(spec, "values")};
        for (int64_t panel = 0; first == 0 && panel < {pitch // COLUMNS}; panel++)
            for (int64_t j = 0; j < {COLUMNS}; j++)
                ((float *)(values + panel * (keys * {COLUMNS} + {HEAD})))[j] = 1;
        for (int64_t k = first; k < first + count; k++) {{
            read_value(job->env, b, k, 0, {spec.width}, row);
            scales[k] = sx_half_scale(row, {spec.width}, -5, {_VALUES});
            const float factor = 1 / scales[k];
            for (int64_t j = 0; j < {pitch}; j += 8)
                *(sx_h8m *)(values + j / {COLUMNS} * (keys * {COLUMNS} + {HEAD}) + {HEAD} + k * {COLUMNS} + j % {COLUMNS}) =
                    sx_half_of(*(const sx_f4m *)(row + j) * factor, *(const sx_f4m *)(row + j + 4) * factor);
        }}
    }}
}}
"""


def _weigh_halves(name: str) -> str:
    """`<name>_weigh_halves`: as `<name>_weigh`, to float16, and to its bits. A NaN among the scores makes the total one."""
    return f"""\
static inline float {name}_weigh_halves(
    const float *row, int64_t count, float *top, float *total, _Float16 *restrict weights) {{
    float highest = *top, sum = 0;
    SX_INTERLEAVED
    for (int64_t i = 0; i < count; i++)
        highest = sx_max_f32(highest, row[i]);
    const float shift = highest == -(float)__builtin_inf() ? 0 : highest;
    const float kept = sx_exp_weight_f32(*top - shift);
    {{ SX_REASSOCIATE
    SX_EIGHT
    for (int64_t i = 0; i < count; i++) {{
        const float weight = sx_exp2_coarse((row[i] - shift) * 0x1.715476p+0f);
        weights[i] = (_Float16)weight;
        sum += weight;
    }}
    }}
    *top = highest;
    *total = *total * kept + sum;
    return kept;
}}
"""


def _tasks(name: str, spec: AttentionSpec, counts: list[int], waiting: int) -> str:
    size, pitch, block = spec.size, _pitch(spec), _block(spec.keys)
    panel, panels = COLUMNS * size + HEAD, pitch // COLUMNS
    multiply = half_call(
        name,
        counts,
        "taken",
        f"packed, {size}, head + {HEAD}, {panel}, groups_of_block, {block}, scores, scales, 1",
    )

    def add(scales: str) -> str:
        of_values = f"values + {HEAD} + k0 * {COLUMNS}, stride, {panels}, {pitch}, part"
        return half_call(name, counts, "taken", f"packed, kc, {of_values}, {scales}, 1")

    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const struct env *env = job->env;
    const int64_t *n = job->n;
    const int64_t height = {spec.rows}, keys = {spec.keys}, stride = keys * {COLUMNS} + {HEAD};
    const int64_t tiles = sx_pieces(height, {ROWS}), groups = sx_pieces(keys, {COLUMNS});
    const int64_t shortest = height / tiles, taller = height % tiles;
    static const float ones[{ROWS}] = {{{", ".join(["1"] * ROWS)}}};
    const float *rows[1][{ROWS}];
    __attribute__((aligned(64))) _Float16 weights[{ROWS * block}] = {{0}};
    __attribute__((aligned(64))) float scores[{ROWS * block}], queries[{ROWS * size}], again[{ROWS * max(block, pitch)}];
    __attribute__((aligned(64))) float part[{ROWS * pitch}], waiting[{waiting * pitch}];
    __attribute__((aligned(64))) _Float16 packed[{ROWS * max(block, size)}];
    float scales[{ROWS}], kept[{ROWS}], tops[{waiting}], totals[{waiting}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / job->row_blocks, row_block = task % job->row_blocks;
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t first_row = first_tile * shortest + sx_least(first_tile, taller);
        const _Float16 *values = job->values + b * {_of_batch(spec)};
        const float *of_values = {_scales_of_values(spec, "values")};
        for (int64_t k0 = 0; k0 == 0 || k0 < keys; k0 += {block}) {{
            const int64_t kc = sx_least(keys - k0, {block}), groups_of_block = sx_pieces(kc, {COLUMNS});
            const _Float16 *head = job->keys + (b * groups + k0 / {COLUMNS}) * {panel};
            int32_t plain = 1;
            for (int64_t i = k0; i < k0 + kc; i++)
                plain &= of_values[i] == 1;
            for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                const int64_t m = tile * shortest + sx_least(tile, taller);
                const int64_t taken = shortest + (tile < taller);
                float *top = tops + (m - first_row), *total = totals + (m - first_row);
                float *acc = waiting + (m - first_row) * {pitch};
                for (int64_t r = 0; r < taken; r++) {{
                    read_query(env, b, m + r, 0, {size}, queries + r * {size});
                    rows[0][r] = queries + r * {size};
                }}
                const int32_t tame = sx_half_strip(rows, 1, {size}, taken, {_QUERIES}, packed, scales);
{indented(multiply, 16)}                if (!{name}_finish_products(head, {panel}, groups_of_block, taken, tame, scores, {block})) {{
                    {name}_plain(rows, 1, {size}, taken, head, head + {HEAD}, {panel}, groups_of_block, again, {block}, 1);
                    {name}_replace(taken, kc, scores, {block}, again);
                }}
                for (int64_t r = 0; r < taken; r++) {{
                    float *row = scores + r * {block};
                    rows[0][r] = row;
                    if (k0 == 0) {{
                        top[r] = -(float)__builtin_inf();
                        total[r] = 0;
                    }}
                    make_scores(env, b, m + r, k0, kc, row);
                    kept[r] = plain ? {name}_weigh_halves(row, kc, top + r, total + r, weights + r * {block})
                                    : {name}_weigh(row, kc, top + r, total + r);
                }}
                if (plain) {{
                    /* Weights are 1 at most, values 2^{_VALUES}: nothing overflows, and a NaN is in the total as well. */
                    sx_half_interleave(weights, {block}, sx_pieces(kc, 8) * 8, packed);
{indented(add("ones"), 20)}                }} else {{
                    for (int64_t r = 0; r < taken; r++)
                        for (int64_t i = 0; i < kc; i++)
                            scores[r * {block} + i] *= of_values[k0 + i];
                    sx_half_strip(rows, 1, kc, taken, 0, packed, scales);
{indented(add("scales"), 20)}                    if (!{name}_finish_products(values, stride, {panels}, taken, 0, part, {pitch})) {{
                        {name}_plain(rows, 1, kc, taken, values, values + {HEAD} + k0 * {COLUMNS}, stride, {panels}, again, {pitch}, 1);
                        {name}_replace(taken, {spec.width}, part, {pitch}, again);
                    }}
                }}
                for (int64_t r = 0; r < taken; r++)
                    for (int64_t j = 0; j < {pitch}; j++) {{
                        float *at = acc + r * {pitch} + j;
                        *at = k0 == 0 ? part[r * {pitch} + j] : *at * kept[r] + part[r * {pitch} + j];
                    }}
                if (k0 + kc < keys)
                    continue;
                for (int64_t r = 0; r < taken; r++) {{
                    {name}_finish(acc + r * {pitch}, total[r], values, keys);
                    store_row(env, b, m + r, 0, {spec.width}, acc + r * {pitch});
                }}
            }}
        }}
    }}
}}
"""
