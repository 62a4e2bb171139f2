"""Convolution as a product of matrices that is never laid out: an output pixel is a row of A.

    activations [images, spatial…, channels]     channels last
    weights     packed[groups][OC/NR][taps · IC/groups][NR]     packing.pack_conv

K is cut into segments, and every row of a tile has a pointer for every segment:

    wide    a segment is one tap of the kernel; the pointer is into the activations, or at a row of
            zeros where the tap falls into the padding
    narrow  few channels (the first layer has 3): a tap is too short a run. Taps along the last axis
            lie side by side in memory, so a segment is a whole row of the kernel, copied to the stack
            with zeros for the padding

Both sum the same pieces of K (see `tile`): some taps, or a part of a tap's channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE, sum_type, value_reader
from sardonyx.backends.c.kernels.isa import Isa, Tile, rows_collide, tile_of
from sardonyx.backends.c.kernels.nest import (
    DEPTH,
    GAP,
    PLAIN,
    TAPS,
    Extent,
    Loops,
    Nest,
    choose_blocks,
    segments_of_pieces,
)
from sardonyx.backends.c.kernels.tile import TileFamily
from sardonyx.plan.kernels import Ending

PIECE = 128  # products summed in one go, fewer than those of a matrix product: so do the peers
NARROW = 16  # channels: with fewer than 8, copying wins (3: by a third); from 16 on, pointing does


@dataclass(frozen=True)
class Window:
    """How a kernel moves over an image of one to three dimensions; one number an axis.

    Sizes of images may be C text over the kernel's size symbols.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    input: tuple[Extent, ...]
    output: tuple[Extent, ...]

    @property
    def pixels(self) -> Extent:
        """Output pixels of an image."""
        if all(isinstance(size, int) for size in self.output):
            return prod(size for size in self.output if isinstance(size, int))
        return " * ".join(f"(int64_t)({size})" for size in self.output)


@dataclass(frozen=True)
class ConvSpec:
    """`a` and `b` are the element types of activations and packed weights.

    Attributes:
        copies: whether activations are copied to the stack; None for where a rule says so. Those of another type than the
            sums always are, unless they are multiplied as such.
        in_halves: whether activations of float16 are multiplied as such.
        ending: what becomes of sums of float16, which stay such then; only of kernels in float16.
    """

    images: Extent
    channels: int
    filters: int
    window: Window
    groups: int = 1
    a: str = "f32"
    b: str = "f32"
    copies: bool | None = None
    in_halves: bool = False
    ending: Ending | None = None

    @property
    def wide(self) -> bool:
        """Whether the tile reads activations where they lie."""
        few = self.channels // self.groups < NARROW if self.copies is None else self.copies
        return (self.in_halves or self.a == sum_type(self.b)) and not few

    @property
    def pointwise(self) -> bool:
        """Whether an output pixel is made of the input pixel in its place."""
        window = self.window
        ones = {*window.kernel, *window.strides} == {1}
        return ones and not any(window.pads_begin) and window.input == window.output


def conv(
    name: str,
    spec: ConvSpec,
    epilogue: str,
    isa: Isa,
    tile: Tile | None = None,
    depth: int = DEPTH,
    loops: Loops = PLAIN,
    in_registers: bool = False,
) -> str:
    """C text of the convolution as a static function.

    static void <name>(sx_run *run, const struct env *env, const void *a, const void *b,
                       void *scratch, const int64_t *n)

    The epilogue's row is a pixel of an image: (image, pixel, filter, count). `scratch` is not used.

    Args:
        tile: instead of `tile_of(isa, …)`; the weights are packed in panels of its columns.
        depth: values of K in a block.
        loops: other ones around the rows that it reads, with weights as they like them.
        in_registers: as of `nest.Nest`.
    """
    family = TileFamily(name, isa, tile or tile_of(isa, sum_type(spec.b)), spec.b)
    base = replace(base_nest(spec, family, epilogue), most=depth, in_registers=in_registers)
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


