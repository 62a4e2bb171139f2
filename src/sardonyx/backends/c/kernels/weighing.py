"""What kernels of attention share: their sizes, scores that become weights, and sums that are divided by these."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.backends.c.kernels.elements import C_TYPE
from sardonyx.backends.c.kernels.nest import Extent

__all__ = ["AttentionSpec", "finish_function", "weigh_function"]


@dataclass(frozen=True)
class AttentionSpec:
    """Sizes are numbers or C text over the kernel's size symbols `n[0]`, `n[1]`, …

    Attributes:
        size, width: of a query, and of a row of the values.
        guarded: rows of weights that are NaN count as rows of zeros.
        shared: so many batches, one after the other, have the same keys and values.
    """

    batch: Extent
    rows: Extent
    keys: Extent
    size: int
    width: int
    dtype: str
    guarded: bool
    shared: int = 1


def weigh_function(name: str, spec: AttentionSpec) -> str:
    """`<name>_weigh`: scores become weights; the factor that earlier sums have to take is returned."""
    value, kind = C_TYPE[spec.dtype], spec.dtype
    exp = "sx_exp_weight_f32" if kind == "f32" else f"sx_exp_{kind}"
    return f"""\
static inline {value} {name}_weigh({value} *row, int64_t count, {value} *top, {value} *total) {{
    {value} highest = *top, sum = 0;
    SX_INTERLEAVED
    for (int64_t i = 0; i < count; i++)
        highest = sx_max_{kind}(highest, row[i]);
    /* Where nothing was seen yet but -inf, the weights are 0 and not NaN: other blocks may follow. */
    const {value} shift = highest == -({value})__builtin_inf() ? 0 : highest;
    const {value} kept = {exp}(*top - shift);
    {{ SX_REASSOCIATE
    SX_INTERLEAVED
    for (int64_t i = 0; i < count; i++) {{
        row[i] = {exp}(row[i] - shift);
        sum += row[i];
    }}
    }}
    *top = highest;
    *total = *total * kept + sum;
    return kept;
}}
"""


def finish_function(
    name: str, spec: AttentionSpec, pitch: int, stored: str, column: str, step: int
) -> str:
    """`<name>_finish`: the sums of a row, divided by the total; 1 / 0 makes the NaN of a row that is -inf throughout.

    Args:
        stored, column, step: the C type of packed values, where those of column `j` begin, and how far they are apart.
    """
    value = C_TYPE[spec.dtype]
    factor = "keys > 0 ? 1 / total : 1"
    zeros = ""
    if spec.guarded:
        factor = "total > 0 ? 1 / total : 1"
        zeros = f"""\
    if (total != total)  /* all weights are 0, which infinite values tell from no weights */
        for (int64_t j = 0; j < {spec.width}; j++) {{
            const {stored} *column = {column};
            sums[j] = 0;
            for (int64_t k = 0; k < keys; k++)
                sums[j] += 0 * ({value})column[k * {step}];
        }}
"""
    return f"""\
static inline void {name}_finish({value} *sums, {value} total, const {stored} *values, int64_t keys) {{
    const {value} factor = {factor};
    (void)values, (void)keys;
{zeros}    SX_VECTORS
    for (int64_t j = 0; j < {pitch}; j++)
        sums[j] *= factor;
}}
"""
