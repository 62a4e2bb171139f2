"""Products of float32 rows with weights of 8 or 4 bits, in integers.

    x[k]  =  (((d0[k] · 256 + d1[k]) · 256 + d2[k]) · 256 + d3[k]) · 2^e     digits have a sign; one e for every block of a row
    y[n]  =  sum over blocks of scale[n] · 2^e · sum over k of digits · (q[k, n] - zero)

The sums over a block are exact, and a number is rounded 30 bits below the largest of its block: the error is that of scaling and
adding up blocks in float32. (Three digits are too few for that: where the largest number meets a weight of 0, what was rounded off the
others is all that is seen. Lower precisions have three, and two.) Weights are read once, as they are stored, and memory alone is what takes time:

    codes     [N / 16][blocks][block / 4][16] quads of bytes, four values of K side by side
              of 4 bits: [N / 16][blocks][block / 8][16] quads; the lower halves are four values of K, the upper halves the next four
    scales    [N / 16][blocks of weights][16]
    digits    scratch [few rows][blocks]: 2^e, the sums of the digits, and the digits

More than a few rows are for `decoded`. Rows with infinities, NaN or numbers of 2^100 and more are multiplied in float32, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.backends.c.kernels.decoded import decoded_rows
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.backends.c.kernels.nest import Extent

__all__ = ["DigitSpec", "digit_product", "pack_codes", "pack_columns"]

Array = npt.NDArray[Any]
PANEL = 16
_GRAIN = 1 << 16  # products that are worth a task


@dataclass(frozen=True)
class DigitSpec:
    """Sizes as of `gemm.GemmSpec`; `offset` and `by_row` say where the rows lie.

    Attributes:
        bits, block, shared, zero, digits: as of `plan.CodedWeights`.
        scales, zeros: numbers of the kernel's buffers.
        few: how many rows are multiplied in digits.
    """

    m: Extent
    n: int
    k: int
    offset: str
    by_row: Extent
    bits: int
    block: int
    shared: int
    zero: int
    digits: int
    scales: int
    zeros: int | None
    few: int


# ---------------------------------------------------------------- packing


def pack_codes(matrix: Array, bits: int, block: int, shift: int) -> npt.NDArray[np.uint8]:
    """Integers [K, N], moved by `shift`, as the kernel reads them."""
    inner, columns = matrix.shape
    depth, width = -(-inner // block) * block, -(-columns // PANEL) * PANEL
    moved = np.zeros((depth, width), np.uint8)
    moved[:inner, :columns] = (matrix.astype(np.int16) + shift).astype(np.uint8)
    quads = moved.reshape(depth // 4, 4, width // PANEL, PANEL).transpose(2, 0, 3, 1)
    if bits == 4:
        pairs = quads.reshape(width // PANEL, depth // 8, 2, PANEL, 4)
        quads = pairs[:, :, 0] | pairs[:, :, 1] << 4
    return np.ascontiguousarray(quads)


def pack_columns(table: Array, turned: bool, blocks: int, columns: int) -> Array:
    """Scales or zero points, of all, of columns or of blocks, as [N / 16][blocks][16]."""
    if table.ndim == 2:
        table = table.T if turned else table
    else:
        table = np.broadcast_to(table.reshape(1, -1), (blocks, columns))
    width = -(-columns // PANEL) * PANEL
    filled = np.zeros((blocks, width), table.dtype)
    filled[:, :columns] = table
    return np.ascontiguousarray(filled.reshape(blocks, width // PANEL, PANEL).swapaxes(0, 1))


# ---------------------------------------------------------------- C text


def digit_product(name: str, spec: DigitSpec, epilogue: str, isa: Isa) -> str:
    """C text of the product as a static function, as of `gemm.gemm`; `scratch` has room for the digits."""
    blocks = -(-spec.k // spec.block)
    stride = blocks * spec.block * PANEL * spec.bits // 8
    scale_rows = -(-blocks // spec.shared)
    zeros = f"const int16_t *zeros = (const int16_t *)env->p[{spec.zeros}] + panel * {scale_rows * PANEL};"
    return f"""\
