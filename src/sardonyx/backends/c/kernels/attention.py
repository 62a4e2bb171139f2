"""Attention: softmax(scores(Q K)) V, a tile of queries and a block of keys at a time.

    every key and value, by all threads         keys[NR keys][size][NR], values[width / NR][keys][NR]
    task = (batch, block of queries)            run->parallel over all of them
        for every block of keys                 its panels stay in L2
            for every tile of queries
                scores of the tile, by the micro-kernel; what the model does to them, row by row
                top' = max(top, scores), weights = exp(scores - top')
                total = total * exp(top - top') + weights
                sums = sums * exp(top - top') + weights · values, by the micro-kernel
        sums / total to the epilogue, row by row

A single query goes another way (`lone_query`). Up to a block of keys, that is the plain softmax. Blocks follow each other in order, whatever the thread:
the same bits for any number of threads.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.elements import C_TYPE
from sardonyx.backends.c.kernels.isa import Isa, tile_of
from sardonyx.backends.c.kernels.lone_query import lone_queries
from sardonyx.backends.c.kernels.nest import SUPPORT, row_counts
from sardonyx.backends.c.kernels.tile import PIECE, TileFamily, tile_call, tile_functions
from sardonyx.backends.c.kernels.weighing import AttentionSpec, finish_function, weigh_function

# Elements of a panel of values in a block. Where panels come from the second-level cache anyway, longer blocks pass over
# tops and totals less often: an eighth of the time of 1500 keys on AVX-512.
_PANEL = 4096
_LONGER = {"avx512": 16384}
_SUMS = 8192  # elements of the result that wait on the stack for the next block of keys
_TASK = 1 << 17  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly
_PACKED = 16384  # elements worth a task of packing

__all__ = ["attention"]


def attention(name: str, spec: AttentionSpec, isa: Isa) -> str:
    """C text of a static function, to be put behind the functions of rows that it calls.

    static inline void read_query(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, T *row)
    and likewise read_key, read_value, make_scores; store_row as of a product, its sums constant
    static void <name>(sx_run *run, const struct env *env, T *keys, T *values, const int64_t *n)
    """
    tile, value = tile_of(isa, spec.dtype), C_TYPE[spec.dtype]
    long = spec.size > PIECE
    products = TileFamily(f"{name}_products", isa, tile, spec.dtype, run=PIECE if long else 0)
    sums = TileFamily(f"{name}_sums", isa, tile, spec.dtype, run=PIECE)
    counts = row_counts(spec.rows, tile.rows)
    column = f"values + (j - j % {tile.columns}) * keys + j % {tile.columns}"
    if spec.rows == 1:
        return _only_one(name, spec, tile.columns)
    alone, lone = "", ""
    if not isinstance(spec.rows, int):
        alone = lone_queries(name, spec)
        lone = f"""\
    if (height == 1) {{
        run->parallel(run, batch / {spec.shared}, 1, {name}_alone, &job);
        return;
    }}
"""
    return f"""\
{SUPPORT}
{tile_functions(products, counts)}
{tile_functions(sums, counts)}
struct {name}_job {{
    const struct env *env;
    {value} *keys, *values;
    const int64_t *n;
    int64_t row_blocks;
}};

{_pack(name, spec, tile.columns)}
{weigh_function(name, spec, tile.columns)}
{finish_function(name, spec, _rounded(spec.width, tile.columns), value, column, tile.columns)}
{_tasks(name, spec, products, sums, counts)}
{alone}static void {name}(sx_run *run, const struct env *env, {value} *keys_packed, {value} *values_packed, const int64_t *n) {{
    struct {name}_job job = {{env, keys_packed, values_packed, n, 1}};
    const int64_t batch = {spec.batch}, height = {spec.rows}, keys = {spec.keys};
    const int64_t tiles = sx_pieces(height, {tile.rows}), groups = sx_pieces(keys, {tile.columns});
    const double work = (double)batch * (double)height * (double)keys * {spec.size + spec.width}.0;
    const int64_t wanted = work < {_TASK * _TASKS}.0 ? (int64_t)(work / {_TASK}.0) : {_TASKS};
    if (batch <= 0 || height <= 0)
        return;
{lone}    if (keys > 0)
        run->parallel(run, batch / {spec.shared} * groups, {_pack_grain(spec, tile.columns)}, {name}_pack, &job);
    job.row_blocks = sx_pieces(tiles, {_tiles(spec, tile.rows, tile.columns)});
    if (job.row_blocks * batch < wanted)
        job.row_blocks = sx_least(tiles, sx_pieces(wanted, batch));
    run->parallel(run, batch * job.row_blocks, 1, {name}_tasks, &job);
}}
"""


def _only_one(name: str, spec: AttentionSpec, columns: int) -> str:
    value = C_TYPE[spec.dtype]
    return f"""\
{SUPPORT}
struct {name}_job {{
    const struct env *env;
    const int64_t *n;
}};

