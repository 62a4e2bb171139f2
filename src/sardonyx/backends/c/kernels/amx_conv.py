"""Convolutions of float32 through tiles of bfloat16: an output pixel is a row, as in `conv`, and split as in `amx`.

    activations [images, spatial…, channels]      channels last; one group
    weights     packed by pack_tile_filters: K runs over the taps first and the channels last

A step of 32 values of K lies in one tap: its values are somewhere in the image, or zeros where the tap falls into the
padding. Nothing is copied but what is split, and the last channels of a pixel, which zeros fill up to a step.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.amx import Split, split_contraction
from sardonyx.backends.c.kernels.planes import DEPTH, pack_tiles
from sardonyx.backends.c.kernels.windows import ConvSpec

__all__ = ["amx_conv", "pack_tile_filters"]


def pack_tile_filters(weights: NDArray[np.float32], planes: int) -> NDArray[np.uint16]:
    """W[OC, IC, kernel…] as tiles."""
    filters, channels = weights.shape[:2]
    columns = weights.reshape(filters, channels, -1).transpose(2, 1, 0)
    missing = -channels % DEPTH
    if missing:
        columns = np.pad(columns, ((0, 0), (0, missing), (0, 0)))
    return pack_tiles(columns.reshape(-1, filters), planes)


def amx_conv(
    name: str, spec: ConvSpec, epilogue: str, variant: str, *, beforehand: bool = False
) -> str:
    """C text of the convolution as a static function; the epilogue's row is a pixel of an image, as of `conv`."""
    assert spec.groups == 1
    taps = prod(spec.window.kernel)
    depth = taps * -(-spec.channels // DEPTH) * DEPTH
    split = Split(spec.window.pixels, spec.filters, depth, spec.images, _rows(name, spec))
    return split_contraction(name, split, epilogue, variant, beforehand=beforehand)


def _rows(name: str, spec: ConvSpec) -> str:
    window = spec.window
    a_tap, left = -(-spec.channels // DEPTH), spec.channels % DEPTH
    last = f"""\
    if (channel + {DEPTH} > {spec.channels}) {{
        for (int64_t i = 0; i < {DEPTH}; i++)
            values[i] = i < {left} ? from[i] : 0.0f;
        return values;
    }}
"""
    ending = f"""\
    (void)values;
{last if left else ""}\
    return from;
}}
"""
    if {*window.kernel, *window.strides} == {1} and not any(window.pads_begin) and window.input == window.output:  # fmt: skip
        return f"""\
struct {name}_row {{ const float *pixel; }};

static inline struct {name}_row {name}_row(const struct {name}_job *job, int64_t b, int64_t m) {{
    const int64_t *n = job->n;
    (void)n;
    return (struct {name}_row){{job->a + (b * ({window.pixels}) + m) * {spec.channels}}};
}}

static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    const int64_t channel = s * {DEPTH};
    const float *from = row->pixel + channel;
{ending}"""
    axes = range(len(window.kernel))
    tables, corner = [], []
    for axis in axes:
        inner = prod(window.kernel[axis + 1 :])
        steps = ", ".join(
            str(tap // inner % window.kernel[axis] * window.dilations[axis])
            for tap in range(prod(window.kernel))
        )
        tables.append(f"static const int32_t {name}_steps{axis}[] = {{{steps}}};")
    for axis in reversed(axes):
        place = f"m % ({window.output[axis]})" if axis else "m"
        corner.append(f"row.at[{axis}] = {place} * {window.strides[axis]} - {window.pads_begin[axis]};")  # fmt: skip
        corner += [f"m /= {window.output[axis]};"] if axis else []
    sizes = [f"row.size[{axis}] = {window.input[axis]};" for axis in axes]
    pixels = " * ".join(f"row.size[{axis}]" for axis in axes)
    places = [f"const int64_t i{axis} = row->at[{axis}] + {name}_steps{axis}[tap];" for axis in axes]  # fmt: skip
    # One comparison does for both ends: a negative place is a huge unsigned one.
    inside = " & ".join(f"((uint64_t)i{axis} < (uint64_t)row->size[{axis}])" for axis in axes)
    offset = "i0"
    for axis in list(axes)[1:]:
        offset = f"({offset} * row->size[{axis}] + i{axis})"
    return f"""\
{_lines(tables, 0)}
static const float {name}_zeros[{DEPTH}];

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

static inline const float *{name}_step(const struct {name}_row *row, int64_t s, float *values) {{
    const int64_t tap = s / {a_tap}, channel = s % {a_tap} * {DEPTH};
    {_lines(places, 4)}
    const int32_t inside = {inside};
    const float *from = inside ? row->image + {offset} * {spec.channels} + channel : {name}_zeros;
{ending}"""


def _lines(lines: list[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)
