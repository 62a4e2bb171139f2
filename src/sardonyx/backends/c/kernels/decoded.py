"""Many float32 rows times weights of 8 or 4 bits: a piece of a panel is made float32 again, and serves sixty-four rows.

The weights are laid out as `digits` says. With so many rows, multiplying is what takes time, and multiplying float32 is
faster than multiplying their digits.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.isa import Isa

__all__ = ["decoded_rows"]

PANEL = 16
_DEPTH = 256  # values of K that are decoded, and summed up, at once
_ROWS, _TILE = 64, 4


def decoded_rows(
    name: str, isa: Isa, *, bits: int, inner: int, shared: int, zero: int, zeros: bool
) -> str:
    """C text of `<name>_many`: sums of up to 64 rows of a panel.

    Args:
        shared: values of K that share a scale.
        zeros: whether every scale has a zero point of its own.
    """
    return f"""\
{_decode(name, isa, bits, shared, zero, zeros)}
{_tile(name, isa, _TILE)}
{_tile(name, isa, 1)}
static void {name}_many(
    const float *from, int64_t by_row, int64_t rows, const uint8_t *codes, const float *scales,
    const int16_t *zeros, float *sums) {{
    float weights[{_DEPTH * PANEL}] __attribute__((aligned(64)));
    __builtin_memset(sums, 0, (size_t)rows * {PANEL} * sizeof *sums);
    for (int64_t k = 0; k < {inner}; k += {_DEPTH}) {{
        const int64_t depth = {name}_least({_DEPTH}, {inner} - k);
        {name}_decode(weights, codes, scales, zeros, k, (depth + {8 // bits * 4 - 1}) / {8 // bits * 4});
        int64_t m = 0;
        for (; m + {_TILE} <= rows; m += {_TILE})
            {name}_tile{_TILE}(from + m * by_row + k, by_row, weights, depth, sums + m * {PANEL});
        for (; m < rows; m++)
            {name}_tile1(from + m * by_row + k, by_row, weights, depth, sums + m * {PANEL});
    }}
}}
"""


def _types(isa: Isa) -> str:
    size = isa.lanes * 4
    return f"""\
    typedef int32_t ints __attribute__((vector_size({size})));
    typedef int32_t loaded __attribute__((vector_size({size}), aligned(4), may_alias));
    typedef float floats __attribute__((vector_size({size})));
    typedef float scaled __attribute__((vector_size({size}), aligned(4), may_alias));
    typedef int16_t shorts __attribute__((vector_size({size // 2}), aligned(2)));
    (void)sizeof(ints), (void)sizeof(loaded), (void)sizeof(floats), (void)sizeof(shorts);"""


def _decode(name: str, isa: Isa, bits: int, shared: int, zero: int, zeros: bool) -> str:
    """C text of `<name>_decode`: groups of four values of K (of eight, where they have 4 bits), from `first` on."""
    group = 8 // bits * 4
    lines: list[str] = []
    for at in range(0, PANEL, isa.lanes):
        lines.append(f"{{ const ints w = *(const loaded *)(codes + {4 * at});")
        taken = (
            f"(__builtin_convertvector(*(const shorts *)(zero + {at}), ints))" if zeros else zero
        )
        lines.append(f"  const floats scale = *(const scaled *)(scale_of + {at});")
        for k in range(group):
            if bits == 4:
                code = f"(w >> {k % 4 * 8 + k // 4 * 4} & 15)"
            elif isa.unsigned_bytes:
                code = f"(w >> {k * 8} & 255)"
            else:
                code = f"(w << {24 - k * 8} >> 24)"
            lines.append(
                f"  *(scaled *)(to + {k * PANEL + at}) = __builtin_convertvector({code} - {taken}, floats) * scale;"
            )
        lines.append("}")
    body = "\n".join(f"        {line}" for line in lines)
    return f"""\
static void {name}_decode(
    float *to, const uint8_t *codes, const float *scales, const int16_t *zeros, int64_t first, int64_t groups) {{
{_types(isa)}
    (void)zeros;
    codes += first / {group} * 64;
    for (int64_t g = 0; g < groups; g++, codes += 64, to += {group * PANEL}) {{
        const int64_t block = (first + g * {group}) / {shared};
        const float *scale_of = scales + block * {PANEL};
        {f"const int16_t *zero = zeros + block * {PANEL};" if zeros else ""}
{body}
    }}
}}
"""


def _tile(name: str, isa: Isa, rows: int) -> str:
    """C text of `<name>_tile<rows>`: adds the products of some values of K to the sums of some rows."""
    vectors = range(PANEL // isa.lanes)
    each = [(r, v) for r in range(rows) for v in vectors]
    zero = "".join(f"    floats s{r}{v} = {{0}};\n" for r, v in each)
    load = "".join(
        f"        const floats w{v} = *(const scaled *)(weights + {v * isa.lanes});\n"
        for v in vectors
    )
    step = "".join(f"        s{r}{v} += w{v} * from[{r} * by_row + k];\n" for r, v in each)
    add = "".join(
        f"    *(scaled *)(sums + {r * PANEL + v * isa.lanes}) += s{r}{v};\n" for r, v in each
    )
    return f"""\
static void {name}_tile{rows}(
    const float *from, int64_t by_row, const float *weights, int64_t depth, float *sums) {{
{_types(isa)}
    (void)by_row;
{zero}    for (int64_t k = 0; k < depth; k++, weights += {PANEL}) {{
{load}{step}    }}
{add}}}
"""