{weigh_function(name, spec, columns)}
{lone_queries(name, spec)}
static void {name}(sx_run *run, const struct env *env, {value} *keys_packed, {value} *values_packed, const int64_t *n) {{
    (void)keys_packed, (void)values_packed;
    run->parallel(run, ({spec.batch}) / {spec.shared}, 1, {name}_alone, &(struct {name}_job){{env, n}});
}}
"""


def _rounded(size: int, by: int) -> int:
    return -(-size // by) * by


def _pack_grain(spec: AttentionSpec, columns: int) -> int:
    return 1 + _PACKED // (columns * (spec.size + spec.width))


def _tiles(spec: AttentionSpec, rows: int, columns: int) -> int:
    """Tiles of queries in a block."""
    return max(1, _SUMS // (rows * _rounded(spec.width, columns)))


def _block(spec: AttentionSpec, family: TileFamily) -> int:
    """Keys in a block: whole panels, and evenly many where their number is known."""
    columns = family.tile.columns
    most = max(1, _LONGER.get(family.isa.name, _PANEL) // columns // columns) * columns
    if not isinstance(spec.keys, int):
        return most
    blocks = max(1, -(-spec.keys // most))
    return max(columns, _rounded(-(-spec.keys // blocks), columns))


def _pack(name: str, spec: AttentionSpec, columns: int) -> str:
    """A task is a panel of keys, and the rows of values beside it."""
    value, pitch = C_TYPE[spec.dtype], _rounded(spec.width, columns)
    return f"""\
static void {name}_pack(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n;
    const int64_t keys = {spec.keys}, groups = sx_pieces(keys, {columns});
    {value} rows[{columns}][{spec.size}], row[{pitch}] = {{0}};
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / groups * {spec.shared}, first = task % groups * {columns};
        const int64_t count = sx_least(keys - first, {columns});
        {value} *to = job->keys + task * {columns * spec.size};
        for (int64_t j = 0; j < count; j++)
            read_key(job->env, b, first + j, 0, {spec.size}, rows[j]);
        for (int64_t j = count; j < {columns}; j++)
            __builtin_memset(rows[j], 0, sizeof rows[j]);
        for (int64_t k = 0; k < {spec.size}; k++)
            for (int64_t j = 0; j < {columns}; j++)
                to[k * {columns} + j] = rows[j][k];
        to = job->values + task / groups * keys * {pitch} + first * {columns};
        for (int64_t j = 0; j < count; j++) {{
            read_value(job->env, b, first + j, 0, {spec.width}, row);
            for (int64_t panel = 0; panel < {pitch // columns}; panel++)
                __builtin_memcpy(
                    to + (panel * keys + j) * {columns}, row + panel * {columns}, {columns} * sizeof *to);
        }}
    }}
}}
"""


def _tasks(
    name: str, spec: AttentionSpec, products: TileFamily, sums: TileFamily, counts: list[int]
) -> str:
    tile, value = products.tile, C_TYPE[spec.dtype]
    columns, pitch, block = (
        tile.columns,
        _rounded(spec.width, tile.columns),
        _block(spec, products),
    )
    waiting = tile.rows * _tiles(spec, tile.rows, columns)
    multiply = tile_call(
        products,
        counts,
        "taken",
        f"pointers, 1, {spec.size}, keys_of_b + k0 * {spec.size}, {spec.size * columns}, "
        f"sx_pieces(kc, {columns}), scores, {block}, 1",
    )
    add = tile_call(
        sums,
        counts,
        "taken",
        f"pointers, 1, kc, values_of_b + k0 * {columns}, keys * {columns}, {pitch // columns}, "
        f"acc, {pitch}, k0 == 0",
    )
    return f"""\
static void {name}_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const struct env *env = job->env;
    const int64_t *n = job->n;
    const int64_t height = {spec.rows}, keys = {spec.keys};
    const int64_t tiles = sx_pieces(height, {tile.rows}), groups = sx_pieces(keys, {columns});
    const int64_t shortest = height / tiles, taller = height % tiles;
    const {value} *pointers[1][{tile.rows}];
    __attribute__((aligned(64))) {value} scores[{tile.rows * block}], queries[{tile.rows * spec.size}];
    __attribute__((aligned(64))) {value} waiting[{waiting * pitch}];
    {value} tops[{waiting}], totals[{waiting}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / job->row_blocks, row_block = task % job->row_blocks;
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t first_row = first_tile * shortest + sx_least(first_tile, taller);
        const {value} *keys_of_b = job->keys + b / {spec.shared} * groups * {columns * spec.size};
        const {value} *values_of_b = job->values + b / {spec.shared} * keys * {pitch};
        for (int64_t k0 = 0; k0 == 0 || k0 < keys; k0 += {block}) {{
            const int64_t kc = sx_least(keys - k0, {block});
            for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                const int64_t m = tile * shortest + sx_least(tile, taller);
                const int64_t taken = shortest + (tile < taller);
                {value} *top = tops + (m - first_row), *total = totals + (m - first_row);
                {value} *acc = waiting + (m - first_row) * {pitch};
                for (int64_t r = 0; r < taken; r++) {{
                    read_query(env, b, m + r, 0, {spec.size}, queries + r * {spec.size});
                    pointers[0][r] = queries + r * {spec.size};
                }}
{_indent(multiply, 16)}
                for (int64_t r = 0; r < taken; r++) {{
                    {value} *row = scores + r * {block};
                    pointers[0][r] = row;
                    if (k0 == 0) {{
                        top[r] = -({value})__builtin_inf();
                        total[r] = 0;
                    }}
                    make_scores(env, b, m + r, k0, kc, row);
                    const {value} kept = {name}_weigh(row, kc, top + r, total + r);
                    if (k0 > 0 && kept != 1)
                        for (int64_t j = 0; j < {pitch}; j++)
                            acc[r * {pitch} + j] *= kept;
                }}
{_indent(add, 16)}
                if (k0 + kc < keys)
                    continue;
                for (int64_t r = 0; r < taken; r++) {{
                    {name}_finish(acc + r * {pitch}, total[r], values_of_b, keys);
                    store_row(env, b, m + r, 0, {spec.width}, acc + r * {pitch});
                }}
            }}
        }}
    }}
}}
"""


def _indent(text: str, indent: int) -> str:
    return "\n".join(f"{' ' * indent}{line}" for line in text.splitlines())
