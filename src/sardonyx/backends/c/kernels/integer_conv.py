"""Convolutions of bytes: as `conv`, over quads of channels, into sums of 32 bits.

activations [images, spatial…, channels]     bytes, channels last
weights     packed[groups][OC/NR][taps · IC/groups / 4][NR] of quads     packing.pack_conv_quads

wide    a multiple of 4 channels: a tap is a run of quads, read where it lies; in the padding the pointer is at a
        row of the byte that stands for 0. Where the sign of bytes must be turned or bytes be widened, they are copied
        for that, once for all filters
narrow  any other number: the bytes of all taps are copied to the stack, end to end, and cut into quads there. Taps of a row
        of the kernel lie side by side in the image, and are copied at once
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from sardonyx.backends.c.kernels.conv import base_nest
from sardonyx.backends.c.kernels.isa import Isa, Tile
from sardonyx.backends.c.kernels.nest import (
    DEPTH,
    Nest,
    choose_blocks,
    copied_words,
    launch,
    nest_functions,
)
from sardonyx.backends.c.kernels.packing import turn_function
from sardonyx.backends.c.kernels.tile import TileFamily, copied_quads, row_done, widened_family
from sardonyx.backends.c.kernels.windows import (
    ConvSpec,
    corner,
    in_line,
    inside,
    offset,
    pixels,
    position,
    sizes_text,
    steps_text,
)

__all__ = ["integer_conv"]


def integer_conv(
    name: str,
    spec: ConvSpec,
    epilogue: str,
    isa: Isa,
    tile: Tile,
    *,
    padding: int,
    flipped: bool,
    less: int = 0,
    depth: int = DEPTH,
    start: str = "",
    split: bool = False,
    in_tiles: bool = False,
    in_registers: bool = False,
) -> str:
    """C text of the convolution as a static function, as `conv.conv`; the channels of `spec` are bytes.

    Args:
        padding: the byte that stands for 0.
        flipped, less: as of `gemm.Operand`.
        start, split: as of `tile.TileFamily`.
        in_tiles, in_registers: as of `nest.Nest`.
    """
    family = TileFamily(name, isa, tile, "i32", start=start, split=split)
    whole = spec.channels // spec.groups % 4 == 0
    if not whole:
        nest = _narrow(spec, family, epilogue, padding, flipped, less, depth)
    else:
        copied = flipped or family.copies_quads
        nest = (
            _copied(spec, family, epilogue, flipped, less, depth)
            if copied
            else _wide(spec, family, epilogue, depth)
        )
    nest = replace(nest, in_tiles=in_tiles, in_registers=in_registers)
    body = "".join(f"    {line}\n" for line in launch(nest).splitlines())
    taps = prod(spec.window.kernel)
    filler = ""
    if whole:
        count, quad = choose_blocks(nest).depth, f"(int32_t)0x{f'{padding:02x}' * 4}"
        filler = (
            f"static const int32_t {name}_padding[{count}] = {{[0 ... {count - 1}] = {quad}}};\n"
        )
        filler += turn_function(name) if flipped and not family.copies_quads else ""
    return f"""\
{steps_text(name, spec.window, len(spec.window.kernel), taps)}
{filler}
{nest_functions(nest)}
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)scratch, (void)n;
    struct {name}_job job = {{env, a, b, n, 1, 1}};
{body}}}
"""


def _wide(spec: ConvSpec, family: TileFamily, epilogue: str, depth: int) -> Nest:
    spec = replace(spec, channels=spec.channels // 4)
    fill = f"""\
{corner(spec, "int32_t")}
    for (int64_t s = 0; s < segments; s++)
        {{ {_tap(spec, family.name)} rows[s][r] = from; }}
}}
"""
    if spec.pointwise:
        fill = pixels(spec, "int32_t")
    else:
        fill = in_line(spec, family.name, "int32_t", f"{family.name}_padding", fill)
    nest = replace(base_nest(spec, family, epilogue), most=depth)
    return replace(nest, fill=fill, locals=sizes_text(spec.window))


def _copied(
    spec: ConvSpec, family: TileFamily, epilogue: str, flipped: bool, less: int, depth: int
) -> Nest:
    spec = replace(spec, channels=spec.channels // 4)

    def filled(into: TileFamily) -> str:
        copied = copied_quads(into, flipped, less, "copied[r]", "from", "kc", "s * kc")
        return f"""\
{corner(spec, "int32_t")}
    rows[0][r] = copied[r];
    for (int64_t s = 0; s < segments; s++)
        {{ {_tap(spec, family.name)} {copied} }}{row_done(into)}
}}
"""

    nest = replace(base_nest(spec, family, epilogue), most=depth, merged=True)
    blocks = choose_blocks(nest)
    words = copied_words(family, blocks.segments * blocks.depth)
    buffer = f"int32_t copied[{family.tile.rows}][{words}];\n"
    widening = filled(widened_family(family)) if family.split else ""
    return replace(
        nest,
        fill=filled(family),
        widening=widening,
        locals=sizes_text(spec.window) + buffer,
    )


def _tap(spec: ConvSpec, name: str) -> str:
    """C text: `from` points at what tap s of the window covers."""
    axes = list(range(len(spec.window.kernel)))
    return (
        f"{position(name, axes)} const int32_t *from = ({inside(axes)}) ? "
        f"image + {offset(axes)} * {spec.channels} + k0 : {name}_padding;"
    )


def _narrow(
    spec: ConvSpec,
    family: TileFamily,
    epilogue: str,
    padding: int,
    flipped: bool,
    less: int,
    depth: int,
) -> Nest:
    window, channels = spec.window, spec.channels // spec.groups
    taps = prod(window.kernel)
    count = taps * channels
    quads = -(-count // 4)
    rest = quads * 4 - count
    nest = replace(base_nest(spec, family, epilogue), segments=1, depth=quads, most=depth)
    words = copied_words(family, choose_blocks(nest).depth) if family.copies_quads else quads
    gathered = f"int32_t gathered[{quads}];\n" if family.copies_quads else ""
    buffer = f"{gathered}int32_t copied[{family.tile.rows}][{words}];\n"

    def filled(into: TileFamily) -> str:
        place, first, turn, beyond = "copied[r]", "copied[r] + k0", "", 0
        if into.copies_quads:
            place, first = "gathered", "copied[r]"
            beyond = less ^ 0x80 * flipped if into.split else 0
            turn = copied_quads(into, flipped, less, first, "gathered + k0", "kc") + row_done(into)
        elif flipped:
            turn = f"for (int64_t k = 0; k < {quads}; k++) copied[r][k] ^= (int32_t)0x80808080;"
        return f"""\
{corner(spec, "uint8_t")}
    uint8_t *to = (uint8_t *){place};
    rows[0][r] = {first};
{_copied_taps(spec, family.name, padding)}
    {f"__builtin_memset(to + {count}, {beyond}, {rest});" if rest else ""}
    {turn}
}}
"""

    widening = filled(widened_family(family)) if family.split else ""
    return replace(nest, fill=filled(family), widening=widening, locals=sizes_text(window) + buffer)


def _copied_taps(spec: ConvSpec, name: str, padding: int) -> str:
    """C text: the bytes of all taps end to end at `to`; those of a whole row of the kernel at once, where they lie so."""
    window, channels = spec.window, spec.channels // spec.groups
    axes, taps, across = list(range(len(window.kernel))), prod(window.kernel), window.kernel[-1]
    last = axes[-1]

    def tap(at: str) -> str:
        return f"""\
if ({inside(axes)})
    __builtin_memcpy(to + ({at}) * {channels}, image + {offset(axes)} * {spec.channels}, {channels});
else
    __builtin_memset(to + ({at}) * {channels}, {padding}, {channels});"""

    if last == 0 or spec.groups > 1 or window.dilations[-1] != 1:
        return f"""\
for (int64_t s = 0; s < {taps}; s++) {{
    {position(name, axes)}
    {tap("s")}
}}"""
    outer = axes[:-1]
    return f"""\
for (int64_t s = 0; s < {taps}; s += {across}) {{
    {position(name, outer)}
    if ({inside(outer)} & (p{last} >= 0) & (p{last} + {across} <= size{last})) {{
        const int64_t i{last} = p{last};
        __builtin_memcpy(to + s * {channels}, image + {offset(axes)} * {channels}, {across * channels});
    }} else {{
        for (int64_t t = 0; t < {across}; t++) {{
            const int64_t i{last} = p{last} + t;
            {tap("s + t")}
        }}
    }}
}}"""