def _taps_of_piece(spec: ConvSpec) -> int:
    """How many taps are summed in one go; 0 where a single one has more channels than that."""
    channels = spec.channels // spec.groups
    taps = min(PIECE // channels, TAPS)
    # Whole vectors of A: what is left at the end of a piece takes longer.
    return taps // 4 * 4 if channels % 4 and taps >= 4 else taps


def _wide(spec: ConvSpec, nest: Nest) -> Nest:
    nest = replace(nest, family=_in_pieces(spec, nest))
    family, window = nest.family, spec.window
    value = C_TYPE[spec.a]
    axes = range(len(window.kernel))
    fill = f"""\
{corner(spec, value)}
    for (int64_t s = 0; s < segments; s++) {{
        {position(family.name, list(axes))}
        const int32_t inside = {inside(list(axes))};
        rows[s][r] = inside ? image + {offset(list(axes))} * {spec.channels} + k0 : {family.name}_zeros;
    }}
}}
"""
    if spec.pointwise:
        fill = pixels(spec, value)
    return replace(nest, fill=fill, locals=sizes_text(window))


def _in_pieces(spec: ConvSpec, nest: Nest) -> TileFamily:
    """The family for segments that are taps."""
    taps = _taps_of_piece(spec)
    if not taps:
        return replace(nest.family, run=PIECE)
    return replace(nest.family, apart=taps if taps < nest.segments else 0)


def _narrow(spec: ConvSpec, nest: Nest) -> Nest:
    taps = _taps_of_piece(spec)
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
    if not spec.wide:
        lines.append(_copy_function(spec, family, nest))
    else:
        lines.append(f"static const {value} {name}_zeros[{choose_blocks(nest).depth}];")
    return "\n".join(lines) + "\n"


def steps_text(name: str, window: Window, stepped: int, segments: int) -> str:
    """C text: how far each segment lies from the window's corner, along each of the first axes."""
    lines = []
    for axis in range(stepped):
        inner = prod(window.kernel[axis + 1 : stepped])
        steps = [
            str(tap // inner % window.kernel[axis] * window.dilations[axis])
            for tap in range(segments)
        ]
        lines.append(f"static const int32_t {name}_steps{axis}[] = {{{', '.join(steps)}}};")
    return "\n".join(lines)


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


def sizes_text(window: Window) -> str:
    """The image sizes as C variables: size0 … and out0 …."""
    axes = range(len(window.kernel))
    sizes = "".join(f"const int64_t size{d} = {window.input[d]};\n" for d in axes)
    # The first output size is never divided by.
    return sizes + "".join(f"const int64_t out{d} = {window.output[d]};\n" for d in list(axes)[1:])


def corner(spec: ConvSpec, element: str) -> str:
    """The loop over a tile's rows: p0 … is where the first tap of the pixel's window lies."""
    window, groups = spec.window, spec.groups
    axes = len(window.kernel)
    pixels = " * ".join(f"size{axis}" for axis in range(axes))
    lines = [
        f"const {element} *image = (const {element} *)job->a + b / {groups} * ({pixels}) * {spec.channels} + b % {groups} * {spec.channels // groups};",
        "for (int64_t r = 0; r < taken; r++) {",
        "    int64_t pixel = m + r;",
    ]
    for axis in reversed(range(axes)):
        place = f"pixel % out{axis}" if axis else "pixel"
        lines.append(
            f"    const int64_t p{axis} = {place} * {window.strides[axis]} - {window.pads_begin[axis]};"
        )
        if axis:
            lines.append(f"    pixel /= out{axis};")
    return "\n".join(lines)


def pixels(spec: ConvSpec, element: str) -> str:
    """As `corner` with all that is in its loop, where the window is a single pixel: they lie side by side."""
    axes = " * ".join(f"size{axis}" for axis in range(len(spec.window.kernel)))
    return f"""\
const {element} *image = (const {element} *)job->a + (b / {spec.groups} * ({axes}) + m) * {spec.channels} + b % {spec.groups} * {spec.channels // spec.groups} + k0;
for (int64_t r = 0; r < taken; r++)
    rows[0][r] = image + r * {spec.channels};
"""


def position(name: str, axes: list[int]) -> str:
    return " ".join(f"const int64_t i{d} = p{d} + {name}_steps{d}[s0 + s];" for d in axes)


def inside(axes: list[int]) -> str:
    # One comparison does for both ends: a negative place is a huge unsigned one.
    return " & ".join(f"((uint64_t)i{d} < (uint64_t)size{d})" for d in axes)


def offset(axes: list[int]) -> str:
    """The pixel (i0, i1, …) as an offset in pixels."""
    text = f"i{axes[0]}"
    for axis in axes[1:]:
        text = f"({text} * size{axis} + i{axis})"
    return text
