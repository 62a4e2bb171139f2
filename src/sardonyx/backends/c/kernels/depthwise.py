"""Depthwise convolution, every channel by itself, many channels in a vector; and convolutions of groups of a few channels.

activations [images, spatial…, channels]    weights [taps][filters]     packing.pack_depthwise

task = (image, block of channels, line of output pixels along the last axis)
    for every few pixels of the line           their windows overlap: inputs are used again
        point columns[tap row][j] at what the windows cover; padding is a row of zeros
        for every few vectors of channels
            c[pixel][vector] += columns[tap row][pixel·stride + tap·dilation] * weights[tap]
        epilogue, pixel by pixel

Groups of a few channels, with as many filters, lie side by side in a vector too. Each filter reads all channels of its group, one
after the other, which a shuffle puts in the place of all of them; weights are [taps][channel of a group][filters]:

    x = a b c d  e f g h                c[pixel] += a a a a  e e e e * weights[tap][0]
                                        c[pixel] += b b b b  f f f f * weights[tap][1]   …

Of bytes, x86 multiplies pairs of 16 bits (`support/dot.h`), the second of which is 0 in the weights: whole numbers of 32 bits
take it twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sardonyx.backends.c.kernels.elements import (
    C_TYPE,
    sum_type,
    value_reader,
    vector_reader,
    vector_types,
)
from sardonyx.backends.c.kernels.half_tile import limits
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.backends.c.kernels.nest import SUPPORT, Extent, row_counts
from sardonyx.backends.c.kernels.windows import Window
from sardonyx.plan.kernels import Ending

_CHANNELS = 512  # of a block: sums of a few pixels stay in the first-level cache
_UNROLLED = 8  # taps in a row of the kernel that are written out
_TASK = 1 << 14  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly; neighbouring lines read the same input


@dataclass(frozen=True)
class DepthwiseSpec:
    """`multiplier` filters for every channel; `a` and `b` are the types of activations and weights.

    Attributes:
        zero: what stands for 0 among the activations.
        in_halves: whether float16 is multiplied and summed as such, on CPUs that do; without an ending, sums become float32.
        ending: what becomes of sums of float16, which stay such.
        each: channels of a group, and filters of it; whole groups fill a vector.
    """

    images: Extent
    channels: int
    window: Window
    multiplier: int = 1
    a: str = "f32"
    b: str = "f32"
    zero: int = 0
    in_halves: bool = False
    ending: Ending | None = None
    each: int = 1

    @property
    def filters(self) -> int:
        return self.channels * self.multiplier


@dataclass(frozen=True)
class _Shape:
    """What the text is made of: the widths that fit, and the reach of a kernel's row."""

    name: str
    spec: DepthwiseSpec
    isa: Isa

    @property
    def value(self) -> str:
        """What the epilogue reads."""
        return C_TYPE["f16" if self.spec.ending else sum_type(self.spec.a)]

    @property
    def lanes(self) -> int:
        """Channels in a vector: one by one where there are fewer than a register holds."""
        lanes = self.isa.lanes_of(sum_type(self.spec.a)) * (2 if self.spec.in_halves else 1)
        return lanes if self.spec.filters >= lanes else 1

    @property
    def pairs(self) -> bool:
        """Whether bytes are multiplied as pairs of 16 bits."""
        return self.isa.name in ("avx2", "avx512") and self.spec.b == "i8" and self.lanes > 1

    @property
    def vectors(self) -> int:
        """Vectors at a time: inputs that several pixels share stay in registers, beside the sums."""
        several = self.isa.registers >= 32 and self.spec.filters >= 2 * self.lanes
        return 2 if several and self.spec.each == 1 else 1

    @property
    def width(self) -> int:
        """Channels that are summed at a time."""
        return self.lanes * self.vectors

    @property
    def blocks(self) -> int:
        return -(-self.spec.filters // _CHANNELS)

    @property
    def block(self) -> int:
        """Channels of a block, at most: as many of the widths, and what is left of the last one."""
        whole, rest = divmod(self.spec.filters, self.width)
        return -(-whole // self.blocks) * self.width + rest

    @property
    def pixels(self) -> int:
        """Pixels at a time: more where their windows overlap more."""
        return 6 if self.spec.window.strides[-1] == 1 else 4

    @property
    def counts(self) -> list[int]:
        return row_counts(self.spec.window.output[-1], self.pixels)

    def reach(self, pixels: int) -> int:
        """Input columns under the windows of `pixels` pixels."""
        window = self.spec.window
        return (
            (pixels - 1) * window.strides[-1] + (window.kernel[-1] - 1) * window.dilations[-1] + 1
        )


def depthwise(name: str, spec: DepthwiseSpec, epilogue: str, isa: Isa) -> str:
    """C text of the convolution as a static function; see `conv.conv` for its signature."""
    shape = _Shape(name, spec, isa)
    functions = "\n".join(_pixels_function(shape, count) for count in shape.counts)
    readers = (
        _half_readers(name)
        if spec.in_halves
        else (
            f"{vector_types(f'{name}_s', sum_type(spec.a), shape.lanes)}"
            f"{vector_reader(f'{name}_w', spec.b, shape.lanes)}{_input_reader(shape)}"
        )
    )
    header = '#include "dot.h"\n' if shape.pairs else ""
    return f"""\
{header}{SUPPORT}
{readers}
{functions}
{_task_function(shape, epilogue)}
{_entry(shape)}"""


def _half_readers(name: str) -> str:
    """The same functions for vectors of float16, which are read as they are."""
    return f"""\
#include "halves.h"
typedef sx_h8 {name}_s_v;
static inline sx_h8 {name}_w_load(const _Float16 *p) {{ return *(const sx_h8m *)p; }}
static inline sx_h8 {name}_in(const _Float16 *p, int64_t c) {{ return *(const sx_h8m *)(p + c); }}
"""


def _input_reader(shape: _Shape) -> str:
    """`<name>_in(p, c)`: the inputs of filters c, c + 1, …"""
    name, spec, lanes = shape.name, shape.spec, shape.lanes
    head = f"static inline {name}_s_v {name}_in(const {C_TYPE[spec.a]} *p, int64_t c)"
    moved = f" - ({spec.zero})" if spec.zero else ""
    if spec.multiplier == 1:
        reader = vector_reader(f"{name}_x", spec.a, lanes)
        return f"{reader}{head} {{ return {name}_x_load(p + c){moved}; }}\n"
    values = ", ".join(f"{name}_x_get(p + (c + {i}) / {spec.multiplier})" for i in range(lanes))
    return (
        f"{value_reader(f'{name}_x', spec.a)}{head} {{ return ({name}_s_v){{{values}}}{moved}; }}\n"
    )


def _pixels_function(shape: _Shape, pixels: int) -> str:
    """`<name>_pixels_<n>`: n pixels, channels [first, last), `lines` rows of the kernel."""
    name, spec, lanes = shape.name, shape.spec, shape.lanes
    width = shape.width
    cells = [(t, v) for t in range(pixels) for v in range(shape.vectors)]
    begin = "\n        ".join(f"{name}_s_v s{t}_{v} = {{0}};" for t, v in cells)
    places = {(t, v): f"acc + {t} * {shape.block} + c - first + {v * lanes}" for t, v in cells}
    stored = [f"*({name}_s_m *)({place}) = s{t}_{v};" for (t, v), place in places.items()]
    if spec.ending is not None:
        stored = _shared_by_pixels(spec.ending, shape.vectors, lanes)
        stored += [
            f"*(sx_h8m *)({place}) = sx_half_between(s{t}_{v} + o{v}, low, high);"
            for (t, v), place in places.items()
        ]
    elif spec.in_halves:
        stored = [
            f"*(sx_f4m *)({place}{more}) = sx_half_{part}(s{t}_{v});"
            for (t, v), place in places.items()
            for part, more in (("low", ""), ("high", " + 4"))
        ]
    finish = "\n        ".join(stored)
    return f"""\
static void {name}_pixels_{pixels}(
    const {C_TYPE[spec.a]} *(*columns)[{shape.reach(shape.pixels)}], const {C_TYPE[spec.b]} *const *weights,
    int64_t lines, int64_t first, int64_t last, {_parameters(spec)}{shape.value} *acc) {{
    for (int64_t next = first; next < last; next += {width}) {{
        /* The last vectors overlap the ones before them rather than run over the end. */
        const int64_t c = sx_least(next, last - {width});
        {begin}
        for (int64_t line = 0; line < lines; line++) {{
            const {C_TYPE[spec.b]} *w = weights[line] + c;
{_taps(shape, pixels) if spec.each == 1 else _taps_of_groups(shape, pixels)}        }}
        {finish}
    }}
}}
"""


def _parameters(spec: DepthwiseSpec) -> str:
    return "" if spec.ending is None else "const sx_f16 *offsets, "


def _shared_by_pixels(ending: Ending, vectors: int, lanes: int) -> list[str]:
    """What every pixel's sums of these filters need to be finished."""
    loads = [
        f"const sx_h8 o{v} = *(const sx_h8m *)(offsets + c + {v * lanes});" for v in range(vectors)
    ]
    return [*loads, *limits(ending)]


def _taps(shape: _Shape, pixels: int) -> str:
    """One row of the kernel: every tap's weights times the inputs of every pixel."""
    name, window, lanes = shape.name, shape.spec.window, shape.lanes
    taps, stride, dilation = window.kernel[-1], window.strides[-1], window.dilations[-1]

    def multiplied(total: str, x: str, weights: str) -> str:
        if shape.pairs:
            return f"{total} = sx_pairs_{lanes}({total}, {x}, {weights});"
        return f"{total} += {x} * {weights};"

    def tap(position: str, column: list[str]) -> list[str]:
        half = " & 0xffff" if shape.pairs else ""
        lines = [
            f"const {name}_s_v w{v} = {name}_w_load(w + {position} * {shape.spec.filters} + {v * lanes}){half};"
            for v in range(shape.vectors)
        ]
        lines += [
            multiplied(
                f"s{t}_{v}", f"{name}_in(columns[line][{column[t]}], c + {v * lanes})", f"w{v}"
            )
            for t in range(pixels)
            for v in range(shape.vectors)
        ]
        return lines

    if taps <= _UNROLLED:
        blocks = [
            ["{", *tap(str(k), [str(t * stride + k * dilation) for t in range(pixels)]), "}"]
            for k in range(taps)
        ]
        lines = [line for block in blocks for line in block]
    else:
        body = tap("k", [f"{t * stride} + k * {dilation}" for t in range(pixels)])
        lines = [f"for (int64_t k = 0; k < {taps}; k++) {{", *body, "}"]
    return "".join(f"            {line}\n" for line in lines)


def _taps_of_groups(shape: _Shape, pixels: int) -> str:
    """The same, column by column: a column's channels serve every pixel whose window it lies in."""
    name, spec, window = shape.name, shape.spec, shape.spec.window
    stride, dilation = window.strides[-1], window.dilations[-1]
    readers: dict[int, list[tuple[int, int]]] = {}
    for t in range(pixels):
        for k in range(window.kernel[-1]):
            readers.setdefault(t * stride + k * dilation, []).append((t, k))
    lines: list[str] = []
    for column in sorted(readers):
        lines += ["{", f"    const {name}_s_v x = {name}_in(columns[line][{column}], c);"]
        for j in range(spec.each):
            picked = ", ".join(str(i - i % spec.each + j) for i in range(shape.lanes))
            lines.append(f"    const {name}_s_v x{j} = __builtin_shufflevector(x, x, {picked});")
            for t, k in readers[column]:
                place = (k * spec.each + j) * spec.filters
                lines.append(f"    s{t}_0 += x{j} * {name}_w_load(w + {place});")
        lines.append("}")
    return "".join(f"            {line}\n" for line in lines)


def _task_function(shape: _Shape, epilogue: str) -> str:
    name, spec, window = shape.name, shape.spec, shape.spec.window
    axes, element = len(window.kernel), C_TYPE[spec.a]
    last, outer = axes - 1, prod(window.kernel[:-1])
    sizes = "".join(f"    const int64_t size{d} = {window.input[d]};\n" for d in range(axes))
    sizes += "".join(f"    const int64_t out{d} = {window.output[d]};\n" for d in range(axes))
    lines_of_image = " * ".join(["1", *[f"out{d}" for d in range(last)]])
    places, position = [], "line"
    for axis in reversed(range(last)):
        places.append(
            f"const int64_t p{axis} = {position} % out{axis} * {window.strides[axis]} - {window.pads_begin[axis]};"
        )
        position = f"{position} / out{axis}"
    steps, inside, offset = [], ["1"], "0"
    for axis in range(last):
        inner = prod(window.kernel[axis + 1 : last])
        steps.append(
            f"const int64_t i{axis} = p{axis} + tap / {inner} % {window.kernel[axis]} * {window.dilations[axis]};"
        )
        inside.append(f"(uint64_t)i{axis} < (uint64_t)size{axis}")
        offset = f"({offset} * size{axis} + i{axis})"
    given, tables = "", ""
    if spec.ending is not None:
        given = "offsets, "
        tables = f"    const sx_f16 *offsets = env.p[{spec.ending.offsets}];\n"
    calls = "\n".join(
        f"                case {n}: {name}_pixels_{n}(columns, weights, live, first, final, {given}acc); break;"
        for n in shape.counts
    )
    pixels = " * ".join(f"size{d}" for d in range(axes))
    blocks, first, final = shape.blocks, f"block * {shape.block}", str(spec.filters)
    if blocks > 1:
        border = f"sx_border({spec.filters // shape.width}, {blocks}, %s) * {shape.width}"
        first = border % "block"
        final = f"block + 1 < {blocks} ? {border % 'block + 1'} : {spec.filters}"
    # A group's sums have all their products, for weights may be infinite; a channel by itself leaves out what is in the padding.
    among = " && ".join([*inside, f"(uint64_t)i < (uint64_t)size{last}"][1:])
    if spec.each == 1:
        steps.append(f"if (!({' && '.join(inside)})) continue;")
        among = f"(uint64_t)i < (uint64_t)size{last}"
    return f"""\
struct {name}_job {{
    const struct env *env;
    const void *a, *b;
    const int64_t *n;
}};

static void {name}_lines(void *arg, int64_t begin, int64_t end) {{
    static const {element} zeros[{spec.channels}]{_filled(spec)};
    const struct {name}_job *job = arg;
    /* A copy of its own: what is written to results might change another, as far as a compiler knows. */
    const struct env env = *job->env;
    const int64_t *n = job->n;
{tables}{sizes}    const int64_t lines = {lines_of_image}, tiles = sx_pieces(out{last}, {shape.pixels});
    const {element} *columns[{outer}][{shape.reach(shape.pixels)}];
    const {C_TYPE[spec.b]} *weights[{outer}];
    __attribute__((aligned(64))) {shape.value} acc[{shape.pixels * shape.block}];
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t line = task % lines, block = task / lines % {blocks}, b = task / lines / {blocks};
        const int64_t first = {first}, final = {final};
        const {element} *image = (const {element} *)job->a + b * ({pixels}) * {spec.channels};
        {" ".join(places)}
        for (int64_t tile = 0; tile < tiles; tile++) {{
            const int64_t m = sx_border(out{last}, tiles, tile);
            const int64_t taken = sx_border(out{last}, tiles, tile + 1) - m;
            const int64_t left = m * {window.strides[last]} - {window.pads_begin[last]};
            const int64_t reach = (taken - 1) * {window.strides[last]} + {shape.reach(1)};
            int64_t live = 0;
            for (int64_t tap = 0; tap < {outer}; tap++) {{
                {" ".join(steps)}
                for (int64_t j = 0; j < reach; j++) {{
                    const int64_t i = left + j;
                    columns[live][j] = {among} ? image + ({offset} * size{last} + i) * {spec.channels} : zeros;
                }}
                weights[live++] = (const {C_TYPE[spec.b]} *)job->b + tap * {window.kernel[last] * spec.each * spec.filters};
            }}
            switch (taken) {{
{calls}
            }}
            for (int64_t r = 0; r < taken; r++)
                {epilogue}(&env, b, line * out{last} + m + r, first, final - first, acc + r * {shape.block});
        }}
    }}
}}
"""


def _filled(spec: DepthwiseSpec) -> str:
    """What a row of zeros is initialized with, where 0 is not their number."""
    return f" = {{[0 ... {spec.channels - 1}] = {spec.zero}}}" if spec.zero else ""


def _entry(shape: _Shape) -> str:
    name, spec, window = shape.name, shape.spec, shape.spec.window
    lines = " * ".join(["1", *[f"(int64_t)({size})" for size in window.output[:-1]]])
    blocks = shape.blocks
    work = prod(window.kernel) * spec.each * shape.block
    return f"""\
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    struct {name}_job job = {{env, a, b, n}};
    const int64_t tasks = ({spec.images}) * {lines} * {blocks}, width = {window.output[-1]};
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
