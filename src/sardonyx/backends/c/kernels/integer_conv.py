"""Convolutions of bytes: as `conv`, over quads of channels, into sums of 32 bits.

activations [images, spatial…, channels]     bytes, channels last
weights     packed[groups][OC/NR][taps · IC/groups / 4][NR] of quads     packing.pack_conv_quads

wide    a multiple of 4 channels: a tap is a run of quads, read where it lies; in the padding the pointer is at a
        row of the byte that stands for 0
narrow  any other number: the bytes of all taps are copied to the stack, end to end, and cut into quads there
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from sardonyx.backends.c.kernels.conv import (
    ConvSpec,
    base_nest,
    corner,
    inside,
    offset,
    position,
    sizes_text,
    steps_text,
)
from sardonyx.backends.c.kernels.isa import Isa, Tile
from sardonyx.backends.c.kernels.nest import DEPTH, Nest, choose_blocks, launch, nest_functions
from sardonyx.backends.c.kernels.tile import TileFamily

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
    depth: int = DEPTH,
) -> str:
    """C text of the convolution as a static function, as `conv.conv`; the channels of `spec` are bytes.

    Args:
        padding: the byte that stands for 0.
        flipped: as of `TileFamily`.
    """
    family = TileFamily(name, isa, tile, "i32", flipped=flipped)
    whole = spec.channels // spec.groups % 4 == 0
    nest = (_wide if whole else _narrow)(spec, family, epilogue, padding, depth)
    body = "".join(f"    {line}\n" for line in launch(nest).splitlines())
    taps = prod(spec.window.kernel)
    filler = ""
    if whole:
        count, quad = choose_blocks(nest).depth, f"(int32_t)0x{f'{padding:02x}' * 4}"
        filler = (
            f"static const int32_t {name}_padding[{count}] = {{[0 ... {count - 1}] = {quad}}};\n"
        )
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


def _wide(spec: ConvSpec, family: TileFamily, epilogue: str, padding: int, depth: int) -> Nest:
    spec = replace(spec, channels=spec.channels // 4)
    axes = list(range(len(spec.window.kernel)))
    fill = f"""\
{corner(spec, "int32_t")}
    for (int64_t s = 0; s < segments; s++) {{
        {position(family.name, axes)}
        rows[s][r] = ({inside(axes)}) ? image + {offset(axes)} * {spec.channels} + k0 : {family.name}_padding;
    }}
}}
"""
    nest = replace(base_nest(spec, family, epilogue), most=depth)
    return replace(nest, fill=fill, locals=sizes_text(spec.window))


def _narrow(spec: ConvSpec, family: TileFamily, epilogue: str, padding: int, depth: int) -> Nest:
    window, channels = spec.window, spec.channels // spec.groups
    axes, taps = list(range(len(window.kernel))), prod(window.kernel)
    count = taps * channels
    quads = -(-count // 4)
    nest = replace(base_nest(spec, family, epilogue), segments=1, depth=quads, most=depth)
    fill = f"""\
{corner(spec, "uint8_t")}
    uint8_t *to = (uint8_t *)copied[r];
    rows[0][r] = copied[r] + k0;
    for (int64_t s = 0; s < {taps}; s++) {{
        {position(family.name, axes)}
        if ({inside(axes)})
            __builtin_memcpy(to + s * {channels}, image + {offset(axes)} * {spec.channels}, {channels});
        else
            __builtin_memset(to + s * {channels}, {padding}, {channels});
    }}
    __builtin_memset(to + {count}, 0, {quads * 4 - count});
}}
"""
    buffer = f"int32_t copied[{family.tile.rows}][{quads}];\n"
    return replace(nest, fill=fill, locals=sizes_text(window) + buffer)
