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


def weigh_function(
    name: str, spec: AttentionSpec, columns: int, then: str = "", exp: str = ""
) -> str:
    """`<name>_weigh`: scores become weights; the factor that earlier sums have to take is returned.

    Args:
        columns: scores that are looked at side by side; there is room for a multiple of them.
        then: what is done to so many weights, from `row + i` on, while they are at hand.
        exp: the C function of a weight, where it is not the usual one.
    """
    value, kind = C_TYPE[spec.dtype], spec.dtype
    opening, closing = (" {", f"        {then}\n    }}\n") if then else ("", "")
    usual = "sx_exp_weight_f32" if kind == "f32" else f"sx_exp_{kind}"
    return f"""\
static inline {value} {name}_weigh({value} *row, int64_t count, {value} *top, {value} *total) {{
    {value} tops[{columns}], sums[{columns}] = {{0}};
    const int64_t whole = sx_pieces(count, {columns}) * {columns};
    for (int64_t i = count; i < whole; i++)
        row[i] = -({value})__builtin_inf();
    for (int64_t j = 0; j < {columns}; j++)
        tops[j] = *top;
    /* Whether a NaN is passed over or not: its weight is NaN, and so is the total. */
    for (int64_t i = 0; i < whole; i += {columns})
        SX_REGISTERS
        for (int64_t j = 0; j < {columns}; j++)
            tops[j] = sx_above_{kind}(row[i + j], tops[j]);
    {_folded("tops", columns, f"sx_above_{kind}(tops[j + n], tops[j])")}
    const {value} highest = tops[0];
    /* Where nothing was seen yet but -inf, the weights are 0 and not NaN: other blocks may follow. */
    const {value} shift = highest == -({value})__builtin_inf() ? 0 : highest;
    const {value} kept = {usual}(*top - shift);
    for (int64_t i = 0; i < whole; i += {columns}){opening}
        SX_REGISTERS
        for (int64_t j = 0; j < {columns}; j++) {{
            row[i + j] = {exp or usual}(row[i + j] - shift);
            sums[j] += row[i + j];
        }}
{closing}    {_folded("sums", columns, "sums[j] + sums[j + n]")}
    *top = highest;
    *total = *total * kept + sums[0];
    return kept;
}}
"""


def _folded(array: str, columns: int, both: str) -> str:
    """C text: what is in the upper half of an array goes to the lower one, until there is one element."""
    return f"""\
for (int64_t n = {columns // 2}; n > 0; n /= 2)
        SX_REGISTERS
        for (int64_t j = 0; j < n; j++)
            {array}[j] = {both};"""


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
