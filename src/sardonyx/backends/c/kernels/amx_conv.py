"""Convolutions of float32 through tiles: an output pixel is a row, as in `conv`, and split as in `amx`.

    activations [images, spatial…, channels]      channels last; one group
    weights     packed by pack_tile_filters: K runs over the taps first and the channels last

A step of 32 or 64 values of K lies in one run: the channels of a pixel or, where they fill no steps, of a line of pixels, as
wide as the window. Its values are somewhere in the image, or zeros where the run falls into the padding. Nothing is
copied but what is split, and the end of a run, which zeros fill up to a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.amx import Split, parts_of, split_contraction
from sardonyx.backends.c.kernels.digit_tiles import digit_parts, pack_digits
from sardonyx.backends.c.kernels.planes import DEPTH, pack_tiles
from sardonyx.backends.c.kernels.windows import ConvSpec

__all__ = ["amx_conv", "pack_digit_filters", "pack_tile_filters"]


def pack_tile_filters(weights: NDArray[np.float32], planes: int, runs: int) -> NDArray[np.uint16]:
    """W[OC, IC, kernel…] as tiles of bfloat16."""
    return pack_tiles(_runs(weights, runs, DEPTH), planes)


def pack_digit_filters(weights: NDArray[np.float32], runs: int) -> NDArray[np.uint8]:
    """W[OC, IC, kernel…] as tiles of digits."""
    return pack_digits(_runs(weights, runs, digit_parts().depth))


def _runs(weights: NDArray[np.float32], runs: int, depth: int) -> NDArray[np.float32]:
    """As W[K, OC], each run filled up to whole steps."""
    filters, channels = weights.shape[:2]
    columns = weights.reshape(filters, channels, -1).transpose(2, 1, 0).reshape(runs, -1, filters)
    missing = -columns.shape[1] % depth
    if missing:
        columns = np.pad(columns, ((0, 0), (0, missing), (0, 0)))
    return columns.reshape(-1, filters)


def amx_conv(
    name: str, spec: ConvSpec, epilogue: str, variant: str, runs: int, *, beforehand: bool = False
) -> str:
    """C text of the convolution as a static function; the epilogue's row is a pixel of an image, as of `conv`."""
    assert spec.groups == 1
    values, step = spec.channels * prod(spec.window.kernel) // runs, parts_of(variant).depth
    depth = runs * -(-values // step) * step
    lines, gathered = prod(spec.window.kernel[:-1]), ""
    if runs < lines:
        assert depth <= parts_of(variant).steps * step
        rows, gathered = _gathered(name, spec, values, depth, step)
    else:
        rows = _rows(name, spec, values, step, in_lines=runs < prod(spec.window.kernel))
    split = Split(spec.window.pixels, spec.filters, depth, spec.images, rows, gathered)
    return split_contraction(name, split, epilogue, variant, beforehand=beforehand)


def _rows(name: str, spec: ConvSpec, run: int, depth: int, *, in_lines: bool) -> str:
    """Where a pixel's window begins, and its steps: `run` values of each tap lie side by side."""
    window = spec.window
    alone = window.kernel == window.strides == (1,) * len(window.kernel)
    if alone and not any(window.pads_begin) and window.input == window.output:
        return f"""\
struct {name}_row {{ const float *pixel; }};

static inline struct {name}_row {name}_row(const struct {name}_job *job, int64_t b, int64_t m) {{
    const int64_t *n = job->n;
    (void)n;
    return (struct {name}_row){{job->a + (b * ({window.pixels}) + m) * {spec.channels}}};
}}

static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    const int64_t k = s * {depth};
    const float *from = row->pixel + k;
{_taken(run, depth)}"""
    outer = len(window.kernel) - in_lines
    found = _find_windows(name, spec, outer)
    if in_lines:
        step = _step_of_line(spec.channels, run, depth, outer, found.inside, found.offset)
    else:
        step = f"""\
    const int32_t inside = {found.inside};
    const float *from = inside ? row->image + {found.offset} * {spec.channels} + k : zeros;
"""
    per_run = -(-run // depth)
    return f"""\
{found.text}
static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    static const float zeros[{depth}];
    const int64_t tap = s / {per_run}, k = s % {per_run} * {depth};
    (void)tap;
    {_lines(found.places, 4)}
{step}{_taken(run, depth)}"""


def _gathered(name: str, spec: ConvSpec, inner: int, whole: int, depth: int) -> tuple[str, str]:
    """Rows whose lines lie one behind the other, where a line fills no step: step by step, and all at once."""
    last = len(spec.window.kernel) - 1
    found = _find_windows(name, spec, last)
    run = spec.channels * spec.window.kernel[-1]
    line = f"""\
        {_lines(found.places, 8)}
        const int64_t width = row->size[{last}] * {spec.channels}, first = row->at[{last}] * {spec.channels};
        const int32_t inside = {found.inside};
        const float *from = inside ? row->image + {found.offset} * width + first : 0;
"""
    step = f"""\
{found.text}
static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    for (int64_t i = 0; i < {depth}; i++) {{
        const int64_t tap = (s * {depth} + i) / {run}, at = (s * {depth} + i) % {run};
        values[i] = 0.0f;
        if (tap >= {inner // run})
            continue;
{line}\
        if (inside && (uint64_t)(first + at) < (uint64_t)width)
            values[i] = from[at];
    }}
    return values;
}}
"""
    gather = f"""\
static inline void {name}_gather(const struct {name}_row *row, float *values) {{
    for (int64_t tap = 0; tap < {inner // run}; tap++, values += {run}) {{
{line}\
        if (inside && first >= 0 && first + {run} <= width)
            __builtin_memcpy(values, from, {run} * sizeof *from);
        else
            for (int64_t i = 0; i < {run}; i++)
                values[i] = inside && (uint64_t)(first + i) < (uint64_t)width ? from[i] : 0.0f;
    }}
    for (int64_t i = 0; i < {whole - inner}; i++)
        values[i] = 0.0f;
}}
"""
    return step, gather


@dataclass(frozen=True)
class _Windows:
    """Where a pixel's window is, as C text.

    Attributes:
        text: the row's type, and the function that makes one.
        places: statements with the place of `tap`, axis by axis.
        inside: whether that is in the image.
        offset: which pixel or line of the image it is.
    """

    text: str
    places: list[str]
    inside: str
    offset: str


def _find_windows(name: str, spec: ConvSpec, outer: int) -> _Windows:
    """Taps are places of so many axes: pixels, or lines of them."""
    window = spec.window
    axes = range(len(window.kernel))
    tables, corner = [], []
    for axis in axes[:outer]:
        inner = prod(window.kernel[axis + 1 : outer])
        steps = ", ".join(
            str(tap // inner % window.kernel[axis] * window.dilations[axis])
            for tap in range(prod(window.kernel[:outer]))
        )
        tables.append(f"static const int32_t {name}_steps{axis}[] = {{{steps}}};")
    for axis in reversed(axes):
        place = f"m % ({window.output[axis]})" if axis else "m"
        corner.append(f"row.at[{axis}] = {place} * {window.strides[axis]} - {window.pads_begin[axis]};")  # fmt: skip
        corner += [f"m /= {window.output[axis]};"] if axis else []
    sizes = [f"row.size[{axis}] = {window.input[axis]};" for axis in axes]
    pixels = " * ".join(f"row.size[{axis}]" for axis in axes)
    text = f"""\
{_lines(tables, 0)}

struct {name}_row {{ const float *image; int64_t at[{len(axes)}], size[{len(axes)}]; }};

static inline struct {name}_row {name}_row(const struct {name}_job *job, int64_t b, int64_t m) {{
    const int64_t *n = job->n;
    struct {name}_row row;
    (void)n;
    {_lines(sizes, 4)}
    row.image = job->a + b * ({pixels}) * {spec.channels};
    {_lines(corner, 4)}
    return row;
}}
"""
    # One comparison does for both ends: a negative place is a huge unsigned one.
    inside = [f"((uint64_t)i{axis} < (uint64_t)row->size[{axis}])" for axis in axes[:outer]]
    offset = "0"
    for axis in axes[:outer]:
        offset = f"({offset} * row->size[{axis}] + i{axis})" if axis else "i0"
    places = [f"const int64_t i{axis} = row->at[{axis}] + {name}_steps{axis}[tap];" for axis in axes[:outer]]  # fmt: skip
    return _Windows(text, places, " & ".join(inside) or "1", offset)


def _step_of_line(channels: int, run: int, depth: int, last: int, inside: str, line: str) -> str:  # fmt: skip
    """C text that begins a step of a line of pixels, which may reach over either end of the image."""
    return f"""\
    const int64_t width = row->size[{last}] * {channels}, first = row->at[{last}] * {channels} + k;
    const int64_t count = {run} - k < {depth} ? {run} - k : {depth};
    const int32_t inside = {inside};
    const float *from = inside ? row->image + {line} * width + first : zeros;
    if (inside && (first < 0 || first + count > width)) {{
        for (int64_t i = 0; i < {depth}; i++)
            values[i] = i < count && (uint64_t)(first + i) < (uint64_t)width ? from[i] : 0.0f;
        return values;
    }}
"""


def _taken(run: int, depth: int) -> str:
    """C text that ends a step: what lies behind the run is not read."""
    left = run % depth
    last = f"""\
    if (k + {depth} > {run}) {{
        for (int64_t i = 0; i < {depth}; i++)
            values[i] = i < {left} ? from[i] : 0.0f;
        return values;
    }}
"""
    return f"""\
    (void)values;
{last if left else ""}\
    return from;
}}
"""


def _lines(lines: list[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)
