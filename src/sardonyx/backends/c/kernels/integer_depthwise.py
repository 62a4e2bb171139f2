"""Depthwise convolution of bytes, by dot products: the rows of a kernel's column are a quad.

activations [images, height, width, channels]     weights [columns of the kernel][channels] of quads

task = (image, line of output pixels)
    for every few pixels of the line
        for every 16 channels
            for every column of the image under the windows
                the bytes of its rows, zipped: four vectors of a quad a channel
                c[pixel] += quads · weights[tap]      for every window that it lies in
            epilogue, pixel by pixel, out of registers

Where the epilogue is long, or channels are no multiple of 16, so that the last 16 overlap others, sums of all channels wait for
it in memory.
A column is zipped once for all windows that it lies in. Kernels have four rows at most.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec
from sardonyx.backends.c.kernels.nest import SUPPORT, row_counts

__all__ = ["integer_depthwise"]

CHANNELS = 16  # of a step: a register of bytes
_TASK = 1 << 14  # dot products worth a task of their own
_TASKS = 16

_ZIPPED = """\
#include "dot.h"
typedef uint8_t sx_u8x16 __attribute__((vector_size(16)));
typedef uint16_t sx_u16x8 __attribute__((vector_size(16)));
typedef uint8_t sx_bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef int32_t sx_quads __attribute__((vector_size(16), aligned(4), may_alias));
#define SX_LOW(T, a, b) (T)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SX_HIGH(T, a, b) (T)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define SX_LOW_PAIRS(a, b) (sx_i32x4)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SX_HIGH_PAIRS(a, b) (sx_i32x4)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
"""


def integer_depthwise(
    name: str,
    spec: DepthwiseSpec,
    epilogue: str,
    *,
    flipped: bool,
    start: str = "",
    in_registers: bool = False,
) -> str:
    """C text of the convolution as a static function; see `conv.conv` for its signature.

    Args:
        spec: its `zero` is the byte that stands for 0.
        flipped: as of `gemm.Operand`.
        start: as of `tile.TileFamily`.
        in_registers: as of `nest.Nest`.
    """
    window = spec.window
    # Sums of a pixel are four vectors; those of the windows over one column are at work at the same time.
    pixels = 4 if window.strides[1] == 1 else 3
    counts = row_counts(window.output[1], pixels)
    fused = epilogue if in_registers and spec.channels % CHANNELS == 0 else ""
    functions = "\n".join(
        _pixels_function(name, spec, count, pixels, flipped, bool(start), fused) for count in counts
    )
    return f"""\
{SUPPORT}
{_ZIPPED}
{functions}
{_task_function(name, spec, epilogue, pixels, counts, start, bool(fused))}
{_entry(name, spec)}"""


def _reach(spec: DepthwiseSpec, pixels: int) -> int:
    window = spec.window
    return (pixels - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilations[1] + 1


def _pixels_function(
    name: str,
    spec: DepthwiseSpec,
    pixels: int,
    most: int,
    flipped: bool,
    started: bool,
    fused: str,
) -> str:
    """`<name>_pixels_<n>`: n pixels of at most `most`, all channels.

    Args:
        fused: the epilogue, where it takes sums out of registers.
    """
    window = spec.window
    rows, taps = window.kernel
    stride, dilation = window.strides[1], window.dilations[1]
    flip = " ^ 0x80" if flipped else ""
    places = [f"*(const sx_quads *)(start + {4 * v} + c)" for v in range(4)]
    first = places if started else ["{0}"] * 4
    lines = [f"sx_i32x4 s{t}_{v} = {first[v]};" for t in range(pixels) for v in range(4)]
    for column in range(_reach(spec, pixels)):
        uses = [
            (t, k)
            for t in range(pixels)
            for k in range(taps)
            if t * stride + k * dilation == column
        ]
        if not uses:
            continue
        lines.append("{")
        for row in range(4):
            load = f"*(const sx_bytes *)(columns[{row}][{column}] + c){flip}"
            lines.append(f"const sx_u8x16 x{row} = {load if row < rows else '{0}'};")
        lines += [
            "const sx_u16x8 a = SX_LOW(sx_u16x8, x0, x1), b = SX_HIGH(sx_u16x8, x0, x1);",
            "const sx_u16x8 d = SX_LOW(sx_u16x8, x2, x3), e = SX_HIGH(sx_u16x8, x2, x3);",
            "const sx_i32x4 q0 = SX_LOW_PAIRS(a, d), q1 = SX_HIGH_PAIRS(a, d);",
            "const sx_i32x4 q2 = SX_LOW_PAIRS(b, e), q3 = SX_HIGH_PAIRS(b, e);",
        ]
        lines += [
            f"s{t}_{v} = sx_dot_4(s{t}_{v}, q{v}, *(const sx_quads *)(w + {k * spec.channels + 4 * v} + c));"
            for t, k in uses
            for v in range(4)
        ]
        lines += [f"SX_HERE(s{t}_{v});" for t, _ in uses for v in range(4)]
        lines.append("}")
    place = "sums[{t}] + {v}" if fused else f"acc + {{t}} * {spec.channels} + {{v}} + c"
    lines += [f"int32_t sums[{pixels}][{CHANNELS}];"] if fused else []
    lines += [
        f"*(sx_quads *)({place.format(t=t, v=4 * v)}) = s{t}_{v};"
        for t in range(pixels)
        for v in range(4)
    ]
    if fused:
        lines += [
            f"{fused}(&own, batch, pixel + {t}, c, {CHANNELS}, sums[{t}]);" for t in range(pixels)
        ]
    body = "\n        ".join(lines)
    into = "const struct env *env, int64_t batch, int64_t pixel" if fused else "int32_t *acc"
    own = "    const struct env own = *env;\n" if fused else ""
    return f"""\
