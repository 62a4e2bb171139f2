"""Attention of a single query, as when a model decodes: each key and each value is read once, where it lies, and none is packed.

Heads that share their keys and values go together.


task = (batch)                              run->parallel over all of them
    for every piece of the keys
        scores = query · keys, four at a time; what the model does to them
        top' = max(top, scores), weights = exp(scores - top')
        sums = sums * exp(top - top') + weights · values, four at a time
    sums / total to the epilogue
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.elements import C_TYPE
from sardonyx.backends.c.kernels.tile import IN_MEMORY, PIECE
from sardonyx.backends.c.kernels.weighing import AttentionSpec

__all__ = ["lone_queries", "lone_query"]


def lone_queries(name: str, spec: AttentionSpec) -> str:
    """C text of `<name>_alone`, the body of a parallel loop over batches of one row each; behind `<name>_job`."""
    return f"""\
{lone_query(name, spec)}
static void {name}_alone(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    for (int64_t b = begin; b < end; b++)
        {name}_lone(job->env, job->n, b * {spec.shared}, 0);
}}
"""


def lone_query(name: str, spec: AttentionSpec) -> str:
    """C text of `<name>_lone`, for row `m` of `shared` batches from `b` on; behind `<name>_weigh` and the functions of rows."""
    value, size, width, group = C_TYPE[spec.dtype], spec.size, spec.width, spec.shared
    return f"""\
/* The products of the query and four keys. */
static inline void {name}_dots(const {value} *query, {value} (*keys)[{size}], {value} *scores) {{
    {value} a = 0, b = 0, c = 0, d = 0;
    {{ SX_REASSOCIATE
    SX_VECTOR
    for (int64_t i = 0; i < {size}; i++) {{
        a += query[i] * keys[0][i];
        b += query[i] * keys[1][i];
        c += query[i] * keys[2][i];
        d += query[i] * keys[3][i];
    }}
    }}
    scores[0] = a, scores[1] = b, scores[2] = c, scores[3] = d;
}}

static __attribute__((noinline)) void {name}_lone(const struct env *env, const int64_t *n, int64_t b, int64_t m) {{
    const int64_t keys = {spec.keys};
    {value} query[{group}][{size}], four[4][{size}] = {{{{0}}}}, scores[{group}][{PIECE}], kept[{group}];
    {value} values[4][{width}], piece[{group}][{width}], sums[{group}][{width}], top[{group}], total[{group}];
    (void)n;
    for (int64_t q = 0; q < {group}; q++) {{
        top[q] = -({value})__builtin_inf(), total[q] = 0;
        read_query(env, b + q, m, 0, {size}, query[q]);
    }}
    __builtin_memset(sums, 0, sizeof sums);
    for (int64_t k0 = 0; k0 == 0 || k0 < keys; k0 += {PIECE}) {{
        const int64_t kc = sx_least(keys - k0, {PIECE});
        for (int64_t j = 0; j < kc; j += 4) {{
            for (int64_t r = 0; r < sx_least(kc - j, 4); r++)
                read_key(env, b, k0 + j + r, 0, {size}, four[r]);
            for (int64_t q = 0; q < {group}; q++)
                {name}_dots(query[q], four, scores[q] + j);
        }}
        for (int64_t q = 0; q < {group}; q++) {{
            make_scores(env, b + q, m, k0, kc, scores[q]);
            kept[q] = {name}_weigh(scores[q], kc, top + q, total + q);
        }}
        int64_t j = 0;
        __builtin_memset(piece, 0, sizeof piece);
        for (; j + 4 <= kc; j += 4) {{
            for (int64_t r = 0; r < 4; r++)
                read_value(env, b, k0 + j + r, 0, {width}, values[r]);
            {IN_MEMORY}
            for (int64_t q = 0; q < {group}; q++) {{
                const {value} w = scores[q][j], x = scores[q][j + 1], y = scores[q][j + 2], z = scores[q][j + 3];
                SX_VECTOR
                for (int64_t i = 0; i < {width}; i++)
                    piece[q][i] += w * values[0][i] + x * values[1][i] + y * values[2][i] + z * values[3][i];
            }}
        }}
        for (; j < kc; j++) {{
            read_value(env, b, k0 + j, 0, {width}, values[0]);
            for (int64_t q = 0; q < {group}; q++) {{
                const {value} weight = scores[q][j];
                SX_VECTOR
                for (int64_t i = 0; i < {width}; i++)
                    piece[q][i] += weight * values[0][i];
            }}
        }}
        for (int64_t q = 0; q < {group}; q++) {{
            SX_VECTOR
            for (int64_t i = 0; i < {width}; i++)
                sums[q][i] = (k0 > 0 && kept[q] != 1 ? sums[q][i] * kept[q] : sums[q][i]) + piece[q][i];
        }}
    }}
    for (int64_t q = 0; q < {group}; q++) {{
{_divided(spec)}
        store_row(env, b + q, m, 0, {width}, sums[q]);
    }}
}}
"""


def _divided(spec: AttentionSpec) -> str:
    """C statements: sums become means, as by `finish_function`, whose values are packed."""
    width = spec.width
    if not spec.guarded:
        return f"""\
        const {C_TYPE[spec.dtype]} factor = keys > 0 ? 1 / total[q] : 1;
        for (int64_t i = 0; i < {width}; i++)
            sums[q][i] *= factor;"""
    return f"""\
        const {C_TYPE[spec.dtype]} factor = total[q] > 0 ? 1 / total[q] : 1;
        const int32_t nothing = total[q] != total[q];  /* all weights are 0, which infinite values tell from no weights */
        if (nothing)
            __builtin_memset(sums[q], 0, sizeof sums[q]);
        for (int64_t j = 0; nothing && j < keys; j++) {{
            read_value(env, b, j, 0, {width}, values[0]);
            for (int64_t i = 0; i < {width}; i++)
                sums[q][i] += 0 * values[0][i];
        }}
        for (int64_t i = 0; i < {width}; i++)
            sums[q][i] *= factor;"""