#include "dot.h"

static inline int64_t {name}_least(int64_t a, int64_t b) {{ return a < b ? a : b; }}

struct {name}_digits {{
    float scale; /* negative in the first block of a row that is not for integers */
    int32_t sums[{spec.digits}];
    int8_t digits[{spec.digits}][{spec.block}];
}};

struct {name}_job {{
    const struct env *env;
    const float *a;
    const uint8_t *codes;
    struct {name}_digits *digits;
    const int64_t *n;
}};

{_cut(name, spec, blocks)}
{_fast(name, spec, isa, blocks)}
{_slow(name, spec, isa)}
{decoded_rows(name, isa, bits=spec.bits, inner=spec.k, shared=spec.block * spec.shared, zero=spec.zero, zeros=spec.zeros is not None)}
static void {name}_panels(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const struct env *env = job->env;
    const int64_t *n = job->n, b = 0; /* all rows are one batch */
    (void)n, (void)b;
    for (int64_t panel = begin; panel < end; panel++) {{
        const uint8_t *codes = job->codes + panel * {stride};
        const float *scales = (const float *)env->p[{spec.scales}] + panel * {scale_rows * PANEL};
        {zeros if spec.zeros is not None else "const int16_t *zeros = 0;"}
        const int64_t count = {name}_least({PANEL}, {spec.n} - panel * {PANEL});
        float sums[64 * {PANEL}] __attribute__((aligned(64)));
        const int64_t rows = {spec.m};
        for (int64_t m = 0; rows > {spec.few} && m < rows; m += 64) {{
            const int64_t taken = {name}_least(64, rows - m);
            {name}_many(job->a + ({spec.offset}) + m * ({spec.by_row}), {spec.by_row}, taken, codes, scales, zeros, sums);
            for (int64_t r = 0; r < taken; r++)
                {epilogue}(env, 0, m + r, panel * {PANEL}, count, sums + r * {PANEL});
        }}
        for (int64_t m = 0; rows <= {spec.few} && m < rows; m++) {{
            const struct {name}_digits *digits = job->digits + m * {blocks};
            if (digits->scale < 0.0f)
                {name}_slow(job->a + ({spec.offset}) + m * ({spec.by_row}), codes, scales, zeros, sums);
            else
                {name}_fast(digits, codes, scales, zeros, sums);
            {epilogue}(env, 0, m, panel * {PANEL}, count, sums);
        }}
    }}
}}