static void {name}_pixels_{pixels}(
    const uint8_t *(*columns)[{_reach(spec, most)}], const int32_t *w, {into}{", const int32_t *start" if started else ""}) {{
{own}    for (int64_t next = 0; next < {spec.channels}; next += {CHANNELS}) {{
        /* The last vectors overlap the ones before them rather than run over the end. */
        const int64_t c = sx_least(next, {spec.channels - CHANNELS});
        {body}
    }}
}}
"""


def _task_function(
    name: str,
    spec: DepthwiseSpec,
    epilogue: str,
    pixels: int,
    counts: list[int],
    start: str,
    fused: bool,
) -> str:
    window = spec.window
    rows = window.kernel[0]
    into = "&env, b, line * across + m" if fused else "acc"
    arguments = f"columns, job->b, {into}{f', {start}' if start else ''}"
    calls = "\n".join(
        f"                case {n}: {name}_pixels_{n}({arguments}); break;" for n in counts
    )
    acc, finish = "", ""
    if not fused:
        acc = f"    __attribute__((aligned(64))) int32_t acc[{pixels * spec.channels}];\n"
        finish = f"""\
            for (int64_t r = 0; r < taken; r++)
                {epilogue}(&env, b, line * across + m + r, 0, {spec.channels}, acc + r * {spec.channels});
"""
    return f"""\
struct {name}_job {{
    const struct env *env;
    const void *a, *b;
    const int64_t *n;
}};

static void {name}_lines(void *arg, int64_t begin, int64_t end) {{
    static const uint8_t padding[{spec.channels}] = {{[0 ... {spec.channels - 1}] = {spec.zero}}};
    const struct {name}_job *job = arg;
    /* A copy of its own: what is written to results might change another, as far as a compiler knows. */
    const struct env env = *job->env;
    const int64_t *n = job->n;
    const int64_t height = {window.input[0]}, width = {window.input[1]};
    const int64_t lines = {window.output[0]}, across = {window.output[1]};
    const int64_t tiles = sx_pieces(across, {pixels});
    const uint8_t *columns[{rows}][{_reach(spec, pixels)}];
{acc}    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t line = task % lines, b = task / lines;
        const uint8_t *image = (const uint8_t *)job->a + b * height * width * {spec.channels};
        const int64_t top = line * {window.strides[0]} - {window.pads_begin[0]};
        for (int64_t tile = 0; tile < tiles; tile++) {{
            const int64_t m = sx_border(across, tiles, tile);
            const int64_t taken = sx_border(across, tiles, tile + 1) - m;
            const int64_t left = m * {window.strides[1]} - {window.pads_begin[1]};
            for (int64_t row = 0; row < {rows}; row++) {{
                const int64_t y = top + row * {window.dilations[0]};
                for (int64_t j = 0; j < {_reach(spec, pixels)}; j++) {{
                    const int64_t x = left + j;
                    const int32_t inside = ((uint64_t)y < (uint64_t)height) & ((uint64_t)x < (uint64_t)width);
                    columns[row][j] = inside ? image + (y * width + x) * {spec.channels} : padding;
                }}
            }}
            switch (taken) {{
{calls}
            }}
{finish}        }}
    }}
}}
"""


def _entry(name: str, spec: DepthwiseSpec) -> str:
    window = spec.window
    work = window.kernel[1] * spec.channels // 4
    return f"""\
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    struct {name}_job job = {{env, a, b, n}};
    const int64_t tasks = (int64_t)({spec.images}) * ({window.output[0]}), width = {window.output[1]};
    (void)scratch, (void)n;
    if (tasks <= 0 || width <= 0)
        return;
    const int64_t least = 1 + {_TASK} / (1 + width * {work});
    const int64_t grain = tasks / {_TASKS} < least ? least : tasks / {_TASKS};
    if (tasks <= grain)
        {name}_lines(&job, 0, tasks);
    else
        run->parallel(run, tasks, grain, {name}_lines, &job);
}}
"""
