"""Convolution as a product of matrices that is never laid out: an output pixel is a row of A.

    activations [images, spatial…, channels]     channels last
    weights     packed[groups][OC/NR][taps · IC/groups][NR]     packing.pack_conv

K is cut into segments, and every row of a tile has a pointer for every segment:

    wide    a segment is one tap of the kernel; the pointer is into the activations, or at a row of
            zeros where the tap falls into the padding
    narrow  few channels (the first layer has 3): a tap is too short a run. Taps along the last axis
            lie side by side in memory, so a segment is a whole row of the kernel, read in place where it
            lies inside the image, else copied to the stack with zeros for the padding

Both sum the same pieces of K (see `tile`): some taps, or a part of a tap's channels.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE, sum_type, value_reader
from sardonyx.backends.c.kernels.isa import Isa, Tile, rows_collide, tile_of
from sardonyx.backends.c.kernels.nest import (
    DEPTH,
    GAP,
    PLAIN,
    TAPS,
    Loops,
    Nest,
    choose_blocks,
    segments_of_pieces,
)
from sardonyx.backends.c.kernels.tile import PIECE as PRODUCTS
from sardonyx.backends.c.kernels.tile import TileFamily
from sardonyx.backends.c.kernels.windows import (
    NARROW,
    ConvSpec,
    corner,
    in_line,
    inside,
    line_text,
    offset,
    offsets_text,
    pixels,
    position,
    sizes_text,
    steps_text,
    within,
)

PIECE = 128  # products summed in one go where a sum is longer than a matrix product's piece: so do the peers
_SHORT_TAP = 32  # values, whose tiles get functions of their own where they lie in lines
_SHORTEST = 6  # values of a row of the window that is read in place


def conv(
    name: str,
    spec: ConvSpec,
    epilogue: str,
    isa: Isa,
    tile: Tile | None = None,
    depth: int = DEPTH,
    loops: Loops = PLAIN,
    in_registers: bool = False,
    asks: str = "",
) -> str:
    """C text of the convolution as a static function.

    static void <name>(sx_run *run, const struct env *env, const void *a, const void *b,
                       void *scratch, const int64_t *n)

    The epilogue's row is a pixel of an image: (image, pixel, filter, count). `scratch` is not used.

    Args:
        tile: instead of `tile_of(isa, …)`; the weights are packed in panels of its columns.
        depth: values of K in a block.
        loops: other ones around the rows that it reads, with weights as they like them.
        in_registers, asks: as of `nest.Nest`.
    """
    family = TileFamily(name, isa, tile or tile_of(isa, sum_type(spec.b)), spec.b)
    base = base_nest(spec, family, epilogue)
    base = replace(base, most=depth, in_registers=in_registers, asks=asks)
    spec = _without_collisions(spec, family)
    nest = _wide(spec, base) if spec.wide else _narrow(spec, base)
    family = nest.family
    body = "".join(f"    {line}\n" for line in loops.launch(nest).splitlines())
    return f"""\
{_constants(spec, family, nest)}
{loops.functions(nest)}
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)scratch, (void)n;
    struct {name}_job job = {{.env = env, .a = a, .b = b, .n = n}};
{body}}}
"""


def _without_collisions(spec: ConvSpec, family: TileFamily) -> ConvSpec:
    """Neighbouring pixels that would push each other out of the cache are copied."""
    apart = spec.channels * spec.window.strides[-1] * BYTES[family.dtype]
    if spec.copies is None and spec.wide and rows_collide(family.isa, family.tile, apart):
        return replace(spec, copies=True)
    return spec


def base_nest(spec: ConvSpec, family: TileFamily, epilogue: str) -> Nest:
    """What both ways share; the segments are single taps."""
    groups, filters = spec.groups, spec.filters // spec.groups
    return Nest(
        family=family,
        epilogue=epilogue,
        height=spec.window.pixels,
        width=filters,
        batch=spec.images if groups == 1 else f"({spec.images}) * {groups}",
        segments=prod(spec.window.kernel),
        depth=spec.channels // groups,
        panels_of=f"b % {groups} * panels * stride",
        fill="",
        batch_of=f"b / {groups}",
        column_of=f"b % {groups} * {filters} + column",
    )


def _taps_of_piece(spec: ConvSpec, family: TileFamily) -> int:
    """How many taps are summed in one go; 0 where a single one has more channels than that."""
    kernel, channels = spec.window.kernel, spec.channels // spec.groups
    every, taps = prod(kernel), min(PIECE // channels, TAPS)
    if every <= TAPS and every * channels <= PRODUCTS:
        return every
    if _has_rows(spec, family):  # as many rows of the window in every piece, as far as that goes
        rows = prod(kernel[:-1])
        return -(-rows // -(-rows // (taps // kernel[-1]))) * kernel[-1]
    # Whole vectors of A: what is left at the end of a piece takes longer.
    return taps // 4 * 4 if channels % 4 and taps >= 4 else taps


def _has_rows(spec: ConvSpec, family: TileFamily) -> bool:
    """Whether rows of the window had better be summed as they lie, so that none is copied."""
    window, values = spec.window, spec.window.kernel[-1] * spec.channels
    together = window.kernel[-1] > 1 and window.dilations[-1] == 1 and spec.groups == 1
    floats = spec.a == family.dtype and not family.isa.by_lane
    fits = values <= PIECE and window.kernel[-1] <= TAPS
    return floats and together and fits and spec.channels < NARROW and values >= _SHORTEST


def _wide(spec: ConvSpec, nest: Nest) -> Nest:
    nest = replace(nest, family=_in_pieces(spec, nest))
    family, window = nest.family, spec.window
    value, zeros = C_TYPE[spec.a], f"{family.name}_zeros"
    axes = list(range(len(window.kernel)))
    fill = f"""\
{corner(spec, value)}
    if ({within(window, axes)}) {{
        const {value} *from = image + {offset(axes, "p")} * {spec.channels} + k0;
        for (int64_t s = 0; s < segments; s++)
            rows[s][r] = from + offsets[s0 + s];
        continue;
    }}
    for (int64_t s = 0; s < segments; s++) {{
        {position(family.name, axes)}
        const int32_t inside = {inside(axes)};
        rows[s][r] = inside ? image + {offset(axes)} * {spec.channels} + k0 : {zeros};
    }}
}}
"""
    if spec.pointwise:
        fill = pixels(spec, value)
    else:
        fill = in_line(spec, family.name, value, zeros, fill)
    if _lies_in_lines(spec, family):
        pitch = spec.channels * window.strides[-1]
        nest = replace(nest, line=line_text(spec, value), pitch=pitch)
    offsets = offsets_text(family.name, spec, nest.segments, len(axes))
    offsets = "" if spec.pointwise else offsets
    return replace(nest, fill=fill, locals=sizes_text(window) + offsets)


def _lies_in_lines(spec: ConvSpec, family: TileFamily) -> bool:
    """Whether taps are so short that a pointer for every row of a tile and tap takes long: it is written and read again."""
    floats = spec.a == family.dtype == "f32" and not family.isa.by_lane and not family.run
    return floats and not spec.pointwise and spec.channels // spec.groups <= _SHORT_TAP


def _in_pieces(spec: ConvSpec, nest: Nest) -> TileFamily:
    """The family for segments that are taps."""
    taps = _taps_of_piece(spec, nest.family)
    if not taps:
        return replace(nest.family, run=PIECE)
    return replace(nest.family, apart=taps if taps < nest.segments else 0)


def _narrow(spec: ConvSpec, nest: Nest) -> Nest:
    if _reads_rows(spec, nest.family):
        return _rows_in_place(spec, nest)
    taps = _taps_of_piece(spec, nest.family)
    if not taps:
        nest = replace(nest, family=_in_pieces(spec, nest))
        return _copied(spec, nest, axes=len(spec.window.kernel), lowest="0", highest="depth")
    run = taps * spec.channels // spec.groups if taps < nest.segments else 0
    nest = replace(nest, family=replace(nest.family, run=run), merged=True)
    if not _row_segments(spec, nest):
        return _copied(spec, nest, axes=len(spec.window.kernel), lowest="0", highest="depth")
    last = len(spec.window.kernel) - 1
    return _copied(
        spec,
        _by_rows(spec, nest),
        axes=last,
        lowest=f"-p{last} * {spec.channels}",
        highest=f"(size{last} - p{last}) * {spec.channels}",
    )


def _reads_rows(spec: ConvSpec, family: TileFamily) -> bool:
    """Whether rows of the window are read where they lie."""
    return spec.copies is None and _has_rows(spec, family)


def _rows_in_place(spec: ConvSpec, nest: Nest) -> Nest:
    apart = _taps_of_piece(spec, nest.family) // spec.window.kernel[-1]
    nest = _by_rows(spec, nest)
    family = replace(nest.family, apart=apart if apart < nest.segments else 0)
    nest = replace(nest, family=family)
    row = spec.window.kernel[-1] * spec.channels
    name, window, value = family.name, spec.window, C_TYPE[spec.a]
    *outer, last = range(len(window.kernel))
    every = [*outer, last]
    fill = f"""\
{corner(spec, value)}
    const int64_t i{last} = p{last};
    int64_t low = i{last} < 0 ? -i{last} * {spec.channels} : 0, high = (size{last} - i{last}) * {spec.channels};
    low = sx_least(low, {row});
    high = high < low ? low : sx_least(high, {row});
    for (int64_t s = 0; s < segments; s++) {{
        {position(name, outer)}
        const int32_t inside = {inside(outer)};
        rows[s][r] = inside ? image + {offset(every)} * {spec.channels} : {name}_zeros;
        if (inside && high - low < {row}) {{
            for (int64_t k = 0; k < {row}; k++)
                copied[r][s * {row} + k] = k >= low && k < high ? rows[s][r][k] : 0;
            rows[s][r] = copied[r] + s * {row};
        }}
    }}
}}
"""
    fill = in_line(spec, name, value, f"{name}_zeros", fill, whole_rows=True)
    nest = replace(nest, line=line_text(spec, value), pitch=spec.channels * window.strides[-1])
    blocks = choose_blocks(nest)
    length = blocks.segments * blocks.depth + GAP
    buffer = f"{value} copied[{family.tile.rows}][{length}];\n"
    buffer += offsets_text(name, spec, nest.segments, last)
    return replace(nest, fill=fill, locals=sizes_text(window) + buffer)


def _by_rows(spec: ConvSpec, nest: Nest) -> Nest:
    kernel = spec.window.kernel
    return replace(nest, segments=prod(kernel[:-1]), depth=kernel[-1] * spec.channels)


def _row_segments(spec: ConvSpec, nest: Nest) -> bool:
    """Whether taps along the last axis lie side by side, and blocks of whole rows can be whole pieces too."""
    window = spec.window
    if window.kernel[-1] == 1 or window.dilations[-1] != 1 or spec.groups != 1:
        return False
    rows, row = prod(window.kernel[:-1]), window.kernel[-1] * spec.channels
    block = segments_of_pieces(_by_rows(spec, nest)) * row
    return rows == 1 or min(block, rows * row) <= nest.most


def _copied(spec: ConvSpec, nest: Nest, axes: int, lowest: str, highest: str) -> Nest:
    """Segments copied to the stack: `axes` of the kernel are stepped through, the rest is one run."""
    name, window = nest.family.name, spec.window
    value, stored = C_TYPE[nest.family.dtype], C_TYPE[spec.a]
    blocks = choose_blocks(nest)
    every = list(range(len(window.kernel)))
    stepped = every[:axes]
    first, each = "rows[0][r] = copied[r];", ""
    if not nest.merged:
        first, each = "", "rows[s][r] = copied[r] + s * kc;"
    outside = f"if (!({inside(stepped)}))\n            low = high = k0;" if stepped else ""
    fill = f"""\
{corner(spec, stored)}
    {first}
    for (int64_t s = 0; s < segments; s++) {{
        {each}
        {position(name, stepped)}
        {"".join(f"const int64_t i{axis} = p{axis};" for axis in every[axes:])}
        int64_t low = {lowest}, high = {highest};
        low = low < k0 ? k0 : sx_least(low, k0 + kc);
        high = high < low ? low : sx_least(high, k0 + kc);
        {outside}
        {name}_copy(copied[r] + s * kc, image + {offset(every)} * {spec.channels}, k0, kc, low, high);
    }}
}}
"""
    length = blocks.segments * blocks.depth + GAP
    buffer = f"{value} copied[{nest.family.tile.rows}][{length}];\n"
    return replace(nest, fill=fill, locals=sizes_text(window) + buffer)


def _constants(spec: ConvSpec, family: TileFamily, nest: Nest) -> str:
    """Taps as steps along each axis; a row of zeros; how a segment is copied."""
    window, name, value = spec.window, family.name, C_TYPE[spec.a]
    axes = len(window.kernel)
    stepped = axes if nest.segments == prod(window.kernel) else axes - 1
    lines = [steps_text(name, window, stepped, nest.segments)]
    if spec.wide or _reads_rows(spec, family):
        lines.append(f"static const {value} {name}_zeros[{choose_blocks(nest).depth}];")
    else:
        lines.append(_copy_function(spec, family, nest))
    return "\n".join(lines) + "\n"


def _copy_function(spec: ConvSpec, family: TileFamily, nest: Nest) -> str:
    """`<name>_copy`: values [k0, k0 + kc) of a segment; those outside [low, high) are zero."""
    name, value, stored = family.name, C_TYPE[family.dtype], C_TYPE[spec.a]
    if spec.a != family.dtype:
        quick = ""
    else:  # a size that the compiler knows makes a few loads and stores of it
        quick = f"""
    if (low == 0 && high == {nest.depth}) {{
        __builtin_memcpy(to, from, {nest.depth} * sizeof *to);
        return;
    }}"""
    return f"""\
{value_reader(f"{name}_from", spec.a)}
static inline void {name}_copy(
    {value} *to, const {stored} *from, int64_t k0, int64_t kc, int64_t low, int64_t high) {{{quick}
    for (int64_t k = k0; k < low; k++)
        to[k - k0] = 0;
    for (int64_t k = low; k < high; k++)
        to[k - k0] = {name}_from_get(from + k);
    for (int64_t k = high; k < k0 + kc; k++)
        to[k - k0] = 0;
}}
"""