static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)n;
    struct {name}_job job = {{env, a, b, scratch, n}};
    const int64_t rows = {spec.m};
    if (rows <= 0)
        return;
    if (rows <= {spec.few})
        run->parallel(run, rows, 1 + {_GRAIN // 4} / {spec.k}, {name}_rows, &job);
    const int64_t grain = 1 + {_GRAIN} / (rows * {spec.k * PANEL});
    run->parallel(run, {-(-spec.n // PANEL)}, grain, {name}_panels, &job);
}}
"""


def _cut(name: str, spec: DigitSpec, blocks: int) -> str:
    """C text of `<name>_rows`: rows of A into digits."""
    return f"""\
/* `count` numbers as digits; 0 where a row must not be multiplied so. */
static int32_t {name}_cut(struct {name}_digits *to, const float *from, int64_t count) {{
    float values[{spec.block}] = {{0}};
    uint32_t top = 0;
    int32_t sums[{spec.digits}] = {{0}};
    __builtin_memcpy(values, from, (size_t)count * sizeof *from);
    for (int64_t k = 0; k < {spec.block}; k++) {{
        uint32_t bits;
        __builtin_memcpy(&bits, &values[k], sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }}
    uint32_t exponent = top >> 23;
    if (exponent >= 227)
        return 0;
    exponent = exponent < 30 ? 30 : exponent;
    const uint32_t up = ({251 + 8 * spec.digits} - exponent) << 23, down = (exponent - {8 * spec.digits - 3}) << 23;
    float factor;
    __builtin_memcpy(&factor, &up, sizeof factor);
    __builtin_memcpy(&to->scale, &down, sizeof to->scale);
    for (int64_t k = 0; k < {spec.block}; k++) {{
        int32_t rest = (int32_t)(values[k] * factor + (values[k] < 0.0f ? -0.5f : 0.5f));
        for (int64_t d = {spec.digits - 1}; d > 0; d--) {{
            const int32_t digit = ((rest + 128) & 255) - 128;
            to->digits[d][k] = (int8_t)digit;
            sums[d] += digit;
            rest = (rest - digit) >> 8;
        }}
        to->digits[0][k] = (int8_t)rest;
        sums[0] += rest;
    }}
    __builtin_memcpy(to->sums, sums, sizeof sums);
    return 1;
}}

static void {name}_rows(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    const int64_t *n = job->n, b = 0; /* all rows are one batch */
    (void)n, (void)b;
    for (int64_t m = begin; m < end; m++) {{
        const float *from = job->a + ({spec.offset}) + m * ({spec.by_row});
        struct {name}_digits *to = job->digits + m * {blocks};
        int32_t good = 1;
        for (int64_t block = 0; block < {blocks}; block++)
            good &= {name}_cut(to + block, from + block * {spec.block}, {name}_least({spec.block}, {spec.k} - block * {spec.block}));
        if (!good)
            to->scale = -1.0f;
    }}
}}
"""


def _fast(name: str, spec: DigitSpec, isa: Isa, blocks: int) -> str:
    """C text of `<name>_fast`: sixteen columns of one row."""
    lanes = isa.lanes
    vectors = PANEL // lanes
    lines: list[str] = []
    for digit in range(spec.digits):
        start = _start(spec, digit, lanes)
        lines += [
            f"ints s{digit}{v} = {start.format(at=v * lanes)};"
            if start
            else f"ints s{digit}{v} = {{0}};"
            for v in range(vectors)
        ]
    step = 16  # values of K: as many digits as a register of 16 bytes holds
    lines += [f"for (int64_t k = 0; k < {spec.block}; k += {step}) {{"]
    if isa.by_lane:
        lines += [
            f"    const sx_i32x4 d{d} = *(const quads *)(from->digits[{d}] + k);"
            for d in range(spec.digits)
        ]
    else:
        lines += [
            f"    const words *d{d} = (const words *)(from->digits[{d}] + k);"
            for d in range(spec.digits)
        ]
    for pair in range(2 if spec.bits == 4 else 4):
        for v in range(vectors):
            at = 4 * (pair * PANEL + v * lanes)
            lines.append(f"    {{ const ints w = *(const loaded *)(codes + {at});")
            if spec.bits == 8:
                lines += [f"      {_dot(isa, d, v, pair, 'w')}" for d in range(spec.digits)]
            else:
                lines.append(
                    "      const ints low = (ints)((octets)w & 15), high = (ints)((octets)w >> 4);"
                )
                lines += [f"      {_dot(isa, d, v, 2 * pair, 'low')}" for d in range(spec.digits)]
                lines += [
                    f"      {_dot(isa, d, v, 2 * pair + 1, 'high')}" for d in range(spec.digits)
                ]
            lines.append("    }")
    lines.append(f"    codes += {step * PANEL * spec.bits // 8};")
    lines.append("}")
    for v in range(vectors):
        lines += [
            f"{{ const floats whole = {_whole(spec.digits, v)};",
            f"  total{v} += whole * from->scale * *(const scaled *)(scales + {v * lanes}); }}",
        ]
    body = "\n".join(f"        {line}" for line in lines)
    step_on = f"if ((block + 1) % {spec.shared} == 0) " if spec.shared > 1 else ""
    moved = f"scales += {PANEL}" + (f", zeros += {PANEL}" if spec.zeros is not None else "")
    totals = "\n".join(f"    floats total{v} = {{0}};" for v in range(vectors))
    stores = "\n".join(
        f"    __builtin_memcpy(sums + {v * lanes}, &total{v}, sizeof total{v});"
        for v in range(vectors)
    )
    size = lanes * 4
    return f"""\
static inline __attribute__((always_inline)) void {name}_fast(
    const struct {name}_digits *from, const uint8_t *codes, const float *scales, const int16_t *zeros, float *sums) {{
    typedef int32_t ints __attribute__((vector_size({size})));
    typedef uint8_t octets __attribute__((vector_size({size})));
    typedef int32_t loaded __attribute__((vector_size({size}), aligned(4), may_alias));
    typedef float floats __attribute__((vector_size({size})));
    typedef float scaled __attribute__((vector_size({size}), aligned(4)));
    typedef int16_t shorts __attribute__((vector_size({size // 2}), aligned(2)));
    typedef sx_i32x4 quads __attribute__((aligned(4), may_alias));
    typedef int32_t words __attribute__((may_alias));
    (void)zeros, (void)sizeof(shorts), (void)sizeof(octets), (void)sizeof(quads), (void)sizeof(words);
{totals}
    for (int64_t block = 0; block < {blocks}; block++, from++) {{
{body}
        {step_on}{moved};
    }}
{stores}
}}
"""


def _whole(digits: int, vector: int) -> str:
    """C text: the sum over a block, from those of its digits."""

    def floats(sums: str) -> str:
        return f"__builtin_convertvector({sums}, floats)"

    upper = floats(f"s0{vector} * 256 + s1{vector}")
    if digits == 2:
        return upper
    if digits == 3:
        return f"{upper} * 256.0f + {floats(f's2{vector}')}"
    return f"{upper} * 65536.0f + {floats(f's2{vector} * 256 + s3{vector}')}"


def _start(spec: DigitSpec, digit: int, lanes: int) -> str:
    """C text: what zero points take off the sums of a digit; "" where that is nothing."""
    if spec.zeros is not None:
        widened = "__builtin_convertvector(*(const shorts *)(zeros + {at}), ints)"
        return f"{widened} * -from->sums[{digit}]"
    if spec.zero:
        return f"(ints){{{{0}}}} - {spec.zero} * from->sums[{digit}]"
    return ""


def _dot(isa: Isa, digit: int, vector: int, lane: int, weights: str) -> str:
    """C text: four values of K of all columns of a vector."""
    sums = f"s{digit}{vector}"
    if isa.by_lane:
        return f"sx_dot_lane({sums}, d{digit}, {lane}, {weights});"
    return f"{sums} = sx_dot_{isa.lanes}({sums}, {weights}, (ints){{0}} + d{digit}[{lane}]);"


def _slow(name: str, spec: DigitSpec, isa: Isa) -> str:
    """C text of `<name>_slow`: the same by the definition."""
    quad = "k / 4 * 64 + column * 4 + k % 4"
    code = f"codes[{quad}]" if isa.unsigned_bytes else f"(int8_t)codes[{quad}]"
    if spec.bits == 4:
        code = "codes[k / 8 * 64 + column * 4 + k % 4] >> k / 4 % 2 * 4 & 15"
    row = spec.block * spec.shared
    zero = f"zeros[k / {row} * {PANEL} + column]" if spec.zeros is not None else str(spec.zero)
    return f"""\
static void {name}_slow(
    const float *from, const uint8_t *codes, const float *scales, const int16_t *zeros, float *sums) {{
    (void)zeros;
    for (int64_t column = 0; column < {PANEL}; column++) {{
        float total = 0.0f;
        for (int64_t k = 0; k < {spec.k}; k++)
            total += from[k] * ((float)(({code}) - {zero}) * scales[k / {row} * {PANEL} + column]);
        sums[column] = total;
    }}
}}
"""
